//! How many duels of the verdict's cohorts are answered in time.

use std::collections::BTreeMap;

use dueling_bandits::evidence::balance::Cell;

/// Most cohorts that wait: more than an hour of the shortest.
const WAITING_MAX: usize = 4096;

/// The duels that this process issued in each cohort of the verdict, and the answers so far.
#[derive(Debug)]
pub struct AnsweredInTime {
    width_ms: i64,
    /// A start of a cohort.
    since_ms: i64,
    /// The cohorts that end by this time were taken.
    taken_until_ms: i64,
    /// By the start of the cohort.
    cohorts: BTreeMap<i64, Cell>,
}

impl AnsweredInTime {
    /// No duels yet. A cohort starts at `since_ms`, and at each multiple of `width_ms` from there.
    pub fn new(since_ms: i64, width_ms: i64) -> Self {
        Self { width_ms, since_ms, taken_until_ms: i64::MIN, cohorts: BTreeMap::new() }
    }

    /// Whether both have the same cohorts.
    pub fn has_cohorts_of(&self, other: &Self) -> bool {
        self.width_ms == other.width_ms && self.start_of(other.since_ms) == other.since_ms
    }

    fn start_of(&self, issued_ms: i64) -> i64 {
        issued_ms - (issued_ms - self.since_ms).rem_euclid(self.width_ms)
    }

    /// Count a duel that was issued. If the clock was ahead before, it is of a later cohort.
    pub fn issued(&mut self, now_ms: i64) {
        let start = self.start_of(now_ms.max(self.taken_until_ms));
        self.cohorts.entry(start).or_default().issued += 1;
        if self.cohorts.len() > WAITING_MAX {
            self.cohorts.pop_first();
        }
    }

    /// Count the answer of a duel that was issued at this time, unless its cohort was taken.
    pub fn answered(&mut self, issued_ms: i64) {
        if let Some(cell) = self.cohorts.get_mut(&self.start_of(issued_ms)) {
            cell.answered = cell.issued.min(cell.answered + 1);
        }
    }

    /// The duels of the cohorts that end by this time. Later answers of them are late.
    pub fn take_until(&mut self, until_ms: i64) -> Cell {
        self.taken_until_ms = self.taken_until_ms.max(until_ms);
        let later = self.cohorts.split_off(&self.start_of(until_ms));
        let ended = std::mem::replace(&mut self.cohorts, later);
        ended.values().fold(Cell::default(), |sum, cell| sum.plus(*cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_time_is_one_before_its_cohort_is_taken() {
        let mut duels = AnsweredInTime::new(0, 1000);
        [10, 20, 1500, 2500].into_iter().for_each(|at| duels.issued(at));
        [10, 1500].into_iter().for_each(|at| duels.answered(at));
        assert_eq!(duels.take_until(2000), Cell { issued: 3, answered: 2 });
        [20, 2500].into_iter().for_each(|at| duels.answered(at));
        assert_eq!(duels.take_until(3000), Cell { issued: 1, answered: 1 });
    }
}
