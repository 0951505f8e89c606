//! Browser sessions, and the tokens of their forms, sealed with the keys that sign duels.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;

use crate::tokens::key_set::{MAX_TEXT_BYTES, SigningKeySet};

const SESSION_TAG_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 4;

impl SigningKeySet {
    /// A browser session as text, in base64url: key id (4 bytes, big endian), `content`, and
    /// HMAC-SHA-256 over a separate domain string and both.
    pub fn seal_session(&self, content: &[u8], now_ms: i64) -> String {
        let key = self.active_at(now_ms);
        let mut bytes = key.id.to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        let mut mac = key.session_mac.clone();
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The content of a session that one of the keys sealed.
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

    /// A token for the forms of a visitor, in base64url: key id, and HMAC-SHA-256 over a separate
    /// domain string and `visitor`. A page of another site cannot read it.
    pub fn form_token(&self, visitor: &[u8], now_ms: i64) -> String {
        let key = self.active_at(now_ms);
        let mut mac = key.form_mac.clone();
        mac.update(visitor);
        let tag = mac.finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&key.id.to_be_bytes()[..], &tag[..]].concat())
    }

    /// Whether one of the keys made this token for `visitor`.
    pub fn is_form_token(&self, text: &str, visitor: &[u8]) -> bool {
        if text.len() > 2 * (KEY_ID_BYTES + SESSION_TAG_BYTES) {
            return false;
        }
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else { return false };
        let Some((id, tag)) = bytes.split_first_chunk::<KEY_ID_BYTES>() else { return false };
        let id = u32::from_be_bytes(*id);
        self.keys.iter().filter(|key| key.id == id).any(|key| {
            let mut mac = key.form_mac.clone();
            mac.update(visitor);
            mac.verify_slice(tag).is_ok()
        })
    }
}
