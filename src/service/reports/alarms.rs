//! Alarms on the traffic of an experiment, with the likely cause and the action to take.
//!
//! Each alarm is a rule on counts in memory; none reads the log. Shares of feedback are those of
//! the shortest recent window with enough of it, so that an alarm comes soon after its cause and
//! goes soon after the repair. `docs/operations.md` describes each.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::drift::changed;
use crate::service::reports::traffic::{BatchSummary, TrafficSummary};
use dueling_bandits::BatchProgress;
use dueling_bandits::claims::alone::SPLIT_ERROR;
use dueling_bandits::evidence::balance::{Cell, Kind, Worst, coin_evidence};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_engine::traffic::{Look, WINDOWS_MS};

/// Fewest pieces of feedback, or duels, for a rule on a share.
const ENOUGH: u64 = 50;
/// Remark for experiments whose pages the service does not make: it learns of a page only by its
/// answer.
const CLICKS_ONLY: &str = " If pages without a click are not reported, it is enough that one ranker gets fewer clicks: make \
                           pages with `interleave`, or report `none` for pages without a click.";
/// Least share of pages that teach nothing, in percent, for an alarm about a cause of that.
const SILENT_PERCENT: f64 = 80.0;
/// Least share of all pages, in percent, that such a cause has.
const CAUSE_PERCENT: f64 = 10.0;
/// Evidence that raises an alarm about the whole log. Without a defect, each of these checks ever
/// reaches it in at most one of a thousand experiments, however often it is looked at. There are
/// three: the sides of wins, the sides of pages and the canary.
pub(super) const LOG_EVIDENCE: f64 = 1000.0;
/// Evidence that raises an alarm about what this server has issued since it loaded the experiment.
/// There are two such checks, so together they are wrong once in a thousand times that a server
/// loads an experiment. Together with the three checks of the whole log, they raise a false alarm
/// in at most 5 % of healthy experiments that are loaded up to 47 times.
pub const SERVER_EVIDENCE: f64 = 2000.0;

/// An alarm that is on; docs/operations.md has a section on each kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Alarm {
    #[schema(example = "late-feedback")]
    pub kind: &'static str,
    pub title: &'static str,
    /// The numbers that raised it.
    pub detail: String,
    pub cause: &'static str,
    pub action: &'static str,
}

/// The kind with this name; `None` if another version has it.
pub fn kind(slug: &str) -> Option<&'static AlarmKind> {
    KINDS.iter().find(|kind| kind.slug == slug)
}

impl AlarmKind {
    /// It is on, for this reason.
    pub(crate) fn alarm(self, detail: String) -> Alarm {
        Alarm { kind: self.slug, title: self.title, detail, cause: self.cause, action: self.action }
    }

    /// Whether it rests on what one server has issued and received since it loaded the experiment.
    pub fn is_of_one_server(&self) -> bool {
        let counts = [NO_FEEDBACK, LATE, INVALID, CONFLICTS, REPEATS, UNANSWERED];
        counts.contains(self) || self.is_evidence()
    }

    /// Whether it follows from the log alone, and not from the time either.
    pub fn is_of_log(&self) -> bool {
        !self.is_of_one_server() && ![BATCH_STUCK, CLOCK_AHEAD].contains(self)
    }

    /// Whether it rests on such counts and is proven: what comes later does not disprove it.
    pub fn is_evidence(&self) -> bool {
        [UNEVEN, DRAFTS].contains(self)
    }

    /// Whether it says nothing against a result by orders.
    pub fn is_beside_result(&self) -> bool {
        *self == CLICKS_MISLEAD
    }

    /// Whether the result may be wrong or out of date.
    pub fn is_about_result(&self) -> bool {
        self.is_evidence() || [SIDES, DRIFT, UNEVEN_ARMS].contains(self)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The duels with the most uneven share of answers or pages, and those they are compared with.
fn compared(worst: &Worst, by_page: bool, name: &dyn Fn(u16) -> String) -> String {
    let done = if by_page { "interleaved here" } else { "answered" };
    let (one, other) = (name(worst.pair.0), name(worst.pair.1));
    let answered = |cell: Cell| percent(cell.answered, cell.issued);
    let (own, others) = (answered(worst.cell), answered(worst.others));
    match worst.kind {
        Kind::Pairs => {
            format!("`{one}` with `{other}`: {own:.1} % {done}, all other pairs {others:.1} %.")
        }
        Kind::Sides => format!(
            "`{one}` left of `{other}`: {own:.1} % {done}, `{other}` left of `{one}` {others:.1} %."
        ),
    }
}

/// Evidence beyond this has more digits than meaning.
const RARE: f64 = 1e6;

/// In how many experiments chance alone reaches this evidence once.
fn rarity(evidence: f64) -> String {
    match evidence < RARE {
        true => format!("{evidence:.0}"),
        false => "a million".into(),
    }
}

/// The alarms that are raised so far.
#[derive(Default)]
struct Raised(Vec<Alarm>);

impl Raised {
    fn raise_if(&mut self, is_on: bool, kind: AlarmKind, detail: impl FnOnce() -> String) {
        if is_on {
            self.0.push(kind.alarm(detail()));
        }
    }
}

/// The traffic of an experiment through this process, and the alarms that are on. Computed on the
/// threads for reports. If these are overloaded or too slow, on this one: it takes little time.
pub async fn traffic(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
    let (read, now_ms) = (Arc::clone(loaded), service.now_ms());
    let of = Arc::clone(loaded);
    let copy = move || TrafficSummary::of(&read, now_ms);
    let reported = service.reports.compute(copy, move |traffic| with_alarms(&of, traffic));
    match service.reports.in_time(reported).await? {
        Some(done) => Ok(done),
        None => traffic_now(service, loaded),
    }
}

/// As [`traffic`], on this thread.
pub fn traffic_now(
    service: &Service,
    loaded: &LoadedExperiment,
) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
    Ok(with_alarms(loaded, TrafficSummary::of(loaded, service.now_ms())?))
}

fn with_alarms(loaded: &LoadedExperiment, traffic: TrafficSummary) -> (TrafficSummary, Vec<Alarm>) {
    let name = |ranker| loaded.spec.rankers[usize::from(ranker)].id.clone();
    let alarms = alarms(&traffic, &name);
    (traffic, alarms)
}

/// The alarms that are on. `name` returns the id of a ranker.
pub fn alarms(traffic: &TrafficSummary, name: &dyn Fn(u16) -> String) -> Vec<Alarm> {
    let mut raised = Raised::default();
    check_feedback(traffic, &mut raised);
    check_answered(traffic, name, &mut raised);
    check_sides(traffic, &mut raised);
    check_silent_pages(traffic, &mut raised);
    check_claims(traffic, name, &mut raised);
    check_batch(traffic, &mut raised);
    check_clock(traffic, &mut raised);
    raised.0
}

/// Whether `part` is at least this share of `whole`, of which there is enough.
fn is_share(part: u64, whole: u64, at_least_percent: f64) -> bool {
    whole >= ENOUGH && percent(part, whole) >= at_least_percent
}

/// The shortest recent window with at least this many of what `of` counts.
fn window(traffic: &TrafficSummary, enough: u64, of: impl Fn(&Look) -> u64) -> Option<&Look> {
    traffic.counts.recent.iter().find(|look| of(look) >= enough)
}

/// The time of a window, at the end of a sentence.
fn period(look: &Look, traffic: &TrafficSummary) -> String {
    match (look.at_ms == traffic.counts.since_ms, (traffic.now_ms - look.at_ms) / 60_000) {
        (true, _) => "since this server loaded the experiment".into(),
        (false, minutes) if minutes < 120 => format!("in the last {minutes} minutes"),
        (false, minutes) => format!("in the last {} hours", minutes / 60),
    }
}

/// The shortest window in which feedback would have arrived: of twice the usual delay.
fn window_of_silence(traffic: &TrafficSummary) -> &Look {
    let [short, .., long] = &traffic.counts.recent;
    let delay = traffic.delay();
    if delay.answers == 0 {
        return short;
    }
    let is_long = |ms: i64| delay.p99_seconds.is_some_and(|delay| ms as f64 >= 2000.0 * delay);
    let windows = WINDOWS_MS.into_iter().zip(&traffic.counts.recent);
    windows.into_iter().find(|(ms, _)| is_long(*ms)).map_or(long, |(_, look)| look)
}

/// Feedback that does not arrive or does not count.
fn check_feedback(traffic: &TrafficSummary, raised: &mut Raised) {
    use FeedbackStatus::{Conflict, Duplicate, Expired, Invalid, Recorded};
    let all = |look: &Look| look.feedback.iter().sum::<u64>();
    let silent = window_of_silence(traffic);
    let has_come = silent.answers + all(silent) > 0;
    let is_missing = traffic.running && silent.pairs >= 2 * ENOUGH && !has_come;
    raised.raise_if(is_missing, NO_FEEDBACK, || {
        let last = traffic.counts.last_feedback_ms.map(rfc3339);
        let last = last.map_or(String::new(), |at| format!(" The last one came at {at}."));
        let (pairs, period) = (silent.pairs, period(silent, traffic));
        format!("{pairs} duels were issued here {period}, and no feedback has arrived.{last}")
    });
    let in_time_or_not = |look: &Look| look.feedback_with(Recorded) + look.feedback_with(Expired);
    type Of = fn(&Look) -> u64;
    let rules: [(_, _, Of, _, _); 4] = [
        (LATE, Expired, in_time_or_not, 5.0, "answers arrived too late"),
        (INVALID, Invalid, all, 5.0, "pieces of feedback were refused"),
        (CONFLICTS, Conflict, all, 2.0, "pieces of feedback contradict an earlier one"),
        (REPEATS, Duplicate, all, 50.0, "pieces of feedback are repeats"),
    ];
    for (kind, status, of, at_least, what) in rules {
        let Some(look) = window(traffic, ENOUGH, of) else { continue };
        let (part, of) = (look.feedback_with(status), of(look));
        raised.raise_if(is_share(part, of, at_least), kind, || {
            format!("{:.0} % of {of} {what} {}.", percent(part, of), period(look, traffic))
        });
    }
}

/// Duels that are not answered, altogether or for some pairs or sides.
fn check_answered(traffic: &TrafficSummary, name: &dyn Fn(u16) -> String, raised: &mut Raised) {
    if traffic.by_orders {
        return;
    }
    let ended = &traffic.counts.ended;
    let has_feedback = traffic.counts.feedback.iter().any(|&count| count > 0);
    if let Some(look) = window(traffic, 2 * ENOUGH, |look| look.ended.issued) {
        let Cell { issued, answered } = look.ended;
        raised.raise_if(has_feedback && 2 * answered < issued, UNANSWERED, || {
            let missing = percent(issued - answered, issued);
            let period = period(look, traffic);
            format!("{missing:.0} % of {issued} duels expired without an answer {period}.")
        });
    }
    if let Some(worst) = &ended.worst {
        raised.raise_if(ended.evidence >= SERVER_EVIDENCE, UNEVEN, || {
            format!(
                "{} Shares this uneven come up in at most one of {} experiments in which no pair matters.{}",
                compared(worst, ended.by_page, name),
                rarity(ended.evidence),
                if ended.by_page { "" } else { CLICKS_ONLY }
            )
        });
    }
}

/// Coins that are not fair: which side of a page wins, and which ranker of a pair drafts first.
fn check_sides(traffic: &TrafficSummary, raised: &mut Raised) {
    let [left, right, ..] = traffic.shown;
    raised.raise_if(coin_evidence(left, right) >= LOG_EVIDENCE, SIDES, || {
        format!("Left won {:.1} % of {} decided pages.", percent(left, left + right), left + right)
    });
    let drafts = traffic.counts.drafts;
    let evidence = coin_evidence(drafts.lower, drafts.higher);
    raised.raise_if(evidence >= SERVER_EVIDENCE, DRAFTS, || {
        let pages = drafts.lower + drafts.higher;
        format!(
            "The ranker that is listed first drafted first on {:.1} % of {pages} pages.",
            percent(drafts.lower, pages)
        )
    });
}

/// Pages that teach nothing.
fn check_silent_pages(traffic: &TrafficSummary, raised: &mut Raised) {
    let (pages, silent) = (traffic.shown.iter().sum::<u64>(), traffic.silent);
    let mostly_silent = is_share(silent.total(), pages, SILENT_PERCENT);
    for (kind, count, what) in [
        (NO_CLICKS, silent.no_click, "got no click"),
        (NO_CREDIT, silent.no_credit, "got clicks, but none that earns credit"),
        (SAME_RANKINGS, silent.same_rankings, "were made of two equal rankings"),
    ] {
        raised.raise_if(mostly_silent && is_share(count, pages, CAUSE_PERCENT), kind, || {
            format!(
                "{:.0} % of {pages} pages {what}. {:.0} % of all pages teach nothing.",
                percent(count, pages),
                percent(silent.total(), pages)
            )
        });
    }
}

/// Claims of the folded state that need a person.
fn check_claims(traffic: &TrafficSummary, name: &dyn Fn(u16) -> String, raised: &mut Raised) {
    if let Some(alarm) = &traffic.drift {
        raised.raise_if(true, DRIFT, || changed(alarm, name));
    }
    for (split, what) in traffic.alone.iter().flatten().zip(["got a page alone", "answered one"]) {
        raised.raise_if(split.uneven_since().is_some(), UNEVEN_ARMS, || {
            let [leader, control] = split.units();
            format!(
                "Of {} units that {what}, {leader} are to see the leader and {control} the control. \
                 Shares this uneven come up in at most one of {:.0} experiments without a defect.",
                leader + control,
                1.0 / SPLIT_ERROR
            )
        });
    }
    if let Some(duel) = traffic.misleading.first() {
        let [clicks, orders] = [duel.first, duel.second].map(|ranker| name(ranker as u16));
        raised.raise_if(true, CLICKS_MISLEAD, || {
            format!(
                "Clicks prefer `{clicks}`, orders prefer `{orders}`. This is wrong in at most 10 % of \
                 experiments."
            )
        });
    }
    raised.raise_if(!traffic.silences.is_empty(), VALUES_MISSING, || traffic.silences.join(" "));
}

/// An open batch without progress, whether duels are requested or not.
fn check_batch(traffic: &TrafficSummary, raised: &mut Raised) {
    let Some(BatchSummary { number, progress, still_since_ms, .. }) = traffic.batch else { return };
    let stuck = traffic.now_ms - still_since_ms;
    let is_long = stuck > 5 * traffic.ttl_ms.max(60_000);
    raised.raise_if(traffic.running && is_long, BATCH_STUCK, || {
        let BatchProgress { open_pairs, needed, answered, .. } = progress;
        format!(
            "Batch {number} has {answered} of {needed} comparisons, and got none for {} minutes; \
             {open_pairs} of its pairs need more.",
            stuck / 60_000
        )
    });
}

/// A clock that was ahead.
fn check_clock(traffic: &TrafficSummary, raised: &mut Raised) {
    let after = |at: i64| {
        let minutes = (at - traffic.now_ms) / 60_000;
        format!("{}, {minutes} minutes after the time now.", rfc3339(at))
    };
    let detail = match (traffic.time_ahead_ms, traffic.recorded_ahead_ms) {
        (Some(from), _) => format!("Answers were counted of duels up to {}", after(from)),
        (None, Some(at)) => format!("The log has entries of up to {}", after(at)),
        (None, None) => return,
    };
    raised.raise_if(true, CLOCK_AHEAD, || detail);
}

/// A kind of alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmKind {
    /// Its name, here and in docs/operations.md.
    pub slug: &'static str,
    /// The problem, in a few words.
    pub title: &'static str,
    pub cause: &'static str,
    pub action: &'static str,
}

macro_rules! alarms {
    ($($name:ident: $slug:literal, $title:literal, $cause:literal, $action:literal;)*) => {
        $(const $name: AlarmKind = AlarmKind { slug: $slug, title: $title, cause: $cause, action: $action };)*
        pub const KINDS: &[AlarmKind] = &[$($name),*];
    };
}

// Name: slug, title, likely cause, action.
alarms! {
    NO_FEEDBACK: "no-feedback", "Duels are issued and no feedback arrives",
        "The backend requests duels but does not send feedback, sends it to another server, or its click queue is stuck.",
        "Look for calls of the feedback endpoint in the log of the backend, and for 4xx answers to them in the log of this server.";
    LATE: "late-feedback", "Much feedback arrives too late",
        "The backend sends feedback in batches, or its queue lags: feedback arrives after the duel has expired and is not counted.",
        "Send feedback sooner, or create the experiment with a larger `duel_ttl_seconds`.";
    INVALID: "invalid-feedback", "Much feedback is refused",
        "`duel_id` is truncated or mixed up on its way, belongs to another experiment or database, or its signing key was retired; or \
         clicks are sent for a duel whose page was not made by `interleave`.",
        "The answer to each piece says what is wrong with it. Compare a refused `duel_id` with one from next-duel; see `rankduel signing-keys list`.";
    CONFLICTS: "conflicting-feedback", "Duels get two different answers",
        "Several processes answer the same duel, or the outcome is computed again from later clicks.",
        "Send one final answer for each duel; the first one stands.";
    REPEATS: "repeated-feedback", "Most feedback is sent more than once",
        "A client repeats at once, or does not read the answer to its first attempt. Nothing is counted twice.",
        "Repeat only requests that were not answered with 200, and wait between attempts.";
    UNANSWERED: "unanswered-duels", "Many duels are never answered",
        "Pages without a click are not reported, or duels are requested that are never shown.",
        "Send `none` for a page without a click. It teaches nothing about the rankers, but shows that feedback works.";
    UNEVEN: "uneven-answers", "Answers are missing for some rankers more often than for others",
        "A ranker fails or times out, on all pages or on one side of them, so its pages are not shown or not reported. The \
         comparison is then biased: this is the sample-ratio check for adaptive allocation. Or, where pages are not made by \
         `interleave`, pages without a click are not reported and one ranker gets fewer clicks.",
        "Report `none` for pages without a click. Look at the errors of the backend for the rankers of the named pair, fix \
         them, and start a new experiment.";
    SIDES: "side-imbalance", "One side of the page wins more often than the other",
        "The side of each ranker is random, so both sides must win equally often. The interleaving favours one side, or left \
         and right are swapped somewhere.",
        "Check how the two lists are interleaved and how clicks are credited; if in doubt, use `/interleave`.";
    DRAFTS: "draft-imbalance", "One ranker of a pair drafts first too often",
        "Who drafts first is a coin that this server tosses for each page, so it must be each ranker of a pair equally often. The \
         coins are not fair, which is a defect of this program or of its signing keys.",
        "Report it with the method of interleaving, and do not trust the results of this experiment.";
    NO_CLICKS: "few-clicks", "Few pages get a click",
        "Searchers find nothing to click, or clicks are not tracked, or the outcome `none` is sent for pages that had a click.",
        "Check the click tracking. Pages without a click teach nothing, so the experiment takes longer.";
    NO_CREDIT: "clicks-without-credit", "Clicks on many pages earn no credit",
        "Searchers click documents that both rankings have at the same place, or pinned ones. Such a click favours neither ranker.",
        "Send rankings that are at least as long as the page, and compare rankers that differ on top. If few documents differ, the \
         experiment needs more pages.";
    SAME_RANKINGS: "same-rankings", "Many pages are made of two equal rankings",
        "The two rankers return the same documents in the same order for these queries, or the backend sends one ranking twice.",
        "Check that each side has the ranking of its own ranker. If it has, the rankers agree on these queries, and only more \
         pages help.";
    DRIFT: "changed-preferences", "Preferences have changed",
        "A ranker, the documents or the searchers are others than before. A verdict from before speaks of the past.",
        "Look for what changed at that time. If the verdict has not started again, start a new experiment.";
    UNEVEN_ARMS: "uneven-arms", "Units that see one ranker alone are not split evenly",
        "Pages of the leader or of the control are lost: a ranker fails or times out, or pages without a click are not reported \
         and one of the two gets fewer clicks. What is measured on these pages is then biased.",
        "Report `none` for pages without a click. Look at the errors of the backend for both rankers, fix them, and start a new \
         experiment.";
    VALUES_MISSING: "values-missing", "Values of a metric are missing",
        "The values are not sent, cannot be read, or come after `value_window_seconds`; or pages are requested that are never \
         shown. What is missing proves neither harm nor safety.",
        "Look at `ignored` in the answers to feedback, and send a value for each page, also 0. Pages from before still count: if \
         they are many, start a new experiment.";
    CLICKS_MISLEAD: "clicks-mislead", "Clicks prefer another ranker than orders",
        "A ranker attracts clicks that lead to no order. An experiment by clicks would name it the best.",
        "Nothing to repair: orders decide. Do not judge these rankers by clicks elsewhere.";
    BATCH_STUCK: "batch-stuck", "The open batch makes no progress",
        "The batch waits for answers, and none of its comparisons has been answered for several times their time to live.",
        "Check whether duels are requested and answered at all. `/batch?missing=true` names the pairs: lease their duels with \
         `/batch/lease`, or post results. A pair whose pages have no result counts after 100 of them.";
    CLOCK_AHEAD: "clock-ahead", "A clock was ahead",
        "The clock of the database (with SQLite: of the server) was ahead, and was set back.",
        "Keep that clock right. Later answers wait until the time is reached, and then count; answers of duels that were in \
         flight come too late.";
}
