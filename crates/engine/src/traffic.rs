//! Traffic of this process for one experiment: issued duels, feedback, and delays. Counted in
//! memory only, since the experiment was loaded here first; a change of its spec keeps them.
//!
//! The counts of the last minutes are the counts now less those of an earlier look. Somebody looks
//! every few seconds, as the answer of an experiment has its alarms.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::histogram::Histogram;

use crate::drafts::{DraftCounts, Drafts};
use crate::metrics::{DELAY_SECONDS, FeedbackStatus};
use crate::open_duels::{EndedDuels, OpenDuels};
use dueling_bandits::evidence::balance::Cell;

/// Milliseconds of the recent windows: ten minutes, an hour and a day.
pub const WINDOWS_MS: [i64; 3] = [600_000, 3_600_000, 86_400_000];
/// Least time between two looks that are kept.
const LOOK_MS: i64 = 60_000;

/// Counters of one experiment in this process.
#[derive(Debug)]
pub struct Traffic {
    since_ms: i64,
    self_duels: AtomicU64,
    outside: AtomicU64,
    enrolment: [AtomicU64; 2],
    feedback: [AtomicU64; FeedbackStatus::ALL.len()],
    delays: [AtomicU64; DELAY_SECONDS.len() + 1],
    delay: Histogram,
    /// Unix milliseconds of the newest feedback, or answer of a duel of this process; 0 before.
    last_feedback_ms: AtomicI64,
    drafts: Mutex<Drafts>,
    looks: Mutex<VecDeque<Look>>,
}

/// The counts that alarms on recent traffic look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Unix milliseconds of the look; in [`TrafficCounts::recent`], since when the counts are.
    pub at_ms: i64,
    /// Pairs issued.
    pub pairs: u64,
    /// Answers of duels that this process issued, whoever took them.
    pub answers: u64,
    /// Feedback by status.
    pub feedback: [u64; FeedbackStatus::ALL.len()],
    /// Duels whose time is over.
    pub ended: Cell,
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
    /// Pages of those who take part and of those who do not, since the `coverage` has its value;
    /// none while all take part.
    pub enrolment: [u64; 2],
    /// Feedback by status, in the order of [`FeedbackStatus::ALL`].
    pub feedback: [u64; FeedbackStatus::ALL.len()],
    /// Answers by delay: one bucket up to each of [`DELAY_SECONDS`], and one beyond.
    pub delays: [u64; DELAY_SECONDS.len() + 1],
    /// Duels whose time is over.
    pub ended: EndedDuels,
    /// Pages by the ranker that drafted first.
    pub drafts: DraftCounts,
    /// Unix milliseconds of the newest feedback, or answer of a duel of this process.
    pub last_feedback_ms: Option<i64>,
    /// The counts of the windows of [`WINDOWS_MS`], or since the start of the counters.
    pub recent: [Look; WINDOWS_MS.len()],
}

impl Traffic {
    /// Zero counters. Each delay is also observed by `delay`.
    pub fn new(since_ms: i64, delay: Histogram) -> Self {
        Self {
            since_ms,
            self_duels: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            enrolment: Default::default(),
            feedback: Default::default(),
            delays: Default::default(),
            delay,
            last_feedback_ms: AtomicI64::new(0),
            drafts: Mutex::default(),
            looks: Mutex::default(),
        }
    }

    pub(crate) fn since_ms(&self) -> i64 {
        self.since_ms
    }

    /// Count a self-duel that was issued.
    pub fn issued_self_duel(&self) {
        self.self_duels.fetch_add(1, Relaxed);
    }

    /// Count a page where not all take part, of somebody who does or does not.
    pub fn enrolled(&self, takes_part: bool) {
        self.enrolment[usize::from(!takes_part)].fetch_add(1, Relaxed);
        self.outside.fetch_add(u64::from(!takes_part), Relaxed);
    }

    /// The share of those who take part is another one from here on.
    pub fn coverage_changed(&self) {
        self.enrolment.iter().for_each(|count| count.store(0, Relaxed));
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
        self.last_feedback_ms.fetch_max(answered_ms, Relaxed);
    }

    /// Count the page of a duel that expires at `expires_ms`, at most once for each duel.
    pub fn drafted(&self, nonce: u128, expires_ms: i64, now_ms: i64, lower_first: bool) {
        lock(&self.drafts).count(nonce, expires_ms, now_ms, lower_first);
    }

    /// Count a piece of feedback.
    pub fn feedback(&self, status: FeedbackStatus, now_ms: i64) {
        self.feedback[status as usize].fetch_add(1, Relaxed);
        self.last_feedback_ms.fetch_max(now_ms, Relaxed);
    }

    /// The counters now, with those of the duels.
    pub fn counts(&self, duels: &mut OpenDuels, now_ms: i64) -> TrafficCounts {
        let ended = duels.ended(now_ms);
        let delays = self.delays.each_ref().map(|count| count.load(Relaxed));
        let now = Look {
            at_ms: now_ms,
            pairs: duels.issued(),
            answers: delays.iter().sum(),
            feedback: self.feedback.each_ref().map(|count| count.load(Relaxed)),
            ended: ended.total,
        };
        let last_feedback_ms = self.last_feedback_ms.load(Relaxed);
        TrafficCounts {
            since_ms: self.since_ms,
            pairs: now.pairs,
            self_duels: self.self_duels.load(Relaxed),
            outside: self.outside.load(Relaxed),
            enrolment: self.enrolment.each_ref().map(|count| count.load(Relaxed)),
            feedback: now.feedback,
            delays,
            ended,
            drafts: lock(&self.drafts).counts(),
            last_feedback_ms: (last_feedback_ms > 0).then_some(last_feedback_ms),
            recent: self.recent(now),
        }
    }

    /// The counts of each window until `now`, which is kept as a look.
    fn recent(&self, now: Look) -> [Look; WINDOWS_MS.len()] {
        let mut looks = lock(&self.looks);
        // the clock was set back
        while looks.pop_back_if(|look| look.at_ms > now.at_ms).is_some() {}
        if looks.back().is_none_or(|newest| now.at_ms - newest.at_ms >= LOOK_MS) {
            looks.push_back(now);
        }
        // of those older than an hour, the first of each
        let [_, hour, day] = WINDOWS_MS;
        let mut kept_hour = None;
        looks.retain(|look| {
            let (age, of_hour) = (now.at_ms - look.at_ms, Some(look.at_ms.div_euclid(hour)));
            let is_kept = age <= hour + LOOK_MS || (of_hour != kept_hour && age < 2 * day);
            kept_hour = of_hour;
            is_kept
        });
        WINDOWS_MS.map(|window| {
            let before = looks.iter().rev().find(|look| now.at_ms - look.at_ms >= window);
            now.since(before, self.since_ms)
        })
    }
}

impl Look {
    /// The counts from `before`, or from the start at `start_ms`, until this look.
    fn since(self, before: Option<&Self>, start_ms: i64) -> Self {
        let Some(before) = before else { return Self { at_ms: start_ms, ..self } };
        let mut feedback = self.feedback;
        feedback.iter_mut().zip(&before.feedback).for_each(|(now, before)| *now -= before);
        Self {
            at_ms: before.at_ms,
            pairs: self.pairs - before.pairs,
            answers: self.answers - before.answers,
            feedback,
            ended: Cell {
                issued: self.ended.issued - before.ended.issued,
                answered: self.ended.answered - before.ended.answered,
            },
        }
    }

    /// Pieces of feedback with this status.
    pub fn feedback_with(&self, status: FeedbackStatus) -> u64 {
        self.feedback[status as usize]
    }
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    // a panic can only make these counts inexact, and no state depends on them
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
