//! Balanced interleaving (Joachims, "Evaluating retrieval performance using clickthrough data",
//! 2003; in the form of Chapelle, Joachims, Radlinski and Yue, "Large-scale validation and analysis
//! of interleaved search evaluation", 2012).
//!
//! Every beginning of the page combines a beginning of the left list and one of the right list,
//! whose lengths differ by at most one. Its own credit is known to be unfair: for the lists `a b c
//! d` and `b c d a`, random clicks prefer the second one three times in four.
//!
//! [`BalancedCredit::Debiased`] keeps the pages and corrects the credit, which is the aim of Bi,
//! Castells, Gilbert, Galperin, Tardif and Ahuja, "Debiased balanced interleaving at Amazon
//! Search", CIKM 2022. The rule is derived here and not taken from the paper. There are two pages,
//! one for each leader. They consist of the same rounds: in a round each side adds its next
//! document unless it is shown already. If a round adds two documents, the pages show them in
//! opposite order; if it adds one, both pages show it in the same place. A rule is fair to random
//! clicks if the two credits of each position add up to 0. So a click on a document of a pair
//! counts for the side that added it, and a click on a document alone in its round for neither.

use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::credit::{ClickedSlot, Score, ScoreVerdict};
use crate::draft::{Draft, Drafted, Team};
use crate::lists::Lists;

/// Parameters of the method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Balanced {
    /// How clicks are credited.
    #[serde(skip_serializing_if = "BalancedCredit::is_published")]
    pub credit: BalancedCredit,
    /// How the credit becomes an outcome. Only debiased credit has a score.
    #[serde(skip_serializing_if = "ScoreVerdict::is_sign")]
    pub verdict: ScoreVerdict,
}

/// How balanced interleaving credits clicks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BalancedCredit {
    /// Clicks within the top `k` of each side, where `k` is the better rank of the lowest clicked
    /// document (the papers). Unfair.
    #[default]
    Published,
    /// Clicks on the documents whose place depends on which side leads, for the side that added
    /// them. Fair.
    Debiased,
}

impl BalancedCredit {
    fn is_published(&self) -> bool {
        *self == BalancedCredit::Published
    }
}

/// Drafts `length` documents, or fewer if there are not enough.
pub fn draft(
    lists: &Lists,
    credit: BalancedCredit,
    length: usize,
    coins: &mut impl Coins,
) -> Draft {
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
    if credit == BalancedCredit::Debiased {
        keep_pairs(&mut slots, lists, length);
    }
    let mut draft = Draft::of(slots);
    draft.append_tail(lists, length);
    draft
}

/// Leaves credit only to slots of complete pairs: the two documents that one round adds.
fn keep_pairs(slots: &mut [Drafted], lists: &Lists, length: usize) {
    let (left, right) = (lists.left(), lists.right());
    let mut seen = vec![false; lists.documents()];
    let mut start = 0;
    for round in 0..left.len().max(right.len()) {
        let picks = [left.get(round), right.get(round)];
        let added = picks
            .into_iter()
            .flatten()
            .filter(|&&document| !std::mem::replace(&mut seen[document as usize], true))
            .count();
        let end = start + added;
        // The papers credit the rest of a longer list to its side.
        let is_rest = lists.credits_after_exhaustion() && picks.contains(&None);
        for slot in slots.iter_mut().take(end).skip(start) {
            if added < 2 && !is_rest {
                slot.team = Team::Both;
            }
            slot.competitive = is_rest || (added == 2 && end <= length);
        }
        start = end;
    }
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
