//! The rules of the alarms on traffic, and the quantiles of delays.

use std::cell::RefCell;

use dueling_bandits::{BatchProgress, Selection};
use prometheus_client::metrics::histogram::Histogram;
use rankduel::service::reports::alarms::{Alarm, alarms};
use rankduel::service::reports::traffic::{BatchSummary, SilentPages, TrafficSummary};
use rankduel_engine::metrics::{DELAY_SECONDS, FeedbackStatus};
use rankduel_engine::open_duels::{AnsweredInTime, OpenDuels};
use rankduel_engine::traffic::{Traffic, TrafficCounts};

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
        self.traffic.feedback(status, 0);
    }
}

fn on(shown: [u64; 4], batch: Option<BatchSummary>, fill: impl FnOnce(&Seen)) -> Vec<&'static str> {
    let silent = SilentPages { no_click: shown[3], ..SilentPages::default() };
    raised(shown, silent, batch, fill).into_iter().map(|alarm| alarm.kind).collect()
}

fn raised(
    shown: [u64; 4],
    silent: SilentPages,
    batch: Option<BatchSummary>,
    fill: impl FnOnce(&Seen),
) -> Vec<Alarm> {
    let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
    let seen =
        Seen { traffic, duels: RefCell::new(OpenDuels::new(TTL_MS, AnsweredInTime::new(0, 1000))) };
    fill(&seen);
    let counts = seen.traffic.counts(&mut seen.duels.borrow_mut(), OVER_MS);
    let summary = TrafficSummary { shown, silent, batch, ..summary(counts) };
    alarms(&summary, &|ranker| ranker.to_string())
}

/// The summary of these counts of a healthy experiment.
fn summary(counts: TrafficCounts) -> TrafficSummary {
    TrafficSummary {
        counts,
        in_flight: 0,
        alone: None,
        shown: [0; 4],
        silent: SilentPages::default(),
        running: true,
        ttl_ms: TTL_MS,
        now_ms: OVER_MS,
        time_ahead_ms: None,
        recorded_ahead_ms: None,
        batch: None,
        drift: None,
        by_orders: false,
        misleading: Vec::new(),
        silences: Vec::new(),
    }
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
    let batch = |still_since_ms| {
        let progress = BatchProgress { pairs: 3, open_pairs: 1, needed: 30, answered: 27 };
        let batch = BatchSummary { number: 1, number_max: 3, progress, still_since_ms };
        on([0; 4], Some(batch), |_| ())
    };
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

const MINUTE_MS: i64 = 60_000;

/// Traffic that somebody looks at every minute.
struct Watched {
    seen: Seen,
    now_ms: i64,
}

impl Watched {
    fn new() -> Self {
        let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
        let duels = RefCell::new(OpenDuels::new(TTL_MS, AnsweredInTime::new(0, 1000)));
        Self { seen: Seen { traffic, duels }, now_ms: 0 }
    }

    /// Let minutes pass, each with this many duels and pieces of feedback, and return the alarms.
    fn pass(&mut self, minutes: i64, pairs: u64, feedback: &[(FeedbackStatus, u64)]) -> Vec<Alarm> {
        let mut on = Vec::new();
        for _ in 0..minutes {
            times(pairs, || self.seen.issued((0, 1), self.now_ms));
            self.now_ms += MINUTE_MS;
            for &(status, count) in feedback {
                times(count, || self.seen.traffic.feedback(status, self.now_ms));
                if status == FeedbackStatus::Recorded {
                    let at = self.now_ms - MINUTE_MS;
                    times(count, || {
                        self.seen.duels.borrow_mut().answered((0, 1), None, at);
                        self.seen.traffic.answered(at, self.now_ms);
                    });
                }
            }
            let counts = self.seen.traffic.counts(&mut self.seen.duels.borrow_mut(), self.now_ms);
            let summary = TrafficSummary { now_ms: self.now_ms, ..summary(counts) };
            on = alarms(&summary, &|ranker| ranker.to_string());
        }
        on
    }
}

fn kinds(alarms: &[Alarm]) -> Vec<&str> {
    alarms.iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn an_alarm_comes_soon_after_its_cause_however_much_was_good_before() {
    use FeedbackStatus::{Invalid, Recorded};
    let mut traffic = Watched::new();
    assert_eq!(traffic.pass(100, 30, &[(Recorded, 30)]), []);
    // feedback stops; some of the duels before have expired by then
    let silent = traffic.pass(12, 200, &[]);
    assert_eq!(kinds(&silent), ["no-feedback", "unanswered-duels"]);
    let detail = &silent[0].detail;
    assert!(detail.starts_with("2000 duels were issued here in the last 10 minutes"), "{detail}");
    assert!(detail.ends_with("The last one came at 1970-01-01T01:40:00.000Z."), "{detail}");
    // it comes again: the alarms go
    assert_eq!(kinds(&traffic.pass(15, 30, &[(Recorded, 30)])), [""; 0]);
    let bad = traffic.pass(3, 30, &[(Recorded, 20), (Invalid, 10)]);
    assert_eq!(kinds(&bad), ["invalid-feedback"]);
    assert!(bad[0].detail.ends_with("were refused in the last 10 minutes."), "{bad:?}");
    assert_eq!(kinds(&traffic.pass(11, 30, &[(Recorded, 30)])), [""; 0]);
}

#[test]
fn little_traffic_is_looked_at_over_an_hour_or_a_day() {
    use FeedbackStatus::{Invalid, Recorded};
    let mut traffic = Watched::new();
    assert_eq!(traffic.pass(600, 1, &[(Recorded, 1)]), []);
    traffic.pass(2, 1, &[(Recorded, 1), (Invalid, 2)]);
    let bad = traffic.pass(20, 1, &[(Recorded, 1)]);
    assert_eq!(kinds(&bad), ["invalid-feedback"], "4 of some 60");
    assert!(bad[0].detail.ends_with("were refused in the last 60 minutes."), "{bad:?}");
    assert_eq!(kinds(&traffic.pass(60, 1, &[(Recorded, 1)])), [""; 0]);
    // one answer in a quarter of an hour; then some are bad; then all are good again
    let mut slow = Watched::new();
    let quarters = |traffic: &mut Watched, count| {
        for _ in 0..count {
            traffic.pass(14, 0, &[]);
            traffic.pass(1, 1, &[(Recorded, 1)]);
        }
    };
    quarters(&mut slow, 200);
    slow.pass(1, 1, &[(Invalid, 8)]);
    assert_eq!(kinds(&slow.pass(60, 0, &[])), ["invalid-feedback"]);
    quarters(&mut slow, 120);
    assert_eq!(kinds(&slow.pass(1, 0, &[])), [""; 0]);
}

/// Where feedback comes once an hour, ten minutes without any are no silence.
#[test]
fn feedback_that_comes_seldom_is_waited_for() {
    let mut traffic = Watched::new();
    for _ in 0..3 {
        let (now, issued) = (traffic.now_ms, traffic.now_ms - 50 * MINUTE_MS);
        times(590, || traffic.seen.traffic.feedback(FeedbackStatus::Recorded, now));
        times(590, || traffic.seen.traffic.answered(issued, now));
        let on = traffic.pass(60, 10, &[]);
        assert!(!kinds(&on).contains(&"no-feedback"), "{on:?}");
    }
    let on = traffic.pass(25 * 60, 10, &[]);
    assert!(kinds(&on).contains(&"no-feedback"), "{on:?}");
}

#[test]
fn quantiles_are_upper_ends_of_buckets() {
    let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
    let delay = || {
        summary(traffic.counts(&mut OpenDuels::new(1000, AnsweredInTime::new(0, 1000)), 0)).delay()
    };
    assert_eq!(delay().p50_seconds, None);
    for delay_ms in [50, 60, 70, 80, 90, 900, 950, 2000, 4000, 100_000_000] {
        traffic.answered(0, delay_ms);
    }
    let delay = delay();
    assert_eq!((delay.answers, delay.p50_seconds, delay.p90_seconds), (10, Some(0.1), Some(5.0)));
    assert_eq!(delay.p99_seconds, None, "longer than a day");
}
