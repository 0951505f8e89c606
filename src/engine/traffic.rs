//! Traffic of this process for one experiment: issued duels, feedback, and delays. Counted in
//! memory only, since the experiment was loaded here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::histogram::Histogram;

use crate::telemetry::metrics::{DELAY_SECONDS, FeedbackStatus};

/// Counters of one experiment in this process.
#[derive(Debug)]
pub struct Traffic {
    since_ms: i64,
    self_duels: AtomicU64,
    feedback: [AtomicU64; FeedbackStatus::ALL.len()],
    delays: [AtomicU64; DELAY_SECONDS.len() + 1],
    delay: Histogram,
    newest_answer_ms: AtomicI64,
    /// Pairs issued here.
    issued: AtomicU64,
    /// Answered and expired duels, by pair.
    ended: Mutex<HashMap<(u16, u16), EndedDuels>>,
}

/// Duels of one pair that are no longer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndedDuels {
    /// Duels that were answered.
    pub answered: u64,
    /// Duels that expired without an answer.
    pub expired: u64,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficCounts {
    /// Unix milliseconds since which they count.
    pub since_ms: i64,
    /// Unix milliseconds of the newest answer; `since_ms` before the first.
    pub newest_answer_ms: i64,
    /// Pairs issued.
    pub pairs: u64,
    /// Self-duels issued.
    pub self_duels: u64,
    /// Feedback by status, in the order of [`FeedbackStatus::ALL`].
    pub feedback: [u64; FeedbackStatus::ALL.len()],
    /// Answers by delay: one bucket up to each of [`DELAY_SECONDS`], and one beyond.
    pub delays: [u64; DELAY_SECONDS.len() + 1],
    /// Ended duels by pair, in ascending order of pairs.
    pub ended: Vec<((u16, u16), EndedDuels)>,
}

impl Traffic {
    /// Zero counters. Each delay is also observed by `delay`.
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

    /// Count a pair that was issued.
    pub fn issued(&self) {
        self.issued.fetch_add(1, Relaxed);
    }

    /// Count a self-duel that was issued.
    pub fn issued_self_duel(&self) {
        self.self_duels.fetch_add(1, Relaxed);
    }

    /// Count the answer of a pair that was issued here.
    pub fn answered(&self, pair: (u16, u16), issued_ms: i64, answered_ms: i64) {
        self.newest_answer_ms.fetch_max(answered_ms, Relaxed);
        self.ended().entry(unordered(pair)).or_default().answered += 1;
        let seconds = (answered_ms - issued_ms).max(0) as f64 / 1000.0;
        let bucket = DELAY_SECONDS.partition_point(|end| *end < seconds);
        self.delays[bucket].fetch_add(1, Relaxed);
        self.delay.observe(seconds);
    }

    /// Count duels of a pair that expired without an answer.
    pub fn expired(&self, pair: (u16, u16), count: u64) {
        self.ended().entry(unordered(pair)).or_default().expired += count;
    }

    fn ended(&self) -> MutexGuard<'_, HashMap<(u16, u16), EndedDuels>> {
        // a panic can only make these counts inexact, and no state depends on them
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback[status as usize].fetch_add(1, Relaxed);
    }

    /// The counters now.
    pub fn counts(&self) -> TrafficCounts {
        let mut ended: Vec<_> = self.ended().iter().map(|(pair, ended)| (*pair, *ended)).collect();
        ended.sort_unstable_by_key(|(pair, _)| *pair);
        TrafficCounts {
            since_ms: self.since_ms,
            newest_answer_ms: self.newest_answer_ms.load(Relaxed),
            pairs: self.issued.load(Relaxed),
            self_duels: self.self_duels.load(Relaxed),
            feedback: self.feedback.each_ref().map(|count| count.load(Relaxed)),
            delays: self.delays.each_ref().map(|count| count.load(Relaxed)),
            ended,
        }
    }
}

fn unordered((i, j): (u16, u16)) -> (u16, u16) {
    (i.min(j), i.max(j))
}
