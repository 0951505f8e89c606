//! From two rankings of ids to the slots of one page.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::clicks::InvalidClick;
use crate::coins::{Coins, DuelCoins};
use crate::credit::{CreditSheet, CreditSlot};
use crate::draft::{Draft, Note, Team};
use crate::drafting::draft;
use crate::lists::Lists;
use crate::methods::optimized::{Plans, Uncached};
use crate::request::{InvalidRequest, Pin, Request};
use crate::spec::Spec;

/// One shown slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot<'a> {
    /// The id, as given.
    pub document: &'a str,
    /// Position in the shown list, from 0 on the first page.
    pub position: usize,
    /// The side that the slot belongs to; `None` for a pinned document. See
    /// [`Drafted::team`](crate::Drafted::team).
    pub team: Option<Team>,
    /// Whether a click on it can earn credit.
    pub competitive: bool,
    /// Whether the document is pinned.
    pub pinned: bool,
    /// Rank in the left ranking, from 1, without repeats and pinned documents.
    pub rank_left: Option<u32>,
    /// Rank in the right ranking.
    pub rank_right: Option<u32>,
}

/// One page of results.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// The slots from `offset` on, at most `length`. Empty if the list ends before `offset`.
    pub slots: Vec<Slot<'a>>,
    /// Number of slots of all pages together.
    pub total: usize,
    /// Number of repeats dropped from the left and from the right ranking.
    pub repeats: [usize; 2],
    /// A remark for the log.
    pub note: Option<Note>,
    /// The input of [`credit`](crate::credit), for this page and the pages before it.
    pub sheet: CreditSheet,
    /// All slots from position 0 to the end of this page.
    shown: Vec<Slot<'a>>,
}

impl Page<'_> {
    /// Whether clicks on this page or the pages before it can decide the duel.
    pub fn is_informative(&self) -> bool {
        self.sheet.informative
    }

    /// All slots from position 0 to the end of this page.
    pub fn shown(&self) -> &[Slot<'_>] {
        &self.shown
    }

    /// The position of a document on this page or the pages before it.
    pub fn position_of(&self, document: &str) -> Result<usize, InvalidClick> {
        self.shown
            .iter()
            .find(|slot| slot.document == document)
            .map(|slot| slot.position)
            .ok_or_else(|| InvalidClick::Document(document.chars().take(100).collect()))
    }
}

/// Interleaves two rankings and returns one page of the result.
///
/// The same rankings, pins and coins give the same list for every page, so that pages neither
/// repeat nor skip a document. Use fresh coins for each call.
pub fn interleave<'a, S: AsRef<str>>(
    spec: &Spec,
    request: &Request<'a, S>,
    coins: &mut impl Coins,
    plans: &dyn Plans,
) -> Result<Page<'a>, InvalidRequest> {
    let pins = request.check()?;
    let mut numbers = Numbers::of(&pins, request.left.len() + request.right.len());
    let [(left, left_repeats), (right, right_repeats)] =
        [(request.left, LEFT), (request.right, RIGHT)]
            .map(|(list, side)| numbers.of_all(list, side));
    let repeats = [left_repeats, right_repeats];
    // Pinned documents have the lowest numbers.
    let [left, right] = [left, right].map(|mut list| {
        list.retain(|&number| number as usize >= pins.len());
        list
    });
    let lists = Lists::new(&left, &right, numbers.documents.len(), spec.depth_policy);

    let end = request.offset + request.length;
    let pinned_above = pins.iter().filter(|&&(position, _)| position < end).count();
    let draft = draft(spec, &lists, end - pinned_above, coins, plans);
    let sheet = CreditSheet::of(spec, &lists, &draft);

    let (shown, merged) = with_pins(pins, &draft, sheet.slots, &numbers.documents, end);
    Ok(Page {
        slots: shown.iter().skip(request.offset).copied().collect(),
        total: request.pinned.len() + lists.distinct() + lists.tail().len(),
        repeats,
        note: draft.note,
        sheet: CreditSheet { slots: merged, ..sheet },
        shown,
    })
}

/// The first `end` slots of the list, with each pin at its position or behind the drafted documents,
/// and the same slots for the credit sheet. `on_sheet` are the credit slots of the drafted documents.
fn with_pins<'a>(
    pins: Vec<(usize, &'a str)>,
    draft: &Draft,
    on_sheet: Vec<CreditSlot>,
    documents: &[&'a str],
    end: usize,
) -> (Vec<Slot<'a>>, Vec<CreditSlot>) {
    let mut shown = Vec::with_capacity(end);
    let mut merged = Vec::with_capacity(end);
    let mut pins = pins.into_iter().peekable();
    let mut drafted = draft.slots.iter().zip(on_sheet).peekable();
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
                document: documents[slot.document as usize],
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
    (shown, merged)
}

/// The page of one ranker shown alone, as in a self-duel. Clicks on it earn no credit.
pub fn alone<'a, S: AsRef<str>>(
    ranking: &'a [S],
    offset: usize,
    length: usize,
    pinned: &'a [Pin<S>],
) -> Result<Page<'a>, InvalidRequest> {
    let request = Request { left: ranking, right: &[], offset, length, pinned };
    // The seed does not matter: with one empty side, no coin is tossed.
    let mut coins = DuelCoins::drafting([0; 32]);
    interleave(&Spec::default(), &request, &mut coins, &Uncached)
}

/// The bits of [`Numbers::sides`].
const LEFT: u8 = 1;
const RIGHT: u8 = 2;

/// Numbers the ids in the order of their first occurrence.
struct Numbers<'a> {
    documents: Vec<&'a str>,
    /// By document: one bit for each side that has it.
    sides: Vec<u8>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Numbers<'a> {
    /// The numbers of the pins. `capacity` ids may follow.
    fn of(pins: &[(usize, &'a str)], capacity: usize) -> Self {
        let capacity = pins.len() + capacity;
        let mut numbers = Self {
            documents: Vec::with_capacity(capacity),
            sides: Vec::with_capacity(capacity),
            numbers: HashMap::with_capacity(capacity),
        };
        for &(_, document) in pins {
            numbers.number_of(document);
        }
        numbers
    }

    /// The number of an id, which is new if the id is.
    fn number_of(&mut self, id: &'a str) -> u32 {
        match self.numbers.entry(id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.documents.push(id);
                self.sides.push(0);
                *new.insert((self.documents.len() - 1) as u32)
            }
        }
    }

    /// The numbers of a side's ids, and how many ids are repeats.
    fn of_all(&mut self, ids: &'a [impl AsRef<str>], side: u8) -> (Vec<u32>, usize) {
        let mut repeats = 0;
        let numbers = ids
            .iter()
            .map(|id| {
                let number = self.number_of(id.as_ref());
                let sides = &mut self.sides[number as usize];
                repeats += usize::from(*sides & side != 0);
                *sides |= side;
                number
            })
            .collect();
        (numbers, repeats)
    }
}
