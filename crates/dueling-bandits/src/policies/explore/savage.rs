//! SAVAGE: sensitivity analysis of variables for generic exploration (Urvoy, Clérot, Féraud &
//! Naamane, ICML 2013), used as a dueling bandit through the explore-then-exploit wrapper. See
//! `algorithms-comparators.md` §11.

mod by_pairs;

use crate::Policy;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::explore::borda::BordaArms;
use crate::policies::explore::explore_then_exploit::ExploreThenExploit;
use crate::policies::explore::pairs::Pairs;
use crate::policies::explore::parameters::{DELTA, ExplorationParameters, HORIZON};
use crate::policies::explore::sampled::Sampler;
use by_pairs::{IndependenceTest, SavagePairs};

/// The kind of winner to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Winner {
    /// The ranker that beats the most others.
    #[default]
    Copeland,
    /// The ranker that beats all others; it must exist.
    Condorcet,
    /// The ranker that wins most often against a random opponent. Estimates one value per ranker.
    Borda,
    /// The same winner as `Borda`. Estimates one value per pair.
    BordaPairs,
}

/// The test for pairs that can no longer change the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Predicate {
    /// By the paper's formula for the kind of winner. It is sufficient: a pair that it keeps may no
    /// longer matter. Formerly called `exact`.
    #[default]
    #[cfg_attr(feature = "serde", serde(alias = "exact"))]
    Formal,
    /// By random matrices within the intervals: slow, and may drop a pair that still matters.
    Sampled,
}

/// Parameters of SAVAGE.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Savage {
    /// `T`, in steps.
    pub horizon: Option<u64>,
    /// `δ`.
    pub delta: Option<f64>,
    /// The kind of winner to find.
    pub winner: Winner,
    /// Whether each new interval is intersected with the previous one.
    pub intersect: bool,
    /// `ε`: the number of defeats that an accepted ranker may have beyond those of the best.
    pub epsilon: u32,
    /// The test for whether a pair can still change the winner.
    pub predicate: Predicate,
    /// `m` of the sampled predicate.
    pub sample_starts: u32,
    /// `M` of the sampled predicate.
    pub sample_steps: u32,
}

impl Default for Savage {
    fn default() -> Self {
        Self {
            horizon: None,
            delta: None,
            winner: Winner::Copeland,
            intersect: true,
            epsilon: 0,
            predicate: Predicate::Formal,
            sample_starts: 10,
            sample_steps: 1000,
        }
    }
}

/// Largest number of rankers for the sampled predicate, which examines whole matrices at every
/// step.
const MOST_SAMPLED_RANKERS: usize = 50;

impl Savage {
    /// The parameters that all explorations have.
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: self.horizon, delta: self.delta }
    }

    fn arms(&self, setup: Setup) -> BordaArms {
        BordaArms::new(setup.rankers, self.shared().radius(setup.rankers), self.intersect)
    }

    fn pairs(&self, setup: Setup) -> SavagePairs {
        let pairs = Pairs { rankers: setup.rankers };
        let sampler = Sampler {
            pairs,
            seed: setup.seed,
            starts: self.sample_starts,
            steps: self.sample_steps,
        };
        let test = match (self.predicate, self.winner) {
            (Predicate::Sampled, _) => IndependenceTest::Sampled(sampler),
            (Predicate::Formal, Winner::Copeland) => IndependenceTest::Copeland,
            (Predicate::Formal, Winner::Condorcet) => IndependenceTest::Condorcet,
            (Predicate::Formal, Winner::Borda | Winner::BordaPairs) => IndependenceTest::Borda,
        };
        let radius = self.shared().radius(pairs.count());
        SavagePairs {
            pairs,
            radius,
            intersect: self.intersect,
            epsilon: self.epsilon as usize,
            test,
        }
    }
}

impl PolicyParameters for Savage {
    const DESCRIPTION: Description = Description {
        summary: "Compares pairs in turns, drops those that can no longer change the winner, then \
                  shows the winner alone.",
        source: "Urvoy, Clérot, Féraud & Naamane, Generic Exploration and K-armed Voting Bandits, \
                 ICML 2013 (SAVAGE)",
        assumes: "nothing; a Condorcet winner with winner=condorcet",
        parameters: &[
            HORIZON,
            DELTA,
            Parameter {
                name: "winner",
                values: Values::OneOf(&["copeland", "condorcet", "borda", "borda-pairs"]),
                meaning: "The winner to find: `copeland`, `condorcet`, `borda` (one unknown per \
                          ranker, which duels random opponents) or `borda-pairs` (one unknown per \
                          pair).",
                default: Some("copeland"),
            },
            Parameter {
                name: "intersect",
                values: Values::Boolean,
                meaning: "Whether each new interval is intersected with the previous one, as in \
                          the paper; otherwise only the latest interval counts.",
                default: Some("true"),
            },
            Parameter {
                name: "epsilon",
                values: Values::Integer,
                meaning: "Accepts a ranker that surely beats at most this many rankers fewer than \
                          the best does; from 0 to the number of rankers minus 1. More than 0 \
                          requires `winner=condorcet` or `copeland`.",
                default: Some("0"),
            },
            Parameter {
                name: "predicate",
                values: Values::OneOf(&["formal", "sampled"]),
                meaning: "The test for pairs that no longer matter. `formal`: the paper's formula, \
                          which may keep such a pair. `sampled`: by random matrices, which is slow \
                          and may drop a pair that matters; it requires `winner=copeland` and at \
                          most 50 rankers.",
                default: Some("formal"),
            },
            Parameter {
                name: "sample_starts",
                values: Values::Integer,
                meaning: "With `predicate=sampled`: number of random matrices per step, from 1 to \
                          1000.",
                default: Some("10"),
            },
            Parameter {
                name: "sample_steps",
                values: Values::Integer,
                meaning: "With `predicate=sampled`: number of changes tried on each matrix, from 1 \
                          to 100 000.",
                default: Some("1000"),
            },
        ],
        fixed_rankers: Some("it plans its comparisons for the initial rankers"),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)?;
        if self.predicate == Predicate::Sampled {
            if self.winner != Winner::Copeland {
                return Err(InvalidPolicy::new(
                    "predicate",
                    "`predicate=sampled` requires `winner=copeland`",
                ));
            }
            if rankers > MOST_SAMPLED_RANKERS {
                let detail = format!(
                    "`predicate=sampled` allows at most {MOST_SAMPLED_RANKERS} rankers; this \
                     experiment has {rankers}"
                );
                return Err(InvalidPolicy::new("predicate", detail));
            }
        }
        let (epsilon, most) = (self.epsilon as usize, rankers - 1);
        require(epsilon <= most, "epsilon", epsilon, &format!("from 0 to {most}"))?;
        if epsilon > 0 && matches!(self.winner, Winner::Borda | Winner::BordaPairs) {
            let detail = "`epsilon` above 0 requires `winner=condorcet` or `winner=copeland`";
            return Err(InvalidPolicy::new("epsilon", detail));
        }
        let (starts, steps) = (self.sample_starts, self.sample_steps);
        require((1..=1000).contains(&starts), "sample_starts", starts, "from 1 to 1000")?;
        require((1..=100_000).contains(&steps), "sample_steps", steps, "from 1 to 100000")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        match self.winner {
            Winner::Borda => ExploreThenExploit::start(self.arms(setup), self.shared(), setup),
            Winner::Copeland | Winner::Condorcet | Winner::BordaPairs => {
                ExploreThenExploit::start(self.pairs(setup), self.shared(), setup)
            }
        }
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        match self.winner {
            Winner::Borda => {
                ExploreThenExploit::restore(self.arms(setup), self.shared(), setup, format, state)
            }
            Winner::Copeland | Winner::Condorcet | Winner::BordaPairs => {
                ExploreThenExploit::restore(self.pairs(setup), self.shared(), setup, format, state)
            }
        }
    }
}
