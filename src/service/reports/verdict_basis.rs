//! The basis of a verdict: the answers that it counts, and its assumptions.

use serde::Serialize;
use utoipa::ToSchema;

use dueling_bandits::evidence::{HeavyUnit, VerdictTracker};
use dueling_bandits::{Duel, Outcome, Tally};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::fold::Fold;

/// Heaviest units that are listed.
const HEAVIEST: usize = 10;
/// Share of experiments in which a person is taken for a machine.
const MISTAKEN: f64 = 0.05;
/// Largest share of lost answers that is tried, and the number of halvings of the range.
const MOST_LOST: f64 = 0.5;
const HALVINGS: u32 = 12;
/// With more rankers, trying takes too long.
const FEW: usize = 64;

/// The answers and assumptions that the verdict rests on.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct VerdictBasis {
    /// Number of answers that it counts.
    pub answers: u64,
    /// How many of these count by the score of their page, in place of a winner: see `verdict:
    /// score` of the interleaving methods.
    pub by_score: u64,
    /// Number of answers that count once no answer of the duels issued before them can come any
    /// more.
    pub waiting: u64,
    /// Only answers of duels issued before this time count; `null` if every answer counts as it
    /// arrives.
    #[schema(format = DateTime)]
    pub complete_until: Option<String>,
    /// The experiment's `answer_window_seconds`.
    pub answer_window_seconds: i64,
    /// Share of the counted and waiting answers that came with a unit, 0 to 1; `null` before the
    /// first answer.
    pub with_unit: Option<f64>,
    /// Number of units of which an answer counts.
    pub units: u64,
    /// Answers that do not count because an earlier answer of their unit does.
    pub left_out_repeated_unit: u64,
    /// Answers that do not count because they came too late.
    pub left_out_late: u64,
    /// Answers that do not count because their cohort had as many as can be kept.
    pub left_out_full: u64,
    /// Answers that do not count because their unit is excluded.
    pub left_out_excluded: u64,
    /// Number of excluded units.
    pub excluded_units: u64,
    /// Probability that a new unit is taken for a known one, and its answer left out.
    pub new_unit_left_out_probability: f64,
    /// The units that answer most, at most 10, with their answers to all duels. One answer of each
    /// counts.
    pub heaviest_units: Vec<HeaviestUnit>,
    /// The verdict holds unless more than this share of the duels that its winner lost never came
    /// back, while none that it won was lost; 0 to 0.5. `null` without a verdict, and with more than
    /// 64 rankers.
    #[schema(example = 0.12)]
    pub holds_unless_lost: Option<f64>,
    /// The assumptions about the answers, in words.
    #[schema(value_type = Vec<String>)]
    pub assumptions: Vec<&'static str>,
}

/// A unit that answers often.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct HeaviestUnit {
    /// Hash of the unit, as in exports.
    #[schema(example = "7f3a09c1d2e4b586")]
    pub unit: String,
    /// Number of its answers, at least: a unit that was not seen for long is counted anew.
    pub answers: u64,
    /// Their share of all answers with a unit.
    pub share: f64,
    /// Of its answers, how many the left side won.
    pub left: u64,
    /// Of its answers, how many the right side won.
    pub right: u64,
    /// Whether it is a machine beyond reasonable doubt. A coin decides which ranker is on the left,
    /// so a person lets each side win half of the time. In at most 5 % of experiments any person is
    /// taken for a machine.
    pub is_machine: bool,
}

impl HeaviestUnit {
    fn of(unit: u64, counts: &HeavyUnit, fold: &Fold) -> Self {
        let all = fold.heavy_units().answers();
        // any of the units seen could have been the odd one
        let units = fold.cohorts().units().max(1) as f64;
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
    let units = fold.heavy_units().heaviest();
    let mut units: Vec<_> =
        units.iter().map(|(unit, counts)| HeaviestUnit::of(*unit, counts, fold)).collect();
    units.sort_by_key(|unit| std::cmp::Reverse(unit.answers));
    units.truncate(HEAVIEST);
    units
}

impl VerdictBasis {
    /// How much loss the verdict for `winner` stands. `tracker` has given it for `tally`.
    pub(super) fn stands(
        &mut self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        winner: usize,
    ) {
        let place = active.iter().position(|&ranker| ranker == winner);
        let Some(place) = place.filter(|_| active.len() <= FEW) else { return };
        let evidence = tracker.evidence(tally, active);
        let holds = |lost: f64| {
            let mut with_lost = tally.clone();
            for (other, &ranker) in active.iter().enumerate().filter(|&(other, _)| other != place) {
                let more = evidence.wins(other, place) * lost / (1.0 - lost);
                let more = more.ceil() as u32;
                with_lost.record_run(Duel::new(ranker, winner), Outcome::First, more);
            }
            let judged = tracker.judge(tracker.target(), &with_lost, active);
            judged.verdict().is_some_and(|verdict| {
                verdict.winners.iter().any(|&certified| usize::from(certified) == winner)
            })
        };
        let (mut stands, mut falls) = (0.0, MOST_LOST);
        for _ in 0..HALVINGS {
            let lost = 0.5 * (stands + falls);
            if holds(lost) { stands = lost } else { falls = lost }
        }
        self.holds_unless_lost = Some(stands);
    }

    pub(super) fn of(fold: &Fold) -> Self {
        let cohorts = fold.cohorts();
        let (with_unit, mut without_unit) = cohorts.answers();
        if cohorts.window_ms() == 0 {
            without_unit = fold.verdict().comparisons().saturating_sub(with_unit);
        }
        let (left_out, waiting) = (cohorts.left_out(), cohorts.waiting());
        let total = with_unit + without_unit;
        let is_in_cohorts = cohorts.window_ms() > 0;
        let complete_until = cohorts.complete_until();
        let mut assumptions = Vec::new();
        if without_unit > 0 || total == 0 {
            assumptions.push(
                "Answers without a unit are independent of each other: no user, session or machine \
                 answers often. Send `unit` with `next-duel` to make this true.",
            );
        }
        if with_unit > 0 {
            assumptions.push("Different units answer independently of each other.");
        }
        let excluded = fold.excluded();
        if excluded.units() > 0 {
            assumptions.push(
                "Which units were excluded, and whether, did not depend on who won their duels.",
            );
        }
        assumptions.push(match is_in_cohorts {
            true => {
                "Whether a duel is answered within `answer_window_seconds` does not depend on who \
                 wins it."
            }
            false => {
                "How long an answer takes, and whether it comes, does not depend on who wins. Set \
                 `answer_window_seconds` above 0 if answers for one side can be slower."
            }
        });
        assumptions.push("Each ranker stays as it is while the experiment runs.");
        Self {
            answers: fold.verdict().comparisons(),
            by_score: fold.verdict().counted().scores().answers(),
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
            assumptions,
        }
    }
}
