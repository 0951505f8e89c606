//! Crediting clicks with the method of a spec.

use crate::clicks::{Click, InvalidClick, MAX_WEIGHT};
use crate::coins::Coins;
use crate::credit::{ClickedSlot, Credit, CreditSheet, NoSignal, Outcome, Score, ScoreVerdict};
use crate::lists::DepthPolicy;
use crate::methods::balanced::{Balanced, BalancedCredit};
use crate::methods::probabilistic::PosteriorVerdict;
use crate::methods::team_draft::{Shared, TeamDraft};
use crate::methods::{balanced, optimized, probabilistic, team_draft};
use crate::share::{BoundedScore, Share};
use crate::spec::{Method, Spec};

/// The credit that `clicks` earn on the list of `sheet`. The order of the clicks does not matter,
/// nor do repeated clicks on one document.
///
/// `coins` must be fresh coins of the duel ([`DuelCoins::crediting`](crate::DuelCoins::crediting)),
/// so that the same clicks always have the same outcome. Only verdicts that draw use them:
/// [`ScoreVerdict::Score`], [`PosteriorVerdict::Score`] and [`PosteriorVerdict::Drawn`].
pub fn credit(
    spec: &Spec,
    sheet: &CreditSheet,
    clicks: &[Click],
    coins: &mut impl Coins,
) -> Result<Credit, InvalidClick> {
    let mut weights = weights_by_position(sheet, clicks)?;
    let clicked_positions = weights.iter().filter(|&&weight| weight > 0).count();
    let page_weights = PageWeights::of(spec, sheet, &mut weights);
    let clicked = creditable(sheet, &weights);
    let score = if clicked.is_empty() { Score::default() } else { score(spec, sheet, &clicked) };
    let no_signal = if clicked_positions == 0 {
        Some(NoSignal::NoClick)
    } else if !sheet.informative {
        Some(NoSignal::NotInformative)
    } else if clicked.is_empty() {
        Some(NoSignal::NothingCreditable)
    } else {
        None
    };
    let (outcome, share) = match verdict(spec) {
        _ if no_signal.is_some() => (Outcome::None, Share::EVEN),
        PosteriorVerdict::Sign => {
            let outcome = score.outcome();
            (outcome, Share::of_outcome(outcome))
        }
        PosteriorVerdict::Drawn => {
            // the outcome is drawn from the credits alone, and the share is the mean of that draw
            let credited_only = PageWeights { most: clicked_weight(&clicked), idle: Vec::new() };
            (score.draw(coins), bounded(spec, sheet, &clicked, &credited_only).share())
        }
        PosteriorVerdict::Score => {
            let share = bounded(spec, sheet, &clicked, &page_weights).share();
            (share.draw(coins), share)
        }
    };
    Ok(Credit {
        outcome,
        share,
        // an empty sum is -0, which is shown with its sign
        left: score.left + 0.0,
        right: score.right + 0.0,
        creditable: clicked.len(),
        ignored: clicked_positions - clicked.len(),
        no_signal,
    })
}

/// Whether the score of a page decides with which probability the page has a winner at all.
pub fn decides_by_score(spec: &Spec) -> bool {
    verdict(spec) == PosteriorVerdict::Score
}

/// Whether there are rankings for which clicks that depend on positions alone let one side win more
/// often. From many such pages follows a winner, although nobody preferred anything.
pub fn random_clicks_favour_a_side(spec: &Spec) -> bool {
    let is_fair = match spec.method {
        Method::TeamDraft(TeamDraft { shared, .. }) => match shared {
            Shared::Collapse | Shared::IgnoreRound => true,
            // a ranking can run out of documents, and the sign of several clicks is then not even
            Shared::CreditAll | Shared::IgnorePrefix => decides_by_score(spec),
            Shared::IgnoreSameRank => false,
        },
        Method::Balanced(Balanced { credit, .. }) => credit == BalancedCredit::Debiased,
        Method::Probabilistic(_) | Method::Optimized(_) => decides_by_score(spec),
    };
    // the longer list has more slots that earn credit
    !is_fair || spec.depth_policy == DepthPolicy::Uncut
}

/// How the credit of a method becomes an outcome.
fn verdict(spec: &Spec) -> PosteriorVerdict {
    let of = |verdict| match verdict {
        ScoreVerdict::Sign => PosteriorVerdict::Sign,
        ScoreVerdict::Score => PosteriorVerdict::Score,
    };
    match spec.method {
        Method::TeamDraft(parameters) => of(parameters.verdict),
        Method::Balanced(parameters) => of(parameters.verdict),
        Method::Probabilistic(parameters) => parameters.verdict,
        Method::Optimized(parameters) => of(parameters.verdict),
    }
}

/// The weights of clicks that a bounded score needs beside the clicks that earn credit.
struct PageWeights {
    /// The weight of a score of full size: the weight of all clicks, but at least that of the
    /// heaviest click that there can be. A click that earns no credit on this page is included if
    /// its position earns credit on another page of the two lists. So this weight depends on the
    /// clicked positions and not on the page.
    most: i128,
    /// The weights of the included clicks that earn no credit on this page.
    idle: Vec<u32>,
}

impl PageWeights {
    /// Applies the spec's weights of clicks to the weights of events, by position.
    fn of(spec: &Spec, sheet: &CreditSheet, weights: &mut [u32]) -> Self {
        let clicked: Vec<usize> = (0..sheet.slots.len())
            .filter(|&at| sheet.slots[at].team.is_some() && weights[at] > 0)
            .collect();
        let mut least = clicked.iter().map(|&at| weights[at]).max().unwrap_or(0);
        if let Some(features) = spec.click_weights {
            least *= features.largest();
            features.apply(weights, &clicked);
        }
        let all: i128 = clicked.iter().map(|&at| i128::from(weights[at])).sum();
        let idle = clicked.iter().filter(|&&at| !sheet.slots[at].competitive);
        Self { most: all.max(least.into()), idle: idle.map(|&at| weights[at]).collect() }
    }
}

fn clicked_weight(clicked: &[ClickedSlot]) -> i128 {
    clicked.iter().map(|click| i128::from(click.weight)).sum()
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
fn creditable(sheet: &CreditSheet, weights: &[u32]) -> Vec<ClickedSlot> {
    let depths = sheet.depths;
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
        Method::Balanced(Balanced { credit: BalancedCredit::Published, .. }) => {
            balanced::score(clicked)
        }
        Method::TeamDraft(_) | Method::Balanced(_) | Method::Optimized(_) => {
            team_draft::score(clicked)
        }
        Method::Probabilistic(parameters) => probabilistic::score(sheet, clicked, parameters),
    }
}

/// The score in integers.
fn bounded(
    spec: &Spec,
    sheet: &CreditSheet,
    clicked: &[ClickedSlot],
    page_weights: &PageWeights,
) -> BoundedScore {
    let most = page_weights.most;
    match spec.method {
        Method::Optimized(optimized) if !sheet.fell_back => {
            optimized::bounded(clicked, optimized.credit, sheet.depths, most)
        }
        // A spec with this credit has no other verdict than the sign.
        Method::Balanced(Balanced { credit: BalancedCredit::Published, .. }) => BoundedScore::NONE,
        Method::TeamDraft(_) | Method::Balanced(_) | Method::Optimized(_) => {
            BoundedScore { value: team_draft::difference(clicked), bound: most }
        }
        Method::Probabilistic(parameters) => {
            probabilistic::bounded(sheet, clicked, &page_weights.idle, parameters, most)
        }
    }
}
