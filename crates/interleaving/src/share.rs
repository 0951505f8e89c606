//! The mean outcome of a page as an exact fixed-point number, and the bounded scores it comes from.

use serde::{Deserialize, Serialize};

/// A bounded score `s` of a page, mapped from `[-bound, bound]` to `[0, 1]`: `(1 + s / bound) / 2`.
/// It is the left side's part of the page: 1 if the left side won, 0 if the right side won, 1/2 for
/// a tie and for a page without a signal, and anything between for a rule that weighs its evidence.
///
/// The number is a fraction with the denominator [`Share::ONE`]. It is computed from integers only,
/// and `Share` of the mirrored page is exactly `1 - Share`. It is rounded to the nearest fraction:
/// a sum over pages is exact, and a rule whose mean is 1/2 keeps it to within 2⁻²⁵.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Share(u32);

impl Share {
    /// The denominator, 2²⁴: a `u64` holds the sum of 2⁴⁰ pages.
    pub const ONE: u32 = 1 << 24;
    /// One half: neither side.
    pub const EVEN: Share = Share(Self::ONE / 2);
    /// All for the left side.
    pub const LEFT: Share = Share(Self::ONE);
    /// All for the right side.
    pub const RIGHT: Share = Share(0);

    /// The numerator over [`Share::ONE`].
    pub fn numerator(self) -> u32 {
        self.0
    }

    /// The number from 0 to 1; exact.
    pub fn value(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ONE)
    }

    /// How decided the page is, over [`Share::ONE`]: 0 for [`Share::EVEN`], and all of it if one side
    /// has everything. With the verdict `score` it is the probability that the page has a winner.
    pub fn weight(self) -> u32 {
        2 * self.0.abs_diff(Self::EVEN.0)
    }

    /// The part of the other side.
    pub fn mirrored(self) -> Self {
        Self(Self::ONE - self.0)
    }
}

impl TryFrom<u32> for Share {
    type Error = &'static str;

    fn try_from(numerator: u32) -> Result<Self, Self::Error> {
        if numerator <= Self::ONE { Ok(Self(numerator)) } else { Err("a share is at most 1") }
    }
}

impl From<Share> for u32 {
    fn from(share: Share) -> Self {
        share.0
    }
}

/// A score and its bound, in the same unit: `|value| <= bound`.
///
/// The bound depends on the clicked positions and on the two lists, not on which of the possible
/// pages was shown. Hence a score with mean 0 over the pages stays one when it is divided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoundedScore {
    pub value: i128,
    pub bound: i128,
}

impl BoundedScore {
    /// A score that says nothing.
    pub const NONE: Self = Self { value: 0, bound: 1 };

    pub fn share(self) -> Share {
        if self.bound <= 0 {
            return Share::EVEN;
        }
        let half = i128::from(Share::ONE / 2);
        // Rounding the absolute value treats both sides alike.
        let size = (self.value.abs().min(self.bound) * half + self.bound / 2) / self.bound;
        Share((half + size * self.value.signum()) as u32)
    }
}
