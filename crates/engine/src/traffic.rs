//! Traffic of this process for one experiment: issued duels, feedback, and delays. Counted in
//! memory only, since the experiment was loaded here first; a change of its spec keeps them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::histogram::Histogram;

use crate::drafts::{DraftCounts, Drafts};
use crate::metrics::{DELAY_SECONDS, FeedbackStatus};
use crate::open_duels::{EndedDuels, OpenDuels};

/// Counters of one experiment in this process.
#[derive(Debug)]
pub struct Traffic {
    since_ms: i64,
    self_duels: AtomicU64,
    outside: AtomicU64,
    feedback: [AtomicU64; FeedbackStatus::ALL.len()],
    delays: [AtomicU64; DELAY_SECONDS.len() + 1],
    delay: Histogram,
    drafts: Mutex<Drafts>,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficCounts {
    /// Unix milliseconds since which they count.
    pub since_ms: i64,
    /// Pairs issued.
    pub pairs: u64,
    /// Self-duels issued.
    pub self_duels: u64,
    /// Pages of those who take no part.
    pub outside: u64,
    /// Feedback by status, in the order of [`FeedbackStatus::ALL`].
    pub feedback: [u64; FeedbackStatus::ALL.len()],
    /// Answers by delay: one bucket up to each of [`DELAY_SECONDS`], and one beyond.
    pub delays: [u64; DELAY_SECONDS.len() + 1],
    /// Duels whose time is over.
    pub ended: EndedDuels,
    /// Pages by who drafted first.
    pub drafts: DraftCounts,
}

impl Traffic {
    /// Zero counters. Each delay is also observed by `delay`.
    pub fn new(since_ms: i64, delay: Histogram) -> Self {
        Self {
            since_ms,
            self_duels: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            feedback: Default::default(),
            delays: Default::default(),
            delay,
            drafts: Mutex::default(),
        }
    }

    pub(crate) fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Count a self-duel that was issued.
    pub fn issued_self_duel(&self) {
        self.self_duels.fetch_add(1, Relaxed);
    }

    /// Count a page of somebody who takes no part.
    pub fn shown_outside(&self) {
        self.outside.fetch_add(1, Relaxed);
    }

    /// Whether a page of somebody who takes no part was counted.
    pub fn has_outside(&self) -> bool {
        self.outside.load(Relaxed) > 0
    }

    /// Count the answer of a duel of two rankers that was issued here.
    pub fn answered(&self, issued_ms: i64, answered_ms: i64) {
        let seconds = (answered_ms - issued_ms).max(0) as f64 / 1000.0;
        let bucket = DELAY_SECONDS.partition_point(|end| *end < seconds);
        self.delays[bucket].fetch_add(1, Relaxed);
        self.delay.observe(seconds);
    }

    /// Count the page of a duel that can be answered until `expires_ms`, once for each duel.
    pub fn drafted(&self, nonce: u128, expires_ms: i64, now_ms: i64, lower_first: bool) {
        lock(&self.drafts).count(nonce, expires_ms, now_ms, lower_first);
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus) {
        self.feedback[status as usize].fetch_add(1, Relaxed);
    }

    /// The counters now, with those of the duels.
    pub fn counts(&self, duels: &mut OpenDuels, now_ms: i64) -> TrafficCounts {
        TrafficCounts {
            since_ms: self.since_ms,
            pairs: duels.issued(),
            self_duels: self.self_duels.load(Relaxed),
            outside: self.outside.load(Relaxed),
            feedback: self.feedback.each_ref().map(|count| count.load(Relaxed)),
            delays: self.delays.each_ref().map(|count| count.load(Relaxed)),
            ended: duels.ended(now_ms),
            drafts: lock(&self.drafts).counts(),
        }
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    // a panic can only make these counts inexact, and no state depends on them
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
