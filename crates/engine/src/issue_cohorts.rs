//! The duels that this process issued, by the time of their issue and by who was shown left. A
//! cohort is *complete* once all its duels have been answered or can no longer be; only then does
//! it count for the checks.
//!
//! Many callers do not report pages without a click, and rankers differ in how often they are
//! clicked. Where this process makes pages, the checks therefore ask whether the page of a duel was
//! made here, and not whether it was answered. Another process may make the page of a duel, but
//! which process does so does not depend on its pair.

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
    /// Answers of complete cohorts.
    total: Cell,
    /// Whether this process has made a page.
    makes_pages: bool,
}

#[derive(Debug)]
struct Cohort {
    start_ms: i64,
    cells: BTreeMap<(u16, u16), Duels>,
}

/// Duels of one cohort and (left, right) pair.
#[derive(Debug, Default)]
struct Duels {
    issued: u64,
    answered: u64,
    pages: u64,
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
            total: Cell::default(),
            makes_pages: false,
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
        self.note(shown, issued_ms, |duels| (duels.issued, &mut duels.answered));
    }

    /// Count the page of such a duel that was made here.
    pub fn page_made(&mut self, shown: (u16, u16), issued_ms: i64) {
        self.makes_pages = true;
        self.note(shown, issued_ms, |duels| (duels.issued, &mut duels.pages));
    }

    fn note(
        &mut self,
        shown: (u16, u16),
        issued_ms: i64,
        of: impl Fn(&mut Duels) -> (u64, &mut u64),
    ) {
        if issued_ms < self.complete_until_ms {
            return;
        }
        // its own cohort or a newer one, if the clock was set back
        let own =
            self.cohorts.partition_point(|cohort| cohort.start_ms <= issued_ms).saturating_sub(1);
        let found = self
            .cohorts
            .range_mut(own..)
            .filter_map(|cohort| cohort.cells.get_mut(&shown).map(&of))
            .find(|(issued, count)| **count < *issued);
        if let Some((_, count)) = found {
            *count += 1;
        }
    }

    /// The duels of the cohorts that are complete now, answered or not, and whether the checks ask
    /// for their pages instead.
    pub fn ended(&mut self, now_ms: i64) -> (Cell, bool) {
        self.complete(now_ms);
        (self.total, self.makes_pages)
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
                let by_page = self.makes_pages;
                let cells = complete.cells.into_iter();
                let cells = cells.inspect(|(_, duels)| {
                    let (issued, answered) = (duels.issued, duels.answered);
                    self.total = self.total.plus(Cell { issued, answered });
                });
                self.balance.add(cells.map(|(shown, Duels { issued, answered, pages })| {
                    (shown, Cell { issued, answered: if by_page { pages } else { answered } })
                }));
            }
        }
    }
}

/// Most cohorts that wait: more than an hour of the shortest.
const WAITING_MAX: usize = 4096;

/// The duels that this process issued in each cohort of the verdict, and the answers so far.
#[derive(Debug)]
pub struct AnsweredInTime {
    width_ms: i64,
    /// By the start of the cohort.
    cohorts: BTreeMap<i64, Cell>,
}

impl AnsweredInTime {
    /// No duels yet; cohorts are so wide.
    pub fn new(width_ms: i64) -> Self {
        Self { width_ms, cohorts: BTreeMap::new() }
    }

    fn start_of(&self, issued_ms: i64) -> i64 {
        issued_ms - issued_ms.rem_euclid(self.width_ms)
    }

    /// Count a duel that was issued.
    pub fn issued(&mut self, now_ms: i64) {
        self.cohorts.entry(self.start_of(now_ms)).or_default().issued += 1;
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
        let later = self.cohorts.split_off(&self.start_of(until_ms));
        let ended = std::mem::replace(&mut self.cohorts, later);
        ended.values().fold(Cell::default(), |sum, cell| sum.plus(*cell))
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
            let Cell { issued, answered } = cohorts.ended(at).0;
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
        assert_eq!(cohorts.ended(500_000).0, Cell { issued: 2, answered: 1 });
    }

    #[test]
    fn an_answer_in_time_is_one_before_its_cohort_is_taken() {
        let mut duels = AnsweredInTime::new(1000);
        [10, 20, 1500, 2500].into_iter().for_each(|at| duels.issued(at));
        [10, 1500].into_iter().for_each(|at| duels.answered(at));
        assert_eq!(duels.take_until(2000), Cell { issued: 3, answered: 2 });
        [20, 2500].into_iter().for_each(|at| duels.answered(at));
        assert_eq!(duels.take_until(3000), Cell { issued: 1, answered: 1 });
    }
}
