//! SCOMP2: compares the best of a small seed set with all remaining rankers (Algorithm 3).

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
use crate::policies::comp::scomp::{are_seeds, draw_seeds};
use crate::{Duel, Policy};

batch_parameters! {
    /// Parameters of SCOMP2.
    Scomp2, seed_exponent
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
        fixed_rankers: Some(FIXED_RANKERS),
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        validate_seed_exponent(self.seed_exponent)?;
        self.shared().validate(rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let seeds = draw_seeds(self.seed_exponent, setup);
        Batched::start(
            self.shared(),
            setup,
            BestSeedAgainstAll { stage: Stage::of_round(&seeds), seeds },
        )
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<BestSeedAgainstAll>::restore(self.shared(), setup, state)
    }
}

/// The selection of SCOMP2.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct BestSeedAgainstAll {
    /// `S`; not empty in the first phase.
    seeds: Vec<usize>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// Line 6: "any" seed that no other defeats by more than `γ` in this round. Of these, this
    /// chooses the seed whose clearest defeat on the evidence of the elimination is the least
    /// clear, ties by lowest index. If every seed is defeated, it chooses among all.
    fn candidate(&self, evidence: &Evidence<'_>) -> usize {
        let rivals = |i: usize| self.seeds.iter().map(move |&j| (j, i));
        let defeat = |i: usize| {
            let is_defeated = rivals(i).any(|(j, i)| evidence.radii_in_round(j, i) > 1.0);
            let clearest = rivals(i).map(|(j, i)| evidence.margin(j, i)).fold(0.0, f64::max);
            (is_defeated, clearest)
        };
        let mut best = (self.seeds[0], defeat(self.seeds[0]));
        for &seed in &self.seeds[1..] {
            let defeat = defeat(seed);
            if defeat < best.1 {
                best = (seed, defeat);
            }
        }
        best.0
    }

    /// The end of r(2), for candidate `i*`.
    fn challenge(&mut self, candidate: usize, field: &mut Field, evidence: &Evidence<'_>) {
        // lines 8-10
        if evidence.is_hoeffding() {
            field.eliminate(&[candidate], evidence, 5.0);
        } else {
            field.eliminate(&field.active.clone(), evidence, 1.0);
        }
        self.seeds.retain(|seed| field.active.contains(seed));

        // lines 11-14
        let beats_candidate = |j: &usize, by: f64| evidence.radii_in_round(*j, candidate) > by;
        let clear = field.active.iter().any(|j| beats_candidate(j, 5.0));
        if clear {
            field.active.retain(|j| beats_candidate(j, 3.0));
        }
        // without a seed A* is A, and in either case τ = r: the round is repeated
        if clear || self.seeds.is_empty() {
            self.stage = Stage::AllPairs;
        } else {
            self.stage = Stage::of_round(&self.seeds);
            field.round += 1;
        }
    }
}

impl PairSelection for BestSeedAgainstAll {
    fn most_batches(rounds: u32) -> u32 {
        rounds.saturating_mul(2).saturating_add(1)
    }

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
