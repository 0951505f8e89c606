//! Credit: the input that a method needs to score clicks, and the result.

use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::draft::Team;
use crate::share::Share;

/// Scores closer to 0 than this are ties: the difference is rounding, not preference.
const ROUNDING: f64 = 1e-12;

/// The facts about a shown list that crediting clicks needs, from its first position to the last
/// one shown. It does not contain the documents. Store it, or draft the list again from the duel's
/// seed and the two rankings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditSheet {
    /// Lengths of the left and the right list after the cut, which for optimized interleaving is at
    /// the depth.
    pub depths: [u32; 2],
    /// Whether clicks can decide the duel: `false` for two equal lists and for a ranker shown
    /// alone.
    pub informative: bool,
    /// Whether team draft replaced optimized interleaving.
    pub fell_back: bool,
    /// One slot for each position.
    pub slots: Vec<CreditSlot>,
}

/// One shown slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditSlot {
    /// Rank on the left and on the right before the cut, from 1; 0 where the document is missing.
    pub ranks: [u32; 2],
    /// The side that the slot belongs to; `None` for a pinned document, and below the depth of
    /// optimized interleaving.
    pub team: Option<Team>,
    /// Whether a click on it can earn credit.
    pub competitive: bool,
}

/// How a score becomes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScoreVerdict {
    /// The side with more credit wins.
    #[default]
    Sign,
    /// The side with more credit wins with a probability in proportion to the score, and the page
    /// is a tie otherwise. Random clicks prefer neither side.
    Score,
}

impl ScoreVerdict {
    pub(crate) fn is_sign(&self) -> bool {
        *self == ScoreVerdict::Sign
    }
}

/// Which side won a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The left ranker.
    Left,
    /// The right ranker.
    Right,
    /// Both sides earned the same credit, or the coin of [`ScoreVerdict::Score`] decided for
    /// neither.
    Tie,
    /// The page carries no signal; [`NoSignal`] has the reason.
    None,
}

/// Why a page carries no signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSignal {
    /// There were no clicks.
    NoClick,
    /// All clicks were on pinned slots or on slots that belong to neither side.
    NothingCreditable,
    /// Both lists were the same, or one ranker was shown alone.
    NotInformative,
}

/// The credit that the clicks on a page earned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Credit {
    /// Which side won.
    pub outcome: Outcome,
    /// The mean outcome over the coins of crediting, as an exact number: 1 if the left side wins
    /// for certain, and 1/2 for a page without a signal. Averages of it have less noise than
    /// averages of `outcome`.
    pub share: Share,
    /// The left side's credit, in the unit of the method: the weight of its clicks (team draft,
    /// balanced, expected clicks), the probability that it has more of them (probabilistic), or the
    /// sum of the credits in its favour (optimized).
    pub left: f64,
    /// The right side's credit.
    pub right: f64,
    /// Number of clicked documents that could earn credit.
    pub creditable: usize,
    /// Number of clicked documents that could not.
    pub ignored: usize,
    /// Why the outcome is [`Outcome::None`]; `None` for every other outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_signal: Option<NoSignal>,
}

impl Credit {
    /// `left - right`: positive in favour of the left.
    pub fn score(&self) -> f64 {
        self.left - self.right
    }
}

impl Share {
    /// The share of a page with this outcome and no other evidence.
    pub fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Left => Self::LEFT,
            Outcome::Right => Self::RIGHT,
            Outcome::Tie | Outcome::None => Self::EVEN,
        }
    }

    /// An outcome with this mean: the side with more wins with the probability `|2 x - 1|`, and
    /// the page is a tie otherwise. If ties count as half a win, or are decided by a fair coin, the
    /// left side's mean is exactly this share. If ties do not count, the side with more is still
    /// the more frequent winner, and an even share leaves no noise.
    pub fn draw(self, coins: &mut impl Coins) -> Outcome {
        let (left, right) = (self.numerator(), self.mirrored().numerator());
        if left == right || !coins.happens(left.abs_diff(right)) {
            Outcome::Tie
        } else if left > right {
            Outcome::Left
        } else {
            Outcome::Right
        }
    }
}

/// A clicked slot that earns credit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClickedSlot {
    /// Index in the sheet.
    pub position: usize,
    /// Ranks after the cut, from 1; where the document is missing, the list's length plus 1.
    pub ranks: [u32; 2],
    pub team: Team,
    pub weight: u32,
}

/// The credit of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Score {
    pub left: f64,
    pub right: f64,
}

impl Score {
    /// The side with more credit wins.
    pub fn outcome(self) -> Outcome {
        let difference = self.left - self.right;
        if difference.abs() <= ROUNDING {
            Outcome::Tie
        } else if difference > 0.0 {
            Outcome::Left
        } else {
            Outcome::Right
        }
    }

    /// Each side wins with a probability equal to its credit; the rest of the probability is a tie.
    pub fn draw(self, coins: &mut impl Coins) -> Outcome {
        let rest = (1.0 - self.left - self.right).max(0.0);
        match coins.choose(&[self.left, self.right, rest]) {
            0 => Outcome::Left,
            1 => Outcome::Right,
            _ => Outcome::Tie,
        }
    }
}
