//! Balanced interleaving (Joachims, "Evaluating retrieval performance using clickthrough data",
//! 2003; in the form of Chapelle, Joachims, Radlinski and Yue, "Large-scale validation and analysis
//! of interleaved search evaluation", 2012).
//!
//! Every beginning of the page combines a beginning of the left list and one of the right list,
//! whose lengths differ by at most one. The method is known to be unfair: for the lists `a b c d`
//! and `b c d a`, random clicks prefer the second one three times in four.

use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::credit::{ClickedSlot, Score};
use crate::draft::{Draft, Drafted, Team};
use crate::lists::Lists;

/// Balanced interleaving has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balanced {}

/// Drafts `length` documents, or fewer if there are not enough.
pub fn draft(lists: &Lists, length: usize, coins: &mut impl Coins) -> Draft {
    let (left, right) = (lists.left(), lists.right());
    let left_leads = coins.left();
    let mut shown = vec![false; lists.documents()];
    let mut slots = Vec::with_capacity(length.min(lists.documents()));
    let (mut i, mut j) = (0, 0);
    while slots.len() < length && (i < left.len() || j < right.len()) {
        let from_left = j == right.len() || (i < left.len() && (i < j || (i == j && left_leads)));
        let (document, team) =
            if from_left { (left[i], Team::Left) } else { (right[j], Team::Right) };
        *(if from_left { &mut i } else { &mut j }) += 1;
        if !std::mem::replace(&mut shown[document as usize], true) {
            slots.push(Drafted { document, team, competitive: true });
        }
    }
    let mut draft = Draft::of(slots);
    draft.append_tail(lists, length);
    draft
}

/// Clicks within the top `k` of each side, where `k` is the better rank of the lowest clicked
/// document.
pub(crate) fn score(clicked: &[ClickedSlot]) -> Score {
    let Some(lowest) = clicked.iter().max_by_key(|click| click.position) else {
        return Score::default();
    };
    let k = lowest.ranks[0].min(lowest.ranks[1]);
    let within = |side: usize| -> f64 {
        clicked
            .iter()
            .filter(|click| click.ranks[side] <= k)
            .map(|click| f64::from(click.weight))
            .sum()
    };
    Score { left: within(0), right: within(1) }
}
