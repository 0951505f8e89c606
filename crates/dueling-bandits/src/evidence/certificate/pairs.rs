//! The evidence of the pairs of a run.

use crate::Tally;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::refuters::Refuters;
use crate::evidence::scores::{Levels, ScoreCounts};
use crate::evidence::verdict::Counted;

/// The evidence of the pairs of a tally, computed when it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct PairEvidence<'a> {
    mixture: &'a LeadEvidence,
    tally: &'a Tally,
    /// `None` if all wins of `tally` count.
    counted: Option<&'a Counted>,
    rankers: &'a [usize],
    /// `ln E(x≻y)` by `x * K + y`, in place of that of the counts.
    ln: Option<&'a [f64]>,
    refuters: Option<&'a Refuters>,
}

impl<'a> PairEvidence<'a> {
    /// The pairs among `rankers`. In the rule and here, ranker `x` is `rankers[x]` of the tally.
    pub fn new(mixture: &'a LeadEvidence, tally: &'a Tally, rankers: &'a [usize]) -> Self {
        Self { mixture, tally, counted: None, rankers, ln: None, refuters: None }
    }

    /// The same counts in the evidence of another margin.
    pub(in crate::evidence) fn over<'b>(&self, mixture: &'b LeadEvidence) -> PairEvidence<'b>
    where
        'a: 'b,
    {
        PairEvidence { mixture, ln: None, ..*self }
    }

    /// Of the wins that count.
    pub fn with_counted(self, counted: &'a Counted) -> Self {
        Self { counted: Some(counted), ..self }
    }

    /// With refuters, for a rule [that uses them](super::CopelandRule::with_refuters).
    pub fn with_refuters(self, refuters: Option<&'a Refuters>) -> Self {
        Self { refuters, ..self }
    }

    /// With `ln E(x≻y)` at `x * K + y` of `ln` in place of that of the counts.
    pub(in crate::evidence) fn with_ln<'b>(&self, ln: &'b [f64]) -> PairEvidence<'b>
    where
        'a: 'b,
    {
        PairEvidence { ln: Some(ln), ..*self }
    }

    /// `X(j)` of [`Refuters`]; 0 without refuters.
    pub(super) fn followed(&self, j: usize) -> f64 {
        self.refuters.map_or(0.0, |refuters| refuters.capital(self, j))
    }

    /// The factor of `E(x≻j)` in `X(j)`: [`Refuters::stake`]; 0 without refuters.
    pub(super) fn stake(&self, x: usize, j: usize) -> f64 {
        self.refuters.map_or(0.0, |refuters| refuters.stake(self, x, j))
    }

    /// Number of rankers, `K`.
    pub fn rankers(&self) -> usize {
        self.rankers.len()
    }

    /// Wins of `x` over `y` that count: [`Counted::wins`].
    pub fn wins(&self, x: usize, y: usize) -> f64 {
        let (x, y) = (self.rankers[x], self.rankers[y]);
        self.counted.map_or_else(|| self.tally.wins(x, y), |it| it.wins(self.tally, x, y))
    }

    /// Wins of ranker `x` over `y` that count, by outcomes.
    fn outcomes(&self, x: usize, y: usize) -> f64 {
        self.tally.wins(x, y) - self.counted.map_or(0.0, |counted| counted.left_out(x, y))
    }

    fn scores(&self) -> Option<&'a ScoreCounts> {
        self.counted.map(Counted::scores).filter(|scores| !scores.is_empty())
    }

    /// `ln E(x≻y)`; 0 before the first duel of the pair.
    pub fn ln(&self, x: usize, y: usize) -> f64 {
        match self.ln {
            Some(ln) => ln[x * self.rankers() + y],
            None => self.ln_of_counts(x, y),
        }
    }

    /// [`PairEvidence::ln`], computed from the counts.
    pub(in crate::evidence) fn ln_of_counts(&self, x: usize, y: usize) -> f64 {
        if let Some(ln) = self.scores().and_then(|scores| self.ln_with_scores(scores, x, y)) {
            return ln;
        }
        let (wins, losses) = (self.wins(x, y), self.wins(y, x));
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
                scores[x] += usize::from(self.is_ahead(x, y, null));
                scores[y] += usize::from(self.is_ahead(y, x, null));
            }
        }
        scores
    }

    /// Whether `x` won a larger share against `y` than `null`.
    pub(in crate::evidence) fn is_ahead(&self, x: usize, y: usize, null: f64) -> bool {
        self.wins(x, y) * (1.0 - null) > self.wins(y, x) * null
    }
}

/// The places of the largest scores, ascending.
pub(in crate::evidence) fn largest(scores: &[usize]) -> Vec<usize> {
    let most = scores.iter().copied().max().unwrap_or(0);
    (0..scores.len()).filter(|&x| scores[x] == most).collect()
}
