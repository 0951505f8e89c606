//! Team-draft interleaving (Radlinski, Kurup and Joachims, "How does clickthrough data reflect
//! retrieval quality?", CIKM 2008).
//!
//! In each round a coin decides which side picks first, and each side picks its highest document
//! that is not shown yet. A click is credited to the side that picked the document.

use serde::{Deserialize, Serialize};

use crate::coins::Coins;
use crate::credit::{ClickedSlot, Score, ScoreVerdict};
use crate::draft::{Draft, Drafted, Team};
use crate::lists::{Lists, TopRemaining};

/// Parameters of team draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TeamDraft {
    /// How documents that both sides want are treated.
    pub shared: Shared,
    /// How the credit becomes an outcome.
    #[serde(skip_serializing_if = "ScoreVerdict::is_sign")]
    pub verdict: ScoreVerdict,
}

/// How documents that both sides want are treated. Published implementations differ here on the
/// same input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schemas", derive(utoipa::ToSchema))]
pub enum Shared {
    /// If both sides want the same document next, it is added once, belongs to neither side and
    /// uses no turn. Otherwise the two picks of the round form a pair, and a pair that the end of
    /// the page cuts in half earns no credit.
    #[default]
    Collapse,
    /// The side whose turn it is gets the document (the paper).
    CreditAll,
    /// The common beginning of both lists belongs to neither side.
    IgnorePrefix,
    /// Documents with the same rank on both sides belong to neither side.
    IgnoreSameRank,
    /// Rounds in which both sides want the same document first earn no credit.
    IgnoreRound,
}

/// Drafts `length` documents, or fewer if there are not enough.
pub fn draft(lists: &Lists, shared: Shared, length: usize, coins: &mut impl Coins) -> Draft {
    let mut builder = Builder::new(lists, length);
    if shared == Shared::IgnorePrefix {
        let common =
            lists.left().iter().zip(lists.right()).take_while(|(left, right)| left == right);
        for (&document, _) in common {
            builder.push(document, Team::Both, false);
        }
    }
    while !builder.is_full() {
        match builder.next_choices() {
            (None, None) => break,
            (Some(document), None) => {
                builder.push(document, Team::Left, lists.credits_after_exhaustion());
            }
            (None, Some(document)) => {
                builder.push(document, Team::Right, lists.credits_after_exhaustion());
            }
            (Some(left), Some(right)) if left == right && shared == Shared::Collapse => {
                builder.push(left, Team::Both, false);
            }
            (Some(left), Some(right)) => {
                let first = if coins.left() { Team::Left } else { Team::Right };
                let competitive = match shared {
                    Shared::IgnoreRound => left != right,
                    Shared::Collapse => !builder.has_one_free_slot(),
                    Shared::CreditAll | Shared::IgnorePrefix | Shared::IgnoreSameRank => true,
                };
                builder.round(first, competitive);
            }
        }
    }
    let mut draft = Draft::of(builder.slots);
    if shared == Shared::IgnoreSameRank {
        for slot in &mut draft.slots {
            let [left, right] = lists.ranks(slot.document);
            if left == right {
                (slot.team, slot.competitive) = (Team::Both, false);
            }
        }
    }
    draft.append_tail(lists, length);
    draft
}

/// Extends `slots` by a team draft without credit, up to `length` slots in total.
pub(crate) fn extend_without_credit(
    lists: &Lists,
    slots: Vec<Drafted>,
    length: usize,
    coins: &mut impl Coins,
) -> Vec<Drafted> {
    let mut builder = Builder::new(lists, length);
    for slot in &slots {
        builder.shown[slot.document as usize] = true;
    }
    builder.slots = slots;
    while !builder.is_full() {
        match builder.next_choices() {
            (None, None) => break,
            (Some(document), None) => builder.push(document, Team::Left, false),
            (None, Some(document)) => builder.push(document, Team::Right, false),
            (Some(left), Some(right)) if left == right => builder.push(left, Team::Both, false),
            (Some(_), Some(_)) => {
                let first = if coins.left() { Team::Left } else { Team::Right };
                builder.round(first, false);
            }
        }
    }
    builder.slots
}

/// The weight of each side's clicked documents.
pub(crate) fn score(clicked: &[ClickedSlot]) -> Score {
    let of = |team: Team| -> f64 {
        clicked.iter().filter(|click| click.team == team).map(|click| f64::from(click.weight)).sum()
    };
    Score { left: of(Team::Left), right: of(Team::Right) }
}

/// The weight of the left side's clicked documents less that of the right side's.
pub(crate) fn difference(clicked: &[ClickedSlot]) -> i128 {
    clicked
        .iter()
        .map(|click| match click.team {
            Team::Left => i128::from(click.weight),
            Team::Right => -i128::from(click.weight),
            Team::Both => 0,
        })
        .sum()
}

/// A list under construction.
struct Builder<'a> {
    left: TopRemaining<'a>,
    right: TopRemaining<'a>,
    shown: Vec<bool>,
    slots: Vec<Drafted>,
    length: usize,
    lists: &'a Lists,
}

impl<'a> Builder<'a> {
    fn new(lists: &'a Lists, length: usize) -> Self {
        Self {
            left: TopRemaining::of(lists.left()),
            right: TopRemaining::of(lists.right()),
            shown: vec![false; lists.documents()],
            slots: Vec::with_capacity(length.min(lists.documents())),
            length,
            lists,
        }
    }

    fn is_full(&self) -> bool {
        self.slots.len() >= self.length
    }

    fn has_one_free_slot(&self) -> bool {
        self.slots.len() + 1 == self.length
    }

    /// The document that each side would pick next.
    fn next_choices(&mut self) -> (Option<u32>, Option<u32>) {
        (self.left.get(&self.shown), self.right.get(&self.shown))
    }

    fn push(&mut self, document: u32, team: Team, competitive: bool) {
        if !self.is_full() {
            self.shown[document as usize] = true;
            self.slots.push(Drafted { document, team, competitive });
        }
    }

    /// `first` picks, then the other side.
    fn round(&mut self, first: Team, competitive: bool) {
        // If both sides want the same document and one of them has no other, the round gets a
        // second slot only if the coin favours that side. Credit for this slot would be an
        // advantage for the other side.
        let credits_second = self.lists.credits_after_exhaustion() || self.both_have_a_pick();
        for (team, competitive) in
            [(first, competitive), (first.other(), competitive && credits_second)]
        {
            let (left, right) = self.next_choices();
            if let Some(document) = if team == Team::Left { left } else { right } {
                self.push(document, team, competitive);
            }
        }
    }

    /// Whether each side can still pick a document after the other side's first pick.
    fn both_have_a_pick(&mut self) -> bool {
        match self.next_choices() {
            (Some(left), Some(right)) => {
                left != right
                    || (self.left.has_another(&self.shown) && self.right.has_another(&self.shown))
            }
            _ => false,
        }
    }
}
