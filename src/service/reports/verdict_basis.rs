//! The basis of a verdict: the answers that it counts, and its assumptions.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::orders::next_closes_ms;
use crate::service::reports::statistics::canary_of;
use crate::service::reports::words::share;
use dueling_bandits::Tally;
use dueling_bandits::evidence::loss::Loss;
use dueling_bandits::evidence::{HeavyUnit, VerdictTracker};
use dueling_bandits::orders::Beside;
use dueling_bandits::pairs::pairs_by_strips;
use interleaving::{DepthPolicy, random_clicks_favour_a_side};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::cohorts::SLACK_MS;
use rankduel_engine::fold::Fold;
use rankduel_engine::fold::counts::Counts;
use rankduel_engine::loaded::LoadedExperiment;

/// Most units that are listed as the heaviest.
const HEAVIEST_MAX: usize = 10;
/// Share of experiments in which any person is taken for a machine.
const MISTAKEN: f64 = 0.05;
/// Most rankers for which `holds_unless_lost` is computed: it tries many shares of lost answers.
const LOSS_RANKERS_MAX: usize = 64;
const NO_LOSS: &str = "If answers can get lost where you send them, check that first: a few lost ones could change the \
                       result.";

/// Assumptions of a verdict by orders.
const OF_ORDERS: [&str; 3] = [
    "Orders are lost alike on both sides, and those after `window_seconds` favour no side.",
    "The record of an order arrives within `arrival_seconds`; a short one also shows less of what \
     the window cuts off.",
    "A unit is one person, with the same `unit` on pages and in orders.",
];

/// The answers and assumptions that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VerdictBasis {
    /// Number of answers that the verdict counts.
    pub answers: u64,
    /// How many of these count by the score of their page, in place of a winner: see `verdict:
    /// score` of the interleaving methods.
    pub by_score: u64,
    /// Number of answers that wait: they count once no answer of a duel that was issued before them
    /// can come any more.
    pub waiting: u64,
    /// Only answers of duels issued before this time count; `null` if every answer counts as it
    /// arrives.
    #[schema(format = DateTime)]
    pub complete_until: Option<String>,
    pub answer_window_seconds: i64,
    /// Share of the counted and waiting answers that came with a unit; `null` before the first
    /// answer.
    pub with_unit: Option<f64>,
    /// Number of known units. No further answer of a known unit counts.
    pub units: u64,
    /// Number of answers that do not count because their unit was known.
    pub left_out_repeated_unit: u64,
    /// Number of answers that came too late.
    pub left_out_late: u64,
    /// Number of answers whose cohort had as many as can be kept.
    pub left_out_full: u64,
    /// Number of answers whose unit is excluded.
    pub left_out_excluded: u64,
    pub excluded_units: u64,
    /// Probability that a new unit is taken for a known one.
    pub new_unit_left_out_probability: f64,
    /// The units that answer most, at most 10, with their answers to all duels. One answer of each
    /// counts.
    pub heaviest_units: Vec<HeaviestUnit>,
    /// The verdict holds unless more than this share of the duels was never answered and its winner
    /// lost all of these. `null` without a verdict, and with more than 64 rankers.
    #[schema(example = 0.12)]
    pub holds_unless_lost: Option<f64>,
    /// Share of the duels in the counted cohorts that were not answered in time, since the rankers
    /// last changed. `null` before the first complete cohort, and if every answer counts as it
    /// arrives. These may be pages without a click or lost answers.
    #[schema(example = 0.04)]
    pub unanswered: Option<f64>,
    /// Why the verdict can be wrong more often than it says. While there is a doubt, the experiment
    /// does not conclude by itself, not at a limit either.
    pub doubts: Vec<String>,
    /// The share of lost answers; `None` if there is none, or unanswered duels are no loss.
    #[serde(skip)]
    pub lost: Option<f64>,
    /// Answered duels for each one that had a winner.
    #[serde(skip)]
    answered_each: f64,
    /// A remark for people on how much loss the verdict withstands.
    #[serde(skip)]
    pub remark: Option<&'static str>,
    /// Clicks and late orders, where orders decide.
    #[serde(skip)]
    beside: Option<Beside>,
    /// The assumptions that the verdict rests on, in words.
    #[schema(value_type = Vec<String>)]
    pub assumptions: Vec<&'static str>,
}

/// Answers that the verdict does not count yet, and will. Those to duels from before a change of
/// the rankers wait for the comparison with the control alone.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Waiting {
    #[schema(example = 332)]
    pub answers: u64,
    /// About when the first of these answers count; they count earlier if a server that is alone
    /// has an answer to every duel that was issued before.
    #[schema(format = DateTime)]
    pub next_count_at: String,
    /// The same in Unix milliseconds.
    #[serde(skip)]
    pub next_count_ms: i64,
}

impl Waiting {
    pub(super) fn of(fold: &Fold) -> Option<Self> {
        let cohorts = fold.run().cohorts();
        let counts_at = |start: i64| cohorts.window_end_of(start) + SLACK_MS;
        let (answers, next_count_ms) = match fold.state().baskets.as_deref() {
            None => cohorts.waiting_for_verdict().map(|(answers, at)| (answers, counts_at(at)))?,
            Some(baskets) => {
                let start = |at: i64| cohorts.start_of_cohort(at);
                let counts = |start: &i64| cohorts.verdict_counts(*start);
                // all do, unless the verdict has started again since
                if counts(&start(baskets.oldest()?)) {
                    (baskets.ordered().0, next_closes_ms(fold)?)
                } else {
                    let starts = baskets.expected().map(|(at, _)| start(at)).filter(counts);
                    let starts: Vec<i64> = starts.collect();
                    (starts.len() as u64, counts_at(*starts.iter().min()?))
                }
            }
        };
        let next_count_at = rfc3339(next_count_ms);
        (answers > 0).then_some(Self { answers, next_count_at, next_count_ms })
    }
}

/// A unit that answers often.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct HeaviestUnit {
    /// Hash of the unit, as in exports.
    #[schema(example = "7f3a09c1d2e4b586")]
    pub unit: String,
    /// Number of its answers, or fewer: a unit that was not seen for long is counted anew.
    pub answers: u64,
    /// Share of these answers in all answers with a unit.
    pub share: f64,
    /// Number of its answers that the left side won.
    pub left: u64,
    pub right: u64,
    /// Whether the unit is a machine beyond reasonable doubt. In at most 5 % of experiments any
    /// person is taken for a machine.
    pub is_machine: bool,
}

impl HeaviestUnit {
    fn of(unit: u64, counts: &HeavyUnit, fold: &Fold) -> Self {
        let all = fold.state().heavy_units.answers();
        // the error is shared by all units that were seen
        let units = fold.run().cohorts().units().max(1) as f64;
        let answers = counts.answers - counts.error.min(counts.answers);
        Self {
            unit: format!("{unit:016x}"),
            answers,
            share: answers as f64 / all.max(1) as f64,
            left: counts.left,
            right: counts.right,
            is_machine: counts.ln_evidence() >= (units / MISTAKEN).ln(),
        }
    }
}

fn heaviest(fold: &Fold) -> Vec<HeaviestUnit> {
    let units = fold.state().heavy_units.heaviest();
    let mut units: Vec<_> =
        units.iter().map(|(unit, counts)| HeaviestUnit::of(*unit, counts, fold)).collect();
    units.sort_by_key(|unit| std::cmp::Reverse(unit.answers));
    units.truncate(HEAVIEST_MAX);
    units
}

impl VerdictBasis {
    /// Note how much loss the verdict for `winner` withstands, with a doubt if more may have been
    /// lost. `tracker` has given the verdict for `tally`; `id` is that of the winner.
    pub(super) fn note_loss(
        &mut self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        (winner, id): (usize, &str),
    ) {
        let loss = Loss { tracker, tally, active, winner, answered_each: self.answered_each };
        if active.len() <= LOSS_RANKERS_MAX {
            self.holds_unless_lost = Some(loss.most_withstood());
        }
        let lost = self.lost.unwrap_or(0.0);
        if lost > 0.0 && !loss.is_withstood(lost) {
            let most = match self.holds_unless_lost {
                Some(0.0) => " It withstands the loss of none of them.".into(),
                Some(most) => format!(" It withstands the loss of {}.", share(most)),
                None => String::new(),
            };
            self.doubts.push(format!(
                "{} of the duels in its cohorts were not answered in time. If `{id}` lost all of \
                 these, the verdict does not hold.{most}",
                share(lost)
            ));
        } else if self.holds_unless_lost == Some(0.0) {
            self.remark = Some(NO_LOSS);
        }
        if self.beside.as_ref().is_some_and(|it| it.cuts_off(tracker, tally, active, winner)) {
            self.doubts.push(cut_off(id));
        }
    }

    pub(super) fn of(fold: &Fold) -> Self {
        let cohorts = fold.run().cohorts();
        let (with_unit, without_unit) = cohorts.answers();
        let baskets = fold.state().baskets.as_deref();
        let waiting = Waiting::of(fold).map_or(0, |waiting| waiting.answers);
        let (left_out, excluded) = (cohorts.left_out(), &fold.state().excluded);
        let total = with_unit + without_unit;
        let is_in_cohorts = cohorts.window_ms() > 0;
        let complete_until = cohorts.complete_until();
        Self {
            answers: fold.run().verdict().comparisons(),
            by_score: fold.run().verdict().counted().scores().answers(),
            waiting,
            complete_until: (is_in_cohorts && complete_until > 0).then(|| rfc3339(complete_until)),
            answer_window_seconds: cohorts.window_ms() / 1000,
            with_unit: (total > 0).then(|| with_unit as f64 / total as f64),
            units: cohorts.units(),
            left_out_repeated_unit: left_out.repeated_unit,
            left_out_late: left_out.late,
            left_out_full: left_out.full,
            left_out_excluded: excluded.answers(),
            excluded_units: excluded.units() as u64,
            new_unit_left_out_probability: cohorts.mistake_probability(),
            heaviest_units: heaviest(fold),
            holds_unless_lost: None,
            unanswered: cohorts.unanswered(),
            lost: lost(fold),
            answered_each: answered_each(&fold.state().counts, fold.run().policy().tally()),
            doubts: unfair_method(fold).into_iter().chain(biased(fold)).collect(),
            remark: None,
            beside: baskets.map(|baskets| baskets.left().beside.clone()),
            assumptions: assumptions(fold),
        }
    }
}

/// The doubt `orders-cut-off`.
fn cut_off(winner: &str) -> String {
    format!(
        "More orders of rivals of `{winner}` come after the window. If three times as many are cut \
         off as were seen, the verdict does not hold: try a longer window in another experiment."
    )
}

/// The assumptions of the verdict, in words.
fn assumptions(fold: &Fold) -> Vec<&'static str> {
    let (with_unit, without_unit) = fold.run().cohorts().answers();
    let mut assumptions = Vec::new();
    let has_units = with_unit > 0 || fold.state().baskets.is_some();
    if without_unit > 0 || !has_units {
        assumptions.push(
            "Answers without a unit are independent of each other: no user, session or machine \
             answers often. Send `unit` with `next-duel` to make this true.",
        );
    }
    if has_units {
        assumptions.push("Different units answer independently of each other.");
    }
    if fold.state().excluded.units() > 0 {
        assumptions
            .push("Which units were excluded, and whether, did not depend on who won their duels.");
    }
    if fold.state().baskets.is_some() {
        assumptions.extend(OF_ORDERS);
    }
    assumptions.push(match fold.run().cohorts().window_ms() > 0 {
        _ if fold.state().baskets.is_some() => "What enters the experiment later is like what did.",
        true => {
            "Whether a duel is answered within `answer_window_seconds` does not depend on who \
             wins it."
        }
        false => {
            "How long an answer takes, and whether it comes, does not depend on who wins. Set \
             `answer_window_seconds` above 0 if answers for one side can be slower."
        }
    });
    if silence_is_no_click(fold) {
        assumptions.push(
            "An interleaved page without feedback had no click: no such page was reported. \
             Report them with empty `clicks`, so that lost answers show.",
        );
    }
    assumptions.push("Each ranker stays as it is while the experiment runs.");
    assumptions
}

/// Whether callers report the clicks on interleaved pages, and never a page without a click. This
/// is how a request for each click, or an event of user behaviour, works: silence is then no loss.
fn silence_is_no_click(fold: &Fold) -> bool {
    let (mut pages, mut without_click) = (0, 0);
    for (_, counts) in fold.state().page_counts.all() {
        pages += counts.pages();
        without_click += counts.no_click;
    }
    pages > 0 && without_click == 0
}

/// The share of duels in the counted cohorts whose answers are lost.
fn lost(fold: &Fold) -> Option<f64> {
    let unanswered = fold.run().cohorts().unanswered().filter(|share| *share > 0.0)?;
    (!silence_is_no_click(fold)).then_some(unanswered)
}

/// Answered duels for each one that had a winner, so far.
pub(super) fn answered_each(counts: &Counts, tally: &Tally) -> f64 {
    let pairs = pairs_by_strips(tally.rankers());
    let decided = pairs.map(|(i, j)| tally.half_plays(i, j)).sum::<u64>() as f64 / 2.0;
    (counts.answered_duels() as f64 / decided.max(1.0)).max(1.0)
}

/// The doubt about the first method that made pages and lets one side win more often by chance.
fn unfair_method(fold: &Fold) -> Option<String> {
    let made_pages = |version| fold.state().page_counts.version(version).next().is_some();
    let mut methods =
        (1..).zip(fold.state().methods.all()).map(|(version, it)| (version, &it.method));
    let (_, method) = methods
        .find(|&(version, method)| made_pages(version) && random_clicks_favour_a_side(method))?;
    let uncut = match method.depth_policy {
        DepthPolicy::Uncut => " and `depth_policy: uncut`",
        DepthPolicy::Min | DepthPolicy::Max => "",
    };
    Some(format!(
        "Pages were interleaved by `{}`{uncut}: random clicks favour a side with this method, so a \
         verdict can follow from noise.",
        method.method.kind()
    ))
}

/// The doubt of a canary whose two ids differ.
fn biased(fold: &Fold) -> Option<String> {
    let canary = canary_of(&fold.state().spec, &fold.state().counts)?;
    canary.alarm.then(|| {
        format!(
            "The two ids of the canary, `{}` and `{}`, differ, although they are one ranker: \
             something between the ranking and the click is biased, and a verdict can follow from \
             that.",
            canary.ranker, canary.against
        )
    })
}

/// A doubt about a verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    /// The pair (winner, rival) whose duels would lessen the doubt; `None` if no duels would.
    pub duel: Option<(usize, usize)>,
}

/// The doubt about the verdict at the current log position. Takes long with many rankers.
pub(crate) fn doubt(loaded: &LoadedExperiment) -> Result<Option<Doubt>, ServiceError> {
    let (tracker, tally, roster, lost, answered_each) = {
        let fold = loaded.fold()?;
        if unfair_method(&fold).or_else(|| biased(&fold)).is_some() {
            return Ok(Some(Doubt { duel: None }));
        }
        let beside = fold.state().baskets.as_deref().map(|baskets| baskets.left().beside.clone());
        if let (Some(beside), Some(verdict)) = (beside, fold.run().verdict().verdict()) {
            let (tracker, tally) = (fold.run().verdict(), fold.run().policy().tally());
            let active = fold.run().roster().active();
            if beside.cuts_off(tracker, tally, active, verdict.winner()) {
                return Ok(Some(Doubt { duel: None }));
            }
        }
        let Some(lost) = lost(&fold) else { return Ok(None) };
        let (tally, roster) = (fold.run().policy().tally().clone(), fold.run().roster().clone());
        let answered_each = answered_each(&fold.state().counts, &tally);
        (fold.run().verdict().clone(), tally, roster, lost, answered_each)
    };
    let (active, verdict) = (roster.active(), tracker.verdict());
    let doubted = verdict.map(|verdict| verdict.winner()).filter(|&winner| {
        let (tracker, tally) = (&tracker, &tally);
        !Loss { tracker, tally, active, winner, answered_each }.is_withstood(lost)
    });
    Ok(doubted.map(|winner| {
        let standing = tracker.standing(&tally, active, winner);
        // against a rival that beats the winner, more duels prove nothing
        let beaten = standing.rivals.iter().filter(|&&(rival, _)| tally.leads(winner, rival));
        let nearest = beaten.min_by(|(_, one), (_, other)| one.total_cmp(other));
        Doubt { duel: nearest.map(|&(rival, _)| (winner, rival)) }
    }))
}
