//! Clicks where orders decide: they link documents to their page, with the credit of a click on
//! each document alone.

use std::collections::BTreeMap;

use interleaving::methods::probabilistic::PosteriorVerdict;
use interleaving::{
    Click, Coins as _, CreditSheet, DuelCoins, Method, ScoreVerdict, Share, credit,
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::clicks::{first_half, place, places_from};
use super::opened::OpenedPage;
use rankduel_engine::fold::MethodVersion;
use rankduel_engine::fold::open_pages::PageClicks;
use rankduel_store::audience::Audience;
use rankduel_store::events::{ControlEvent, Event, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::LinksEvent;
use rankduel_store::{NewEvent, Nonce};

/// The largest credit of a link.
const CREDIT_MAX: u64 = 127;

/// The part of an experiment that orders decide which its links depend on.
pub(super) struct Linking {
    pub seed: u64,
    pub methods: Vec<MethodVersion>,
    /// Baskets of units whose first page was issued before this time are closed.
    pub complete_until: i64,
}

/// Why clicks link nothing, and whether they would have earlier.
pub(super) type Unlinked = (&'static str, bool);

impl Linking {
    /// The event for clicks on a page; `None` if no answer of it could count: nothing was clicked,
    /// or it shows one ranker.
    pub fn event(
        &self,
        page: &OpenedPage,
        clicks: &PageClicks,
        Audience { unit, segment }: Audience,
    ) -> Result<Option<NewEvent>, Unlinked> {
        let duel = &page.duel;
        if duel.first == duel.second {
            return Ok(None);
        }
        let unit = unit.ok_or(("no unit: an order could not be joined", false))?;
        if duel.issued_at < self.complete_until {
            return Err(("the basket of this page is closed: orders have counted", true));
        }
        let method = (page.payload.method as usize).checked_sub(1);
        let method = method.and_then(|at| self.methods.get(at));
        let method = scored(&method.ok_or(("its method is unknown", false))?.method);
        let mut links = BTreeMap::new();
        for (position, _) in clicks.iter() {
            let Some(name) = page.payload.documents.get(usize::from(position)) else { continue };
            let coins = self.coins(duel.nonce, position);
            let of_left = left_credit(&method, &page.payload.sheet, position.into(), coins);
            // of two documents of one name, the first
            let own = if duel.first_left { of_left } else { -of_left };
            links.entry(DocumentHash(*name)).or_insert(own);
        }
        if links.is_empty() {
            return Ok(None);
        }
        let event = LinksEvent {
            duel: Uuid::from_u128(duel.nonce),
            first: duel.first,
            second: duel.second,
            ticket: duel.ticket,
            chosen_at: duel.chosen_at,
            issued_at: duel.issued_at,
            method: page.payload.method,
            unit: UnitHash(unit),
            segment,
            links: links.into_iter().collect(),
        };
        let nonce = place(duel.nonce, content_hash(&event));
        Ok(Some(NewEvent::new(nonce, Event::Control(ControlEvent::Links(Box::new(event))))))
    }

    /// The coins of one position of a page. They are the same for every repeat.
    fn coins(&self, duel: Nonce, position: u16) -> DuelCoins {
        let mut hash = Sha256::new();
        hash.update(b"rankduel link\0");
        hash.update(self.seed.to_be_bytes());
        hash.update(duel.to_be_bytes());
        hash.update(position.to_be_bytes());
        DuelCoins::counting(hash.finalize().into())
    }
}

/// The places that links can take, as [`super::clicks::places`] has them.
pub(super) fn places(event: &LinksEvent) -> impl Iterator<Item = Nonce> {
    places_from(event.duel.as_u128(), content_hash(event))
}

fn content_hash(event: &LinksEvent) -> u128 {
    let mut hash = Sha256::new();
    hash.update(event.unit.0.to_be_bytes());
    for (DocumentHash(document), credit) in &event.links {
        hash.update(document);
        hash.update(credit.to_be_bytes());
    }
    first_half(hash)
}

/// The method, with credit as a share in place of a winner.
fn scored(method: &interleaving::Spec) -> interleaving::Spec {
    let mut scored = *method;
    match &mut scored.method {
        Method::TeamDraft(it) => it.verdict = ScoreVerdict::Score,
        Method::Balanced(it) => it.verdict = ScoreVerdict::Score,
        Method::Probabilistic(it) => it.verdict = PosteriorVerdict::Score,
        Method::Optimized(it) => it.verdict = ScoreVerdict::Score,
    }
    scored
}

/// The credit of a click on this position alone: the score over the largest score that it could
/// have, times 127, positive for the left ranker. Rounding keeps the mean.
fn left_credit(
    method: &interleaving::Spec,
    sheet: &CreditSheet,
    position: usize,
    mut coins: DuelCoins,
) -> i8 {
    let Ok(credit) = credit(method, sheet, &[Click::at(position)], &mut coins) else { return 0 };
    let exact = u64::from(credit.share.weight()) * CREDIT_MAX;
    let (whole, rest) = (exact / u64::from(Share::ONE), exact % u64::from(Share::ONE));
    let size = whole as i8 + i8::from(coins.happens(rest as u32));
    if credit.share > Share::EVEN { size } else { -size }
}
