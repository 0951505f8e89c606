//! The result of a comparison, before and after the tie rule.

use rand::RngExt;

use crate::step_rng;

/// The result of comparing an ordered pair, before the tie rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first ranker of the pair won.
    First,
    /// The second ranker of the pair won.
    Second,
    /// Both got the same credit, above 0.
    Tie,
    /// No information, such as a page without a click. Not a tie.
    None,
}

/// The observation that a policy makes of a comparison: an [`Answer`] under a [`TieRule`].
///
/// ```
/// use dueling_bandits::{Answer, Outcome, TieRule};
///
/// assert_eq!(TieRule::Half.resolve(Answer::Tie, 1, 0), Outcome::Half);
/// assert_eq!(TieRule::Skip.resolve(Answer::Tie, 1, 0), Outcome::Void);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The first ranker of the pair won.
    First,
    /// The second ranker of the pair won.
    Second,
    /// Half a win for both.
    Half,
    /// A comparison that changes no count: a tie under [`TieRule::Skip`].
    Void,
    /// No comparison: [`Answer::None`].
    None,
}

impl Outcome {
    /// Half wins of (first, second).
    pub fn half_wins(self) -> (u32, u32) {
        match self {
            Outcome::First => (2, 0),
            Outcome::Second => (0, 2),
            Outcome::Half => (1, 1),
            Outcome::Void | Outcome::None => (0, 0),
        }
    }
}

/// The effect of a tie on the win counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub enum TieRule {
    /// A tie changes nothing.
    #[default]
    Skip,
    /// A tie is half a win for both.
    Half,
    /// A tie is a win for one of the two, drawn at random from the seed and the step.
    Coin,
}

impl TieRule {
    /// The outcome of every tie; `None` if it depends on the step.
    pub fn constant(self) -> Option<Outcome> {
        match self {
            TieRule::Skip => Some(Outcome::Void),
            TieRule::Half => Some(Outcome::Half),
            TieRule::Coin => None,
        }
    }

    /// The outcome of `answer` at time-step `step`.
    ///
    /// Deterministic: the coin of [`TieRule::Coin`] is a function of `seed` and `step`.
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

/// Separates the coins of ties from the random numbers of policies.
const TIE_STREAM: u64 = 0x7469_6573;
