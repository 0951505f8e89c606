//! The page of a duel as its `duel_id` carries it: the credit sheet, and a short name for each
//! document. With these, clicks can be given as positions, document ids or slot tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use interleaving::{CreditSheet, MAX_DEPTH, MAX_DOCUMENTS};
use rankduel_store::Nonce;

/// Bytes of a slot token.
const SLOT_BYTES: usize = 9;

/// A keyed hash of a document id. Among pages of a thousand documents, one in two million has two
/// documents of the same name.
pub type DocumentName = [u8; 5];

/// The name of a document in all pages of an experiment that orders decide, whose seed this is.
pub fn document_of_experiment(seed: u64, id: &str) -> DocumentName {
    let mut hash = Sha256::new();
    hash.update(b"rankduel document\0");
    hash.update(seed.to_be_bytes());
    hash.update(id.as_bytes());
    first(&hash.finalize().into())
}

/// The shown list, from its first position to the last one of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagePayload {
    /// Version of the method.
    pub method: u32,
    /// The credit sheet.
    pub sheet: CreditSheet,
    /// The documents, by position.
    pub documents: Vec<DocumentName>,
}

impl PagePayload {
    /// Whether its parts are consistent. The parts of a decoded payload may not be.
    pub fn is_sound(&self) -> bool {
        self.documents.len() == self.sheet.slots.len() && sheet_is_sound(&self.sheet)
    }
}

/// Whether the sheet is within the limits of pages, which bound the time of crediting it.
pub(crate) fn sheet_is_sound(sheet: &CreditSheet) -> bool {
    sheet.slots.len() <= MAX_DEPTH
        && sheet.depths.iter().all(|&depth| depth as usize <= MAX_DOCUMENTS)
}

/// A credit sheet as the log keeps it.
pub fn sheet_to_text(sheet: &CreditSheet) -> String {
    let bytes =
        postcard::to_stdvec(sheet).expect("numbers, flags and vectors of them always serialise");
    STANDARD_NO_PAD.encode(bytes)
}

/// A credit sheet from the log; `None` if the text is invalid.
pub fn sheet_from_text(text: &str) -> Option<CreditSheet> {
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    postcard::from_bytes(&bytes).ok().filter(sheet_is_sound)
}

/// Secrets of one duel, derived from the signing key: the seed of its page, and the names of its
/// documents.
#[derive(Clone)]
pub struct DuelSecrets {
    mac: Hmac<Sha256>,
    /// The seed of the experiment, if orders decide it: its documents have the same names on all
    /// pages.
    names: Option<u64>,
}

impl DuelSecrets {
    /// The secrets of the duel with this nonce. `mac` must be keyed for this purpose only.
    pub(crate) fn new(mac: &Hmac<Sha256>, nonce: Nonce) -> Self {
        let mut mac = mac.clone();
        mac.update(&nonce.to_be_bytes());
        Self { mac, names: None }
    }

    /// The same with the names of documents of all pages, if the experiment has some: its seed.
    pub fn with_names(self, names: Option<u64>) -> Self {
        Self { names, ..self }
    }

    /// The seed of random choices for its page.
    pub fn seed(&self) -> [u8; 32] {
        self.hash(b"seed", &[])
    }

    /// The name of a document.
    pub fn document(&self, id: &str) -> DocumentName {
        match self.names {
            Some(seed) => document_of_experiment(seed, id),
            None => first(&self.hash(b"document", &[id.as_bytes()])),
        }
    }

    /// Unambiguous because, for each purpose, all parts but the last have a fixed length.
    fn hash(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(purpose);
        mac.update(&[0]);
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

/// The token of a slot, the same on every page of the duel. It says no more than the position and
/// the document, which the caller knows; the name of the document is secret to the duel.
pub fn slot_token(position: u32, document: &DocumentName) -> String {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..4].copy_from_slice(&position.to_be_bytes());
    bytes[4..].copy_from_slice(document);
    URL_SAFE_NO_PAD.encode(bytes)
}

impl std::fmt::Debug for DuelSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuelSecrets").finish_non_exhaustive()
    }
}

fn first<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    std::array::from_fn(|index| hash[index])
}
