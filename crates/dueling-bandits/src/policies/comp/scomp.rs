//! SCOMP: compares a small seed set with all remaining rankers (Algorithm 2).

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::{Policy, step_rng};

use super::pcomp::AllPairs;
use super::{
    BATCHES, Batched, Closed, Duel, ELIMINATION, ESTIMATES, Elimination, Estimates, Evidence,
    Field, HORIZON, SEED_EXPONENT, Scheme, Terms, default_seed_exponent, seeded_parameters,
    validate_seed_exponent,
};

seeded_parameters! {
    /// Parameters of SCOMP.
    Scomp
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
        fixed_rankers: Some(
            "it commits to batches of pairs, and divides its horizon, for the initial rankers",
        ),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        validate_seed_exponent(self.seed_exponent)?;
        self.terms().validate(rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Batched::start(
            self.terms(),
            setup,
            SeedsAgainstAll::Seeds(draw_seeds(self.seed_exponent, setup)),
        )
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<SeedsAgainstAll>::restore(self.terms(), setup, format, state)
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

/// The pair selection of SCOMP.
#[derive(Debug, Serialize, Deserialize)]
enum SeedsAgainstAll {
    /// The first phase, with `S`, which is not empty.
    Seeds(Vec<usize>),
    /// The second phase.
    AllPairs,
}

impl Scheme for SeedsAgainstAll {
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
        let (clear, better) = if evidence.is_hoeffding() { (3.0, 1.0) } else { (1.0, 0.36) };
        if evidence.is_hoeffding() {
            // lines 6-8
            field.eliminate(seeds, evidence, clear);
            seeds.retain(|seed| field.active.contains(seed));
        }

        // lines 9-12; if no seed is left, every ranker beats all of them, and A* is A
        let beats_seeds = |j: &usize, by: f64| seeds.iter().all(|&i| evidence.margin(*j, i) > by);
        if field.active.iter().any(|j| beats_seeds(j, clear)) {
            let a_star = field.active.iter().copied().filter(|j| beats_seeds(j, better)).collect();
            field.switch(a_star, evidence, clear);
            *self = Self::AllPairs;
            return Closed::Round;
        }

        if !evidence.is_hoeffding() {
            field.eliminate(&field.active.clone(), evidence, clear);
            seeds.retain(|seed| field.active.contains(seed));
        }
        if seeds.is_empty() {
            *self = Self::AllPairs;
        }
        field.round += 1;
        Closed::Round
    }

    fn is_sound(&self, rankers: usize) -> bool {
        match self {
            Self::Seeds(seeds) => are_seeds(seeds, rankers),
            Self::AllPairs => true,
        }
    }
}
