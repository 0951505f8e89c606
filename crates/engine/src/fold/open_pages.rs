//! Duels whose clicks arrive in several events: the clicks so far, until the duel is settled. Part
//! of the fold.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::clock;
use crate::tokens::page_payload::{sheet_from_text, sheet_is_sound};
use dueling_bandits::Answer;
use dueling_bandits::evidence::Score;
use interleaving::{
    self, Click, Coins, Credit, CreditSheet, DuelCoins, MAX_WEIGHT, Outcome, Share,
};
use interleaving::{credit, decides_by_score};
use rankduel_store::Nonce;
use rankduel_store::audience::Audience;
use rankduel_store::events::{ClicksEvent, OutcomeEvent};

/// Most clicked documents that count on one page. Searchers click on fewer, and the limit bounds
/// the time that crediting takes.
pub const MAX_CLICKED: usize = 100;

/// The clicked positions of a page and their weights: at most [`MAX_CLICKED`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageClicks(BTreeMap<u16, u8>);

impl PageClicks {
    /// Add a click. Of a position the heaviest counts, and a new position counts unless there are
    /// [`MAX_CLICKED`]. Returns whether the click adds anything.
    pub fn add(&mut self, position: u16, weight: u8) -> bool {
        let full = self.0.len() >= MAX_CLICKED;
        match self.0.get_mut(&position) {
            Some(known) if *known >= weight => false,
            Some(known) => {
                *known = weight;
                true
            }
            None if full => false,
            None => self.0.insert(position, weight).is_none(),
        }
    }

    /// Positions and weights, in ascending order of the positions.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u8)> + '_ {
        self.0.iter().map(|(&position, &weight)| (position, weight))
    }
}

/// The clicks on the page of one duel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClickedPage {
    /// The duel; its answer is not known yet.
    duel: ClickedDuel,
    /// Version of the method that interleaved the page.
    pub method: u32,
    /// Credit sheet of the deepest page that clicks came from.
    pub sheet: CreditSheet,
    clicks: PageClicks,
    /// Entries of the log that have them.
    pub pieces: u16,
    /// The unit and the segment that clicked.
    audience: Audience,
}

/// The part of a duel that its outcome keeps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct ClickedDuel {
    first: u16,
    second: u16,
    first_left: bool,
    batch: Option<u32>,
    ticket: u64,
    chosen_at: u64,
    issued_at: i64,
}

/// The credit sheet in an event with clicks; `None` if it is that of the page before the event. The
/// error says which part of the event this program cannot have written.
pub(super) fn sheet_of(
    event: &ClicksEvent,
    before: Option<&ClickedPage>,
) -> Result<Option<CreditSheet>, String> {
    let own = event.sheet.as_deref().map(sheet_from_text);
    let own = own.map(|sheet| sheet.ok_or("its credit sheet cannot be read")).transpose()?;
    let sheet = own.as_ref().or(before.map(|page| &page.sheet));
    let slots = sheet.ok_or("no entry has its credit sheet")?.slots.len();
    for &(position, weight) in &event.clicks {
        if usize::from(position) >= slots || !(1..=MAX_WEIGHT).contains(&weight.into()) {
            return Err(format!("a click at position {position} weighs {weight}"));
        }
    }
    Ok(own)
}

impl ClickedPage {
    /// The page with the clicks of one more event. `sheet` is [`sheet_of`] the event.
    pub(super) fn with(
        before: Option<Self>,
        event: &ClicksEvent,
        sheet: Option<CreditSheet>,
    ) -> Option<Self> {
        let mut page = match (before, sheet) {
            (None, None) => return None,
            (None, Some(sheet)) => Self {
                duel: ClickedDuel {
                    first: event.first,
                    second: event.second,
                    first_left: event.first_left,
                    batch: event.batch,
                    ticket: event.ticket,
                    chosen_at: event.chosen_at,
                    issued_at: event.issued_at,
                },
                method: event.method,
                sheet,
                clicks: PageClicks::default(),
                pieces: 0,
                audience: Audience::default(),
            },
            (Some(mut page), Some(sheet)) if sheet.slots.len() > page.sheet.slots.len() => {
                (page.sheet, page.method) = (sheet, event.method);
                page
            }
            (Some(page), _) => page,
        };
        let clicked = Audience { unit: event.unit, segment: event.segment };
        page.audience = page.audience.or(clicked);
        for &(position, weight) in &event.clicks {
            page.clicks.add(position, weight);
        }
        page.pieces = page.pieces.saturating_add(1);
        Some(page)
    }

    /// Whether the clicks of this event, and a page as deep, are known.
    pub fn has(&self, event: &ClicksEvent) -> bool {
        let sheet = event.sheet.as_deref().and_then(sheet_from_text);
        let mut clicks = event.clicks.iter();
        sheet.is_none_or(|sheet| sheet.slots.len() <= self.sheet.slots.len())
            && clicks.all(|(position, weight)| self.clicks.0.get(position) >= Some(weight))
    }

    /// The credit for the clicks, under the method that interleaved the page, in an experiment with
    /// this `seed`.
    pub fn credit(
        &self,
        method: &interleaving::Spec,
        seed: u64,
        nonce: Nonce,
    ) -> Result<Credit, String> {
        let clicks: Vec<_> = self
            .clicks
            .iter()
            .map(|(position, weight)| Click { position: position.into(), weight: weight.into() })
            .collect();
        let mut coins = DuelCoins::crediting(crediting_seed(seed, nonce));
        credit(method, &self.sheet, &clicks, &mut coins).map_err(|error| error.to_string())
    }

    /// The score that the verdict counts in place of the outcome; `None` if it counts the
    /// outcome.
    pub fn score(
        &self,
        method: &interleaving::Spec,
        credit: &Credit,
        seed: u64,
        nonce: Nonce,
    ) -> Option<Score> {
        if !decides_by_score(method) || credit.share == Share::EVEN {
            return None;
        }
        let left = credit.share > Share::EVEN;
        let is_drawn = matches!(credit.outcome, Outcome::Left | Outcome::Right);
        let mut coins = DuelCoins::counting(crediting_seed(seed, nonce));
        let happens = |numerator| coins.happens(numerator);
        let is_first = left == self.duel.first_left;
        Some(Score::rounded(is_first, credit.share.weight(), is_drawn, happens))
    }

    /// The duel, answered as the credit decided.
    pub fn answered(&self, outcome: Outcome) -> OutcomeEvent {
        let answer = match (outcome, self.duel.first_left) {
            (Outcome::Left, true) | (Outcome::Right, false) => Answer::First,
            (Outcome::Left, false) | (Outcome::Right, true) => Answer::Second,
            (Outcome::Tie, _) => Answer::Tie,
            (Outcome::None, _) => Answer::None,
        };
        let ClickedDuel { first, second, first_left, batch, ticket, chosen_at, issued_at } =
            self.duel;
        let Audience { unit, segment } = self.audience;
        OutcomeEvent {
            first,
            second,
            first_left,
            answer,
            batch,
            ticket,
            chosen_at,
            issued_at,
            unit,
            segment,
        }
    }

    /// Whether this program can have made it. Decoded clicks may be invalid.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let in_range = |ranker: u16| usize::from(ranker) < rankers;
        in_range(self.duel.first)
            && in_range(self.duel.second)
            && clock::is_a_time(self.duel.issued_at)
            && sheet_is_sound(&self.sheet)
            && self.clicks.0.len() <= MAX_CLICKED
            && self.clicks.iter().all(|(position, weight)| self.can_have(position, weight))
    }

    fn can_have(&self, position: u16, weight: u8) -> bool {
        usize::from(position) < self.sheet.slots.len() && (1..=MAX_WEIGHT).contains(&weight.into())
    }

    /// Estimated bytes in memory.
    fn bytes(&self) -> usize {
        const PAGE: usize = 256;
        const SLOT: usize = 20;
        const CLICK: usize = 32;
        PAGE + SLOT * self.sheet.slots.len() + CLICK * self.clicks.0.len()
    }
}

/// The seed of random choices in crediting. Crediting is part of the fold, so it depends on the
/// seed of the experiment and not on a secret key.
fn crediting_seed(seed: u64, nonce: Nonce) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"rankduel crediting\0");
    hash.update(seed.to_be_bytes());
    hash.update(nonce.to_be_bytes());
    hash.finalize().into()
}

/// The duels of an experiment that have clicks and are not settled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<Nonce, ClickedPage>", into = "BTreeMap<Nonce, ClickedPage>")]
pub struct OpenPages {
    pages: BTreeMap<Nonce, ClickedPage>,
    /// Oldest first.
    by_issue: BTreeSet<(i64, Nonce)>,
    bytes: usize,
}

impl From<BTreeMap<Nonce, ClickedPage>> for OpenPages {
    fn from(pages: BTreeMap<Nonce, ClickedPage>) -> Self {
        let mut open = Self::default();
        for (nonce, page) in pages {
            open.insert(nonce, page);
        }
        open
    }
}

impl From<OpenPages> for BTreeMap<Nonce, ClickedPage> {
    fn from(open: OpenPages) -> Self {
        open.pages
    }
}

impl OpenPages {
    /// The clicks of each duel.
    pub fn pages(&self) -> &BTreeMap<Nonce, ClickedPage> {
        &self.pages
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The duels that were issued at `until` or before, oldest first.
    pub fn issued_until(&self, until: i64) -> impl Iterator<Item = Nonce> + '_ {
        self.by_issue.range(..=(until, Nonce::MAX)).map(|&(_, nonce)| nonce)
    }

    /// Unix milliseconds at which the oldest duel was issued.
    pub fn oldest_issue(&self) -> Option<i64> {
        self.by_issue.first().map(|&(issued_at, _)| issued_at)
    }

    /// Add the clicks of an event on the page of a duel.
    pub(super) fn add(&mut self, nonce: Nonce, event: &ClicksEvent, sheet: Option<CreditSheet>) {
        let before = self.take(nonce);
        if let Some(page) = ClickedPage::with(before, event, sheet) {
            self.insert(nonce, page);
        }
    }

    /// Remove a duel, because it is settled.
    pub fn take(&mut self, nonce: Nonce) -> Option<ClickedPage> {
        let page = self.pages.remove(&nonce)?;
        self.by_issue.remove(&(page.duel.issued_at, nonce));
        self.bytes -= page.bytes();
        Some(page)
    }

    fn insert(&mut self, nonce: Nonce, page: ClickedPage) {
        self.by_issue.insert((page.duel.issued_at, nonce));
        self.bytes += page.bytes();
        self.pages.insert(nonce, page);
    }
}
