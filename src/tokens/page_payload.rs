//! What was shown for a duel, as its `duel_id` carries it: the sheet that credit needs, and a short
//! name for each document, so that clicks can come as positions, as ids or as slot tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::Nonce;
use interleaving::{CreditSheet, MAX_DEPTH, MAX_DOCUMENTS};

/// Bytes of a slot's token.
const SLOT_BYTES: usize = 9;

/// A document by a keyed hash: a thousand documents on one page share a name once in two million
/// pages.
pub type DocumentName = [u8; 5];

/// What was shown, from the first position to the last one of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePayload {
    /// Version of the method.
    pub method: u32,
    /// What credit needs.
    pub sheet: CreditSheet,
    /// The documents, by position.
    pub documents: Vec<DocumentName>,
}

impl PagePayload {
    /// Whether its parts fit together; a decoded one may not.
    pub fn is_sound(&self) -> bool {
        self.documents.len() == self.sheet.slots.len() && sheet_is_sound(&self.sheet)
    }
}

/// Whether crediting the sheet takes no more than it may.
pub(crate) fn sheet_is_sound(sheet: &CreditSheet) -> bool {
    sheet.slots.len() <= MAX_DEPTH
        && sheet.depths.iter().all(|&depth| depth as usize <= MAX_DOCUMENTS)
}

/// A sheet as it stands in the log.
pub fn sheet_to_text(sheet: &CreditSheet) -> String {
    let bytes =
        postcard::to_stdvec(sheet).expect("numbers, flags and vectors of them always serialise");
    STANDARD_NO_PAD.encode(bytes)
}

/// A sheet out of the log; `None` where the text is none.
pub fn sheet_from_text(text: &str) -> Option<CreditSheet> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    postcard::from_bytes(&bytes).ok().filter(sheet_is_sound)
}

/// What only those who have the signing key can know of one duel: its rng, and the names of what it
/// shows.
#[derive(Clone)]
pub struct DuelSecrets(Hmac<Sha256>);

impl DuelSecrets {
    /// Of the duel with this nonce; `mac` is keyed for nothing else.
    pub(crate) fn new(mac: &Hmac<Sha256>, nonce: Nonce) -> Self {
        let mut mac = mac.clone();
        mac.update(&nonce.to_be_bytes());
        Self(mac)
    }

    /// The seed of what is drawn for its page.
    pub fn seed(&self) -> [u8; 32] {
        self.hash(b"seed", &[])
    }

    /// The name of a document on its page.
    pub fn document(&self, id: &str) -> DocumentName {
        first(&self.hash(b"document", &[id.as_bytes()]))
    }

    /// The token of a slot, the same on every page that shows it.
    pub fn slot(&self, position: usize, document: &DocumentName) -> String {
        let hash = self.hash(b"slot", &[&(position as u64).to_be_bytes(), document]);
        URL_SAFE_NO_PAD.encode(first::<SLOT_BYTES>(&hash))
    }

    /// All parts but the last have one length for each purpose.
    fn hash(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(purpose);
        mac.update(&[0]);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for DuelSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuelSecrets").finish_non_exhaustive()
    }
}

fn first<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|index| hash[index])
}
