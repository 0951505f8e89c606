//! All pairs at one moment: the evidence so far, what further comparisons promise, and what they
//! cost.

use crate::evidence::certificate::{CopelandRule, PairEvidence, largest};

/// Evidence that a comparison brings at least.
const LEAST_RATE: f64 = 1e-9;
/// By how much a target is raised at a time where a complete proof is not enough, in nats.
const RAISE: f64 = 1.0;
/// Most such raises.
const RAISES_MAX: usize = 200;

/// The expected evidence of further comparisons of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Outlook {
    /// Probability that the first ranker wins the pair with more than the null.
    pub(super) probability: f64,
    /// Expected evidence of a comparison, in nats.
    rate: f64,
}

impl Outlook {
    /// With the normal approximation of the posterior `Beta(wins + 1, losses + 1)`.
    pub(super) fn of(wins: f64, losses: f64, null: f64) -> Self {
        let count = wins + losses + 2.0;
        let mean = (wins + 1.0) / count;
        let variance = mean * (1.0 - mean) / (count + 1.0);
        let (lead, deviation) = (mean - null, variance.sqrt());
        let z = lead / deviation;
        let probability = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        let above = (lead * lead + variance) * probability + lead * deviation * density;
        Self { probability, rate: (2.0 * above).max(LEAST_RATE) }
    }

    /// Estimated number of comparisons that bring so much evidence.
    pub(super) fn comparisons(self, evidence: f64) -> f64 {
        evidence.max(0.0) / self.rate
    }
}

/// A claim "x beats y" of a proof, by places.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedClaim {
    pub(super) x: usize,
    pub(super) y: usize,
    /// The evidence that it needs, in nats.
    pub(super) target: f64,
}

/// All pairs at one moment. Rankers are places in the list of active ones, and the pair (x, y) is
/// at `x * K + y`.
pub(super) struct Survey {
    pub(super) rankers: usize,
    /// `ln E(x≻y)`.
    evidence: Vec<f64>,
    /// Of "x beats y", or loses by less than the margin.
    outlooks: Vec<Outlook>,
    /// Expected Copeland scores, and the largest of them.
    scores: Vec<f64>,
    highest: f64,
    /// The largest empirical Copeland score, where an even pair has a fixed side.
    pub(super) best: usize,
    /// The rankers that a proof may be for: those with the largest empirical Copeland score, where
    /// pairs within the margin count for both.
    pub(super) candidates: Vec<usize>,
}

impl Survey {
    pub(super) fn new(pairs: &PairEvidence, margin: f64) -> Self {
        let rankers = pairs.rankers();
        let mut survey = Self {
            rankers,
            evidence: vec![0.0; rankers * rankers],
            outlooks: vec![Outlook::default(); rankers * rankers],
            scores: vec![0.0; rankers],
            highest: 0.0,
            best: 0,
            candidates: largest(&pairs.empirical_scores(0.5 - margin)),
        };
        for x in 0..rankers {
            let mut wins = 0;
            for y in (0..rankers).filter(|&y| y != x) {
                let (at, won, lost) = (x * rankers + y, pairs.wins(x, y), pairs.wins(y, x));
                survey.evidence[at] = pairs.ln(x, y);
                survey.outlooks[at] = Outlook::of(won, lost, 0.5 - margin);
                survey.scores[x] += match margin > 0.0 {
                    true => Outlook::of(won, lost, 0.5).probability,
                    false => survey.outlooks[at].probability,
                };
                // an even pair needs some side; which one does not matter
                let has_side = (x + y).is_multiple_of(2) == (x > y);
                wins += usize::from(won > lost || won == lost && has_side);
            }
            survey.best = survey.best.max(wins);
        }
        survey.highest = survey.scores.iter().copied().fold(0.0, f64::max);
        survey
    }

    pub(super) fn outlook(&self, x: usize, y: usize) -> Outlook {
        self.outlooks[x * self.rankers + y]
    }

    /// Estimated number of comparisons that "x beats y" lacks to the evidence `target`.
    pub(super) fn missing(&self, x: usize, y: usize, target: f64) -> f64 {
        self.outlook(x, y).comparisons(target - self.evidence[x * self.rankers + y])
    }

    /// Expected Copeland regret of a duel.
    pub(super) fn regret(&self, x: usize, y: usize) -> f64 {
        let mean = (self.scores[x] + self.scores[y]) / 2.0;
        (self.highest - mean).max(0.0) / (self.rankers - 1) as f64
    }

    /// Raises the targets of `claims`, which all have their evidence, until `leader` would be
    /// certified with them: for each rival that blocks the verdict, again and again the claim that
    /// brings the largest gain for its duels. The evidence that single claims need is an
    /// approximation: the capital of a truth also contains pairs that the proof does not use.
    pub(super) fn raise_targets(
        &self,
        rule: &CopelandRule,
        pairs: &PairEvidence,
        leader: usize,
        claims: &mut [PlacedClaim],
    ) {
        let k = self.rankers;
        let mut supposed = self.evidence.clone();
        let mut raises_left = RAISES_MAX;
        for rival in (0..k).filter(|&j| j != leader) {
            let capital =
                |supposed: &[f64]| rule.ln_capital(&pairs.with_ln(supposed), leader, rival);
            let concerned = |claim: &PlacedClaim| claim.x == leader || claim.y == rival;
            let raise = |claim: &mut PlacedClaim, supposed: &mut [f64]| {
                let now = &mut supposed[claim.x * k + claim.y];
                *now += RAISE;
                claim.target = *now;
            };
            let mut reached = capital(&supposed);
            while reached < rule.threshold() && raises_left > 0 {
                raises_left -= 1;
                let mut best: Option<(f64, usize, f64)> = None;
                for (at, &PlacedClaim { x, y, .. }) in
                    claims.iter().enumerate().filter(|(_, claim)| concerned(claim))
                {
                    let before = supposed[x * k + y];
                    supposed[x * k + y] = before + RAISE;
                    let raised = capital(&supposed);
                    supposed[x * k + y] = before;
                    let gain = (raised - reached) / self.outlook(x, y).comparisons(RAISE);
                    if gain > best.map_or(0.0, |(most, _, _)| most) {
                        best = Some((gain, at, raised));
                    }
                }
                match best {
                    Some((_, at, raised)) => {
                        raise(&mut claims[at], &mut supposed);
                        reached = raised;
                    }
                    // only several of them together help
                    None => {
                        for claim in claims.iter_mut().filter(|claim| concerned(claim)) {
                            raise(claim, &mut supposed);
                        }
                        reached = capital(&supposed);
                    }
                }
            }
        }
    }
}
