//! SAVAGE: sensitivity analysis of variables for generic exploration (Urvoy, Clérot, Féraud &
//! Naamane, ICML 2013), used as a dueling bandit through the explore-then-exploit wrapper. See
//! `lab/notes/comparators.md` §11.

mod by_pairs;

use crate::Policy;
use crate::pairs::pair_count;
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::explore::borda::BordaArms;
use crate::policies::explore::explore_then_exploit::ExploreThenExploit;
use crate::policies::explore::parameters::{DELTA, ExplorationParameters, HORIZON};
use by_pairs::{Rules, SavagePairs};

/// The kind of winner to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Winner {
    /// The ranker that beats the most others.
    #[default]
    Copeland,
    /// The ranker that beats all others; it must exist.
    Condorcet,
    /// The ranker that wins most often against a random opponent.
    Borda,
}

/// Parameters of SAVAGE.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
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
}

impl Default for Savage {
    fn default() -> Self {
        Self { horizon: None, delta: None, winner: Winner::Copeland, intersect: true, epsilon: 0 }
    }
}

impl Savage {
    /// The parameters that all explorations have.
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: self.horizon, delta: self.delta }
    }

    fn arms(&self, setup: Setup) -> BordaArms {
        BordaArms::new(setup.rankers, self.shared().radius(setup.rankers), self.intersect)
    }

    fn pairs(&self, Setup { rankers, .. }: Setup) -> SavagePairs {
        let rules = Rules {
            radius: self.shared().radius(pair_count(rankers)),
            intersect: self.intersect,
            epsilon: self.epsilon as usize,
            is_condorcet: self.winner == Winner::Condorcet,
        };
        SavagePairs::new(rankers, rules)
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
                values: Values::OneOf(&["copeland", "condorcet", "borda"]),
                meaning: "The winner to find: `copeland`, `condorcet` or `borda`, for which every \
                          ranker duels random opponents.",
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
        ],
        fixed_rankers: Some("it plans its comparisons for the initial rankers"),
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)?;
        let (epsilon, most) = (self.epsilon as usize, rankers - 1);
        require(epsilon <= most, "epsilon", epsilon, &format!("from 0 to {most}"))?;
        if epsilon > 0 && self.winner == Winner::Borda {
            let detail = "`epsilon` above 0 requires `winner=condorcet` or `winner=copeland`";
            return Err(InvalidPolicy::new("epsilon", detail));
        }
        Ok(())
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let (horizon, rankers) = (self.horizon, setup.rankers);
        match self.winner {
            Winner::Borda => Box::new(ExploreThenExploit::new(self.arms(setup), horizon, rankers)),
            Winner::Copeland | Winner::Condorcet => {
                Box::new(ExploreThenExploit::new(self.pairs(setup), horizon, rankers))
            }
        }
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        let horizon = self.horizon;
        match self.winner {
            Winner::Borda => ExploreThenExploit::restore(self.arms(setup), horizon, setup, state),
            Winner::Copeland | Winner::Condorcet => {
                ExploreThenExploit::restore(self.pairs(setup), horizon, setup, state)
            }
        }
    }
}
