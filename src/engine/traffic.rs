//! What passes through this process for one experiment: duels out, answers in, how long they take,
//! and whether the answers come back evenly. Kept in memory only, since the experiment was loaded
//! here.
//!
//! The check for missing answers is one for adaptive allocation. How often a pair is shown depends
//! on what came before, so shown counts prove nothing; but a duel that was shown should be answered
//! as often whichever rankers are on it. The test is Pearson's chi-squared test of homogeneity over
//! pairs, answered against not answered, of the duels that had their time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::histogram::Histogram;
use serde::Serialize;
use special::Gamma as _;
use utoipa::ToSchema;

use crate::engine::error::ServiceError;
use crate::engine::loaded::LoadedExperiment;
use crate::events::Status;
use crate::service::Service;
use crate::service::reports::alarms::{Alarm, Signs, alarms};
use crate::telemetry::metrics::{DELAY_SECONDS, FeedbackStatus};

/// A pair with fewer duels than that says nothing about even answers.
const DUELS_MIN: u64 = 30;

/// Counts of one experiment in this process.
#[derive(Debug)]
pub struct Traffic {
    since_ms: i64,
    self_duels: AtomicU64,
    feedback: [AtomicU64; FeedbackStatus::ALL.len()],
    delays: [AtomicU64; DELAY_SECONDS.len() + 1],
    delay: Histogram,
    newest_answer_ms: AtomicI64,
    /// Pairs handed out here.
    issued: AtomicU64,
    /// Those that were answered or had their time, by pair.
    ended: Mutex<HashMap<(u16, u16), Ended>>,
}

/// What came of the duels of one pair that had their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Ended {
    answered: u64,
    expired: u64,
}

impl Traffic {
    /// Nothing yet; each delay is also observed by `delay`.
    pub fn new(since_ms: i64, delay: Histogram) -> Self {
        Self {
            since_ms,
            self_duels: AtomicU64::new(0),
            feedback: Default::default(),
            delays: Default::default(),
            delay,
            newest_answer_ms: AtomicI64::new(since_ms),
            issued: AtomicU64::new(0),
            ended: Mutex::default(),
        }
    }

    /// A pair was handed out.
    pub fn issued(&self) {
        self.issued.fetch_add(1, Relaxed);
    }

    /// A ranker was handed out alone.
    pub fn alone(&self) {
        self.self_duels.fetch_add(1, Relaxed);
    }

    /// A pair that was handed out here at `issued_ms` was answered at `answered_ms`.
    pub fn answered(&self, pair: (u16, u16), issued_ms: i64, answered_ms: i64) {
        self.newest_answer_ms.fetch_max(answered_ms, Relaxed);
        self.ended().entry(unordered(pair)).or_default().answered += 1;
        let seconds = (answered_ms - issued_ms).max(0) as f64 / 1000.0;
        let bucket = DELAY_SECONDS.partition_point(|end| *end < seconds);
        self.delays[bucket].fetch_add(1, Relaxed);
        self.delay.observe(seconds);
    }

    /// So many duels of a pair had their time and were not answered.
    pub fn expired(&self, pair: (u16, u16), count: u64) {
        self.ended().entry(unordered(pair)).or_default().expired += count;
    }

    fn ended(&self) -> MutexGuard<'_, HashMap<(u16, u16), Ended>> {
        // counts that decide nothing: a panic while they were held does no harm
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something came of a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback[status as usize].fetch_add(1, Relaxed);
    }

    /// The counts as they are.
    pub fn summary(&self, in_flight: u64) -> TrafficSummary {
        let of = |status: FeedbackStatus| self.feedback[status as usize].load(Relaxed);
        let delays: Vec<u64> = self.delays.iter().map(|count| count.load(Relaxed)).collect();
        let mut ended: Vec<_> = self.ended().iter().map(|(pair, ended)| (*pair, *ended)).collect();
        ended.sort_unstable_by_key(|(pair, _)| *pair);
        TrafficSummary {
            since_ms: self.since_ms,
            newest_answer_ms: self.newest_answer_ms.load(Relaxed),
            pairs: self.issued.load(Relaxed),
            self_duels: self.self_duels.load(Relaxed),
            in_flight,
            unanswered: ended.iter().map(|(_, ended)| ended.expired).sum(),
            feedback: FeedbackCounts {
                recorded: of(FeedbackStatus::Recorded),
                duplicate: of(FeedbackStatus::Duplicate),
                conflict: of(FeedbackStatus::Conflict),
                expired: of(FeedbackStatus::Expired),
                late: of(FeedbackStatus::Late),
                invalid: of(FeedbackStatus::Invalid),
            },
            delay: Delays {
                answers: delays.iter().sum(),
                p50_seconds: quantile(&delays, 0.5),
                p90_seconds: quantile(&delays, 0.9),
                p99_seconds: quantile(&delays, 0.99),
            },
            even: even_answers(&ended),
        }
    }
}

/// What passed through this process, at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSummary {
    /// Unix milliseconds from which on it was counted.
    pub since_ms: i64,
    /// Unix milliseconds of the newest answer; `since_ms` before the first.
    pub newest_answer_ms: i64,
    /// Pairs handed out.
    pub pairs: u64,
    /// Rankers handed out alone.
    pub self_duels: u64,
    /// Pairs out: neither answered nor expired.
    pub in_flight: u64,
    /// Pairs that had their time and were not answered.
    pub unanswered: u64,
    /// Feedback by what came of it.
    pub feedback: FeedbackCounts,
    /// How long answers take.
    pub delay: Delays,
    /// Whether answers come back evenly.
    pub even: EvenAnswers,
}

impl Service {
    /// What passed through this process for an experiment, and what looks wrong with it.
    pub fn traffic(
        &self,
        loaded: &LoadedExperiment,
    ) -> Result<(TrafficSummary, Vec<Alarm>), ServiceError> {
        let traffic = loaded.traffic().summary(self.in_flight(loaded)?);
        let fold = loaded.fold()?;
        let pairs = fold.policy().batch_pairs();
        let waits =
            fold.policy().batch().is_some() && pairs.iter().any(|pair| pair.answered < pair.needed);
        let since = fold.batch_opened_at().max(traffic.newest_answer_ms);
        let signs = Signs {
            traffic: &traffic,
            shown: fold.counts().shown,
            running: loaded.with_record(|record| {
                record.status == Status::Running && record.archived_at.is_none()
            }),
            ttl_ms: i64::from(loaded.spec.duel_ttl_seconds) * 1000,
            now_ms: self.now_ms(),
            batch_since_ms: waits.then_some(since),
            name: &|ranker| loaded.spec.rankers[usize::from(ranker)].id.clone(),
        };
        let alarms = alarms(&signs);
        Ok((traffic, alarms))
    }
}

/// Feedback by what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct FeedbackCounts {
    /// It is in the log.
    pub recorded: u64,
    /// The same was said before.
    pub duplicate: u64,
    /// Something else was said before.
    pub conflict: u64,
    /// It came after its duel's time.
    pub expired: u64,
    /// Clicks that came after their duel was settled.
    pub late: u64,
    /// It names no duel of this experiment.
    pub invalid: u64,
}

impl FeedbackCounts {
    /// Each status with its count.
    pub fn by_status(&self) -> [(FeedbackStatus, u64); 6] {
        [
            (FeedbackStatus::Recorded, self.recorded),
            (FeedbackStatus::Duplicate, self.duplicate),
            (FeedbackStatus::Conflict, self.conflict),
            (FeedbackStatus::Expired, self.expired),
            (FeedbackStatus::Late, self.late),
            (FeedbackStatus::Invalid, self.invalid),
        ]
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.recorded + self.duplicate + self.conflict + self.expired + self.late + self.invalid
    }
}

/// How long answers take, from handing out a duel to having its answer in the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Delays {
    /// Answers that were measured: those of duels that this process handed out.
    pub answers: u64,
    /// Half of them take at most so many seconds (the upper end of a bucket); `null` before the
    /// first, and where it is more than a day.
    pub p50_seconds: Option<f64>,
    /// 90 % of them.
    pub p90_seconds: Option<f64>,
    /// 99 % of them.
    pub p99_seconds: Option<f64>,
}

/// The upper end of the bucket that the quantile is in.
fn quantile(buckets: &[u64], share: f64) -> Option<f64> {
    let total: u64 = buckets.iter().sum();
    let wanted = (total as f64 * share).ceil().max(1.0);
    let mut below = 0;
    let bucket = buckets.iter().position(|count| {
        below += count;
        below as f64 >= wanted
    })?;
    DELAY_SECONDS.get(bucket).copied()
}

fn unordered((i, j): (u16, u16)) -> (u16, u16) {
    (i.min(j), i.max(j))
}

/// Whether the answers of duels come back as often whichever rankers are on them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvenAnswers {
    /// Share of the duels that had their time which were answered; `None` before the first.
    pub answered_share: Option<f64>,
    /// What the test says; `None` while there is too little for one.
    pub test: Option<EvenTest>,
}

/// Pearson's chi-squared test of homogeneity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvenTest {
    /// Chance of so uneven answers if nothing is wrong.
    pub p_value: f64,
    /// Indices of the pair whose answers go missing most.
    pub worst: (u16, u16),
    /// Its share of answered duels.
    pub worst_share: f64,
}

fn even_answers(ended: &[((u16, u16), Ended)]) -> EvenAnswers {
    let sums = |rows: &[(_, Ended)]| {
        let answered: u64 = rows.iter().map(|(_, ended)| ended.answered).sum();
        let expired: u64 = rows.iter().map(|(_, ended)| ended.expired).sum();
        (answered as f64, (answered + expired) as f64)
    };
    let (answered, duels) = sums(ended);
    let answered_share = (duels > 0.0).then(|| answered / duels);
    let rows: Vec<_> = ended
        .iter()
        .filter(|(_, ended)| ended.answered + ended.expired >= DUELS_MIN)
        .copied()
        .collect();
    let (answered, duels) = sums(&rows);
    let share = answered / duels;
    let row = |ended: &Ended| (ended.answered as f64, (ended.answered + ended.expired) as f64);
    let fewest = rows.iter().map(|(_, ended)| row(ended).1).fold(f64::INFINITY, f64::min);
    let least = fewest * share.min(1.0 - share);
    // the smallest expected cell must not be tiny (Cochran 1954)
    if rows.len() < 2 || !least.is_finite() || least < 5.0 {
        return EvenAnswers { answered_share, test: None };
    }
    let square = |ended: &Ended| {
        let (answered, duels) = row(ended);
        (answered - duels * share).powi(2) / (duels * share * (1.0 - share))
    };
    let statistic: f64 = rows.iter().map(|(_, ended)| square(ended)).sum();
    let freedom = (rows.len() - 1) as f64;
    let rate = |ended: &Ended| row(ended).0 / row(ended).1;
    let worst = rows.iter().min_by(|(_, one), (_, other)| rate(one).total_cmp(&rate(other)));
    let test = worst.map(|(pair, ended)| EvenTest {
        p_value: (1.0 - (statistic / 2.0).inc_gamma(freedom / 2.0)).clamp(0.0, 1.0),
        worst: *pair,
        worst_share: rate(ended),
    });
    EvenAnswers { answered_share, test }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_ends_of_buckets() {
        let traffic = Traffic::new(0, Histogram::new(DELAY_SECONDS));
        assert_eq!(traffic.summary(0).delay.p50_seconds, None);
        for delay_ms in [50, 60, 70, 80, 90, 900, 950, 2000, 4000, 100_000_000] {
            traffic.answered((0, 1), 0, delay_ms);
        }
        let delay = traffic.summary(0).delay;
        assert_eq!(
            (delay.answers, delay.p50_seconds, delay.p90_seconds),
            (10, Some(0.1), Some(5.0))
        );
        assert_eq!(delay.p99_seconds, None, "longer than a day");
    }

    #[test]
    fn answers_that_go_missing_for_one_pair_are_found_and_even_losses_are_not() {
        let rows = |rows: &[(u64, u64)]| -> EvenAnswers {
            let ended = |&(answered, expired)| Ended { answered, expired };
            let rows: Vec<_> = (0..).map(|pair| (pair, 9)).zip(rows.iter().map(ended)).collect();
            even_answers(&rows)
        };
        let even = rows(&[(900, 100), (450, 50), (90, 10)]);
        assert!(even.test.is_some_and(|test| test.p_value > 0.99), "{even:?}");
        assert_eq!(even.answered_share, Some(0.9));
        let uneven = rows(&[(900, 100), (450, 50), (60, 40)]).test.expect("enough for a test");
        assert!(uneven.p_value < 1e-12, "{uneven:?}");
        assert_eq!((uneven.worst, uneven.worst_share), ((2, 9), 0.6));
        // 10 of 100 against 20 of 100: chi-squared 3.92 with 1 degree of freedom, p = 0.0477
        let near = rows(&[(90, 10), (80, 20)]).test.expect("enough for a test");
        assert!((near.p_value - 0.0477).abs() < 1e-4, "{near:?}");
        for too_little in
            [rows(&[(20, 5), (20, 0)]), rows(&[(500, 0), (500, 0)]), rows(&[(90, 10)]), rows(&[])]
        {
            assert_eq!(too_little.test, None);
        }
    }
}
