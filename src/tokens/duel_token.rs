//! The `duel_id`: a signed token that carries everything about a duel, so that issuing one writes
//! nothing.
//!
//! Layout before base64url without padding: `version (1 byte) · key id (4 bytes, big endian) · body
//! (postcard of [`DuelToken`]) · tag (16 bytes)`. The tag is HMAC-SHA-256 over a domain string and
//! everything before it, cut to 128 bits. A token outlives a deploy: a new layout gets a new
//! version, and old versions stay readable.
//!
//! Version 2 is of a duel that the service has interleaved: `version · key id · length of the body
//! (1 byte) · body · sealed`. `sealed` is the postcard of [`Shown`] under AES-256-GCM-SIV (RFC
//! 8452), with everything before it as the associated data, so that nobody can read whose slot is
//! whose, or change any of it. The nonce is the duel's; the key stream depends on what is encrypted
//! as well, so that two pages of one duel do not share one.

use aes_gcm_siv::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Nonce as AeadNonce};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::{ExperimentId, Nonce, SigningKey};
use crate::tokens::page_payload::{DuelSecrets, PagePayload};

const VERSION: u8 = 1;
const PAGE_VERSION: u8 = 2;
const DOMAIN: &[u8] = b"rankduel duel token\0";
const SESSION_DOMAIN: &[u8] = b"rankduel session\0";
const PAGE_DOMAIN: &[u8] = b"rankduel page\0";
const SHEET_DOMAIN: &[u8] = b"rankduel sheet\0";
const TAG_BYTES: usize = 16;
const SESSION_TAG_BYTES: usize = 32;
const HEADER_BYTES: usize = 5;
/// Longer than any token this program writes; longer ones are not even decoded.
const MAX_TEXT_BYTES: usize = 20_000;

/// What a duel's id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuelToken {
    /// Which experiment issued it.
    pub experiment: ExperimentId,
    /// First ranker of the ordered pair.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Whether the first is shown left.
    pub first_left: bool,
    /// The batch it belongs to.
    pub batch: Option<u32>,
    /// What the policy wants to remember of its selection.
    pub ticket: u64,
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// Unix milliseconds.
    pub issued_at: i64,
    /// Unix milliseconds; feedback after that is refused.
    pub expires_at: i64,
    /// Names the duel; high half: the process that issued it, low half: its running number.
    pub nonce: Nonce,
}

/// A `duel_id` that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct DuelId {
    /// The duel.
    pub duel: DuelToken,
    /// Number of the key that it was signed with.
    pub key: u32,
    /// What was shown, where the service has interleaved it.
    pub shown: Option<PagePayload>,
}

/// Why a `duel_id` is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not base64url, too short, too long, or of an unknown version.
    #[error("it is not a duel id: send the `duel_id` of `next-duel` back unchanged")]
    Malformed,
    /// Signed with a key that this service does not have.
    #[error("it was signed with a key that this service does not have")]
    UnknownKey,
    /// The signature does not fit.
    #[error(
        "its signature does not fit: it was not issued by this service, or was changed on the way"
    )]
    Forged,
}

/// The keys that duels are signed and checked with.
#[derive(Clone)]
pub struct SigningKeySet {
    /// The one that signs from the latest time on first.
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: u32,
    active_from: i64,
    mac: Hmac<Sha256>,
    session_mac: Hmac<Sha256>,
    page: Hmac<Sha256>,
    sheet: Aes256GcmSiv,
}

impl SigningKeySet {
    /// A ring of these keys. `None` without a key.
    pub fn new(keys: &[SigningKey]) -> Option<Self> {
        let mut keys: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let keyed = |domain: &[u8]| {
                    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(&key.secret).ok()?;
                    mac.update(domain);
                    Some(mac)
                };
                let sheet = keyed(SHEET_DOMAIN)?.finalize().into_bytes();
                Some(Key {
                    id: key.id,
                    active_from: key.active_from,
                    mac: keyed(DOMAIN)?,
                    session_mac: keyed(SESSION_DOMAIN)?,
                    page: keyed(PAGE_DOMAIN)?,
                    sheet: Aes256GcmSiv::new_from_slice(&sheet).ok()?,
                })
            })
            .collect();
        keys.sort_by_key(|key| std::cmp::Reverse((key.active_from, key.id)));
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The token as text, signed with the newest key that is active when it is issued; with the
    /// oldest of all where a clock says that none is yet.
    pub fn sign(&self, token: &DuelToken) -> String {
        let Key { id: key_id, mac, .. } = self.active_at(token.issued_at);
        let mut bytes = Vec::with_capacity(96);
        bytes.push(VERSION);
        bytes.extend_from_slice(&key_id.to_be_bytes());
        let mut bytes = postcard::to_extend(token, bytes).expect("plain numbers always serialise");
        let mut mac = mac.clone();
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes()[..TAG_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn active_at(&self, now_ms: i64) -> &Key {
        let active = self.keys.iter().find(|key| key.active_from <= now_ms);
        active.unwrap_or(&self.keys[self.keys.len() - 1])
    }

    /// A browser's session as text: key id (4 bytes, big endian), `content`, HMAC-SHA-256 over a
    /// domain string of its own and both, in base64url.
    pub fn seal_session(&self, content: &[u8], now_ms: i64) -> String {
        let key = self.active_at(now_ms);
        let mut bytes = key.id.to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        let mut mac = key.session_mac.clone();
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The content that `text` was made of with one of the keys.
    pub fn open_session(&self, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, tag) = bytes.split_at_checked(bytes.len().checked_sub(SESSION_TAG_BYTES)?)?;
        let (id, content) = signed.split_first_chunk()?;
        let id = u32::from_be_bytes(*id);
        let mut mac = self.keys.iter().find(|key| key.id == id)?.session_mac.clone();
        mac.update(signed);
        mac.verify_slice(tag).ok()?;
        Some(content.to_vec())
    }

    /// Number of the key that the token is signed with now.
    pub fn key_of(&self, token: &DuelToken) -> u32 {
        self.active_at(token.issued_at).id
    }

    fn key(&self, id: u32) -> Result<&Key, TokenError> {
        self.keys.iter().find(|key| key.id == id).ok_or(TokenError::UnknownKey)
    }

    /// The token and what was shown for it as text, under key `id`: that of the `duel_id` that the
    /// page was asked for with, so that all pages of a duel have the same secrets.
    pub fn seal(
        &self,
        id: u32,
        token: &DuelToken,
        shown: &PagePayload,
    ) -> Result<String, TokenError> {
        let body = postcard::to_stdvec(token).map_err(|_| TokenError::Malformed)?;
        let shown = postcard::to_stdvec(shown).map_err(|_| TokenError::Malformed)?;
        let mut bytes = vec![PAGE_VERSION];
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.push(u8::try_from(body.len()).map_err(|_| TokenError::Malformed)?);
        bytes.extend_from_slice(&body);
        let payload = Payload { msg: &shown, aad: &bytes };
        let sealed = self
            .key(id)?
            .sheet
            .encrypt(&aead_nonce(token.nonce), payload)
            .map_err(|_| TokenError::Malformed)?;
        bytes.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// What only those who have key `id` can know of the duel with this nonce.
    pub fn secrets(&self, id: u32, nonce: Nonce) -> Result<DuelSecrets, TokenError> {
        Ok(DuelSecrets::new(&self.key(id)?.page, nonce))
    }

    /// The token that `text` is, if it was signed with one of the keys.
    pub fn verify(&self, text: &str) -> Result<DuelToken, TokenError> {
        self.open(text).map(|read| read.duel)
    }

    /// The token that `text` is and what was shown for it, if it was signed with one of the keys.
    pub fn open(&self, text: &str) -> Result<DuelId, TokenError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenError::Malformed);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)?;
        if bytes.len() < HEADER_BYTES + TAG_BYTES || ![VERSION, PAGE_VERSION].contains(&bytes[0]) {
            return Err(TokenError::Malformed);
        }
        let key = self.key(u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]))?;
        let (duel, shown) = if bytes[0] == VERSION {
            (key.signed(&bytes)?, None)
        } else {
            let (duel, shown) = key.sealed(&bytes)?;
            (duel, Some(shown))
        };
        Ok(DuelId { duel, key: key.id, shown })
    }
}

impl Key {
    /// The content of a token of [`VERSION`], which is as long as its header and tag at least.
    fn signed(&self, bytes: &[u8]) -> Result<DuelToken, TokenError> {
        let (signed, tag) = bytes.split_at(bytes.len() - TAG_BYTES);
        let mut mac = self.mac.clone();
        mac.update(signed);
        mac.verify_truncated_left(tag).map_err(|_| TokenError::Forged)?;
        postcard::from_bytes(&signed[HEADER_BYTES..]).map_err(|_| TokenError::Malformed)
    }

    /// The content of a token of [`PAGE_VERSION`], which is as long as its header and tag at least.
    fn sealed(&self, bytes: &[u8]) -> Result<(DuelToken, PagePayload), TokenError> {
        let body_end = HEADER_BYTES + 1 + usize::from(bytes[HEADER_BYTES]);
        let (before, sealed) = bytes.split_at_checked(body_end).ok_or(TokenError::Malformed)?;
        // made of what is not proven yet, which the tag then proves
        let duel: DuelToken =
            postcard::from_bytes(&before[HEADER_BYTES + 1..]).map_err(|_| TokenError::Malformed)?;
        let payload = Payload { msg: sealed, aad: before };
        let opened =
            self.sheet.decrypt(&aead_nonce(duel.nonce), payload).map_err(|_| TokenError::Forged)?;
        let shown: PagePayload =
            postcard::from_bytes(&opened).map_err(|_| TokenError::Malformed)?;
        if shown.is_sound() { Ok((duel, shown)) } else { Err(TokenError::Malformed) }
    }
}

/// The end of a duel's nonce, which tells the duels of a process apart. The duel is authenticated
/// whole.
fn aead_nonce(nonce: Nonce) -> AeadNonce {
    let bytes = nonce.to_be_bytes();
    AeadNonce::from(std::array::from_fn::<u8, 12, _>(|index| bytes[index + 4]))
}

impl std::fmt::Debug for SigningKeySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interleaving::{CreditSheet, CreditSlot, Team};

    fn keyring(secret: u8) -> SigningKeySet {
        SigningKeySet::new(&[SigningKey {
            id: 7,
            secret: [secret; 32],
            created_at: 0,
            active_from: 0,
        }])
        .expect("one key")
    }

    #[test]
    fn a_session_is_opened_as_it_was_sealed_and_no_other_text_is() {
        let ring = keyring(1);
        let sealed = ring.seal_session(b"who and until when", 0);
        assert_eq!(ring.open_session(&sealed).as_deref(), Some(&b"who and until when"[..]));
        assert_eq!(keyring(2).open_session(&sealed), None);
        let duel = ring.sign(&token());
        for other in ["", "AAAA", &duel, &sealed[1..], &format!("{sealed}A")] {
            assert_eq!(ring.open_session(other), None, "{other}");
        }
        assert!(ring.verify(&sealed).is_err(), "a session is no duel");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(ring.open_session(std::str::from_utf8(&changed).unwrap()), None, "at {at}");
        }
    }

    fn token() -> DuelToken {
        DuelToken {
            experiment: 42,
            first: 3,
            second: 1023,
            first_left: true,
            batch: Some(u32::MAX),
            ticket: u64::MAX,
            chosen_at: 10_000_000,
            issued_at: 1_790_000_000_000,
            expires_at: 1_790_003_600_000,
            nonce: u128::MAX,
        }
    }

    #[test]
    fn what_was_signed_is_read_back() {
        assert_eq!(keyring(1).verify(&keyring(1).sign(&token())), Ok(token()));
    }

    fn shown(teams: &[Team]) -> PagePayload {
        let slot = |&team| CreditSlot { ranks: [1, 2], team: Some(team), competitive: true };
        PagePayload {
            method: 3,
            sheet: CreditSheet {
                depths: [4, 5],
                informative: true,
                fell_back: false,
                slots: teams.iter().map(slot).collect(),
            },
            documents: teams.iter().map(|_| [7; 5]).collect(),
        }
    }

    #[test]
    fn what_was_sealed_is_read_back_and_every_change_is_noticed() {
        let (ring, shown) = (keyring(1), shown(&[Team::Left, Team::Both, Team::Right]));
        let text = ring.seal(7, &token(), &shown).expect("a known key");
        let read = DuelId { duel: token(), key: 7, shown: Some(shown) };
        assert_eq!(ring.open(&text), Ok(read));
        assert_eq!(ring.verify(&text), Ok(token()));
        assert_eq!(keyring(2).open(&text), Err(TokenError::Forged));
        let bytes = URL_SAFE_NO_PAD.decode(&text).expect("base64url");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(
                ring.open(&URL_SAFE_NO_PAD.encode(changed)).is_err(),
                "bit {bit} flipped was accepted"
            );
        }
        for length in 0..text.len() {
            assert!(ring.open(&text[..length]).is_err(), "{length} characters were accepted");
        }
    }

    /// With a nonce that is the duel's alone, a stream cipher would give away where two pages of it
    /// differ.
    #[test]
    fn two_pages_of_one_duel_share_no_key_stream() {
        let ring = keyring(1);
        let [one, other] = [Team::Left, Team::Right].map(|last| {
            let mut teams = [Team::Left; 40];
            teams[39] = last;
            let text = ring.seal(7, &token(), &shown(&teams)).expect("a known key");
            URL_SAFE_NO_PAD.decode(text).expect("base64url")
        });
        let reference =
            postcard::to_stdvec(&shown(&[Team::Left; 40])).expect("plain numbers").len();
        let start = one.len() - TAG_BYTES - reference;
        let same = one.iter().zip(&other).skip(start).filter(|(one, other)| one == other).count();
        assert!(same < reference / 8, "{same} of {reference} bytes are the same");
        assert_eq!(one[..start], other[..start]);
    }

    #[test]
    fn a_duel_has_secrets_of_its_own() {
        let secrets = |secret, nonce| keyring(secret).secrets(7, nonce).expect("a known key");
        let of = |secrets: DuelSecrets| {
            let name = secrets.document("d");
            (
                secrets.seed(),
                name,
                secrets.slot(0, &name),
                secrets.slot(1, &name),
                secrets.document("e"),
            )
        };
        let one = of(secrets(1, 5));
        assert_eq!(one, of(secrets(1, 5)));
        for other in [of(secrets(2, 5)), of(secrets(1, 6))] {
            assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
        }
        assert!(one.2 != one.3 && one.1 != one.4);
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let text = keyring(1).sign(&token());
        let bytes = URL_SAFE_NO_PAD.decode(&text).expect("base64url");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let verdict = keyring(1).verify(&URL_SAFE_NO_PAD.encode(changed));
            assert!(verdict.is_err(), "bit {bit} flipped was accepted");
        }
        // the same on the text itself, where base64 has bits that carry nothing
        for index in 0..text.len() {
            for bit in 0..7 {
                let mut changed = text.clone().into_bytes();
                changed[index] ^= 1 << bit;
                let changed = String::from_utf8(changed).expect("ASCII");
                assert!(
                    keyring(1).verify(&changed).is_err(),
                    "character {index} changed was accepted"
                );
            }
        }
    }

    #[test]
    fn another_key_under_the_same_number_is_refused() {
        assert_eq!(keyring(2).verify(&keyring(1).sign(&token())), Err(TokenError::Forged));
    }

    #[test]
    fn a_token_of_a_key_that_left_is_named_so() {
        let other = SigningKeySet::new(&[SigningKey {
            id: 8,
            secret: [1; 32],
            created_at: 0,
            active_from: 0,
        }])
        .expect("one key");
        assert_eq!(other.verify(&keyring(1).sign(&token())), Err(TokenError::UnknownKey));
    }

    #[test]
    fn older_keys_still_verify() {
        let newer = SigningKey { id: 9, secret: [9; 32], created_at: 1, active_from: 1 };
        let older = SigningKey { id: 7, secret: [1; 32], created_at: 0, active_from: 0 };
        let ring = SigningKeySet::new(&[newer, older]).expect("two keys");
        assert_eq!(ring.verify(&keyring(1).sign(&token())), Ok(token()));
    }

    #[test]
    fn a_key_signs_from_its_time_on_and_verifies_before() {
        let older = SigningKey { id: 7, secret: [1; 32], created_at: 0, active_from: 0 };
        let newer = SigningKey { id: 3, secret: [9; 32], created_at: 5, active_from: 1000 };
        let both = SigningKeySet::new(&[older.clone(), newer.clone()]).expect("two keys");
        let (only_older, only_newer) =
            (SigningKeySet::new(&[older]).unwrap(), SigningKeySet::new(&[newer]).unwrap());
        for (issued_at, signs) in
            [(-1, &only_older), (0, &only_older), (999, &only_older), (1000, &only_newer)]
        {
            let token = DuelToken { issued_at, ..token() };
            let text = both.sign(&token);
            assert_eq!(signs.verify(&text), Ok(token), "issued at {issued_at}");
            assert_eq!(both.verify(&text), Ok(token));
        }
    }

    #[test]
    fn cut_and_empty_tokens_are_malformed_or_forged() {
        let text = keyring(1).sign(&token());
        for length in 0..text.len() {
            assert!(
                keyring(1).verify(&text[..length]).is_err(),
                "{length} characters were accepted"
            );
        }
    }
}
