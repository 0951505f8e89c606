//! The content of a `duel_id`: everything about a duel, so that issuing one writes nothing.

use serde::{Deserialize, Serialize};

use crate::tokens::page_payload::PagePayload;
use rankduel_store::audience::Audience;
use rankduel_store::{ExperimentId, Nonce};

/// The content of a `duel_id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuelToken {
    /// The experiment that issued it.
    pub experiment: ExperimentId,
    /// First ranker of the ordered pair.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Whether the first ranker is shown on the left.
    pub first_left: bool,
    /// The batch it belongs to.
    pub batch: Option<u32>,
    /// The policy's note on its selection, or that of [`DuelToken::ticket_alone`].
    pub ticket: u64,
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was issued.
    pub issued_at: i64,
    /// Unix milliseconds after which feedback is refused.
    pub expires_at: i64,
    /// Identifies the duel. High half: the process that issued it; low half: its number there.
    pub nonce: Nonce,
    /// The viewer of the duel.
    pub audience: Audience,
}

/// Room for the bytes of any token: 101 of numbers, and 34 of a segment.
pub(super) const TOKEN_BYTES: usize = 135;
/// In the ticket of a page for a unit that sees one ranker alone. Policies have smaller tickets.
const ALONE: u64 = 1 << 32;
/// In the ticket of the page that decides the home of its unit.
const HOME: u64 = 1 << 33;

impl DuelToken {
    /// The ticket of a page for a unit that sees one ranker alone: the ranker of the other arm.
    pub fn ticket_alone(other: usize) -> u64 {
        ALONE | other as u64
    }

    /// The ranker of such a ticket; `None` of any other ticket.
    pub fn other_arm(ticket: u64) -> Option<u16> {
        (ticket & ALONE != 0).then_some(ticket as u16)
    }

    /// The ticket of a page that decides the home of its unit: with that of the policy.
    pub fn ticket_of_home(ticket: u64) -> u64 {
        HOME | ticket
    }

    /// The policy's ticket in one of a page that decides a home; `None` of any other ticket.
    pub fn home_ticket(ticket: u64) -> Option<u64> {
        (ticket & HOME != 0).then_some(ticket & !HOME)
    }

    /// The token's bytes, at the start of `buffer`.
    pub(super) fn write<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a mut [u8], postcard::Error> {
        postcard::to_slice(self, buffer)
    }

    /// The token that was written; `None` if it is not one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (token, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(token)
    }
}

/// A `duel_id` whose signature is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct DuelId {
    /// The duel.
    pub duel: DuelToken,
    /// Number of the key that it was signed with.
    pub key: u32,
    /// The page, if the service interleaved it.
    pub page: Option<PagePayload>,
}

/// Why a `duel_id` is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not base64url, too short, too long, or of an unknown version.
    #[error("it is not a duel id: send back the `duel_id` of `next-duel` unchanged")]
    Malformed,
    /// Signed with a key that this service does not have.
    #[error("it was signed with a key that this service does not have")]
    UnknownKey,
    /// The signature is wrong.
    #[error("its signature is wrong: this service did not issue it, or it was changed on the way")]
    Forged,
}
