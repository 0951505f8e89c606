//! The evidence of the pairs of a run.

use crate::Tally;
use crate::evidence::lead::LeadEvidence;

/// The evidence of the pairs of a tally, computed when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct PairEvidence<'a> {
    mixture: &'a LeadEvidence,
    tally: &'a Tally,
    /// Wins of `tally` that do not count.
    uncounted: Option<&'a Tally>,
    rankers: &'a [usize],
    /// `ln E(x≻y)` by `x * K + y`, in place of that of the counts.
    known: Option<&'a [f64]>,
}

impl<'a> PairEvidence<'a> {
    /// The pairs among `rankers`. In the rule and here, ranker `x` is `rankers[x]` of the tally.
    pub fn new(mixture: &'a LeadEvidence, tally: &'a Tally, rankers: &'a [usize]) -> Self {
        Self { mixture, tally, uncounted: None, rankers, known: None }
    }

    /// Without the wins in `uncounted`, which are a part of the tally.
    pub fn without(self, uncounted: Option<&'a Tally>) -> Self {
        Self { uncounted, ..self }
    }

    /// With `ln E(x≻y)` at `x * K + y` of `known` in place of that of the counts.
    pub(in crate::evidence) fn with_evidence<'b>(&self, known: &'b [f64]) -> PairEvidence<'b>
    where
        'a: 'b,
    {
        PairEvidence { known: Some(known), ..*self }
    }

    /// Number of rankers, `K`.
    pub fn rankers(&self) -> usize {
        self.rankers.len()
    }

    /// Wins of `x` over `y` that count.
    pub fn wins(&self, x: usize, y: usize) -> f64 {
        let (x, y) = (self.rankers[x], self.rankers[y]);
        let uncounted = self.uncounted.filter(|uncounted| x.max(y) < uncounted.rankers());
        self.tally.wins(x, y) - uncounted.map_or(0.0, |uncounted| uncounted.wins(x, y))
    }

    /// `ln E(x≻y)`; 0 before the first duel of the pair.
    pub fn ln(&self, x: usize, y: usize) -> f64 {
        if let Some(known) = self.known {
            return known[x * self.rankers() + y];
        }
        let (wins, losses) = (self.wins(x, y), self.wins(y, x));
        // with many rankers most pairs have not met
        if wins + losses > 0.0 { self.mixture.ln(wins, losses) } else { 0.0 }
    }

    /// For each ranker, the number of rankers against which it won a larger share than `null`.
    pub fn empirical_scores(&self, null: f64) -> Vec<usize> {
        let mut scores = vec![0; self.rankers()];
        for x in 1..self.rankers() {
            for y in 0..x {
                let (won, lost) = (self.wins(x, y), self.wins(y, x));
                scores[x] += usize::from(won * (1.0 - null) > lost * null);
                scores[y] += usize::from(lost * (1.0 - null) > won * null);
            }
        }
        scores
    }
}
