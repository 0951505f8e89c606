//! What a comparison said, before and after an experiment's tie rule.

use rand::RngExt;

use crate::step_rng;

/// What the searcher said about an ordered pair, as it stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Answer {
    /// The first ranker of the pair won.
    First,
    /// The second ranker of the pair won.
    Second,
    /// Both got the same credit, and not none.
    Tie,
    /// No click: says nothing, and is not a tie.
    None,
}

/// What a policy learns from a comparison: an [`Answer`] under a [`TieRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The first ranker of the pair won.
    First,
    /// The second ranker of the pair won.
    Second,
    /// Half a win for both.
    Half,
    /// A comparison was made and changes no count (a tie under [`TieRule::Skip`]).
    Void,
    /// No comparison was made: a page without a click.
    None,
}

impl Outcome {
    /// Wins to add for (first, second), in halves of a win.
    pub fn half_wins(self) -> (u32, u32) {
        match self {
            Outcome::First => (2, 0),
            Outcome::Second => (0, 2),
            Outcome::Half => (1, 1),
            Outcome::Void | Outcome::None => (0, 0),
        }
    }
}

/// What a tie means for the win counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum TieRule {
    /// A tie changes nothing.
    #[default]
    Skip,
    /// A tie is half a win for both.
    Half,
    /// A tie is a win for one of the two, drawn at random from the experiment's seed and the step.
    Coin,
}

impl TieRule {
    /// What the policy learns from `answer`, given at time-step `step` of an experiment with this
    /// `seed`.
    ///
    /// Deterministic: the coin of [`TieRule::Coin`] comes from seed and step alone.
    pub fn resolve(self, answer: Answer, seed: u64, step: u64) -> Outcome {
        match (answer, self) {
            (Answer::First, _) => Outcome::First,
            (Answer::Second, _) => Outcome::Second,
            (Answer::None, _) => Outcome::None,
            (Answer::Tie, TieRule::Skip) => Outcome::Void,
            (Answer::Tie, TieRule::Half) => Outcome::Half,
            (Answer::Tie, TieRule::Coin) => {
                if step_rng(seed ^ TIE_STREAM, step).random::<bool>() {
                    Outcome::First
                } else {
                    Outcome::Second
                }
            }
        }
    }
}

/// Sets the tie coins apart from what a policy itself draws while folding.
const TIE_STREAM: u64 = 0x7469_6573;
