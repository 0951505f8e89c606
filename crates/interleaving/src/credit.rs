//! From clicks to an outcome.

use serde::{Deserialize, Serialize};

use super::coins::Coins;
use super::draft::{Draft, Note, Team};
use super::lists::Lists;
use super::probabilistic::{PosteriorVerdict, Probabilistic};
use super::spec::{Method, Spec};
use super::{balanced, optimized, probabilistic};

/// Heaviest weight of an event.
pub const MAX_WEIGHT: u32 = 100;

/// Scores closer to 0 than this are ties: rounding, not preference.
const ROUNDING: f64 = 1e-12;

/// What credit needs to know of a shown list, from its first position to the last one that was
/// shown. It names no documents; it can be made again from the duel's seed and the two lists, or
/// carried along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditSheet {
    /// Lengths of the left and the right list after the cut.
    pub depths: [u32; 2],
    /// Whether clicks can say anything: `false` for two equal lists and for a ranker shown alone.
    pub informative: bool,
    /// Whether team draft stood in for optimized interleaving.
    pub fell_back: bool,
    /// By position.
    pub slots: Vec<CreditSlot>,
}

impl CreditSheet {
    /// The sheet of a draft that is shown as it is.
    pub fn of(spec: &Spec, lists: &Lists, draft: &Draft) -> Self {
        // probabilistic interleaving shows what is far below the end of the page
        let depth = match spec.method {
            Method::Probabilistic(_) => usize::MAX,
            _ => draft.slots.len(),
        };
        let [left, right] =
            [lists.left(), lists.right()].map(|list| &list[..depth.min(list.len())]);
        Self {
            depths: [lists.left().len() as u32, lists.right().len() as u32],
            informative: left != right && draft.slots.iter().any(|slot| slot.competitive),
            fell_back: draft.note == Some(Note::FellBack),
            slots: draft
                .slots
                .iter()
                .map(|slot| CreditSlot {
                    ranks: lists.ranks(slot.document),
                    team: Some(slot.team),
                    competitive: slot.competitive,
                })
                .collect(),
        }
    }
}

/// One shown slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreditSlot {
    /// Rank on the left and on the right before the cut, from 1; 0 where the document is missing.
    pub ranks: [u32; 2],
    /// `None` for a pinned document.
    pub team: Option<Team>,
    /// Whether a click on it can earn credit.
    pub competitive: bool,
}

/// A click, or what counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Click {
    /// Position in the shown list, from 0; on a later page it goes on counting.
    pub position: usize,
    /// What it counts, from 1 to [`MAX_WEIGHT`]. A document counts once, with the heaviest of its
    /// events, so that one duel is one outcome however much happened in it.
    pub weight: u32,
}

impl Click {
    /// A plain click.
    pub fn at(position: usize) -> Self {
        Self { position, weight: 1 }
    }
}

/// A click that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClick {
    /// On a slot that was not shown.
    #[error("there is no position {position}: {shown} results were shown, counted from 0")]
    Outside {
        /// The position.
        position: usize,
        /// Length of the shown list.
        shown: usize,
    },
    /// A weight outside the range.
    #[error("the click at position {position} weighs {weight}; a weight is 1 to {MAX_WEIGHT}")]
    Weight {
        /// The position.
        position: usize,
        /// The weight.
        weight: u32,
    },
    /// On a document that was not shown.
    #[error("document `{0}` was not shown")]
    Document(String),
}

/// Who won a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The left ranker.
    Left,
    /// The right ranker.
    Right,
    /// There was credit, the same for both.
    Tie,
    /// Nothing that says anything.
    None,
}

/// Why a page said nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoSignal {
    /// Nobody clicked.
    NoClick,
    /// All clicks were on pinned slots or on slots that nobody owns.
    NothingCreditable,
    /// Both lists were the same, or one ranker was shown alone.
    NotInformative,
}

/// What the clicks on a page earned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Credit {
    /// Who won.
    pub verdict: Verdict,
    /// The left side's credit, in the method's own unit: the weight of its clicks (team draft,
    /// balanced, expected clicks), the probability that it has more of them (probabilistic), the
    /// sum of the credits in its favour (optimized).
    pub left: f64,
    /// The right side's.
    pub right: f64,
    /// Clicked documents that could earn credit.
    pub creditable: usize,
    /// Clicked documents that could not.
    pub ignored: usize,
    /// Why the verdict is `none`; `None` for every other verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_signal: Option<NoSignal>,
}

impl Credit {
    /// `left - right`: positive is for the left.
    pub fn score(&self) -> f64 {
        self.left - self.right
    }
}

/// A clicked document that earns credit.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClickedSlot {
    /// Index in the sheet.
    pub position: usize,
    /// Ranks after the cut, from 1; the list's length plus 1 where it is missing.
    pub ranks: [u32; 2],
    pub team: Team,
    pub weight: u32,
}

/// Credit of both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Score {
    pub left: f64,
    pub right: f64,
}

/// What `clicks` on the list of `sheet` earned. Their order and repeats of one document do not
/// matter.
///
/// `coins` are fresh ones of the duel ([`super::DuelCoins::crediting`]), so that the same clicks
/// always have the same outcome; only a probabilistic spec with [`PosteriorVerdict::Drawn`] tosses
/// them.
pub fn credit(
    spec: &Spec,
    sheet: &CreditSheet,
    clicks: &[Click],
    coins: &mut impl Coins,
) -> Result<Credit, InvalidClick> {
    // weights are at least 1, so 0 is no click
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
    let depths = match spec.method {
        Method::Optimized(optimized) if !sheet.fell_back => {
            sheet.depths.map(|d| d.min(optimized.depth))
        }
        _ => sheet.depths,
    };
    let in_cut = |rank: u32, depth: u32| if (1..=depth).contains(&rank) { rank } else { depth + 1 };
    let clicked: Vec<ClickedSlot> = weights
        .iter()
        .zip(&sheet.slots)
        .enumerate()
        .filter_map(|(position, (&weight, slot))| {
            let team = slot.team.filter(|_| weight > 0 && slot.competitive)?;
            let ranks = [in_cut(slot.ranks[0], depths[0]), in_cut(slot.ranks[1], depths[1])];
            Some(ClickedSlot { position, ranks, team, weight })
        })
        .collect();
    let all = weights.iter().filter(|&&weight| weight > 0).count();
    let score = match spec.method {
        _ if clicked.is_empty() => Score::default(),
        Method::Optimized(optimized) if !sheet.fell_back => {
            optimized::score(&clicked, optimized.credit)
        }
        Method::TeamDraft(_) | Method::Optimized(_) => teams(&clicked),
        Method::Balanced(_) => balanced::score(&clicked),
        Method::Probabilistic(probabilistic) => {
            probabilistic::score(sheet, &clicked, probabilistic)
        }
    };
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
        verdict: match spec.method {
            _ if no_signal.is_some() => Verdict::None,
            Method::Probabilistic(Probabilistic { verdict: PosteriorVerdict::Drawn, .. }) => {
                score.drawn(coins)
            }
            _ => score.verdict(),
        },
        left: score.left,
        right: score.right,
        creditable: clicked.len(),
        ignored: all - clicked.len(),
        no_signal,
    })
}

/// Team draft: the weight of each team's clicked documents.
fn teams(clicked: &[ClickedSlot]) -> Score {
    let of = |team: Team| -> f64 {
        clicked.iter().filter(|click| click.team == team).map(|click| f64::from(click.weight)).sum()
    };
    Score { left: of(Team::Left), right: of(Team::Right) }
}

impl Score {
    fn verdict(self) -> Verdict {
        let difference = self.left - self.right;
        if difference.abs() <= ROUNDING {
            Verdict::Tie
        } else if difference > 0.0 {
            Verdict::Left
        } else {
            Verdict::Right
        }
    }

    /// Each side with the share of 1, or of all clicks, that it has; the rest is a tie.
    fn drawn(self, coins: &mut impl Coins) -> Verdict {
        let rest = (1.0 - self.left - self.right).max(0.0);
        match coins.choose(&[self.left, self.right, rest]) {
            0 => Verdict::Left,
            1 => Verdict::Right,
            _ => Verdict::Tie,
        }
    }
}
