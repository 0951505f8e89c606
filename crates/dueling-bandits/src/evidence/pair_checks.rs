//! Checks for a verdict while one pair after the other changes, as when the results of a batch come
//! all at once.
//!
//! A check looks at all pairs. With many rankers a batch has many thousand pairs, and each of them
//! can be followed by a check. Most of these find nothing, for a reason that the changed pair has
//! no part in: each leader has a barrier, and a barrier depends on the pairs of at most two
//! rankers. [`PairChecks`] keeps the barriers and leaves out a check if all of them still stand, so
//! it changes no verdict.

use crate::Duel;
use crate::evidence::certificate::{Barrier, CopelandRule, Memo, PairEvidence, largest};

/// What is known between two changes of pairs. Use it only while nothing else changes.
#[derive(Debug, Default)]
pub struct PairChecks(Option<Known>);

#[derive(Debug)]
struct Known {
    /// By ranker, its place among the active ones.
    places: Vec<Option<usize>>,
    memo: Memo,
    /// The share above which a ranker counts as ahead of another one.
    null: f64,
    /// Whether x is ahead of y, at `x * K + y`.
    ahead: Vec<bool>,
    /// Of how many rankers each one is ahead.
    scores: Vec<usize>,
    /// The places with the largest score, ascending; `None` if the scores have changed.
    leading: Option<Vec<usize>>,
    /// Changes so far, and the newest one of a pair of each ranker.
    changes: u64,
    changed: Vec<u64>,
    /// By place: a barrier, and the number of changes when it was found.
    barriers: Vec<Option<(Barrier, u64)>>,
    /// The same for the claim that the winner beats all others.
    condorcet: Option<(Barrier, u64)>,
}

/// What a check could find.
#[derive(Debug, Clone, Copy)]
pub(super) enum Open {
    /// A verdict.
    Verdict,
    /// That the winner beats all others.
    Condorcet(usize),
    Nothing,
}

impl PairChecks {
    /// The counts of one pair have changed.
    pub(super) fn changed(&mut self, evidence: &PairEvidence, duel: Duel) {
        let Some(known) = &mut self.0 else { return };
        let place = |ranker: usize| known.places.get(ranker).copied().flatten();
        if let (Some(x), Some(y)) = (place(duel.first), place(duel.second)) {
            known.changed(evidence, x, y);
        }
    }

    /// Whether a check finds nothing. The newest change was that of `duel`.
    pub(super) fn find_nothing(
        &mut self,
        rule: &CopelandRule,
        evidence: &PairEvidence,
        null: f64,
        open: Open,
        duel: Duel,
    ) -> bool {
        if matches!(open, Open::Nothing) {
            return true;
        }
        let known = self.0.get_or_insert_with(|| Known::new(evidence, null));
        match open {
            Open::Verdict => known.blocks_all_leaders(rule, evidence, duel),
            Open::Condorcet(winner) => known.blocks_condorcet(rule, evidence, winner),
            Open::Nothing => true,
        }
    }
}

impl Known {
    fn new(evidence: &PairEvidence, null: f64) -> Self {
        let (rankers, active) = (evidence.rankers(), evidence.active());
        let mut places = vec![None; active.last().map_or(0, |last| last + 1)];
        active.iter().enumerate().for_each(|(place, &ranker)| places[ranker] = Some(place));
        let mut known = Self {
            places,
            memo: Memo::new(rankers),
            null,
            ahead: vec![false; rankers * rankers],
            scores: vec![0; rankers],
            leading: None,
            changes: 0,
            changed: vec![0; rankers],
            barriers: vec![None; rankers],
            condorcet: None,
        };
        for x in 1..rankers {
            (0..x).for_each(|y| known.compare(evidence, x, y));
        }
        known
    }

    fn changed(&mut self, evidence: &PairEvidence, x: usize, y: usize) {
        self.changes += 1;
        (self.changed[x], self.changed[y]) = (self.changes, self.changes);
        self.memo.forget(x, y);
        self.compare(evidence, x, y);
    }

    /// Note which one of a pair is ahead.
    fn compare(&mut self, evidence: &PairEvidence, x: usize, y: usize) {
        let rankers = self.scores.len();
        let (ahead, behind) = evidence.are_ahead(x, y, self.null);
        for (x, y, is_ahead) in [(x, y, ahead), (y, x, behind)] {
            let was_ahead = std::mem::replace(&mut self.ahead[x * rankers + y], is_ahead);
            if was_ahead != is_ahead {
                self.scores[x] = if is_ahead { self.scores[x] + 1 } else { self.scores[x] - 1 };
                self.leading = None;
            }
        }
    }

    fn stands(&self, barrier: Option<(Barrier, u64)>) -> bool {
        let stands =
            |(barrier, at): (Barrier, u64)| barrier.of.iter().all(|&x| self.changed[x] <= at);
        barrier.is_some_and(stands)
    }

    fn blocks_all_leaders(
        &mut self,
        rule: &CopelandRule,
        evidence: &PairEvidence,
        duel: Duel,
    ) -> bool {
        let leading = self.leading.take().unwrap_or_else(|| largest(&self.scores));
        let active = evidence.active();
        // results come ranker by ranker: a barrier of other rankers stands longer
        let is_preferred = |x: usize| active[x] != duel.first && active[x] != duel.second;
        let mut newest = None;
        let mut all = true;
        for &x in &leading {
            if !self.stands(self.barriers[x]) {
                let before = self.barriers[x].map(|(barrier, _)| barrier.rival).or(newest);
                let evidence = evidence.with_memo(&self.memo);
                let barrier = rule.barrier(&evidence, x, before, is_preferred);
                self.barriers[x] = barrier.map(|barrier| (barrier, self.changes));
                newest = barrier.map(|barrier| barrier.rival);
                all &= barrier.is_some();
            }
        }
        self.leading = Some(leading);
        all
    }

    fn blocks_condorcet(
        &mut self,
        rule: &CopelandRule,
        evidence: &PairEvidence,
        winner: usize,
    ) -> bool {
        let Some(place) = self.places.get(winner).copied().flatten() else { return true };
        if !self.stands(self.condorcet) {
            let before = self.condorcet.map(|(barrier, _)| barrier.rival);
            let evidence = evidence.with_memo(&self.memo);
            let barrier = rule.condorcet_barrier(&evidence, place, before);
            self.condorcet = barrier.map(|barrier| (barrier, self.changes));
        }
        self.condorcet.is_some()
    }
}
