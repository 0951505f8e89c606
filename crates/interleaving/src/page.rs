//! From two lists of ids to the slots of one page.

use std::collections::{HashMap, HashSet};

use super::coins::Coins;
use super::credit::{CreditSheet, CreditSlot, InvalidClick};
use super::draft::{self, Note, Team};
use super::lists::Lists;
use super::optimized::plans::Plans;
use super::spec::Spec;

/// Most documents of a list, repeats included.
pub const MAX_DOCUMENTS: usize = 10_000;
/// Deepest position that a page may reach.
pub const MAX_DEPTH: usize = 1_000;
/// Most pinned documents.
pub const MAX_PINS: usize = 100;

/// What is to be interleaved.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a, S> {
    /// The left ranking, best first: ids that mean nothing here. Of an id that comes twice the
    /// first counts.
    pub left: &'a [S],
    /// The right ranking.
    pub right: &'a [S],
    /// Slots of the shown list before this page.
    pub offset: usize,
    /// Slots of this page; it has fewer where the list ends.
    pub length: usize,
    /// Documents at fixed positions.
    pub pinned: &'a [Pin<S>],
}

/// A document at a fixed position: taken out of both rankings, and nobody's credit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin<S> {
    /// The document; it need not be in the rankings.
    pub document: S,
    /// Position in the shown list, from 0 on the first page. Beyond the end of the list the
    /// document comes last.
    pub position: usize,
}

/// What cannot be interleaved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// A ranking is too long.
    #[error("the {side} ranking has {documents} documents; at most {MAX_DOCUMENTS} are taken")]
    TooManyDocuments {
        /// `left` or `right`.
        side: &'static str,
        /// How many it has.
        documents: usize,
    },
    /// No slots.
    #[error("a page of no results cannot be interleaved; `length` is at least 1")]
    NoLength,
    /// The page is too far down.
    #[error(
        "offset {offset} and length {length} reach below position {MAX_DEPTH}; no page goes deeper"
    )]
    TooDeep {
        /// As asked.
        offset: usize,
        /// As asked.
        length: usize,
    },
    /// Too many pins.
    #[error("{pins} documents are pinned; at most {MAX_PINS} can be")]
    TooManyPins {
        /// How many.
        pins: usize,
    },
    /// A pin too far down.
    #[error("pin {index} is at position {position}; positions are 0 to {}", MAX_DEPTH - 1)]
    PinOutOfRange {
        /// Index of the pin, from 0.
        index: usize,
        /// Its position.
        position: usize,
    },
    /// Two pins at one position.
    #[error("pins {first} and {second} are both at position {position}")]
    PinsCollide {
        /// Index of the one, from 0.
        first: usize,
        /// Index of the other.
        second: usize,
        /// Where both are.
        position: usize,
    },
    /// One document pinned twice.
    #[error("pins {first} and {second} are the same document")]
    PinnedTwice {
        /// Index of the one, from 0.
        first: usize,
        /// Index of the other.
        second: usize,
    },
}

/// One shown slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    /// The id, as it came.
    pub document: &'a str,
    /// Position in the shown list, from 0 on the first page.
    pub position: usize,
    /// Whose it is; `None` for a pinned document. What each method means by it:
    /// [`super::Drafted::team`].
    pub team: Option<Team>,
    /// Whether a click on it can earn credit.
    pub competitive: bool,
    /// Whether it was pinned.
    pub pinned: bool,
    /// Rank in the left ranking without repeats and pinned documents, from 1.
    pub rank_left: Option<u32>,
    /// Rank in the right ranking.
    pub rank_right: Option<u32>,
}

/// One page.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The slots from `offset` on, at most `length`; none where the list ends before.
    pub slots: Vec<Slot<'a>>,
    /// Slots that all pages together can have.
    pub total: usize,
    /// Repeats that were dropped from the left and from the right ranking.
    pub repeats: [usize; 2],
    /// Something out of the ordinary.
    pub note: Option<Note>,
    /// What [`super::credit()`] needs, of this page and the ones before it.
    pub sheet: CreditSheet,
    /// Everything shown from position 0 to the end of this page.
    shown: Vec<Slot<'a>>,
}

impl Page<'_> {
    /// Whether clicks on it, or on the pages before it, can say anything.
    pub fn is_informative(&self) -> bool {
        self.sheet.informative
    }

    /// Everything shown from position 0 to the end of this page.
    pub fn shown(&self) -> &[Slot<'_>] {
        &self.shown
    }

    /// The position of a document that was shown on this page or before it.
    pub fn position_of(&self, document: &str) -> Result<usize, InvalidClick> {
        self.shown
            .iter()
            .find(|slot| slot.document == document)
            .map(|slot| slot.position)
            .ok_or_else(|| InvalidClick::Document(document.chars().take(100).collect()))
    }
}

/// Interleave two rankings, and cut out one page.
///
/// The same lists, pins and coins give the same list for every page: pages neither repeat nor skip
/// a document. Coins must be fresh for each call.
pub fn interleave<'a, S: AsRef<str>>(
    spec: &Spec,
    request: &Request<'a, S>,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Result<Page<'a>, InvalidRequest> {
    check(request)?;
    let pins = sorted_pins(request.pinned)?;
    let mut numbers = Numbers::default();
    for &(_, document) in &pins {
        numbers.of(document);
    }
    let [left, right] = [request.left, request.right].map(|list| numbers.of_all(list));
    let repeats =
        [&left, &right].map(|list| list.len() - list.iter().collect::<HashSet<_>>().len());
    // pins have the lowest numbers
    let [left, right] = [left, right].map(|mut list| {
        list.retain(|&number| number as usize >= pins.len());
        list
    });
    let lists = Lists::new(&left, &right, numbers.documents.len(), spec.depth_policy);

    let end = request.offset + request.length;
    let pinned_above = pins.iter().filter(|&&(position, _)| position < end).count();
    let draft = draft::draft(spec, &lists, end - pinned_above, coins, plans);
    let sheet = CreditSheet::of(spec, &lists, &draft);

    let mut shown = Vec::with_capacity(end);
    let mut merged = Vec::with_capacity(end);
    let mut pins = pins.into_iter().peekable();
    let mut drafted = draft.slots.iter().zip(sheet.slots).peekable();
    while shown.len() < end {
        let position = shown.len();
        if let Some((_, document)) =
            pins.next_if(|&(pin, _)| pin <= position || drafted.peek().is_none())
        {
            shown.push(Slot {
                document,
                position,
                team: None,
                competitive: false,
                pinned: true,
                rank_left: None,
                rank_right: None,
            });
            merged.push(CreditSlot { ranks: [0; 2], team: None, competitive: false });
        } else if let Some((slot, on_sheet)) = drafted.next() {
            let [rank_left, rank_right] = on_sheet.ranks.map(|rank| (rank > 0).then_some(rank));
            shown.push(Slot {
                document: numbers.documents[slot.document as usize],
                position,
                team: Some(slot.team),
                competitive: slot.competitive,
                pinned: false,
                rank_left,
                rank_right,
            });
            merged.push(on_sheet);
        } else {
            break;
        }
    }
    Ok(Page {
        slots: shown.iter().skip(request.offset).copied().collect(),
        total: request.pinned.len() + lists.distinct() + lists.tail().len(),
        repeats,
        note: draft.note,
        sheet: CreditSheet { slots: merged, ..sheet },
        shown,
    })
}

/// The page of one ranker shown alone, as a self-duel is: clicks on it say nothing.
pub fn alone<'a, S: AsRef<str>>(
    ranking: &'a [S],
    offset: usize,
    length: usize,
    pinned: &'a [Pin<S>],
) -> Result<Page<'a>, InvalidRequest> {
    let request = Request { left: ranking, right: &[], offset, length, pinned };
    // nothing to toss for: an empty side leaves nothing to draft
    let mut coins = super::DuelCoins::drafting([0; 32]);
    interleave(&Spec::default(), &request, &mut coins, &super::Uncached)
}

fn check<S>(request: &Request<'_, S>) -> Result<(), InvalidRequest> {
    for (side, list) in [("left", request.left), ("right", request.right)] {
        if list.len() > MAX_DOCUMENTS {
            return Err(InvalidRequest::TooManyDocuments { side, documents: list.len() });
        }
    }
    let (offset, length) = (request.offset, request.length);
    if length == 0 {
        return Err(InvalidRequest::NoLength);
    }
    if offset.saturating_add(length) > MAX_DEPTH {
        return Err(InvalidRequest::TooDeep { offset, length });
    }
    if request.pinned.len() > MAX_PINS {
        return Err(InvalidRequest::TooManyPins { pins: request.pinned.len() });
    }
    Ok(())
}

/// Pins by position, checked.
fn sorted_pins<S: AsRef<str>>(pinned: &[Pin<S>]) -> Result<Vec<(usize, &str)>, InvalidRequest> {
    let (mut positions, mut documents) = (HashMap::new(), HashMap::new());
    for (index, pin) in pinned.iter().enumerate() {
        let position = pin.position;
        if position >= MAX_DEPTH {
            return Err(InvalidRequest::PinOutOfRange { index, position });
        }
        if let Some(first) = positions.insert(position, index) {
            return Err(InvalidRequest::PinsCollide { first, second: index, position });
        }
        if let Some(first) = documents.insert(pin.document.as_ref(), index) {
            return Err(InvalidRequest::PinnedTwice { first, second: index });
        }
    }
    let mut pins: Vec<(usize, &str)> =
        pinned.iter().map(|pin| (pin.position, pin.document.as_ref())).collect();
    pins.sort_unstable_by_key(|&(position, _)| position);
    Ok(pins)
}

/// Ids by number.
#[derive(Default)]
struct Numbers<'a> {
    documents: Vec<&'a str>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Numbers<'a> {
    fn of(&mut self, id: &'a str) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            self.documents.push(id);
            (self.documents.len() - 1) as u32
        })
    }

    fn of_all(&mut self, ids: &'a [impl AsRef<str>]) -> Vec<u32> {
        ids.iter().map(|id| self.of(id.as_ref())).collect()
    }
}
