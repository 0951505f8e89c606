//! Crediting clicks with the method of a spec.

use crate::clicks::{Click, InvalidClick, MAX_WEIGHT};
use crate::coins::Coins;
use crate::credit::{ClickedSlot, Credit, CreditSheet, NoSignal, Outcome, Score};
use crate::methods::probabilistic::{PosteriorVerdict, Probabilistic};
use crate::methods::{balanced, optimized, probabilistic, team_draft};
use crate::spec::{Method, Spec};

/// The credit that `clicks` earn on the list of `sheet`. The order of the clicks does not matter,
/// nor do repeated clicks on one document.
///
/// `coins` must be fresh coins of the duel ([`DuelCoins::crediting`](crate::DuelCoins::crediting)),
/// so that the same clicks always have the same outcome. Only a probabilistic spec with
/// [`PosteriorVerdict::Drawn`] uses them.
pub fn credit(
    spec: &Spec,
    sheet: &CreditSheet,
    clicks: &[Click],
    coins: &mut impl Coins,
) -> Result<Credit, InvalidClick> {
    let weights = weights_by_position(sheet, clicks)?;
    let clicked = creditable(spec, sheet, &weights);
    let score = if clicked.is_empty() { Score::default() } else { score(spec, sheet, &clicked) };
    let all = weights.iter().filter(|&&weight| weight > 0).count();
    let no_signal = if all == 0 {
        Some(NoSignal::NoClick)
    } else if !sheet.informative {
        Some(NoSignal::NotInformative)
    } else if clicked.is_empty() {
        Some(NoSignal::NothingCreditable)
    } else {
        None
    };
    Ok(Credit {
        outcome: match spec.method {
            _ if no_signal.is_some() => Outcome::None,
            Method::Probabilistic(Probabilistic { verdict: PosteriorVerdict::Drawn, .. }) => {
                score.draw(coins)
            }
            _ => score.outcome(),
        },
        left: score.left,
        right: score.right,
        creditable: clicked.len(),
        ignored: all - clicked.len(),
        no_signal,
    })
}

/// The largest weight of the clicks on each position; 0 where there is no click.
fn weights_by_position(sheet: &CreditSheet, clicks: &[Click]) -> Result<Vec<u32>, InvalidClick> {
    let mut weights = vec![0; sheet.slots.len()];
    for &Click { position, weight } in clicks {
        let known = weights
            .get_mut(position)
            .ok_or(InvalidClick::Outside { position, shown: sheet.slots.len() })?;
        if !(1..=MAX_WEIGHT).contains(&weight) {
            return Err(InvalidClick::Weight { position, weight });
        }
        *known = weight.max(*known);
    }
    Ok(weights)
}

/// The clicked slots that can earn credit, with their ranks after the cut.
fn creditable(spec: &Spec, sheet: &CreditSheet, weights: &[u32]) -> Vec<ClickedSlot> {
    let depths = match spec.method {
        Method::Optimized(optimized) if !sheet.fell_back => {
            sheet.depths.map(|d| d.min(optimized.depth))
        }
        _ => sheet.depths,
    };
    let in_cut = |rank: u32, depth: u32| if (1..=depth).contains(&rank) { rank } else { depth + 1 };
    weights
        .iter()
        .zip(&sheet.slots)
        .enumerate()
        .filter_map(|(position, (&weight, slot))| {
            let team = slot.team.filter(|_| weight > 0 && slot.competitive)?;
            let ranks = [in_cut(slot.ranks[0], depths[0]), in_cut(slot.ranks[1], depths[1])];
            Some(ClickedSlot { position, ranks, team, weight })
        })
        .collect()
}

fn score(spec: &Spec, sheet: &CreditSheet, clicked: &[ClickedSlot]) -> Score {
    match spec.method {
        Method::Optimized(optimized) if !sheet.fell_back => {
            optimized::score(clicked, optimized.credit)
        }
        Method::TeamDraft(_) | Method::Optimized(_) => team_draft::score(clicked),
        Method::Balanced(_) => balanced::score(clicked),
        Method::Probabilistic(parameters) => probabilistic::score(sheet, clicked, parameters),
    }
}
