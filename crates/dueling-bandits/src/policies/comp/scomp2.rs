//! SCOMP2: compares the best of a small seed set with all remaining rankers (Algorithm 3).

use serde::{Deserialize, Serialize};

use super::pcomp::AllPairs;
use super::scomp::{are_seeds, draw_seeds};
use super::{
    BATCHES, Batched, Closed, Duel, ELIMINATION, ESTIMATES, Elimination, Estimates, Evidence,
    Field, HORIZON, SEED_EXPONENT, Scheme, Terms, default_seed_exponent, seeded_parameters,
    validate_seed_exponent,
};
use crate::Policy;
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};

seeded_parameters! {
    /// Parameters of SCOMP2.
    Scomp2
}

impl PolicyParameters for Scomp2 {
    const DESCRIPTION: Description = Description {
        summary: "In at most 2B + 1 batches: finds the best of a small random seed set, compares \
                  it with every remaining ranker, and removes those that are clearly beaten. Once \
                  a ranker beats this seed, compares all pairs of the rest.",
        source: "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Algorithm 3 (SCOMP2)",
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
        let seeds = draw_seeds(self.seed_exponent, setup);
        Batched::start(
            self.terms(),
            setup,
            BestSeedAgainstAll { stage: Stage::of_round(&seeds), seeds },
        )
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<BestSeedAgainstAll>::restore(self.terms(), setup, format, state)
    }
}

/// The pair selection of SCOMP2.
#[derive(Debug, Serialize, Deserialize)]
struct BestSeedAgainstAll {
    /// `S`; not empty in the first phase.
    seeds: Vec<usize>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// First phase, batch r(1): all pairs of seeds.
    Seeds,
    /// First phase, batch r(2): `i*` against all other rankers.
    Candidate(usize),
    /// The second phase.
    AllPairs,
}

impl Stage {
    /// The first stage of a round of the first phase; a single seed is the candidate without r(1).
    fn of_round(seeds: &[usize]) -> Self {
        match seeds {
            &[only] => Self::Candidate(only),
            _ => Self::Seeds,
        }
    }
}

impl BestSeedAgainstAll {
    /// Line 6: "any" undefeated seed. This chooses the seed whose clearest defeat by another seed
    /// is the least clear, ties by lowest index. It is undefeated if any seed is.
    fn candidate(&self, evidence: &Evidence<'_>) -> usize {
        let clearest_defeat =
            |&i: &usize| self.seeds.iter().map(|&j| evidence.margin(j, i)).fold(0.0, f64::max);
        let mut best = (self.seeds[0], clearest_defeat(&self.seeds[0]));
        for seed in &self.seeds[1..] {
            let defeat = clearest_defeat(seed);
            if defeat < best.1 {
                best = (*seed, defeat);
            }
        }
        best.0
    }

    /// The end of r(2), for candidate `i*`.
    fn challenge(&mut self, candidate: usize, field: &mut Field, evidence: &Evidence<'_>) {
        let (clear, better) = if evidence.is_hoeffding() { (5.0, 3.0) } else { (1.0, 0.36) };
        if evidence.is_hoeffding() {
            // lines 8-10
            field.eliminate(&[candidate], evidence, clear);
        }

        // lines 11-14
        let beats_candidate = |j: &usize, by: f64| evidence.margin(*j, candidate) > by;
        if field.active.iter().any(|j| beats_candidate(j, clear)) {
            let a_star =
                field.active.iter().copied().filter(|j| beats_candidate(j, better)).collect();
            field.switch(a_star, evidence, clear);
            self.stage = Stage::AllPairs;
            return;
        }

        if !evidence.is_hoeffding() {
            field.eliminate(&field.active.clone(), evidence, clear);
        }
        self.seeds.retain(|seed| field.active.contains(seed));
        self.stage =
            if self.seeds.is_empty() { Stage::AllPairs } else { Stage::of_round(&self.seeds) };
        field.round += 1;
    }
}

impl Scheme for BestSeedAgainstAll {
    fn pairs(&self, field: &Field) -> Vec<Duel> {
        match self.stage {
            Stage::Seeds => Field::all_pairs(&self.seeds),
            Stage::Candidate(candidate) => {
                let others = field.active.iter().filter(|&&j| j != candidate);
                others.map(|&j| Duel::new(candidate, j)).collect()
            }
            Stage::AllPairs => AllPairs.pairs(field),
        }
    }

    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed {
        match self.stage {
            Stage::Seeds => {
                self.stage = Stage::Candidate(self.candidate(evidence));
                Closed::PartOfRound
            }
            Stage::Candidate(candidate) => {
                self.challenge(candidate, field, evidence);
                Closed::Round
            }
            Stage::AllPairs => AllPairs.learn(field, evidence),
        }
    }

    fn is_sound(&self, rankers: usize) -> bool {
        match self.stage {
            Stage::Seeds => are_seeds(&self.seeds, rankers),
            Stage::Candidate(candidate) => candidate < rankers && are_seeds(&self.seeds, rankers),
            Stage::AllPairs => true,
        }
    }
}
