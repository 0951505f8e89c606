//! Duels that this process issued and that are not answered yet. They are counted by pair and time
//! bucket, so that memory does not grow with their number.

use std::collections::{HashMap, VecDeque};

use dueling_bandits::{Duel, InFlight, Selection};

/// Buckets that a time to live is divided into: a duel expires at most 1/64 of it late.
const BUCKETS: i64 = 64;

/// Counts of open duels. For a batch policy, only those of its open batch.
#[derive(Debug)]
pub struct Outstanding {
    in_flight: InFlight,
    buckets: VecDeque<Bucket>,
    bucket_ms: i64,
    ttl_ms: i64,
    batch: Option<u32>,
}

#[derive(Debug)]
struct Bucket {
    start_ms: i64,
    pairs: HashMap<(u16, u16), u32>,
}

impl Outstanding {
    /// No open duels; duels live `ttl_ms`.
    pub fn new(ttl_ms: i64) -> Self {
        Self {
            in_flight: InFlight::new(),
            buckets: VecDeque::new(),
            bucket_ms: (ttl_ms / BUCKETS).max(1),
            ttl_ms,
            batch: None,
        }
    }

    /// The open duels of `batch` at this time. Forgets expired duels and those of other batches.
    pub fn at(&mut self, now_ms: i64, batch: Option<u32>) -> &InFlight {
        if batch != self.batch {
            self.batch = batch;
            self.buckets.clear();
            self.in_flight.clear();
        }
        while let Some(oldest) = self.buckets.front() {
            if now_ms < oldest.start_ms + self.bucket_ms + self.ttl_ms {
                break;
            }
            if let Some(expired) = self.buckets.pop_front() {
                for ((i, j), count) in expired.pairs {
                    self.in_flight.remove(i.into(), j.into(), count);
                }
            }
        }
        &self.in_flight
    }

    /// Every duel that was counted before this time is answered or has expired.
    pub fn answered_until(&self, now_ms: i64) -> i64 {
        let is_open = |bucket: &&Bucket| bucket.pairs.values().any(|&count| count > 0);
        self.buckets.iter().find(is_open).map_or(now_ms, |bucket| bucket.start_ms)
    }

    /// Count a duel that was issued. Self-duels and duels outside the open batch are not counted,
    /// because their answers do not matter here.
    pub fn issue(&mut self, selection: &Selection, now_ms: i64) {
        let Duel { first, second } = selection.duel;
        if first == second || selection.batch != self.batch {
            return;
        }
        let start_ms = now_ms - now_ms.rem_euclid(self.bucket_ms);
        // if the clock was set back, the duel goes into the newest bucket
        if self.buckets.back().is_none_or(|newest| newest.start_ms < start_ms) {
            self.buckets.push_back(Bucket { start_ms, pairs: HashMap::new() });
        }
        if let Some(newest) = self.buckets.back_mut() {
            *newest.pairs.entry(key(first, second)).or_insert(0) += 1;
            self.in_flight.add(first, second, 1);
        }
    }

    /// A duel that this process issued at `issued_ms` was answered.
    pub fn answered(&mut self, first: usize, second: usize, batch: Option<u32>, issued_ms: i64) {
        if batch != self.batch {
            return;
        }
        // its own bucket or a newer one: between reading the clock and counting the duel, time may
        // have passed or the clock may have been set back
        let own =
            self.buckets.partition_point(|bucket| bucket.start_ms <= issued_ms).saturating_sub(1);
        let found = self
            .buckets
            .range_mut(own..)
            .filter_map(|bucket| bucket.pairs.get_mut(&key(first, second)))
            .find(|count| **count > 0);
        if let Some(count) = found {
            *count -= 1;
            self.in_flight.remove(first, second, 1);
        }
    }
}

fn key(i: usize, j: usize) -> (u16, u16) {
    // rankers are at most MAX_RANKERS = 1024
    (i.min(j) as u16, i.max(j) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unanswered_duel_is_forgotten_after_its_time() {
        let mut out = Outstanding::new(64_000);
        out.issue(&Selection::of(0, 1), 10_500);
        assert_eq!(out.at(10_500, None).of(1, 0), 1);
        assert_eq!(out.at(10_500 + 64_000, None).of(0, 1), 1, "its bucket is not over yet");
        assert_eq!(out.at(10_000 + 1000 + 64_000, None).of(0, 1), 0);
        assert_eq!(out.at(90_000, None).total(), 0);
    }

    #[test]
    fn an_answer_removes_one_duel_and_a_second_answer_none() {
        let mut out = Outstanding::new(64_000);
        out.issue(&Selection::of(2, 5), 100);
        out.issue(&Selection::of(5, 2), 200);
        out.answered(5, 2, None, 100);
        assert_eq!(out.at(300, None).of(2, 5), 1);
        out.answered(2, 5, None, 200);
        out.answered(2, 5, None, 200);
        assert_eq!(out.at(300, None).total(), 0);
    }

    #[test]
    fn a_duel_that_was_counted_late_is_found() {
        let mut out = Outstanding::new(64_000);
        out.issue(&Selection::of(0, 1), 1000);
        out.issue(&Selection::of(2, 3), 999);
        assert_eq!(out.at(1001, None).of(2, 3), 1);
        out.answered(2, 3, None, 999);
        assert_eq!(out.at(1002, None).of(2, 3), 0);
        assert_eq!(out.at(1002, None).of(0, 1), 1);
    }

    #[test]
    fn a_new_batch_starts_without_open_duels() {
        let mut out = Outstanding::new(64_000);
        out.at(0, Some(1));
        out.issue(&Selection { batch: Some(1), ..Selection::of(0, 1) }, 0);
        assert_eq!(out.at(1, Some(1)).total(), 1);
        assert_eq!(out.at(1, Some(2)).total(), 0);
        out.answered(0, 1, Some(1), 0);
        out.issue(&Selection { batch: Some(1), ..Selection::of(0, 1) }, 2);
        assert_eq!(out.at(3, Some(2)).total(), 0, "duels of a closed batch do not count");
    }
}
