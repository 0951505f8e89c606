//! SCOMP: compares a small seed set with all remaining rankers (Algorithm 2).

use rand::RngExt;

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::comp::batched::Batched;
use crate::policies::comp::evidence::{Elimination, Estimates, Evidence};
use crate::policies::comp::field::Field;
use crate::policies::comp::pair_selection::{Closed, PairSelection};
use crate::policies::comp::parameters::{
    BATCHES, BatchParameters, ELIMINATION, ESTIMATES, FIXED_RANKERS, HORIZON, SEED_EXPONENT,
    batch_parameters, default_seed_exponent, validate_seed_exponent,
};
use crate::policies::comp::pcomp::AllPairs;
use crate::{Duel, Policy, step_rng};

batch_parameters! {
    /// Parameters of SCOMP.
    Scomp, seed_exponent
}

impl PolicyParameters for Scomp {
    const DESCRIPTION: Description = Description {
        summary: "In at most B + 1 batches: compares a small random seed set with every remaining \
                  ranker, and removes those that are clearly beaten. Once a ranker beats the whole \
                  seed set, compares all pairs of the rest.",
        source: "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Algorithm 2 (SCOMP)",
        assumes: "a total order with strong stochastic transitivity and the stochastic triangle \
                  inequality",
        parameters: &[HORIZON, BATCHES, ELIMINATION, ESTIMATES, SEED_EXPONENT],
        fixed_rankers: Some(FIXED_RANKERS),
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        validate_seed_exponent(self.seed_exponent)?;
        self.shared().validate(rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Batched::start(
            self.shared(),
            setup,
            SeedsAgainstAll::Seeds(draw_seeds(self.seed_exponent, setup)),
        )
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<SeedsAgainstAll>::restore(self.shared(), setup, state)
    }
}

/// Line 3 of Algorithms 2 and 3: `S` contains each ranker with probability `K^-exponent`, in
/// ascending order. An empty set is drawn again.
pub(super) fn draw_seeds(exponent: f64, setup: Setup) -> Vec<usize> {
    let probability = libm::pow(setup.rankers as f64, -exponent);
    let mut rng = step_rng(setup.seed, 0);
    loop {
        let seeds: Vec<usize> =
            (0..setup.rankers).filter(|_| rng.random::<f64>() < probability).collect();
        if !seeds.is_empty() {
            return seeds;
        }
    }
}

/// Whether `seeds` is a valid seed set of `rankers` rankers.
pub(super) fn are_seeds(seeds: &[usize], rankers: usize) -> bool {
    seeds.windows(2).all(|pair| pair[0] < pair[1])
        && seeds.last().is_some_and(|&last| last < rankers)
}

/// The selection of SCOMP.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
enum SeedsAgainstAll {
    /// The first phase, with `S`, which is not empty.
    Seeds(Vec<usize>),
    /// The second phase.
    AllPairs,
}

impl PairSelection for SeedsAgainstAll {
    fn most_batches(rounds: u32) -> u32 {
        rounds.saturating_add(1)
    }

    fn pairs(&self, field: &Field) -> Vec<Duel> {
        let Self::Seeds(seeds) = self else { return AllPairs.pairs(field) };
        // line 5; a pair inside S occurs once, with its lower ranker first
        let is_new = |i: usize, j: usize| i != j && (i < j || seeds.binary_search(&j).is_err());
        let against = |&i: &usize| {
            field.active.iter().filter(move |&&j| is_new(i, j)).map(move |&j| Duel::new(i, j))
        };
        seeds.iter().flat_map(against).collect()
    }

    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed {
        let Self::Seeds(seeds) = self else { return AllPairs.learn(field, evidence) };
        // lines 6-8
        let compared = seeds.clone();
        if evidence.is_hoeffding() {
            field.eliminate(seeds, evidence, 3.0);
        } else {
            field.eliminate(&field.active.clone(), evidence, 1.0);
        }
        seeds.retain(|seed| field.active.contains(seed));

        // Lines 9-12. With divergences, whoever beats a seed by 3γ also removes it. The condition
        // is then about the seeds that the round compared: those that are left would fulfil it
        // without any evidence.
        let asked: &[usize] = if evidence.is_hoeffding() { seeds } else { &compared };
        let beats_seeds =
            |j: &usize, by: f64| asked.iter().all(|&i| evidence.radii_in_round(*j, i) > by);
        let clear = field.active.iter().any(|j| beats_seeds(j, 3.0));
        if clear {
            field.active.retain(|j| beats_seeds(j, 1.0));
        }
        // without a seed A* is A, and in either case τ = r: the round is repeated
        if clear || seeds.is_empty() {
            *self = Self::AllPairs;
        } else {
            field.round += 1;
        }
        Closed::Round
    }

    fn is_sound(&self, rankers: usize) -> bool {
        match self {
            Self::Seeds(seeds) => are_seeds(seeds, rankers),
            Self::AllPairs => true,
        }
    }
}
