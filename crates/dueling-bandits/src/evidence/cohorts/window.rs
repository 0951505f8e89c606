//! The time within which the answers of a duel come, which can change while an experiment runs.
//!
//! A duel keeps the window at its issue. Otherwise somebody who has seen the answers that wait
//! could choose which of them count.

use serde::{Deserialize, Serialize};

/// Cohorts that a window is divided into.
const COHORTS: i64 = 512;
/// Shortest cohort, in milliseconds.
const SHORTEST_MS: i64 = 1000;

/// A window, and the duels that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Those issued from this time on, until the next window. Its cohorts begin here.
    since: i64,
    /// Milliseconds.
    pub(crate) ms: i64,
}

impl Window {
    /// The first window of an experiment.
    pub(crate) fn new(ms: i64) -> Self {
        Self { since: 0, ms }
    }

    /// Milliseconds of issue that one cohort covers.
    pub(crate) fn width_ms(self) -> i64 {
        (self.ms / COHORTS).max(SHORTEST_MS)
    }

    /// The start of the cohort of duels issued at this time.
    pub(crate) fn start_of_cohort(self, issued_at: i64) -> i64 {
        issued_at - (issued_at - self.since).rem_euclid(self.width_ms())
    }
}

/// All windows of an experiment, in their order; at least one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Windows(Vec<Window>);

impl Default for Windows {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Windows {
    pub(super) fn new(ms: i64) -> Self {
        Self(vec![Window::new(ms)])
    }

    pub(super) fn newest(&self) -> Window {
        self.0[self.0.len() - 1]
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The window of duels issued at this time.
    pub(super) fn at(&self, issued_at: i64) -> Window {
        self.0[self.0.partition_point(|window| window.since <= issued_at).max(1) - 1]
    }

    pub(super) fn start_of_cohort(&self, issued_at: i64) -> i64 {
        self.at(issued_at).start_of_cohort(issued_at)
    }

    /// The end of the cohort that starts at this time.
    pub(super) fn end_of_cohort(&self, start: i64) -> i64 {
        start + self.at(start).width_ms()
    }

    /// Duels issued after this time, from the end of a cohort on, have another window. Whatever was
    /// issued before `complete_until` has been counted.
    pub(super) fn change(&mut self, ms: i64, at: i64, complete_until: i64) {
        let at = at.max(complete_until - 1);
        let newest = self.newest();
        match self.0.last_mut() {
            Some(not_begun) if not_begun.since > at => not_begun.ms = ms,
            _ => {
                let since = newest.start_of_cohort(at) + newest.width_ms();
                self.0.push(Window { since, ms });
            }
        }
    }

    /// The time of issue up to which the windows of all duels have ended now.
    pub(super) fn ended_until(&self, now: i64) -> i64 {
        let nexts = self.0[1..].iter().map(|next| next.since).chain([i64::MAX]);
        for (window, next) in self.0.iter().zip(nexts) {
            if now - window.ms < next {
                return (now - window.ms).max(window.since);
            }
        }
        now
    }

    /// The first time at which the windows of all duels issued before `until` have ended.
    pub(super) fn end_of(&self, until: i64) -> i64 {
        let nexts = self.0[1..].iter().map(|next| next.since).chain([i64::MAX]);
        let ends = self.0.iter().zip(nexts).filter(|(window, _)| window.since < until);
        ends.map(|(window, next)| until.min(next) + window.ms).max().unwrap_or(until)
    }

    /// The longest window of a duel that can be issued at this time or later.
    pub(super) fn longest_from(&self, issued_at: i64) -> i64 {
        let first = self.0.partition_point(|window| window.since <= issued_at).max(1) - 1;
        self.0[first..].iter().map(|window| window.ms).max().unwrap_or_default()
    }

    /// Whether decoded windows can be used: one, or several that are all longer than 0.
    pub(super) fn is_sound(&self) -> bool {
        self.0.first().is_some_and(|first| first.since == 0 && first.ms >= 0)
            && self.0.is_sorted_by(|one, next| one.since < next.since)
            && (self.0.len() == 1 || self.0.iter().all(|window| window.ms > 0))
    }
}
