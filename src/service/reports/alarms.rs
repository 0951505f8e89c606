//! Alarms on the traffic of an experiment, with the likely cause and the action to take.
//!
//! Each alarm is a rule on counts in memory; none reads the log. `docs/operations.md` describes
//! each.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::alarm_kinds::{
    BATCH_STUCK, CONFLICTS, DRAFTS, DRIFT, HARM, INVALID, LATE, NO_CLICKS, NO_CREDIT, NO_FEEDBACK,
    REPEATS, SAME_RANKINGS, SEGMENT_HURT, SIDES, UNANSWERED, UNEVEN, UNEVEN_ARMS,
};
use crate::service::reports::drift::changed;
use crate::service::reports::silent_pages::SilentPages;
use crate::service::reports::traffic_summary::TrafficSummary;
use dueling_bandits::claims::alone::{SPLIT_ERROR, Split};
use dueling_bandits::claims::drift;
use dueling_bandits::evidence::balance::{Cell, Kind, Worst, coin_evidence};

pub use crate::service::reports::alarm_kinds::{AlarmKind, KINDS};

/// Fewest pieces of feedback, or duels, for a rule on a share.
const ENOUGH: u64 = 50;
/// Added where answers are all that is known of a duel.
const CLICKS_ONLY: &str = " If pages without a click are not reported, it is enough that one ranker gets fewer clicks: make \
                           pages with `interleave`, or report `none` for pages without a click.";
/// Share of pages that teach nothing, from which on its causes are named, and the least share of
/// all pages that a cause has.
const SILENT_PERCENT: f64 = 80.0;
const CAUSE_PERCENT: f64 = 10.0;
/// Evidence that raises an alarm about the whole log. Without a defect, each of these checks ever
/// reaches it in at most one of a thousand experiments, however often it is looked at. There are
/// three: the sides of wins, the sides of pages and the canary.
pub(super) const LOG_EVIDENCE: f64 = 1000.0;
/// Evidence that raises an alarm about what this server has issued since it loaded the experiment.
/// There are two such checks, so together they are wrong once in a thousand times that a server
/// loads an experiment. All alarms of one experiment together are then false in at most 5 % of
/// healthy experiments that are loaded up to 47 times.
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
    /// Those without a winner or a tie, by cause.
    pub silent: SilentPages,
    /// Whether duels are issued.
    pub running: bool,
    /// Time to live of a duel, in milliseconds.
    pub ttl_ms: i64,
    /// Unix milliseconds.
    pub now_ms: i64,
    /// Unix milliseconds at which the open batch opened or was last answered, if there is one that
    /// is not complete.
    pub batch_since_ms: Option<i64>,
    /// The segments in which the winner loses, in words, if there are any.
    pub hurt: Option<&'a str>,
    /// The newest change of preferences, until there is a verdict on what is true since then.
    pub drift: Option<&'a drift::Alarm>,
    /// Units that see one ranker alone: those that got a page, and those that have answered.
    pub alone: Option<[Split; 2]>,
    /// The active rankers that do harm, in sentences.
    pub harms: &'a [String],
    /// The id of the ranker with an index.
    pub name: &'a dyn Fn(u16) -> String,
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Which duels lack answers or pages, and what they are compared with.
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
    let ended = &traffic.ended;
    if let Some(answered) = traffic.answered_share() {
        let out = ended.total.issued;
        raise(total > 0 && out >= 2 * ENOUGH && answered < 0.5, UNANSWERED, &|| {
            format!("{:.0} % of {out} duels expired without an answer.", 100.0 * (1.0 - answered))
        });
    }
    if let Some(worst) = &ended.worst {
        raise(ended.evidence >= SERVER_EVIDENCE, UNEVEN, &|| {
            format!(
                "{} Shares this uneven come up in at most one of {:.0} experiments in which no pair matters.{}",
                compared(worst, ended.by_page, signs.name),
                ended.evidence.min(1e15),
                if ended.by_page { "" } else { CLICKS_ONLY }
            )
        });
    }
    let [left, right, ..] = signs.shown;
    raise(coin_evidence(left, right) >= LOG_EVIDENCE, SIDES, &|| {
        format!("Left won {:.1} % of {} decided pages.", percent(left, left + right), left + right)
    });
    let drafts = traffic.drafts;
    raise(coin_evidence(drafts.lower, drafts.higher) >= SERVER_EVIDENCE, DRAFTS, &|| {
        let pages = drafts.lower + drafts.higher;
        format!(
            "The ranker that is listed first drafted first on {:.1} % of {pages} pages.",
            percent(drafts.lower, pages)
        )
    });
    let (pages, silent) = (signs.shown.iter().sum::<u64>(), signs.silent);
    let mostly_silent = share(silent.total(), pages, SILENT_PERCENT);
    for (kind, count, what) in [
        (NO_CLICKS, silent.no_click, "got no click"),
        (NO_CREDIT, silent.no_credit, "got clicks, but none that earns credit"),
        (SAME_RANKINGS, silent.same_rankings, "were made of two equal rankings"),
    ] {
        raise(mostly_silent && share(count, pages, CAUSE_PERCENT), kind, &|| {
            format!(
                "{:.0} % of {pages} pages {what}. {:.0} % of all pages teach nothing.",
                percent(count, pages),
                percent(silent.total(), pages)
            )
        });
    }
    if let Some(hurt) = signs.hurt {
        raise(true, SEGMENT_HURT, &|| hurt.to_owned());
    }
    if let Some(alarm) = signs.drift {
        raise(true, DRIFT, &|| changed(alarm, signs.name));
    }
    for (split, what) in signs.alone.iter().flatten().zip(["got a page alone", "answered one"]) {
        raise(split.uneven_since().is_some(), UNEVEN_ARMS, &|| {
            let [leader, control] = split.units();
            format!(
                "Of {} units that {what}, {leader} are to see the leader and {control} the control. \
                 Shares this uneven come up in at most one of {:.0} experiments without a defect.",
                leader + control,
                1.0 / SPLIT_ERROR
            )
        });
    }
    raise(!signs.harms.is_empty(), HARM, &|| signs.harms.join(" "));
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
    use std::cell::RefCell;

    use dueling_bandits::Selection;
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;
    use rankduel_engine::metrics::{DELAY_SECONDS, FeedbackStatus};
    use rankduel_engine::open_duels::OpenDuels;
    use rankduel_engine::traffic::Traffic;

    const TTL_MS: i64 = 64_000;
    /// All duels that were issued at 0 are over.
    const OVER_MS: i64 = 1_000_000;

    /// The traffic that a server has seen.
    struct Seen {
        traffic: Traffic,
        duels: RefCell<OpenDuels>,
    }

    impl Seen {
        fn issued(&self, (left, right): (u16, u16), at: i64) {
            let selection = Selection::of(left.into(), right.into());
            self.duels.borrow_mut().issue(&selection, true, at);
        }

        fn feedback(&self, status: FeedbackStatus) {
            self.traffic.feedback(status);
        }
    }

    fn on(
        shown: [u64; 4],
        batch_since_ms: Option<i64>,
        fill: impl FnOnce(&Seen),
    ) -> Vec<&'static str> {
        let silent = SilentPages { no_click: shown[3], ..SilentPages::default() };
        raised(shown, silent, batch_since_ms, fill).into_iter().map(|alarm| alarm.kind).collect()
    }

    fn raised(
        shown: [u64; 4],
        silent: SilentPages,
        batch_since_ms: Option<i64>,
        fill: impl FnOnce(&Seen),
    ) -> Vec<Alarm> {
        let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
        let seen = Seen { traffic, duels: RefCell::new(OpenDuels::new(TTL_MS, (0, 1000))) };
        fill(&seen);
        let counts = seen.traffic.counts(&mut seen.duels.borrow_mut(), OVER_MS);
        let signs = Signs {
            traffic: &TrafficSummary::of(counts, 0, None),
            shown,
            silent,
            running: true,
            ttl_ms: TTL_MS,
            now_ms: OVER_MS,
            batch_since_ms,
            hurt: None,
            drift: None,
            alone: None,
            harms: &[],
            name: &|ranker| ranker.to_string(),
        };
        alarms(&signs)
    }

    fn times(count: u64, what: impl Fn()) {
        (0..count).for_each(|_| what());
    }

    /// Issue duels of a (left, right) pair in a cohort, and answer some.
    fn duels(traffic: &Seen, shown: (u16, u16), cohort: i64, issued: u64, answered: u64) {
        let at = cohort * TTL_MS / 64;
        times(issued, || traffic.issued(shown, at));
        times(answered, || traffic.duels.borrow_mut().answered(shown, None, at));
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
        let out = |pairs| on([0; 4], None, |traffic| duels(traffic, (0, 1), 0, pairs, 0));
        assert_eq!((out(99), out(100)), (vec![], vec!["no-feedback"]));
        let answered = |answered| {
            on([0; 4], None, |traffic| {
                traffic.feedback(Recorded);
                duels(traffic, (0, 1), 0, 200, answered);
            })
        };
        assert_eq!((answered(100), answered(99)), (vec![], vec!["unanswered-duels"]));
        let shown = |shown| on(shown, None, |_| ());
        assert_eq!(
            (shown([500, 600, 9, 9]), shown([500, 700, 9, 9])),
            (vec![], vec!["side-imbalance"])
        );
        let drafts = |lower| {
            on([0; 4], None, |traffic| {
                (0..200).for_each(|page| traffic.traffic.drafted(page, 10, 0, page < lower));
            })
        };
        assert_eq!((drafts(125), drafts(135)), (vec![], vec!["draft-imbalance"]));
        let batch = |since| on([0; 4], Some(since), |traffic| traffic.issued((0, 1), OVER_MS));
        assert_eq!((batch(680_000), batch(679_999)), (vec![], vec!["batch-stuck"]));
    }

    #[test]
    fn missing_answers_are_found_by_pair_and_by_side_once_the_duels_are_over() {
        let uneven = |fill: &dyn Fn(&Seen, i64)| {
            let filled = |traffic: &Seen| {
                traffic.feedback(FeedbackStatus::Recorded);
                (0..40).for_each(|cohort| fill(traffic, cohort));
            };
            raised([0; 4], SilentPages::default(), None, filled)
        };
        let even = uneven(&|traffic, cohort| {
            for pair in [(0, 1), (1, 0), (1, 2), (2, 1)] {
                duels(traffic, pair, cohort, 30, 27);
            }
        });
        assert_eq!(even, []);
        let pair = uneven(&|traffic, cohort| {
            for (pair, answered) in [((0, 1), 27), ((1, 2), 27), ((2, 0), 22)] {
                duels(traffic, pair, cohort, 30, answered);
                duels(traffic, (pair.1, pair.0), cohort, 30, answered);
            }
        });
        assert_eq!(pair.len(), 1);
        let named = "`0` with `2`: 73.3 % answered, all other pairs 90.0 %.";
        assert!(pair[0].kind == "uneven-answers" && pair[0].detail.starts_with(named), "{pair:?}");
        let side = uneven(&|traffic, cohort| {
            duels(traffic, (0, 1), cohort, 50, 45);
            duels(traffic, (1, 0), cohort, 50, 38);
        });
        assert_eq!(side.len(), 1);
        let named = "`1` left of `0`: 76.0 % answered, `0` left of `1` 90.0 %.";
        assert!(side[0].detail.starts_with(named), "{side:?}");
        // where pages are made, it is these that must be even
        let by_page = |pages: [u64; 2]| {
            uneven(&|traffic, cohort| {
                for (pair, answered, pages) in [((0, 1), 9, pages[0]), ((0, 2), 27, pages[1])] {
                    for shown in [pair, (pair.1, pair.0)] {
                        duels(traffic, shown, cohort, 30, answered);
                        times(pages, || {
                            traffic.duels.borrow_mut().page_made(shown, cohort * TTL_MS / 64)
                        });
                    }
                }
            })
        };
        assert_eq!(by_page([30, 30]), []);
        assert!(by_page([30, 22])[0].detail.starts_with("`0` with `2`: 73.3 % interleaved here"));
        // the same pair, while its duels can still be answered
        let open = uneven(&|traffic, _| {
            for pair in [(0, 1), (1, 0)] {
                duels(traffic, pair, 0, 100, 70);
            }
            times(50, || traffic.issued((0, 2), OVER_MS));
        });
        assert_eq!(open, []);
    }

    #[test]
    fn each_cause_of_silent_pages_has_its_own_number() {
        let silent = |no_click, no_credit, same_rankings| {
            let silent = SilentPages { no_click, no_credit, same_rankings };
            let shown = [50, 50, 0, silent.total()];
            raised(shown, silent, None, |_| ())
        };
        let kinds = |alarms: &[Alarm]| alarms.iter().map(|alarm| alarm.kind).collect::<Vec<_>>();
        assert_eq!(silent(133, 133, 133), []);
        let three = silent(134, 133, 133);
        assert_eq!(kinds(&three), ["few-clicks", "clicks-without-credit", "same-rankings"]);
        assert!(three[0].detail.starts_with("27 % of 500 pages got no click. 80 %"), "{three:?}");
        assert_eq!(kinds(&silent(40, 0, 400)), ["same-rankings"]);
    }
}
