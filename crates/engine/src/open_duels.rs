//! Duels of two rankers that this process issued, by the time of their issue and by who was shown
//! left.
//!
//! A duel is *in flight* until it is answered or expires. A cohort is *complete* once all its duels
//! have been answered or can no longer be; only then does it count for the checks of missing
//! answers. Duels are counted and not listed, so memory does not grow with their number.
//!
//! Many callers do not report pages without a click, and rankers differ in how often they are
//! clicked. Where this process makes pages, the checks therefore ask whether the page of a duel was
//! made here, and not whether it was answered. Another process may make the page of a duel, but
//! which process does so does not depend on its pair.

use std::collections::{BTreeMap, VecDeque};

use dueling_bandits::evidence::balance::{AnswerBalance, Cell, Worst};
use dueling_bandits::{InFlight, Selection};

pub use crate::answered_in_time::AnsweredInTime;

/// Cohorts that a time to live is divided into: a duel expires at most 1/64 of it late.
const COHORTS: i64 = 64;
/// Time from the expiry of a duel to its completeness. Clicks that arrived in pieces are settled
/// after the time to live, and an answer that another process accepted has to be read here.
const GRACE_MS: i64 = 60_000;

/// The cohorts that are not complete, and the checks on those that are.
#[derive(Debug)]
pub struct OpenDuels {
    cohorts: VecDeque<Cohort>,
    /// How many of them have expired: the first ones.
    expired: usize,
    cohort_ms: i64,
    ttl_ms: i64,
    in_flight: InFlight,
    /// For a batch policy, its open batch: only duels of it are in flight.
    batch: Option<u32>,
    /// Duels that were issued.
    issued: u64,
    /// The end of the newest complete cohort.
    complete_until_ms: i64,
    balance: AnswerBalance,
    /// Duels of complete cohorts.
    total: Cell,
    /// Whether this process has made a page.
    makes_pages: bool,
    in_time: AnsweredInTime,
}

/// Duels whose time is over: whether answers are missing for some more often than for others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EndedDuels {
    /// Those that were issued, and those of them that were answered.
    pub total: Cell,
    /// The largest evidence so far that answers are not missing equally often. Without a defect it
    /// ever reaches `c` with probability `1/c` at most.
    pub evidence: f64,
    /// Whether duels whose page this server made count as answered here, and no others: where pages
    /// without a click are not reported, answers are missing wherever rankers differ in clicks.
    pub by_page: bool,
    /// The duels that lack most answers; `None` if no answer is missing.
    pub worst: Option<Worst>,
}

#[derive(Debug)]
struct Cohort {
    start_ms: i64,
    /// By (left, right) ranker.
    pairs: BTreeMap<(u16, u16), Pair>,
}

/// Duels of one ordered pair in one cohort.
#[derive(Debug, Default)]
struct Pair {
    cell: Cell,
    /// Duels whose page was made here.
    pages: u64,
    in_flight: u32,
}

impl OpenDuels {
    /// No duels; duels live `ttl_ms`. `in_time` has the cohorts in which the verdict counts them.
    pub fn new(ttl_ms: i64, in_time: AnsweredInTime) -> Self {
        Self {
            cohorts: VecDeque::new(),
            expired: 0,
            cohort_ms: (ttl_ms / COHORTS).max(1),
            ttl_ms,
            in_flight: InFlight::new(),
            batch: None,
            issued: 0,
            complete_until_ms: i64::MIN,
            balance: AnswerBalance::default(),
            total: Cell::default(),
            makes_pages: false,
            in_time,
        }
    }

    /// The duels of `batch` that are in flight at this time. Duels that have expired and duels of
    /// other batches no longer are.
    pub fn in_flight_at(&mut self, now_ms: i64, batch: Option<u32>) -> &InFlight {
        if batch != self.batch {
            self.batch = batch;
            self.in_flight.clear();
            let pairs = self.cohorts.iter_mut().flat_map(|cohort| cohort.pairs.values_mut());
            pairs.for_each(|pair| pair.in_flight = 0);
        }
        self.advance_to(now_ms);
        &self.in_flight
    }

    /// Expire and complete the cohorts whose time is over.
    fn advance_to(&mut self, now_ms: i64) {
        let life_ms = self.cohort_ms + self.ttl_ms;
        while let Some(cohort) = self.cohorts.get_mut(self.expired)
            && now_ms >= cohort.start_ms + life_ms
        {
            for (&(i, j), pair) in &mut cohort.pairs {
                self.in_flight.remove(i.into(), j.into(), std::mem::take(&mut pair.in_flight));
            }
            self.expired += 1;
        }
        while self.expired > 0
            && let Some(complete) =
                self.cohorts.pop_front_if(|it| now_ms >= it.start_ms + life_ms + GRACE_MS)
        {
            self.expired -= 1;
            self.complete_until_ms = complete.start_ms + self.cohort_ms;
            let by_page = self.makes_pages;
            let cells = complete.pairs.into_iter().map(|(shown, Pair { cell, pages, .. })| {
                self.total = self.total.plus(cell);
                (shown, if by_page { Cell { answered: pages, ..cell } } else { cell })
            });
            self.balance.add(cells);
        }
    }

    /// The duels of the cohorts that are complete at this time, and the checks on them.
    pub fn ended(&mut self, now_ms: i64) -> EndedDuels {
        self.advance_to(now_ms);
        EndedDuels {
            total: self.total,
            evidence: self.balance.evidence(),
            by_page: self.makes_pages,
            worst: self.balance.worst(),
        }
    }

    /// The duels of the verdict's cohorts that end by this time, since the last call.
    pub fn take_until(&mut self, until_ms: i64) -> Cell {
        self.in_time.take_until(until_ms)
    }

    /// Count duels from now on in these cohorts of the verdict.
    pub(crate) fn align(&mut self, in_time: AnsweredInTime) {
        if !self.in_time.has_cohorts_of(&in_time) {
            self.in_time = in_time;
        }
    }

    /// Number of duels that were issued.
    pub fn issued(&self) -> u64 {
        self.issued
    }

    /// The time of issue before which every duel is answered or has expired.
    pub fn answered_until(&self, now_ms: i64) -> i64 {
        let is_open = |cohort: &&Cohort| cohort.pairs.values().any(|pair| pair.in_flight > 0);
        self.cohorts.iter().find(is_open).map_or(now_ms, |cohort| cohort.start_ms)
    }

    /// Count a duel that was issued. Self-duels are not counted, because their answers do not
    /// matter here.
    pub fn issue(&mut self, selection: &Selection, first_left: bool, now_ms: i64) {
        if selection.duel.is_self() {
            return;
        }
        let start_ms = now_ms - now_ms.rem_euclid(self.cohort_ms);
        // if the clock was set back, the duel goes into the newest cohort
        if self.cohorts.back().is_none_or(|newest| newest.start_ms < start_ms) {
            self.cohorts.push_back(Cohort { start_ms, pairs: BTreeMap::new() });
        }
        let Some(newest) = self.cohorts.back_mut() else { return };
        // rankers are at most MAX_RANKERS = 1024
        let (first, second) = (selection.duel.first as u16, selection.duel.second as u16);
        let shown = if first_left { (first, second) } else { (second, first) };
        let pair = newest.pairs.entry(shown).or_default();
        self.issued += 1;
        self.in_time.issued(now_ms);
        pair.cell.issued += 1;
        if selection.batch == self.batch {
            pair.in_flight += 1;
            self.in_flight.add(first.into(), second.into(), 1);
        }
    }

    /// Count the answer of a duel of this (left, right) pair that was issued at `issued_ms`. It
    /// counts as missing if its cohort was complete before.
    pub fn answered(&mut self, shown: (u16, u16), batch: Option<u32>, issued_ms: i64) {
        self.in_time.answered(issued_ms);
        let is_of_open_batch = batch == self.batch;
        let Some(pair) = self.find(shown, issued_ms, |pair| pair.cell.answered) else { return };
        pair.cell.answered += 1;
        if is_of_open_batch && pair.in_flight > 0 {
            pair.in_flight -= 1;
            self.in_flight.remove(shown.0.into(), shown.1.into(), 1);
        }
    }

    /// Count the first page of such a duel, if it was made here.
    pub fn page_made(&mut self, shown: (u16, u16), issued_ms: i64) {
        self.makes_pages = true;
        if let Some(pair) = self.find(shown, issued_ms, |pair| pair.pages) {
            pair.pages += 1;
        }
    }

    /// The pair of a duel that was issued at this time and is not among the `counted` ones.
    fn find(
        &mut self,
        shown: (u16, u16),
        issued_ms: i64,
        counted: fn(&Pair) -> u64,
    ) -> Option<&mut Pair> {
        if issued_ms < self.complete_until_ms {
            return None;
        }
        // its own cohort or a newer one: between reading the clock and counting the duel, time may
        // have passed or the clock may have been set back
        let own =
            self.cohorts.partition_point(|cohort| cohort.start_ms <= issued_ms).saturating_sub(1);
        let pairs = self.cohorts.range_mut(own..).filter_map(|it| it.pairs.get_mut(&shown));
        pairs.into_iter().find(|pair| counted(pair) < pair.cell.issued)
    }
}
