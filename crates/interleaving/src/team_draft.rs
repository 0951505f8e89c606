//! Team-draft interleaving (Radlinski, Kurup and Joachims, "How does clickthrough data reflect
//! retrieval quality?", CIKM 2008): in each round a coin says who picks first, and each side picks
//! its highest document not yet shown.

use serde::{Deserialize, Serialize};

use super::coins::Coins;
use super::draft::{Draft, Drafted, Team};
use super::lists::{Lists, Top};

/// What becomes of documents that both sides want. Published implementations differ here on the
/// same input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shared {
    /// If both sides want the same document next, it enters once, is nobody's and takes no turn;
    /// otherwise the two picks of the round form a pair, and a pair that the end of the page cuts
    /// in half earns no credit.
    #[default]
    Collapse,
    /// Whoever's turn it is gets it (the paper).
    CreditAll,
    /// The common beginning of both lists is nobody's.
    IgnorePrefix,
    /// Documents with the same rank on both sides are nobody's.
    IgnoreSameRank,
    /// Rounds in which both sides want the same document first earn no credit.
    IgnoreRound,
}

/// Draft `length` documents, or as many as there are.
pub fn draft(lists: &Lists, shared: Shared, length: usize, coins: &mut impl Coins) -> Draft {
    let mut board = Board::new(lists, length);
    if shared == Shared::IgnorePrefix {
        let common =
            lists.left().iter().zip(lists.right()).take_while(|(left, right)| left == right);
        for (&document, _) in common {
            board.show(document, Team::Both, false);
        }
    }
    while !board.is_full() {
        match board.wants() {
            (None, None) => break,
            (Some(document), None) => board.show(document, Team::Left, lists.credits_the_dry()),
            (None, Some(document)) => board.show(document, Team::Right, lists.credits_the_dry()),
            (Some(left), Some(right)) if left == right && shared == Shared::Collapse => {
                board.show(left, Team::Both, false);
            }
            (Some(left), Some(right)) => {
                let first = if coins.left() { Team::Left } else { Team::Right };
                let competitive = match shared {
                    Shared::IgnoreRound => left != right,
                    Shared::Collapse => !board.has_one_place(),
                    Shared::CreditAll | Shared::IgnorePrefix | Shared::IgnoreSameRank => true,
                };
                board.round(first, competitive);
            }
        }
    }
    let mut draft = Draft::of(board.slots);
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

/// `slots`, and after them more documents in turns, nobody's credit, up to `length` in all.
pub(super) fn continued(
    lists: &Lists,
    slots: Vec<Drafted>,
    length: usize,
    coins: &mut impl Coins,
) -> Vec<Drafted> {
    let mut board = Board::new(lists, length);
    for slot in &slots {
        board.shown[slot.document as usize] = true;
    }
    board.slots = slots;
    while !board.is_full() {
        match board.wants() {
            (None, None) => break,
            (Some(document), None) => board.show(document, Team::Left, false),
            (None, Some(document)) => board.show(document, Team::Right, false),
            (Some(left), Some(right)) if left == right => board.show(left, Team::Both, false),
            (Some(_), Some(_)) => {
                let first = if coins.left() { Team::Left } else { Team::Right };
                board.round(first, false);
            }
        }
    }
    board.slots
}

/// The list while it is drafted.
struct Board<'a> {
    left: Top<'a>,
    right: Top<'a>,
    shown: Vec<bool>,
    slots: Vec<Drafted>,
    length: usize,
    lists: &'a Lists,
}

impl<'a> Board<'a> {
    fn new(lists: &'a Lists, length: usize) -> Self {
        Self {
            left: Top::of(lists.left()),
            right: Top::of(lists.right()),
            shown: vec![false; lists.documents()],
            slots: Vec::with_capacity(length.min(lists.documents())),
            length,
            lists,
        }
    }

    fn is_full(&self) -> bool {
        self.slots.len() >= self.length
    }

    fn has_one_place(&self) -> bool {
        self.slots.len() + 1 == self.length
    }

    fn wants(&mut self) -> (Option<u32>, Option<u32>) {
        (self.left.remaining(&self.shown), self.right.remaining(&self.shown))
    }

    fn show(&mut self, document: u32, team: Team, competitive: bool) {
        if !self.is_full() {
            self.shown[document as usize] = true;
            self.slots.push(Drafted { document, team, competitive });
        }
    }

    /// `first` picks, then the other.
    fn round(&mut self, first: Team, competitive: bool) {
        // Where both want the same document and one of them wants nothing else, the round has a
        // second slot only if the coin falls for that side. Such a slot would be the other side's
        // advantage.
        let closes = self.lists.credits_the_dry() || self.both_want_another();
        for (team, competitive) in [(first, competitive), (first.other(), competitive && closes)] {
            let (left, right) = self.wants();
            if let Some(document) = if team == Team::Left { left } else { right } {
                self.show(document, team, competitive);
            }
        }
    }

    /// Whether each side has something to show after the other's first choice.
    fn both_want_another(&mut self) -> bool {
        match self.wants() {
            (Some(left), Some(right)) => {
                left != right
                    || (self.left.remaining_after(&self.shown)
                        && self.right.remaining_after(&self.shown))
            }
            _ => false,
        }
    }
}
