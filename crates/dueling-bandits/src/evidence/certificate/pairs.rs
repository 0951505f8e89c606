//! The evidence of the pairs of a run.

use std::cell::Cell;

use crate::Tally;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::refuters::{Evidence, Refuters};
use crate::evidence::scores::{Levels, ScoreCounts};

/// The evidence of the pairs of a tally, computed when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct PairEvidence<'a> {
    mixture: &'a LeadEvidence,
    tally: &'a Tally,
    /// Wins of `tally` that do not count.
    uncounted: Option<&'a Tally>,
    /// Those of the wins that count which count by a score; `None` if there are none.
    scores: Option<&'a ScoreCounts>,
    rankers: &'a [usize],
    /// `ln E(x≻y)` by `x * K + y`, in place of that of the counts.
    known: Option<&'a [f64]>,
    memo: Option<&'a Memo>,
    few: Option<&'a FewOutcomes>,
    refuters: Option<&'a Refuters>,
}

/// `ln E` of the pairs that were asked for before.
#[derive(Debug)]
pub(in crate::evidence) struct Memo {
    rankers: usize,
    /// `ln E(x≻y)` at `y * K + x`, because what is asked for is mostly all of one rival `y`. NaN
    /// where it is not known.
    ln: Vec<Cell<f64>>,
}

impl Memo {
    /// Nothing is known yet of `rankers` rankers.
    pub fn new(rankers: usize) -> Self {
        Self { rankers, ln: vec![Cell::new(f64::NAN); rankers * rankers] }
    }

    /// The counts of a pair have changed.
    pub fn forget(&self, x: usize, y: usize) {
        self.at(x, y).set(f64::NAN);
        self.at(y, x).set(f64::NAN);
    }

    fn at(&self, x: usize, y: usize) -> &Cell<f64> {
        &self.ln[y * self.rankers + x]
    }

    fn ln(&self, x: usize, y: usize, compute: impl FnOnce() -> f64) -> f64 {
        let known = self.at(x, y);
        if known.get().is_nan() {
            known.set(compute());
        }
        known.get()
    }
}

/// `ln E` of all pairs with few outcomes, computed once for each pair of counts.
#[derive(Debug)]
pub struct FewOutcomes {
    /// By half wins and half losses, row-major.
    ln: Vec<f64>,
}

impl FewOutcomes {
    /// Number of different half wins, and of half losses.
    const SIDE: usize = 32;

    /// Of this evidence.
    pub fn of(mixture: &LeadEvidence) -> Self {
        let counts = || (0..Self::SIDE).map(|half| half as f64 / 2.0);
        let ln = counts().flat_map(|wins| counts().map(move |losses| mixture.ln(wins, losses)));
        Self { ln: ln.collect() }
    }

    /// `None` if the counts are not among them.
    fn ln(&self, wins: f64, losses: f64) -> Option<f64> {
        let place = |count: f64| {
            let half = (2.0 * count) as usize;
            (half < Self::SIDE && half as f64 == 2.0 * count).then_some(half)
        };
        Some(self.ln[place(wins)? * Self::SIDE + place(losses)?])
    }
}

impl<'a> PairEvidence<'a> {
    /// The pairs among `rankers`. In the rule and here, ranker `x` is `rankers[x]` of the tally.
    pub fn new(mixture: &'a LeadEvidence, tally: &'a Tally, rankers: &'a [usize]) -> Self {
        let (uncounted, scores) = (None, None);
        let (known, memo, few, refuters) = (None, None, None, None);
        Self { mixture, tally, uncounted, scores, rankers, known, memo, few, refuters }
    }

    /// Without the wins in `uncounted`, which are a part of the tally.
    pub fn without(self, uncounted: Option<&'a Tally>) -> Self {
        Self { uncounted, ..self }
    }

    /// With scores in place of the wins that were drawn from them.
    pub fn with_scores(self, scores: &'a ScoreCounts) -> Self {
        Self { scores: (!scores.is_empty()).then_some(scores), ..self }
    }

    /// With a capital that follows refuters, for a rule that
    /// [follows](super::CopelandRule::following) them.
    pub fn with_refuters(self, refuters: Option<&'a Refuters>) -> Self {
        Self { refuters, ..self }
    }

    /// `X(j)` of [`Refuters`]; 0 without refuters.
    pub(super) fn followed(&self, j: usize) -> f64 {
        self.refuters.map_or(0.0, |refuters| refuters.capital(self, j))
    }

    /// What `E(x≻j)` counts in `X(j)`: [`Refuters::stake`]; 0 without refuters.
    pub(super) fn stake(&self, x: usize, j: usize) -> f64 {
        self.refuters.map_or(0.0, |refuters| refuters.stake(self, x, j))
    }

    /// With evidence of few outcomes that is computed already. It is the same.
    pub fn with_few(self, few: Option<&'a FewOutcomes>) -> Self {
        Self { few, ..self }
    }

    /// With `ln E(x≻y)` at `x * K + y` of `known` in place of that of the counts.
    pub(in crate::evidence) fn with_evidence<'b>(&self, known: &'b [f64]) -> PairEvidence<'b>
    where
        'a: 'b,
    {
        PairEvidence { known: Some(known), ..*self }
    }

    /// With evidence that is computed once, as long as `memo` is told of every change.
    pub(in crate::evidence) fn with_memo<'b>(&self, memo: &'b Memo) -> PairEvidence<'b>
    where
        'a: 'b,
    {
        PairEvidence { memo: Some(memo), ..*self }
    }

    /// Number of rankers, `K`.
    pub fn rankers(&self) -> usize {
        self.rankers.len()
    }

    /// The rankers of the tally, by place.
    pub(in crate::evidence) fn active(&self) -> &'a [usize] {
        self.rankers
    }

    /// Wins of `x` over `y` that count; one that counts by its score counts its weight.
    pub fn wins(&self, x: usize, y: usize) -> f64 {
        let (x, y) = (self.rankers[x], self.rankers[y]);
        self.outcomes(x, y) + self.scores.map_or(0.0, |scores| scores.added_wins(x, y))
    }

    /// Wins of ranker `x` over `y` that count, by outcomes.
    fn outcomes(&self, x: usize, y: usize) -> f64 {
        let uncounted = self.uncounted.filter(|uncounted| x.max(y) < uncounted.rankers());
        self.tally.wins(x, y) - uncounted.map_or(0.0, |uncounted| uncounted.wins(x, y))
    }

    /// `ln E(x≻y)`; 0 before the first duel of the pair.
    pub fn ln(&self, x: usize, y: usize) -> f64 {
        if let Some(known) = self.known {
            return known[x * self.rankers() + y];
        }
        match self.memo {
            Some(memo) => memo.ln(x, y, || self.ln_of_counts(x, y)),
            None => self.ln_of_counts(x, y),
        }
    }

    fn ln_of_counts(&self, x: usize, y: usize) -> f64 {
        if let Some(ln) = self.scores.and_then(|scores| self.ln_with_scores(scores, x, y)) {
            return ln;
        }
        let (wins, losses) = (self.wins(x, y), self.wins(y, x));
        if let Some(ln) = self.few.and_then(|few| few.ln(wins, losses)) {
            return ln;
        }
        // with many rankers most pairs have not met
        if wins + losses > 0.0 { self.mixture.ln(wins, losses) } else { 0.0 }
    }

    /// `None` if no answer of the pair counts by its score.
    fn ln_with_scores(&self, scores: &ScoreCounts, x: usize, y: usize) -> Option<f64> {
        let (x, y) = (self.rankers[x], self.rankers[y]);
        let (won, lost) = (scores.levels(x, y), scores.levels(y, x));
        won.or(lost)?;
        let whole = |x, y| self.outcomes(x, y) - f64::from(scores.drawn(x, y));
        let none = Levels::default();
        let (won, lost) = (won.unwrap_or(&none), lost.unwrap_or(&none));
        Some(self.mixture.ln_with_scores(whole(x, y), whole(y, x), won, lost))
    }

    /// For each ranker, the number of rankers against which it won a larger share than `null`.
    pub fn empirical_scores(&self, null: f64) -> Vec<usize> {
        let mut scores = vec![0; self.rankers()];
        for x in 1..self.rankers() {
            for y in 0..x {
                let (ahead, behind) = self.are_ahead(x, y, null);
                scores[x] += usize::from(ahead);
                scores[y] += usize::from(behind);
            }
        }
        scores
    }

    /// Whether `x` won a larger share against `y` than `null`, and whether `y` did against `x`.
    pub(in crate::evidence) fn are_ahead(&self, x: usize, y: usize, null: f64) -> (bool, bool) {
        (self.is_ahead(x, y, null), self.is_ahead(y, x, null))
    }

    /// Whether `x` won a larger share against `y` than `null`.
    pub(in crate::evidence) fn is_ahead(&self, x: usize, y: usize, null: f64) -> bool {
        self.wins(x, y) * (1.0 - null) > self.wins(y, x) * null
    }
}

impl Evidence for PairEvidence<'_> {
    fn wins(&self, x: usize, y: usize) -> f64 {
        self.wins(x, y)
    }

    fn ln(&self, x: usize, y: usize) -> f64 {
        self.ln(x, y)
    }
}

/// The places of the largest scores, ascending.
pub(in crate::evidence) fn largest(scores: &[usize]) -> Vec<usize> {
    let most = scores.iter().copied().max().unwrap_or(0);
    (0..scores.len()).filter(|&x| scores[x] == most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_outcomes_have_the_evidence_of_the_mixture() {
        let mixture = LeadEvidence::over(0.01);
        let few = FewOutcomes::of(&mixture);
        for (wins, losses) in [(0.0, 0.0), (1.0, 0.0), (3.5, 2.0), (15.5, 15.5)] {
            assert_eq!(few.ln(wins, losses), Some(mixture.ln(wins, losses)));
        }
        assert_eq!((few.ln(16.0, 0.0), few.ln(0.25, 1.0)), (None, None));
    }
}
