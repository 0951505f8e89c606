//! Signing and verifying `duel_id`s.
//!
//! Layout before base64url without padding: `version (1 byte) · key id (4 bytes, big endian) · body
//! (postcard of [`DuelToken`]) · tag (16 bytes)`. The tag is HMAC-SHA-256 over a domain string and
//! everything before it, truncated to 128 bits. A token outlives a deployment: a new layout gets a
//! new version, and released versions stay readable.
//!
//! Version 2 is a duel that the service interleaved: `version · key id · length of the body (1
//! byte) · body · sealed`. `sealed` is the postcard of [`PagePayload`] under AES-256-GCM-SIV (RFC
//! 8452), with everything before it as associated data. So a caller cannot read which ranker a slot
//! belongs to, or change any of it. The nonce is the nonce of the duel. The key stream also depends
//! on the plaintext, so two pages of one duel do not share it.

use aes_gcm_siv::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce as AeadNonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::tokens::duel_token::{DuelId, DuelToken, TOKEN_BYTES, TokenError};
use crate::tokens::page_payload::{DuelSecrets, PagePayload};
use rankduel_store::{Nonce, SigningKey};

const VERSION: u8 = 1;
const PAGE_VERSION: u8 = 2;
const DOMAIN: &[u8] = b"rankduel duel token\0";
const SESSION_DOMAIN: &[u8] = b"rankduel session\0";
const FORM_DOMAIN: &[u8] = b"rankduel form\0";
const PAGE_DOMAIN: &[u8] = b"rankduel page\0";
const SHEET_DOMAIN: &[u8] = b"rankduel sheet\0";
/// Domains are padded to a block of the hash, so that each is hashed once, with its key.
const BLOCK_BYTES: usize = 64;
pub(super) const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = 5;
/// Longer than any token that this program writes; longer texts are not decoded.
pub(super) const MAX_TEXT_BYTES: usize = 20_000;

/// The keys that sign and verify duels.
#[derive(Clone)]
pub struct SigningKeySet {
    /// In descending order of the time from which they sign.
    pub(super) keys: Vec<Key>,
}

#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: u32,
    active_from: i64,
    mac: Hmac<Sha256>,
    pub(super) session_mac: Hmac<Sha256>,
    pub(super) form_mac: Hmac<Sha256>,
    page: Hmac<Sha256>,
    sheet: Aes256GcmSiv,
}

impl SigningKeySet {
    /// A set of these keys; `None` if there are none.
    pub fn new(keys: &[SigningKey]) -> Option<Self> {
        let mut keys: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let keyed = |domain: &[u8]| {
                    let mut mac = Hmac::<Sha256>::new_from_slice(&key.secret).ok()?;
                    let mut block = [0; BLOCK_BYTES];
                    block[..domain.len()].copy_from_slice(domain);
                    mac.update(&block);
                    Some(mac)
                };
                let sheet = keyed(SHEET_DOMAIN)?.finalize().into_bytes();
                Some(Key {
                    id: key.id,
                    active_from: key.active_from,
                    mac: keyed(DOMAIN)?,
                    session_mac: keyed(SESSION_DOMAIN)?,
                    form_mac: keyed(FORM_DOMAIN)?,
                    page: keyed(PAGE_DOMAIN)?,
                    sheet: Aes256GcmSiv::new_from_slice(&sheet).ok()?,
                })
            })
            .collect();
        keys.sort_by_key(|key| std::cmp::Reverse((key.active_from, key.id)));
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The token as text, signed with the newest key that is active when it is issued. If the clock
    /// is before the time of all keys, the oldest key signs.
    pub fn sign(&self, token: &DuelToken) -> String {
        let Key { id: key_id, mac, .. } = self.active_at(token.issued_at);
        let mut bytes = [0; HEADER_BYTES + TOKEN_BYTES + TAG_BYTES];
        bytes[0] = VERSION;
        bytes[1..HEADER_BYTES].copy_from_slice(&key_id.to_be_bytes());
        let body = token.write(&mut bytes[HEADER_BYTES..]).expect("numbers always serialise");
        let end = HEADER_BYTES + body.len();
        let mut mac = mac.clone();
        mac.update(&bytes[..end]);
        bytes[end..end + TAG_BYTES].copy_from_slice(&mac.finalize().into_bytes()[..TAG_BYTES]);
        URL_SAFE_NO_PAD.encode(&bytes[..end + TAG_BYTES])
    }

    pub(super) fn active_at(&self, now_ms: i64) -> &Key {
        let active = self.keys.iter().find(|key| key.active_from <= now_ms);
        active.unwrap_or(&self.keys[self.keys.len() - 1])
    }

    /// Number of the key that signs the token.
    pub fn key_of(&self, token: &DuelToken) -> u32 {
        self.active_at(token.issued_at).id
    }

    fn key(&self, id: u32) -> Result<&Key, TokenError> {
        self.keys.iter().find(|key| key.id == id).ok_or(TokenError::UnknownKey)
    }

    /// Signs the token and encrypts its page, with key `id`. Pass the key of the `duel_id` in the
    /// request for the page, so that all pages of a duel have the same secrets.
    pub fn seal(
        &self,
        id: u32,
        token: &DuelToken,
        page: &PagePayload,
    ) -> Result<String, TokenError> {
        let mut body = [0; TOKEN_BYTES];
        let body = token.write(&mut body).map_err(|_| TokenError::Malformed)?;
        let page = postcard::to_stdvec(page).map_err(|_| TokenError::Malformed)?;
        let mut bytes = vec![PAGE_VERSION];
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.push(u8::try_from(body.len()).map_err(|_| TokenError::Malformed)?);
        bytes.extend_from_slice(body);
        let payload = Payload { msg: &page, aad: &bytes };
        let sealed = self
            .key(id)?
            .sheet
            .encrypt(&aead_nonce(token.nonce), payload)
            .map_err(|_| TokenError::Malformed)?;
        bytes.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Secrets of the duel with this nonce, under key `id`.
    pub fn secrets(&self, id: u32, nonce: Nonce) -> Result<DuelSecrets, TokenError> {
        Ok(DuelSecrets::new(&self.key(id)?.page, nonce))
    }

    /// The token in `text`, if one of the keys signed it.
    pub fn verify(&self, text: &str) -> Result<DuelToken, TokenError> {
        self.open(text).map(|read| read.duel)
    }

    /// The token and the page in `text`, if one of the keys signed it.
    pub fn open(&self, text: &str) -> Result<DuelId, TokenError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenError::Malformed);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)?;
        if bytes.len() < HEADER_BYTES + TAG_BYTES || ![VERSION, PAGE_VERSION].contains(&bytes[0]) {
            return Err(TokenError::Malformed);
        }
        let key = self.key(u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]))?;
        let (duel, page) = if bytes[0] == VERSION {
            (key.signed(&bytes)?, None)
        } else {
            let (duel, page) = key.sealed(&bytes)?;
            (duel, Some(page))
        };
        Ok(DuelId { duel, key: key.id, page })
    }
}

impl Key {
    /// The content of a token of [`VERSION`] that is at least as long as its header and tag.
    fn signed(&self, bytes: &[u8]) -> Result<DuelToken, TokenError> {
        let (signed, tag) = bytes.split_at(bytes.len() - TAG_BYTES);
        let mut mac = self.mac.clone();
        mac.update(signed);
        mac.verify_truncated_left(tag).map_err(|_| TokenError::Forged)?;
        DuelToken::read(&signed[HEADER_BYTES..]).ok_or(TokenError::Malformed)
    }

    /// The content of a token of [`PAGE_VERSION`] that is at least as long as its header and tag.
    fn sealed(&self, bytes: &[u8]) -> Result<(DuelToken, PagePayload), TokenError> {
        let body_end = HEADER_BYTES + 1 + usize::from(bytes[HEADER_BYTES]);
        let (before, sealed) = bytes.split_at_checked(body_end).ok_or(TokenError::Malformed)?;
        // not authenticated yet; the tag authenticates it below
        let duel = DuelToken::read(&before[HEADER_BYTES + 1..]).ok_or(TokenError::Malformed)?;
        let payload = Payload { msg: sealed, aad: before };
        let opened =
            self.sheet.decrypt(&aead_nonce(duel.nonce), payload).map_err(|_| TokenError::Forged)?;
        let page: PagePayload = postcard::from_bytes(&opened).map_err(|_| TokenError::Malformed)?;
        if page.is_sound() { Ok((duel, page)) } else { Err(TokenError::Malformed) }
    }
}

/// The last 12 bytes of the nonce of a duel. They differ between the duels of a process, and the
/// whole duel is authenticated data.
fn aead_nonce(nonce: Nonce) -> AeadNonce {
    let bytes = nonce.to_be_bytes();
    AeadNonce::from(std::array::from_fn::<u8, 12, _>(|index| bytes[index + 4]))
}

impl std::fmt::Debug for SigningKeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}
