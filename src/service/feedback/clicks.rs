//! Clicks on an interleaved page, as an event of the log.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::content::{CLICK_PLACES, PageEvent};
use super::opened::OpenedPage;
use rankduel_engine::experiment_spec::{FieldError, excerpt};
use rankduel_engine::fold::open_pages::{MAX_CLICKED, PageClicks};
use rankduel_engine::tokens::page_payload::sheet_to_text;
use rankduel_store::audience::Audience;
use rankduel_store::events::{ClicksEvent, ControlEvent, Event};
use rankduel_store::{NewEvent, Nonce};

/// Most events of an experiment that an error names. A request can have an error for each of its
/// thousand items.
const NAMED_EVENTS: usize = 5;

/// The clicks of one item of feedback.
pub(super) fn read_clicks(
    event_weights: &BTreeMap<String, u32>,
    page: &OpenedPage,
    clicks: &[PageEvent],
) -> Result<PageClicks, FieldError> {
    if clicks.len() > MAX_CLICKED {
        let detail = format!("there are more than {MAX_CLICKED} clicks; only so many count");
        return Err(FieldError::new("/clicks", detail));
    }
    let mut read = PageClicks::default();
    for (index, click) in clicks.iter().enumerate() {
        let error = |detail| FieldError::new(format!("/clicks/{index}"), detail);
        let weight = weight_of(event_weights, &click.event).map_err(error)?;
        let position = page.position(&click.on).map_err(error)?;
        // positions are below 1000, weights at most 100
        read.add(position as u16, weight as u8);
    }
    Ok(read)
}

/// The event for clicks on the page of a duel. With `last`, the clicks settle the duel.
pub(super) fn clicks_event(
    page: &OpenedPage,
    clicks: &PageClicks,
    last: bool,
    Audience { unit, segment }: Audience,
) -> NewEvent {
    let (duel, sheet) = (&page.duel, sheet_to_text(&page.payload.sheet));
    let mut event = ClicksEvent {
        duel: Uuid::from_u128(duel.nonce),
        first: duel.first,
        second: duel.second,
        first_left: duel.first_left,
        batch: duel.batch,
        ticket: duel.ticket,
        chosen_at: duel.chosen_at,
        issued_at: duel.issued_at,
        method: page.payload.method,
        sheet: None,
        clicks: clicks.iter().collect(),
        unit,
        segment,
    };
    let nonce = if last { duel.nonce } else { place(duel.nonce, content_hash(&event, &sheet)) };
    event.sheet = Some(sheet);
    let superseded_by = Some(duel.nonce).filter(|settling| *settling != nonce);
    let event = Event::Control(ControlEvent::Clicks(Box::new(event)));
    NewEvent { superseded_by, ..NewEvent::new(nonce, event) }
}

fn weight_of(event_weights: &BTreeMap<String, u32>, event: &str) -> Result<u32, String> {
    event_weights.get(event).copied().ok_or_else(|| {
        let known: Vec<_> = event_weights.keys().take(NAMED_EVENTS).map(String::as_str).collect();
        let more = match event_weights.len() - known.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "the experiment has no event `{}`; its `event_weights` are of: {}{more}",
            excerpt(event),
            known.join(", ")
        )
    })
}

/// The places that clicks which do not settle their duel can take, beginning with the one that a
/// hash of their content prefers: a repeat finds them at the same place. The log has each nonce
/// once, so that there are no more entries than places, whatever is sent to whichever server.
pub(super) fn places(clicks: &ClicksEvent) -> impl Iterator<Item = Nonce> {
    let sheet = clicks.sheet.as_deref().unwrap_or_default();
    places_from(clicks.duel.as_u128(), content_hash(clicks, sheet))
}

/// All places of a duel, from the `preferred` one on.
pub(super) fn places_from(duel: Nonce, preferred: u128) -> impl Iterator<Item = Nonce> {
    (0..CLICK_PLACES).map(move |nth| place(duel, preferred.wrapping_add(nth)))
}

/// The nonce of a place. Its highest bit is set, which no random nonce has.
pub(super) fn place(duel: Nonce, number: u128) -> Nonce {
    let mut hash = Sha256::new();
    hash.update(b"rankduel clicks\0");
    hash.update(duel.to_be_bytes());
    hash.update((number % CLICK_PLACES).to_be_bytes());
    first_half(hash) | 1 << 127
}

fn content_hash(event: &ClicksEvent, sheet: &str) -> u128 {
    let mut hash = Sha256::new();
    hash.update(event.method.to_be_bytes());
    hash.update((sheet.len() as u64).to_be_bytes());
    hash.update(sheet);
    for (position, weight) in &event.clicks {
        hash.update(position.to_be_bytes());
        hash.update([*weight]);
    }
    first_half(hash)
}

pub(super) fn first_half(hash: Sha256) -> u128 {
    let hash: [u8; 32] = hash.finalize().into();
    u128::from_be_bytes(std::array::from_fn(|index| hash[index]))
}
