//! Alarms on the traffic of an experiment, with the likely cause and the action to take.
//!
//! Each alarm is a rule on counts in memory; none reads the log. `docs/operations.md` describes
//! each.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::traffic_summary::TrafficSummary;

/// Fewest pieces of feedback, or duels, for a rule on a share.
const ENOUGH: u64 = 50;
/// Standard deviations between the left share of wins and one half that raise an alarm. Chance
/// alone exceeds 4.4 once in 100,000 checks.
const SIDES_DEVIATIONS: f64 = 4.4;
/// Below this p-value, answers are missing unevenly.
const EVEN_P_VALUE: f64 = 1e-5;

/// A kind of alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmKind {
    /// Its name, here and in docs/operations.md.
    pub slug: &'static str,
    /// The problem, in a few words.
    pub title: &'static str,
    /// The likely cause.
    pub cause: &'static str,
    /// The action to take.
    pub action: &'static str,
}

macro_rules! alarms {
    ($($name:ident: $slug:literal, $title:literal, $cause:literal, $action:literal;)*) => {
        $(const $name: AlarmKind = AlarmKind { slug: $slug, title: $title, cause: $cause, action: $action };)*
        /// All kinds.
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
    INVALID: "invalid-feedback", "Feedback names no duel of this experiment",
        "`duel_id` is truncated or mixed up on its way, belongs to another experiment or database, or its signing key was retired.",
        "Compare a refused `duel_id` with one from next-duel; see `rankduel signing-keys list`.";
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
        "A ranker fails or times out, so its pages are not shown or not reported. The comparison is then biased: this is the \
         sample-ratio check for adaptive allocation.",
        "Look at the errors of the backend for the rankers of the named pair, fix them, and start a new experiment.";
    SIDES: "side-imbalance", "One side of the page wins more often than the other",
        "The side of each ranker is random, so both sides must win equally often. The interleaving favours one side, or left \
         and right are swapped somewhere.",
        "Check how the two lists are interleaved and how clicks are credited; if in doubt, use `/interleave`.";
    NO_CLICKS: "few-clicks", "Few pages get a click",
        "The outcome `none` is sent for most pages: searchers find nothing to click, or clicks are not tracked.",
        "Check the click tracking. Pages without a click teach nothing, so the experiment takes longer.";
    BATCH_STUCK: "batch-stuck", "The open batch makes no progress",
        "The batch waits for answers, and none of its duels has been answered for several times their time to live.",
        "Check whether duels are requested and answered at all; lease the rest with `/batch/lease`, or post results.";
}

/// An alarm that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Alarm {
    /// Its kind; docs/operations.md has a section on each.
    #[schema(example = "late-feedback")]
    pub kind: &'static str,
    /// The problem, in a few words.
    pub title: &'static str,
    /// The numbers that raised it.
    pub detail: String,
    /// The likely cause.
    pub cause: &'static str,
    /// The action to take.
    pub action: &'static str,
}

impl AlarmKind {
    fn because(self, detail: String) -> Alarm {
        Alarm { kind: self.slug, title: self.title, detail, cause: self.cause, action: self.action }
    }
}

/// The data that the rules use.
#[derive(Clone, Copy)]
pub struct Signs<'a> {
    /// Traffic through this process.
    pub traffic: &'a TrafficSummary,
    /// Answers of the whole log by side of the page: left won, right won, tie, no click.
    pub shown: [u64; 4],
    /// Whether duels are issued.
    pub running: bool,
    /// Time to live of a duel, in milliseconds.
    pub ttl_ms: i64,
    /// Unix milliseconds.
    pub now_ms: i64,
    /// Unix milliseconds at which the open batch opened or was last answered, if there is one that
    /// is not complete.
    pub batch_since_ms: Option<i64>,
    /// The id of the ranker with an index.
    pub name: &'a dyn Fn(u16) -> String,
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The alarms that are on.
pub fn alarms(signs: &Signs<'_>) -> Vec<Alarm> {
    let Signs { traffic, .. } = signs;
    let feedback = &traffic.feedback;
    let total = feedback.total();
    let mut alarms = Vec::new();
    let mut raise = |on: bool, kind: AlarmKind, detail: &dyn Fn() -> String| {
        if on {
            alarms.push(kind.because(detail()));
        }
    };
    raise(signs.running && traffic.pairs >= 2 * ENOUGH && total == 0, NO_FEEDBACK, &|| {
        format!("{} duels were issued here, and no feedback has arrived.", traffic.pairs)
    });
    let share =
        |part: u64, whole: u64, at_least: f64| whole >= ENOUGH && percent(part, whole) >= at_least;
    let in_time_or_not = feedback.recorded + feedback.expired;
    raise(share(feedback.expired, in_time_or_not, 5.0), LATE, &|| {
        format!(
            "{:.0} % of {in_time_or_not} answers arrived too late.",
            percent(feedback.expired, in_time_or_not)
        )
    });
    raise(share(feedback.invalid, total, 5.0), INVALID, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback were refused.",
            percent(feedback.invalid, total)
        )
    });
    raise(share(feedback.conflict, total, 2.0), CONFLICTS, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback contradict an earlier one.",
            percent(feedback.conflict, total)
        )
    });
    raise(share(feedback.duplicate, total, 50.0), REPEATS, &|| {
        format!(
            "{:.0} % of {total} pieces of feedback are repeats.",
            percent(feedback.duplicate, total)
        )
    });
    if let Some(answered) = traffic.even.answered_share {
        let out = traffic.delay.answers + traffic.unanswered;
        raise(total > 0 && out >= 2 * ENOUGH && answered < 0.5, UNANSWERED, &|| {
            format!("{:.0} % of {out} duels expired without an answer.", 100.0 * (1.0 - answered))
        });
    }
    if let Some(test) = traffic.even.test {
        raise(test.p_value < EVEN_P_VALUE, UNEVEN, &|| {
            let (one, other) = ((signs.name)(test.worst.0), (signs.name)(test.worst.1));
            format!(
                "`{one}` with `{other}`: {:.0} % answered, all pairs together {:.0} % (p = {:.1e}).",
                100.0 * test.worst_share,
                100.0 * traffic.even.answered_share.unwrap_or_default(),
                test.p_value
            )
        });
    }
    let [left, right, _, none] = signs.shown;
    let deviations = (left as f64 - right as f64).abs() / ((left + right).max(1) as f64).sqrt();
    raise(left + right >= ENOUGH && deviations > SIDES_DEVIATIONS, SIDES, &|| {
        format!("Left won {:.1} % of {} decided pages.", percent(left, left + right), left + right)
    });
    let pages: u64 = signs.shown.iter().sum();
    raise(share(none, pages, 80.0), NO_CLICKS, &|| {
        format!("{:.0} % of {pages} pages got no click.", percent(none, pages))
    });
    if let Some(since) = signs.batch_since_ms {
        let stuck = signs.now_ms - since;
        raise(
            signs.running && traffic.pairs > 0 && stuck > 5 * signs.ttl_ms.max(60_000),
            BATCH_STUCK,
            &|| format!("No duel was answered for {} minutes.", stuck / 60_000),
        );
    }
    alarms
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;
    use crate::engine::traffic::Traffic;
    use crate::telemetry::metrics::{DELAY_SECONDS, FeedbackStatus};

    fn on(
        shown: [u64; 4],
        batch_since_ms: Option<i64>,
        fill: impl FnOnce(&Traffic),
    ) -> Vec<&'static str> {
        let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
        fill(&traffic);
        let signs = Signs {
            traffic: &TrafficSummary::of(traffic.counts(), 0),
            shown,
            running: true,
            ttl_ms: 60_000,
            now_ms: 1_000_000,
            batch_since_ms,
            name: &|ranker| ranker.to_string(),
        };
        alarms(&signs).into_iter().map(|alarm| alarm.kind).collect()
    }

    fn times(count: u64, what: impl Fn()) {
        (0..count).for_each(|_| what());
    }

    #[test]
    fn each_rule_is_passed_and_met() {
        use FeedbackStatus::{Conflict, Duplicate, Expired, Invalid, Recorded};
        let feedback = |status, part: u64| {
            on([0; 4], None, |traffic| {
                times(100 - part, || traffic.feedback(Recorded));
                times(part, || traffic.feedback(status));
            })
        };
        for (status, quiet, loud, kind) in [
            (Expired, 4, 5, "late-feedback"),
            (Invalid, 4, 5, "invalid-feedback"),
            (Conflict, 1, 2, "conflicting-feedback"),
            (Duplicate, 49, 50, "repeated-feedback"),
        ] {
            assert_eq!(feedback(status, quiet), [""; 0], "{kind}");
            assert_eq!(feedback(status, loud), [kind]);
        }
        let out = |pairs| on([0; 4], None, |traffic| times(pairs, || traffic.issued()));
        assert_eq!((out(99), out(100)), (vec![], vec!["no-feedback"]));
        let lost = |lost| {
            on([0; 4], None, |traffic| {
                traffic.feedback(Recorded);
                times(100, || traffic.answered((0, 1), 0, 10));
                traffic.expired((0, 1), lost);
            })
        };
        assert_eq!((lost(100), lost(101)), (vec![], vec!["unanswered-duels"]));
        let uneven = |lost| {
            on([0; 4], None, |traffic| {
                for pair in [(0, 1), (1, 2)] {
                    times(200, || traffic.answered(pair, 0, 10));
                    traffic.expired(pair, 20);
                }
                times(200, || traffic.answered((0, 2), 0, 10));
                traffic.expired((0, 2), lost);
            })
        };
        assert_eq!((uneven(25), uneven(90)), (vec![], vec!["uneven-answers"]));
        let shown = |shown| on(shown, None, |_| ());
        assert_eq!(
            (shown([500, 600, 9, 9]), shown([500, 700, 9, 9])),
            (vec![], vec!["side-imbalance"])
        );
        assert_eq!((shown([10, 11, 0, 79]), shown([10, 10, 0, 80])), (vec![], vec!["few-clicks"]));
        let batch = |since| on([0; 4], Some(since), |traffic| traffic.issued());
        assert_eq!((batch(700_000), batch(699_999)), (vec![], vec!["batch-stuck"]));
    }
}
