//! Weights of clicks by what is known of them: where they are, and where the other clicks on the
//! page are.

use serde::{Deserialize, Serialize};

/// Number of positions with a weight of their own.
pub const WEIGHTED_POSITIONS: usize = 10;
/// The largest weight of a feature.
pub const MAX_FEATURE: u8 = 100;

/// The weight of a click is a sum over its features: that of its position, and more if it is the
/// highest click of the page, the lowest one, or the only one. It multiplies the weight of the
/// event.
///
/// The features are those of Yue, Gao, Chapelle, Zhang and Joachims, "Learning more powerful test
/// statistics for click-based retrieval evaluation", SIGIR 2010, and of Chapelle, Joachims,
/// Radlinski and Yue, 2012, as far as positions show them. The lowest click takes the place of the
/// last one, because the order of clicks in time is not kept.
///
/// A weight depends on the clicked positions alone and not on which side a document came from.
/// Random clicks therefore still prefer neither side. The weights of positions can also correct for
/// attention: `position[k]` in proportion to `1 / P(a searcher looks at position k)`, cut at a
/// bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClickWeights {
    /// By position from the top of the list; the last entry holds for all positions below it.
    pub positions: [u8; WEIGHTED_POSITIONS],
    /// Added for the highest click of the page.
    pub highest: u8,
    /// Added for the lowest click of the page.
    pub lowest: u8,
    /// Added for a click that is the only one on the page.
    pub only: u8,
}

impl Default for ClickWeights {
    fn default() -> Self {
        Self { positions: [1; WEIGHTED_POSITIONS], highest: 0, lowest: 0, only: 0 }
    }
}

impl ClickWeights {
    /// The largest weight that a click can have.
    pub fn largest(&self) -> u32 {
        let position = self.positions.iter().copied().max().unwrap_or(0);
        [position, self.highest, self.lowest, self.only].into_iter().map(u32::from).sum()
    }

    /// The name of a weight that is out of range.
    pub(crate) fn out_of_range(&self) -> Option<&'static str> {
        let above = |weight: &u8| *weight > MAX_FEATURE;
        if self.positions.iter().any(above) || self.positions.iter().all(|&weight| weight == 0) {
            Some("positions")
        } else {
            [("highest", self.highest), ("lowest", self.lowest), ("only", self.only)]
                .into_iter()
                .find(|(_, weight)| above(weight))
                .map(|(name, _)| name)
        }
    }

    /// Multiplies the weights of events, by position. `clicked` are the clicked positions that can
    /// earn credit, in ascending order.
    pub(crate) fn apply(&self, weights: &mut [u32], clicked: &[usize]) {
        let (Some(&highest), Some(&lowest)) = (clicked.first(), clicked.last()) else { return };
        for &at in clicked {
            let extra = |holds: bool, weight: u8| if holds { u32::from(weight) } else { 0 };
            weights[at] *= u32::from(self.positions[at.min(WEIGHTED_POSITIONS - 1)])
                + extra(at == highest, self.highest)
                + extra(at == lowest, self.lowest)
                + extra(clicked.len() == 1, self.only);
        }
    }
}
