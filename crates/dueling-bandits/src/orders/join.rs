//! How the lines of orders found their pages, and how long people took.

use serde::{Deserialize, Serialize};

/// Counts of lines. A line is counted when its basket closes, or when it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Join {
    /// In the window, of a clicked document of one side, or of both sides unevenly.
    pub credited: u64,
    /// In the window, of a clicked document whose credit is 0: both rankers returned it.
    pub of_both: u64,
    /// Of a unit with pages of its pair, but without a click on this document.
    pub not_clicked: u64,
    /// Of a unit that was shown one ranker alone: it may count for the lift, but for no duel.
    pub alone: u64,
    /// Of a unit without a click on any page before.
    pub unit_unknown: u64,
    /// Ordered before the page with the document was issued: a clock is wrong, or it was known.
    pub before_page: u64,
    /// Ordered before everything that is still open.
    pub late: u64,
    /// Of a unit whose basket had closed, or its time with one ranker alone.
    pub returning: u64,
}

/// Shortest time that is told apart, in milliseconds.
const SHORTEST_MS: f64 = 60_000.0;
/// Buckets for each doubling, and all of them: the last one ends beyond 28 days.
const FOR_A_DOUBLING: f64 = 4.0;
const BUCKETS: usize = 64;

/// Times from the first page to a line that counts, in buckets that grow by a fifth.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delays(Vec<u64>);

impl Delays {
    pub(super) fn count(&mut self, milliseconds: i64) {
        let doublings = libm::log2((milliseconds as f64 / SHORTEST_MS).max(1.0));
        let bucket = (libm::ceil(doublings * FOR_A_DOUBLING) as usize).min(BUCKETS - 1);
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += 1;
    }

    /// Milliseconds within which at least this share of the lines came, at most a fifth too long;
    /// `None` before the first line.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let lines: u64 = self.0.iter().sum();
        let (needed, mut sum) = (share * lines as f64, 0);
        let bucket = self.0.iter().position(|&count| {
            sum += count;
            sum > 0 && sum as f64 >= needed
        })?;
        Some((SHORTEST_MS * libm::exp2(bucket as f64 / FOR_A_DOUBLING)) as i64)
    }

    pub(super) fn is_sound(&self) -> bool {
        self.0.len() <= BUCKETS
    }
}
