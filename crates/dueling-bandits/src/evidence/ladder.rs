//! The interval of a pair that the evidence of the verdict itself proves.
//!
//! For the ordered pair (x, y) there is one e-process of [`LeadEvidence`] for every *rung* `b`, with
//! the null hypothesis `P(x beats y) ≤ b`. The lower bound is the highest rung such that it and all
//! lower ones have reached `1/δ`. If the bound is too high, then the lowest rung that is not below
//! the true preference has reached `1/δ`, although its null hypothesis is true: this has a
//! probability of at most δ for each ordered pair (Ville). The upper bound of x over y is one minus
//! the lower bound of y over x.
//!
//! With two rankers the lower bound of the leader reaches `1/2 - margin` at the same answer at
//! which the verdict comes. With more, the [rule](super::certificate) asks for more than the pair.

use crate::Tally;
use crate::evidence::certificate::PairEvidence;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::verdict::{Standing, VerdictTracker};

/// Distance of two rungs, as a part of 1.
const RUNGS: usize = 100;
/// Rungs that have evidence.
const RUNG: std::ops::RangeInclusive<usize> = 2..=97;
/// How far below `1/2 - margin` the lower end stays for a rival that is not ruled out.
const SHORT: f64 = 0.001;
/// Halvings of the distance above the highest rung that was reached.
const HALVINGS: u32 = 5;

/// The rungs, with their evidence.
#[derive(Debug)]
pub struct Ladder(Vec<(f64, LeadEvidence)>);

impl Default for Ladder {
    fn default() -> Self {
        let rung = |of: usize| of as f64 / RUNGS as f64;
        Self(RUNG.map(|of| (rung(of), LeadEvidence::over(0.5 - rung(of)))).collect())
    }
}

impl Ladder {
    /// The intervals of `P(x beats y)` for each other `y` of `active`, ascending, where `x` has this
    /// standing. Each holds at all times at once, and each of its ends alone is wrong in at most a
    /// share δ of experiments, the error of the verdict.
    ///
    /// The lower end is at `1/2 - margin` or above only if the standing rules `y` out, which can
    /// take more than the evidence of the pair. A standing can also rule `y` out without the pair,
    /// by the wins of others over `y`. Where the verdict says that `x` is behind no other by more
    /// than the margin, no lower end is below that.
    pub fn intervals(
        &self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        standing: &Standing,
    ) -> Vec<(usize, (f64, f64))> {
        let evidence = tracker.evidence(tally, active);
        let margin = tracker.target().margin;
        // what was proven once stays proven
        let beats_all = tracker.verdict().is_some_and(|verdict| {
            verdict.winner() == standing.ranker
                && (verdict.condorcet_steps.is_some() || active.len() == 2)
        });
        let proven = if beats_all { 0.5 - margin } else { 0.0 };
        let place = |ranker: usize| active.binary_search(&ranker).unwrap_or(0);
        let x = place(standing.ranker);
        let interval = |&(rival, capital): &(usize, f64)| {
            let y = place(rival);
            if evidence.wins(x, y) + evidence.wins(y, x) == 0.0 {
                return (rival, (proven, 1.0));
            }
            let needed = standing.threshold;
            let most = if capital >= needed { 1.0 } else { 0.5 - margin - SHORT };
            let low = self.bound(&evidence, x, y, needed, margin).min(most).max(proven);
            let high = 1.0 - self.bound(&evidence, y, x, needed, 0.0);
            (rival, (low, high.max(low)))
        };
        standing.rivals.iter().map(interval).collect()
    }

    /// The highest rung of `P(x beats y)` up to which all have the evidence `needed`. The rung of
    /// the margin is always tried, so that nothing is rounded there.
    fn bound(&self, pairs: &PairEvidence, x: usize, y: usize, needed: f64, margin: f64) -> f64 {
        let reached = |evidence: &LeadEvidence| pairs.over(evidence).ln_of_counts(x, y) >= needed;
        let last = self.0.iter().take_while(|(_, evidence)| reached(evidence)).last();
        let Some(&(mut low, _)) = last else { return 0.0 };
        let mut high = low + 1.0 / RUNGS as f64;
        let own = 0.5 - margin;
        if (low..high).contains(&own) && reached(&LeadEvidence::over(margin)) {
            low = own;
        }
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            match reached(&LeadEvidence::over(0.5 - middle)) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}
