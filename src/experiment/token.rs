//! The `duel_id`: a signed token that carries everything about a duel, so that issuing one writes nothing.
//!
//! Layout before base64url without padding: `version (1 byte) · key id (4 bytes, big endian) · body (postcard of
//! [`DuelToken`]) · tag (16 bytes)`. The tag is HMAC-SHA-256 over a domain string and everything before it, cut to
//! 128 bits. A token outlives a deploy: a new layout gets a new version, and old versions stay readable.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::store::{ExperimentId, Nonce, SigningKey};

const VERSION: u8 = 1;
const DOMAIN: &[u8] = b"rankduel duel token\0";
const SESSION_DOMAIN: &[u8] = b"rankduel session\0";
const TAG_BYTES: usize = 16;
const SESSION_TAG_BYTES: usize = 32;
const HEADER_BYTES: usize = 5;
/// Longer than any token this program writes; longer ones are not even decoded.
const MAX_TEXT_BYTES: usize = 512;

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
    #[error("its signature does not fit: it was not issued by this service, or was changed on the way")]
    Forged,
}

/// The keys that duels are signed and checked with.
#[derive(Clone)]
pub struct Keyring {
    /// The one that signs from the latest time on first.
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: u32,
    active_from: i64,
    mac: Hmac<Sha256>,
    session_mac: Hmac<Sha256>,
}

impl Keyring {
    /// A ring of these keys. `None` without a key.
    pub fn new(keys: &[SigningKey]) -> Option<Self> {
        let mut keys: Vec<_> = keys
            .iter()
            .filter_map(|key| {
                let mut mac = Hmac::<Sha256>::new_from_slice(&key.secret).ok()?;
                let mut session_mac = mac.clone();
                mac.update(DOMAIN);
                session_mac.update(SESSION_DOMAIN);
                Some(Key { id: key.id, active_from: key.active_from, mac, session_mac })
            })
            .collect();
        keys.sort_by_key(|key| std::cmp::Reverse((key.active_from, key.id)));
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The token as text, signed with the newest key that is active when it is issued; with the oldest of all where a
    /// clock says that none is yet.
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

    /// A browser's session as text: key id (4 bytes, big endian), `content`, HMAC-SHA-256 over a domain string of its own
    /// and both, in base64url.
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

    /// The token that `text` is, if it was signed with one of the keys.
    pub fn verify(&self, text: &str) -> Result<DuelToken, TokenError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenError::Malformed);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| TokenError::Malformed)?;
        if bytes.len() < HEADER_BYTES + TAG_BYTES || bytes[0] != VERSION {
            return Err(TokenError::Malformed);
        }
        let (signed, tag) = bytes.split_at(bytes.len() - TAG_BYTES);
        let (header, body) = signed.split_at(HEADER_BYTES);
        let key_id = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let key = self.keys.iter().find(|key| key.id == key_id).ok_or(TokenError::UnknownKey)?;
        let mut mac = key.mac.clone();
        mac.update(signed);
        mac.verify_truncated_left(tag).map_err(|_| TokenError::Forged)?;
        postcard::from_bytes(body).map_err(|_| TokenError::Malformed)
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(secret: u8) -> Keyring {
        Keyring::new(&[SigningKey { id: 7, secret: [secret; 32], created_at: 0, active_from: 0 }])
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
                assert!(keyring(1).verify(&changed).is_err(), "character {index} changed was accepted");
            }
        }
    }

    #[test]
    fn another_key_under_the_same_number_is_refused() {
        assert_eq!(keyring(2).verify(&keyring(1).sign(&token())), Err(TokenError::Forged));
    }

    #[test]
    fn a_token_of_a_key_that_left_is_named_so() {
        let other = Keyring::new(&[SigningKey { id: 8, secret: [1; 32], created_at: 0, active_from: 0 }])
            .expect("one key");
        assert_eq!(other.verify(&keyring(1).sign(&token())), Err(TokenError::UnknownKey));
    }

    #[test]
    fn older_keys_still_verify() {
        let newer = SigningKey { id: 9, secret: [9; 32], created_at: 1, active_from: 1 };
        let older = SigningKey { id: 7, secret: [1; 32], created_at: 0, active_from: 0 };
        let ring = Keyring::new(&[newer, older]).expect("two keys");
        assert_eq!(ring.verify(&keyring(1).sign(&token())), Ok(token()));
    }

    #[test]
    fn a_key_signs_from_its_time_on_and_verifies_before() {
        let older = SigningKey { id: 7, secret: [1; 32], created_at: 0, active_from: 0 };
        let newer = SigningKey { id: 3, secret: [9; 32], created_at: 5, active_from: 1000 };
        let both = Keyring::new(&[older.clone(), newer.clone()]).expect("two keys");
        let (only_older, only_newer) = (Keyring::new(&[older]).unwrap(), Keyring::new(&[newer]).unwrap());
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
            assert!(keyring(1).verify(&text[..length]).is_err(), "{length} characters were accepted");
        }
    }
}
