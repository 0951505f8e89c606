//! Probabilistic interleaving (Hofmann, Whiteson and de Rijke, "A probabilistic method for
//! inferring preferences from clicks", CIKM 2011).
//!
//! For each slot a fair coin chooses a side. That side draws one of its remaining documents; the
//! document of rank `r` has weight `1/r^τ`.
//!
//! Credit is marginalised over all ways to draft the list. Given the list, slot `i` came from the
//! left with probability `q_i`, independently of the other slots. The distribution of the
//! difference of clicks is therefore a convolution over the clicked slots, which takes `O(clicks²)`
//! instead of `2^length`.

use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::credit::{ClickedSlot, CreditSheet, Score};
use crate::draft::{Draft, Drafted, Team};
use crate::lists::Lists;

mod exact;

pub(crate) use exact::bounded;

/// Parameters of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Probabilistic {
    /// How strongly a side prefers the top of its list: above 0, at most 10.
    pub tau: f64,
    /// How the credit of a page is computed.
    pub credit: PosteriorCredit,
    /// How the credit becomes an outcome.
    pub verdict: PosteriorVerdict,
}

impl Default for Probabilistic {
    fn default() -> Self {
        Self { tau: 3.0, credit: PosteriorCredit::default(), verdict: PosteriorVerdict::default() }
    }
}

/// How the credit of a page is computed from the posterior of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorCredit {
    /// The probability that a side has more clicks than the other.
    #[default]
    MoreClicks,
    /// The expected number of clicks of a side.
    ExpectedClicks,
}

/// How the credit of both sides becomes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PosteriorVerdict {
    /// The side with more credit wins. The mean credit of random clicks is 0, but small credits
    /// count as much as large ones, so random clicks may still prefer one side more often.
    Sign,
    /// The outcome is drawn: each side wins with a probability equal to its credit. Random clicks
    /// prefer neither side.
    Drawn,
    /// The side with more credit wins with a probability equal to the difference of the credits,
    /// and the page is a tie otherwise. Random clicks prefer neither side, with less noise than
    /// [`Drawn`](PosteriorVerdict::Drawn).
    #[default]
    Score,
}

/// Drafts `length` documents, or fewer if there are not enough.
pub fn draft(lists: &Lists, tau: f64, length: usize, coins: &mut impl Coins) -> Draft {
    let mut left = Remaining::of(lists.left(), tau);
    let mut right = Remaining::of(lists.right(), tau);
    let mut slots = Vec::with_capacity(length.min(lists.documents()));
    while slots.len() < length {
        let (from_left, other_is_empty) = match (left.is_empty(), right.is_empty()) {
            (true, true) => break,
            (false, false) => (coins.left(), false),
            (left_is_empty, _) => (!left_is_empty, true),
        };
        let (source, team) = if from_left { (&left, Team::Left) } else { (&right, Team::Right) };
        let document = source.documents[coins.choose(&source.weights)];
        left.remove(document);
        right.remove(document);
        slots.push(Drafted {
            document,
            team,
            competitive: !other_is_empty || lists.credits_after_exhaustion(),
        });
    }
    let mut draft = Draft::of(slots);
    draft.append_tail(lists, length);
    draft
}

/// The documents of one list that are not shown yet, with the weights of their original ranks.
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

/// `1/rank^τ`, with the same bits on every machine.
pub fn weight(rank: usize, tau: f64) -> f64 {
    let rank = rank as f64;
    if tau == 3.0 { 1.0 / (rank * rank * rank) } else { libm::pow(rank, -tau) }
}

/// The probability that the slot at `position` of the sheet came from the left, given the list;
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
        // Adding the small weights first loses no digits.
        let remaining: f64 = (1..=depth).rev().filter(|&r| !shown[r]).map(|r| weight(r, tau)).sum();
        weight(rank, tau) / remaining
    };
    let (left, right) = (probability(0), probability(1));
    (left + right > 0.0).then(|| left / (left + right))
}

/// Credit of the clicked slots.
pub(crate) fn score(
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

/// The probabilities that the left slots weigh more and that the right slots weigh more, where each
/// slot belongs to the left with its own probability `q`, independently of the others.
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
