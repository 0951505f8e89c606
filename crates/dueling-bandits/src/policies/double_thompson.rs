//! D-TS and D-TS+ (Wu & Liu, "Double Thompson Sampling for Dueling Bandits", NIPS 2016, Algorithm
//! 1).
//!
//! The policy draws two Thompson samples. The first picks a candidate among the optimistic Copeland
//! winners. The second picks the strongest challenger that has not certainly lost to the candidate.
//!
//! Step numbers are those of `algorithms.md` §2. All samples use its sign shortcut, so selections
//! have exactly the distribution of the reference implementation.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::bounds::Bounds;
use super::choose;
use crate::math::divergence;
use crate::pairwise_sampling::{PairwiseSample, WinProbabilities, theta_given_sign};
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::saved_state::load_state;
use crate::saved_state::save_state;
use crate::{InFlight, MAX_RANKERS, Observation, Policy, PolicyRng, Selection, Tally, Unsupported};

const FORMAT: u32 = 1;

/// Up to this many rankers, use the small score arrays, which are faster to clear.
const FEW: usize = 32;

const ALPHA: Parameter = Parameter {
    name: "alpha",
    values: Values::Number,
    meaning: "Width of the confidence bounds, `sqrt(alpha ln t / N)`; above 0.5.",
    default: Some("0.51"),
};

pub(super) fn default_alpha() -> f64 {
    0.51
}

pub(super) fn require_alpha(alpha: f64) -> Result<(), InvalidPolicy> {
    require(alpha > 0.5 && alpha.is_finite(), "alpha", alpha, "a finite number above 0.5")
}

/// Parameters of D-TS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleThompson {
    /// Width of the confidence bounds; above 0.5.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
}

/// Parameters of D-TS+.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleThompsonPlus {
    /// Width of the confidence bounds; above 0.5.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
}

impl PolicyParameters for DoubleThompson {
    const DESCRIPTION: Description = Description {
        summary: "Double Thompson sampling: low regret with and without a Condorcet winner, and \
                  little affected by late feedback.",
        source: "Wu & Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016, Algorithm 1",
        assumes: "no two rankers are exactly even",
        parameters: &[ALPHA],
        fixed_rankers: None,
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Sampler::new(Bounds::new(setup.rankers, self.alpha), FirstTie::AtRandom))
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Sampler::restore(setup, format, state, self.alpha, FirstTie::AtRandom)
    }
}

impl PolicyParameters for DoubleThompsonPlus {
    const DESCRIPTION: Description = Description {
        summary: "Double Thompson sampling that breaks ties for the first candidate by the \
                  expected cost of exploration: better than D-TS where there are several Copeland \
                  winners.",
        source: "Wu & Liu, Double Thompson Sampling for Dueling Bandits, NIPS 2016, D-TS+",
        assumes: "no two rankers are exactly even",
        parameters: &[ALPHA],
        fixed_rankers: None,
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Sampler::new(Bounds::new(setup.rankers, self.alpha), FirstTie::LeastRegret))
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Sampler::restore(setup, format, state, self.alpha, FirstTie::LeastRegret)
    }
}

/// How step 3 breaks ties: the only difference between D-TS and D-TS+.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstTie {
    AtRandom,
    LeastRegret,
}

#[derive(Debug)]
struct Sampler {
    bounds: Bounds,
    /// Derived from the tally.
    odds: WinProbabilities,
    first_tie: FirstTie,
}

impl Sampler {
    fn new(bounds: Bounds, first_tie: FirstTie) -> Self {
        Self {
            odds: WinProbabilities::new(bounds.tally().rankers(), bounds.tally()),
            bounds,
            first_tie,
        }
    }

    fn restore(
        setup: Setup,
        format: u32,
        state: &[u8],
        alpha: f64,
        first_tie: FirstTie,
    ) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let (tally, retired): (Tally, Vec<u16>) = load_state(state)?;
        (tally.rankers() >= setup.rankers).then_some(())?;
        Some(Box::new(Self::new(Bounds::from_parts(tally, &retired, alpha)?, first_tie)))
    }

    /// Phase 1, steps 1-3, with score arrays of length `N`.
    fn first_candidate<const N: usize>(&self, rng: &mut PolicyRng) -> usize {
        let active = self.bounds.active();
        // step 1: the largest optimistic Copeland score belongs to the fewest certain losses
        let least = self.bounds.least_losses();
        let is_candidate = |i: usize| self.bounds.certain_losses(i) == least;
        let draw = PairwiseSample::new(&self.odds, self.tally(), rng);
        let (mut score, mut counted) = ([0; N], [0; N]);
        active.iter().for_each(|&i| counted[i] = 1);

        // step 2, for the pairs with at least one candidate; of two candidates, the later one owns
        // the pair
        let outsiders: SmallVec<[u16; MAX_RANKERS]> =
            active.iter().filter(|&&i| !is_candidate(i)).map(|&i| i as u16).collect();
        let candidates = || active.iter().copied().filter(|&i| is_candidate(i));
        draw.meet_earlier(candidates(), &counted, &mut score);
        for i in candidates() {
            let row = draw.row(i);
            for j in outsiders.iter().rev().map(|&j| usize::from(j)).take_while(|&j| j > i) {
                score[if row.wins(j) { i } else { j }] += 1;
            }
        }

        // step 3
        let most = candidates().map(|i| score[i]).max().unwrap_or(0);
        let tied = || candidates().filter(|&i| score[i] == most);
        if self.first_tie == FirstTie::AtRandom || tied().nth(1).is_none() {
            return choose::uniform(tied(), rng).unwrap_or(active[0]);
        }

        // D-TS+ prices the ties with the sampled scores of all rankers: step 2 for the other pairs
        let mut score_of_all = score;
        candidates().for_each(|i| counted[i] = 0);
        draw.meet_earlier(outsiders.iter().map(|&i| i.into()), &counted, &mut score_of_all);
        let highest = active.iter().map(|&i| score_of_all[i]).max().unwrap_or(0);
        let regrets = tied().map(|i| {
            let own = draw.row(i);
            let terms = active.iter().filter(|&&j| j != i).map(|&j| {
                let i_owns = !is_candidate(j) || i > j;
                let above = if i_owns { own.wins(j) } else { !draw.row(j).wins(i) };
                // use the generator of the pair, so that θ[i][j] = 1 - θ[j][i] when both are tied
                let theta = if i < j {
                    theta_given_sign(self.tally(), i, j, above, &mut draw.pair_chance(i, j))
                } else {
                    theta_given_sign(self.tally(), j, i, !above, &mut draw.pair_chance(i, j))
                };
                // r̃[i][j], in units of 1 / (2 (K-1)); the unit does not change the argmin
                let regret = f64::from(2 * highest - score_of_all[i] - score_of_all[j]);
                let divergence = divergence::from_half(theta);
                if divergence > 0.0 { regret / divergence } else { 0.0 }
            });
            (i, -terms.sum::<f64>())
        });
        choose::argmax(regrets, rng).unwrap_or(active[0])
    }

    /// Phase 2, steps 4 and 5. The first candidate competes with the value 1/2, so only a `φ` above
    /// 1/2 can win. Therefore draw the sign of each `φ` first, and its value only if it is above
    /// 1/2.
    fn second_candidate(&self, first: usize, rng: &mut PolicyRng) -> usize {
        let draw = PairwiseSample::new(&self.odds, self.tally(), rng);
        let row = draw.row(first);
        let (mut best, mut highest) = (first, 0.5);
        for &i in self.bounds.active() {
            if i == first || row.wins(i) || self.bounds.beats(i, first) {
                continue;
            }
            let phi = theta_given_sign(self.tally(), i, first, true, rng);
            if phi > highest {
                (best, highest) = (i, phi);
            }
        }
        best
    }
}

impl Policy for Sampler {
    fn tally(&self) -> &Tally {
        self.bounds.tally()
    }

    fn select(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let few = self.tally().rankers() <= FEW;
        let first = if few {
            self.first_candidate::<FEW>(rng)
        } else {
            self.first_candidate::<MAX_RANKERS>(rng)
        };
        Selection::of(first, self.second_candidate(first, rng))
    }

    fn uses_in_flight(&self) -> bool {
        false
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        if observation.outcome.half_wins() != (0, 0) {
            self.odds.update(self.bounds.tally(), duel.first, duel.second);
        }
    }

    fn observe_unsettled(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        if observation.outcome.half_wins() != (0, 0) {
            self.odds.update_later(duel.first, duel.second);
        }
    }

    fn settle(&mut self) {
        self.odds.settle(self.bounds.tally());
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.bounds.skip(count);
    }

    fn champion(&self) -> usize {
        self.tally().copeland_leader_among(self.bounds.active())
    }

    fn enlist(&mut self) -> Result<(), Unsupported> {
        self.bounds.enlist()?;
        self.odds.enlist();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), Unsupported> {
        self.bounds.retire(ranker).map(drop)
    }

    fn format(&self) -> u32 {
        FORMAT
    }

    fn save(&self) -> Vec<u8> {
        save_state(&self.bounds.parts())
    }
}
