//! Clicks on an interleaved page, as an event of the log.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::content::{Clicked, PageEvent};
use crate::engine::experiment_spec::FieldError;
use crate::engine::fold::open_pages::MAX_CLICKED;
use crate::events::{ClicksEvent, ControlEvent, Event};
use crate::service::duel_id::not_valid;
use crate::service::error::excerpt;
use crate::store::{NewEvent, Nonce};
use crate::tokens::duel_token::DuelId;
use crate::tokens::page_payload::{DuelSecrets, PagePayload, sheet_to_text};
use crate::tokens::signing::SigningKeys;

/// The event for clicks on the page of a duel. With `last`, the clicks settle the duel.
pub(super) fn clicks_event(
    keys: &SigningKeys,
    event_weights: &BTreeMap<String, u32>,
    id: &DuelId,
    clicks: &[PageEvent],
    last: bool,
) -> Result<NewEvent, FieldError> {
    let Some(page) = &id.page else {
        return Err(FieldError::new(
            "/duel_id",
            "the service did not interleave this duel, so it does not know what `clicks` are on: send the `duel_id` \
             that `interleave` answered, or an `outcome`",
        ));
    };
    if clicks.len() > MAX_CLICKED {
        let detail =
            format!("there are {} clicks; at most {MAX_CLICKED} on one page count", clicks.len());
        return Err(FieldError::new("/clicks", detail));
    }
    let secrets = keys
        .secrets(id.key, id.duel.nonce)
        .map_err(|error| FieldError::new("/duel_id", not_valid(error)))?;
    let slots = Slots { page, secrets };
    let mut weights = BTreeMap::new();
    for (index, click) in clicks.iter().enumerate() {
        let error = |detail| FieldError::new(format!("/clicks/{index}"), detail);
        let weight = weight_of(event_weights, &click.event).map_err(error)?;
        let position = slots.position(&click.on).map_err(error)?;
        let known = weights.entry(position).or_insert(0);
        *known = weight.max(*known);
    }
    let duel = &id.duel;
    let event = ClicksEvent {
        duel: Uuid::from_u128(duel.nonce),
        first: duel.first,
        second: duel.second,
        first_left: duel.first_left,
        batch: duel.batch,
        ticket: duel.ticket,
        chosen_at: duel.chosen_at,
        issued_at: duel.issued_at,
        method: page.method,
        sheet: sheet_to_text(&page.sheet),
        // positions are below 1000, weights at most 100
        clicks: weights
            .into_iter()
            .map(|(position, weight)| (position as u16, weight as u8))
            .collect(),
    };
    let nonce = if last { duel.nonce } else { clicks_nonce(&event) };
    let superseded_by = Some(duel.nonce).filter(|settling| *settling != nonce);
    let event = Event::Control(ControlEvent::Clicks(Box::new(event)));
    Ok(NewEvent { nonce, event, superseded_by })
}

fn weight_of(event_weights: &BTreeMap<String, u32>, event: &str) -> Result<u32, String> {
    event_weights.get(event).copied().ok_or_else(|| {
        let known: Vec<_> = event_weights.keys().map(String::as_str).collect();
        format!(
            "the experiment has no event `{}`; its `event_weights` are of: {}",
            excerpt(event),
            known.join(", ")
        )
    })
}

/// The slots of a page, and the secrets that name them.
struct Slots<'a> {
    page: &'a PagePayload,
    secrets: DuelSecrets,
}

impl Slots<'_> {
    fn position(&self, on: &Clicked) -> Result<usize, String> {
        let documents = &self.page.documents;
        match on {
            Clicked::Position(position) => usize::try_from(*position)
                .ok()
                .filter(|&position| position < documents.len())
                .ok_or_else(|| {
                    format!(
                        "there is no position {position}: {} results were shown, counted from 0",
                        documents.len()
                    )
                }),
            Clicked::Document(id) => {
                let name = self.secrets.document(id);
                documents
                    .iter()
                    .position(|shown| *shown == name)
                    .ok_or_else(|| format!("document `{}` was not shown", excerpt(id)))
            }
            Clicked::Slot(token) => documents
                .iter()
                .enumerate()
                .position(|(position, document)| self.secrets.slot(position, document) == *token)
                .ok_or_else(|| format!("slot `{}` was not shown", excerpt(token))),
        }
    }
}

/// The nonce of clicks that do not settle their duel. It is a hash of the clicks, so that a repeat
/// has the same nonce. Its highest bit is set, which no random nonce has.
fn clicks_nonce(event: &ClicksEvent) -> Nonce {
    let mut hash = Sha256::new();
    hash.update(b"rankduel clicks\0");
    hash.update(event.duel.as_bytes());
    hash.update(event.method.to_be_bytes());
    hash.update((event.sheet.len() as u64).to_be_bytes());
    hash.update(&event.sheet);
    for (position, weight) in &event.clicks {
        hash.update(position.to_be_bytes());
        hash.update([*weight]);
    }
    let hash: [u8; 32] = hash.finalize().into();
    Nonce::from_be_bytes(std::array::from_fn(|index| hash[index])) | 1 << 127
}
