//! The score in integers: fixed-point numbers with the same bits on every machine.

use super::{PosteriorCredit, Probabilistic};
use crate::credit::{ClickedSlot, CreditSheet};
use crate::share::BoundedScore;

/// Weights of documents are fractions of 2⁶².
const WEIGHT_BITS: u32 = 62;
/// Probabilities are fractions of 2⁶⁰.
const BITS: u32 = 60;
const ONE: i128 = 1 << BITS;

/// The score of the clicked slots. `most` is the weight that a score of full size has, for the rule
/// that adds up clicks.
///
/// `idle` are the weights of clicked slots that earn no credit, because one list has run out of
/// documents. Whether a slot is one of them depends on who drafted the slots above. The rule that
/// compares numbers of clicks is fair only if each clicked position has its own fair coin, so these
/// slots belong to either side with probability 1/2.
pub(crate) fn bounded(
    sheet: &CreditSheet,
    clicked: &[ClickedSlot],
    idle: &[u32],
    parameters: Probabilistic,
    most: i128,
) -> BoundedScore {
    let leanings = clicked
        .iter()
        .filter_map(|click| Some((click.weight, leaning(sheet, click.position, parameters.tau)?)));
    match parameters.credit {
        PosteriorCredit::MoreClicks => {
            more_clicks(&leanings.chain(idle.iter().map(|&weight| (weight, 0))).collect::<Vec<_>>())
        }
        PosteriorCredit::ExpectedClicks => BoundedScore {
            value: leanings.map(|(weight, leaning)| i128::from(weight) * leaning).sum(),
            bound: most * ONE,
        },
    }
}

/// `2 q - 1` for the probability `q` that the slot at `position` came from the left, given the
/// list, in fractions of 2⁶⁰; `None` for a slot that neither list can fill.
fn leaning(sheet: &CreditSheet, position: usize, tau: f64) -> Option<i128> {
    let [left, right] = [0, 1].map(|side| drawn(sheet, position, side, tau));
    let both = left? + right?;
    // Division truncates towards 0, so exchanged sides have exactly the opposite number.
    Some(if both == 0 { 0 } else { (left? - right?) * ONE / both })
}

/// The probability that a side whose turn it is draws the document at `position`, in fractions of
/// 2⁶⁰; 0 if it cannot, and `None` if the rank is out of range in a damaged sheet.
fn drawn(sheet: &CreditSheet, position: usize, side: usize, tau: f64) -> Option<i128> {
    let depth = sheet.depths[side];
    let rank = sheet.slots[position].ranks[side];
    if !(1..=depth).contains(&rank) {
        return Some(0);
    }
    let mut remaining = vec![true; depth as usize + 1];
    for earlier in &sheet.slots[..position] {
        let rank = earlier.ranks[side];
        if earlier.team.is_some() && rank <= depth {
            remaining[rank as usize] = false;
        }
    }
    // Weights relative to the largest one keep their digits however far down it is.
    let top = (1..=depth).find(|&rank| remaining[rank as usize])?;
    let all: u128 = (top..=depth)
        .filter(|&rank| remaining[rank as usize])
        .map(|rank| relative_weight(top, rank, tau))
        .sum();
    Some(((relative_weight(top, rank, tau) << BITS) / all) as i128)
}

/// `(top / rank)^tau` in fractions of 2⁶², for `1 <= top <= rank`. For a whole `tau` this needs
/// integers only; otherwise the power comes from a library in software and not from the machine.
fn relative_weight(top: u32, rank: u32, tau: f64) -> u128 {
    let one = 1_u128 << WEIGHT_BITS;
    if tau == libm::trunc(tau) {
        let ratio = (u128::from(top) << WEIGHT_BITS) / u128::from(rank);
        (0..tau as u32).fold(one, |power, _| (power * ratio) >> WEIGHT_BITS)
    } else {
        (libm::pow(f64::from(top) / f64::from(rank), tau) * one as f64) as u128
    }
}

/// `P(the left slots weigh more) - P(the right slots weigh more)`, where each slot belongs to the
/// left with its own probability, independently of the others.
fn more_clicks(slots: &[(u32, i128)]) -> BoundedScore {
    let most: usize = slots.iter().map(|&(weight, _)| weight as usize).sum();
    // Index `most + difference`, in fractions of 2⁶¹: `1 + leaning` and `1 - leaning` over 2 are
    // then whole numbers.
    let mut distribution = vec![0_u128; 2 * most + 1];
    distribution[most] = 1 << (BITS + 1);
    let mut reach = 0;
    for &(weight, leaning) in slots {
        let weight = weight as usize;
        let [left, right] = [ONE + leaning, ONE - leaning].map(|chance| chance as u128);
        let mut next = vec![0; 2 * most + 1];
        for at in most - reach..=most + reach {
            next[at + weight] += (distribution[at] * left) >> (BITS + 1);
            next[at - weight] += (distribution[at] * right) >> (BITS + 1);
        }
        distribution = next;
        reach += weight;
    }
    let sum = |part: &[u128]| part.iter().sum::<u128>() as i128;
    BoundedScore {
        value: sum(&distribution[most + 1..]) - sum(&distribution[..most]),
        bound: 1 << (BITS + 1),
    }
}
