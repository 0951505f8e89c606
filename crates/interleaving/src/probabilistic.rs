//! Probabilistic interleaving (Hofmann, Whiteson and de Rijke, "A probabilistic method for
//! inferring preferences from clicks", CIKM 2011): for each slot a fair coin names a side, which
//! draws one of its remaining documents, the one of rank `r` with weight `1/r^τ`.
//!
//! Credit is marginalised over all ways in which the list could have been drafted: given the list,
//! slot `i` came from the left with probability `q_i`, independently of the others. The
//! distribution of the difference of clicks is therefore a convolution over the clicked slots,
//! `O(clicks²)` instead of `2^length`.

use serde::{Deserialize, Serialize};

use super::coins::Coins;
use super::credit::{ClickedSlot, CreditSheet, Score};
use super::draft::{Draft, Drafted, Team};
use super::lists::Lists;

/// Parameters of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probabilistic {
    /// How strongly the top of a list is preferred: above 0, at most 10.
    pub tau: f64,
    /// What a page is worth.
    pub credit: PosteriorCredit,
    /// How the outcome follows from it.
    pub verdict: PosteriorVerdict,
}

impl Default for Probabilistic {
    fn default() -> Self {
        Self { tau: 3.0, credit: PosteriorCredit::default(), verdict: PosteriorVerdict::default() }
    }
}

/// What a page is worth, given the posterior of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorCredit {
    /// The probability that a side has more clicks than the other.
    #[default]
    MoreClicks,
    /// The number of clicks that a side is expected to have.
    ExpectedClicks,
}

/// How an outcome follows from the two sides' credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorVerdict {
    /// The side with more credit wins. The credit of a searcher who clicks at random is 0 on
    /// average, but small credits count as much as large ones: such a searcher may still prefer one
    /// side more often.
    #[default]
    Sign,
    /// Drawn: each side wins with the probability that its credit says, which prefers nobody under
    /// random clicks.
    Drawn,
}

/// Draft `length` documents, or as many as there are.
pub fn draft(lists: &Lists, tau: f64, length: usize, coins: &mut impl Coins) -> Draft {
    let mut left = Remaining::of(lists.left(), tau);
    let mut right = Remaining::of(lists.right(), tau);
    let mut slots = Vec::with_capacity(length.min(lists.documents()));
    while slots.len() < length {
        let (from_left, dry) = match (left.is_empty(), right.is_empty()) {
            (true, true) => break,
            (false, false) => (coins.left(), false),
            (right_is_dry, _) => (!right_is_dry, true),
        };
        let (source, team) = if from_left { (&left, Team::Left) } else { (&right, Team::Right) };
        let document = source.documents[coins.choose(&source.weights)];
        left.remove(document);
        right.remove(document);
        slots.push(Drafted { document, team, competitive: !dry || lists.credits_the_dry() });
    }
    let mut draft = Draft::of(slots);
    draft.append_tail(lists, length);
    draft
}

/// The documents of one list that are not shown yet. Weights are those of the original ranks.
struct Remaining {
    documents: Vec<u32>,
    weights: Vec<f64>,
}

impl Remaining {
    fn of(list: &[u32], tau: f64) -> Self {
        Self {
            documents: list.to_vec(),
            weights: (1..=list.len()).map(|rank| weight(rank, tau)).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    fn remove(&mut self, document: u32) {
        if let Some(at) = self.documents.iter().position(|&other| other == document) {
            self.documents.remove(at);
            self.weights.remove(at);
        }
    }
}

/// `1/rank^τ`, to the same last digit on every machine.
pub fn weight(rank: usize, tau: f64) -> f64 {
    let rank = rank as f64;
    if tau == 3.0 { 1.0 / (rank * rank * rank) } else { libm::pow(rank, -tau) }
}

/// The probability that the slot at `position` of the sheet came from the left, given the list.
/// `None` for a slot that neither list can fill.
pub fn left_posterior(sheet: &CreditSheet, position: usize, tau: f64) -> Option<f64> {
    let probability = |side: usize| {
        let depth = sheet.depths[side] as usize;
        let rank = sheet.slots[position].ranks[side] as usize;
        if !(1..=depth).contains(&rank) {
            return 0.0;
        }
        let mut shown = vec![false; depth + 1];
        for earlier in &sheet.slots[..position] {
            let rank = earlier.ranks[side] as usize;
            if earlier.team.is_some() && rank <= depth {
                shown[rank] = true;
            }
        }
        // the small ones first, which loses no digits
        let remaining: f64 = (1..=depth).rev().filter(|&r| !shown[r]).map(|r| weight(r, tau)).sum();
        weight(rank, tau) / remaining
    };
    let (left, right) = (probability(0), probability(1));
    (left + right > 0.0).then(|| left / (left + right))
}

/// Credit of the clicked slots.
pub(super) fn score(
    sheet: &CreditSheet,
    clicked: &[ClickedSlot],
    parameters: Probabilistic,
) -> Score {
    let slots: Vec<(u32, f64)> = clicked
        .iter()
        .filter_map(|click| {
            Some((click.weight, left_posterior(sheet, click.position, parameters.tau)?))
        })
        .collect();
    match parameters.credit {
        PosteriorCredit::MoreClicks => more_clicks(&slots),
        PosteriorCredit::ExpectedClicks => {
            let total = |of_slot: fn(f64) -> f64| -> f64 {
                slots.iter().map(|&(weight, q)| f64::from(weight) * of_slot(q)).sum()
            };
            Score { left: total(|q| q), right: total(|q| 1.0 - q) }
        }
    }
}

/// Of independent slots, each of the left's with its probability `q`: the probabilities that the
/// left's weigh more and that the right's weigh more.
fn more_clicks(slots: &[(u32, f64)]) -> Score {
    let most: usize = slots.iter().map(|&(weight, _)| weight as usize).sum();
    // index `most + difference`
    let mut distribution = vec![0.0; 2 * most + 1];
    distribution[most] = 1.0;
    let mut reach = 0;
    for &(weight, q) in slots {
        let weight = weight as usize;
        let mut next = vec![0.0; 2 * most + 1];
        for at in most - reach..=most + reach {
            next[at + weight] += distribution[at] * q;
            next[at - weight] += distribution[at] * (1.0 - q);
        }
        distribution = next;
        reach += weight;
    }
    Score { left: distribution[most + 1..].iter().sum(), right: distribution[..most].iter().sum() }
}
