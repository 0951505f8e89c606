//! The duels that this process issued, by the time of their issue and by who was shown left. A
//! cohort is *complete* once all its duels have been answered or can no longer be; only then does
//! it count for the checks.

use std::collections::{BTreeMap, VecDeque};

use dueling_bandits::evidence::balance::{AnswerBalance, Cell};

/// Cohorts that a time to live is divided into.
const COHORTS: i64 = 64;
/// Time from the expiry of a duel to its completeness. Clicks that arrived in pieces are settled
/// after the time to live, and an answer that another process accepted has to be read here.
const GRACE_MS: i64 = 60_000;

/// The open cohorts, and the checks on the complete ones.
#[derive(Debug)]
pub struct IssueCohorts {
    cohorts: VecDeque<Cohort>,
    cohort_ms: i64,
    life_ms: i64,
    /// The end of the newest complete cohort.
    complete_until_ms: i64,
    balance: AnswerBalance,
}

#[derive(Debug)]
struct Cohort {
    start_ms: i64,
    cells: BTreeMap<(u16, u16), Cell>,
}

impl IssueCohorts {
    /// No duels; duels live `ttl_ms`.
    pub fn new(ttl_ms: i64) -> Self {
        Self {
            cohorts: VecDeque::new(),
            cohort_ms: (ttl_ms / COHORTS).max(1),
            life_ms: ttl_ms.saturating_add(GRACE_MS),
            complete_until_ms: i64::MIN,
            balance: AnswerBalance::default(),
        }
    }

    /// Count a duel of this (left, right) pair that was issued.
    pub fn issued(&mut self, shown: (u16, u16), now_ms: i64) {
        self.complete(now_ms);
        let start_ms = now_ms - now_ms.rem_euclid(self.cohort_ms);
        // if the clock was set back, the duel goes into the newest cohort
        if self.cohorts.back().is_none_or(|newest| newest.start_ms < start_ms) {
            self.cohorts.push_back(Cohort { start_ms, cells: BTreeMap::new() });
        }
        if let Some(newest) = self.cohorts.back_mut() {
            newest.cells.entry(shown).or_default().issued += 1;
        }
    }

    /// Count the answer of a duel of this (left, right) pair that was issued at `issued_ms`. It
    /// counts as missing if its cohort was complete before.
    pub fn answered(&mut self, shown: (u16, u16), issued_ms: i64) {
        if issued_ms < self.complete_until_ms {
            return;
        }
        // its own cohort or a newer one, if the clock was set back
        let own =
            self.cohorts.partition_point(|cohort| cohort.start_ms <= issued_ms).saturating_sub(1);
        let found = self
            .cohorts
            .range_mut(own..)
            .filter_map(|cohort| cohort.cells.get_mut(&shown))
            .find(|cell| cell.answered < cell.issued);
        if let Some(cell) = found {
            cell.answered += 1;
        }
    }

    /// The checks on the cohorts that are complete now.
    pub fn balance(&mut self, now_ms: i64) -> &AnswerBalance {
        self.complete(now_ms);
        &self.balance
    }

    fn complete(&mut self, now_ms: i64) {
        while let Some(oldest) = self.cohorts.front() {
            if now_ms < oldest.start_ms + self.cohort_ms + self.life_ms {
                break;
            }
            if let Some(complete) = self.cohorts.pop_front() {
                self.complete_until_ms = complete.start_ms + self.cohort_ms;
                self.balance.add(complete.cells);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cohort_counts_when_all_its_duels_are_over() {
        let mut cohorts = IssueCohorts::new(64_000);
        for at in [10_100, 10_200, 11_500] {
            cohorts.issued((0, 1), at);
        }
        cohorts.answered((0, 1), 10_200);
        // nobody was asked to compare these, or with these sides
        cohorts.answered((0, 2), 10_200);
        cohorts.answered((1, 0), 10_200);
        let total = |cohorts: &mut IssueCohorts, at| {
            let Cell { issued, answered } = cohorts.balance(at).total();
            (issued, answered)
        };
        assert_eq!(total(&mut cohorts, 10_000 + 1000 + 64_000 + GRACE_MS - 1), (0, 0));
        assert_eq!(total(&mut cohorts, 10_000 + 1000 + 64_000 + GRACE_MS), (2, 1));
        cohorts.answered((0, 1), 10_100);
        assert_eq!(total(&mut cohorts, 12_000 + 64_000 + GRACE_MS), (3, 1), "it came too late");
    }

    #[test]
    fn a_duel_that_was_counted_late_is_found() {
        let mut cohorts = IssueCohorts::new(64_000);
        cohorts.issued((0, 1), 5000);
        cohorts.issued((2, 3), 999);
        cohorts.answered((2, 3), 999);
        assert_eq!(cohorts.balance(500_000).total(), Cell { issued: 2, answered: 1 });
    }
}
