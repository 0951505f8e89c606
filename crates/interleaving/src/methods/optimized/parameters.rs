//! Parameters of optimized interleaving.

use serde::{Deserialize, Serialize};

use crate::credit::ScoreVerdict;

/// The largest number of positions that can be optimized: 1024 lists.
pub const MAX_DEPTH: u32 = 10;
/// The largest number of lists in a linear program.
pub const MAX_LISTS: u32 = 1024;

/// Parameters of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Optimized {
    /// The credit of a click on a document.
    pub credit: RankCredit,
    /// Number of positions that are optimized and credited, from the top.
    pub depth: u32,
    /// The largest number of lists in the linear program; with more lists, team draft is used.
    pub max_lists: u32,
    /// How the credit becomes an outcome. With [`ScoreVerdict::Score`] a pair of lists without an
    /// unbiased distribution gets a team draft.
    pub verdict: ScoreVerdict,
}

impl Default for Optimized {
    fn default() -> Self {
        Self {
            credit: RankCredit::default(),
            depth: MAX_DEPTH,
            max_lists: MAX_LISTS,
            verdict: ScoreVerdict::Score,
        }
    }
}

/// The least common multiple of the ranks in lists that are cut to the depth, which are 1 to
/// [`MAX_DEPTH`] + 1 (not in the list). So `UNIT / rank` is a whole number.
const UNIT: i128 = 27_720;

/// The credit of a click in favour of the left, from the two ranks of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankCredit {
    /// `1/left - 1/right`.
    #[default]
    Inverse,
    /// `right - left`.
    Linear,
    /// The sign of `right - left`.
    Binary,
}

impl RankCredit {
    /// The credit of a document with these ranks on the left and on the right; positive in favour
    /// of the left.
    pub fn of(self, left: u32, right: u32) -> f64 {
        let difference = f64::from(right) - f64::from(left);
        match self {
            RankCredit::Inverse => 1.0 / f64::from(left) - 1.0 / f64::from(right),
            RankCredit::Linear => difference,
            RankCredit::Binary if difference == 0.0 => 0.0,
            RankCredit::Binary => difference.signum(),
        }
    }

    /// The credit in fractions of [`UNIT`], exactly.
    pub(super) fn exact(self, left: u32, right: u32) -> i128 {
        let (left, right) = (i128::from(left), i128::from(right));
        match self {
            RankCredit::Inverse => UNIT / left - UNIT / right,
            RankCredit::Linear => UNIT * (right - left),
            RankCredit::Binary => UNIT * (right - left).signum(),
        }
    }
}
