//! A `duel_id` is accepted exactly if the service signed it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use interleaving::{CreditSheet, CreditSlot, Team};
use rankduel_engine::tokens::duel_token::{DuelId, DuelToken};
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_engine::tokens::page_payload::PagePayload;
use rankduel_store::SigningKey;
use rankduel_store::audience::Audience;

use super::bytes::Bytes;

/// From this time on, key 9 signs new tokens; before it, key 7.
const CHANGED_AT: i64 = 1_790_000_000_000;

struct Scene {
    keys: SigningKeySet,
    /// Signed tokens, each with the content that it must decode to.
    signed: Vec<(String, DuelId)>,
    session: String,
}

static SCENE: LazyLock<Scene> = LazyLock::new(|| {
    let key =
        |id, active_from| SigningKey { id, secret: [id as u8; 32], created_at: 0, active_from };
    let keys = SigningKeySet::new(&[key(7, 0), key(9, CHANGED_AT)]).expect("keys");
    let mut signed = Vec::new();
    for (key, issued_at) in [(7, CHANGED_AT - 1), (9, CHANGED_AT), (9, i64::MAX), (7, i64::MIN)] {
        let duel = DuelToken { issued_at, ..TOKEN };
        signed.push((keys.sign(&duel), DuelId { duel, key, page: None }));
        let shown = Some(shown());
        let page = keys.seal(key, &duel, shown.as_ref().expect("a page")).expect("a key");
        signed.push((page, DuelId { duel, key, page: shown }));
    }
    let session = keys.seal_session(b"who and until when", CHANGED_AT);
    Scene { keys, signed, session }
});

const TOKEN: DuelToken = DuelToken {
    experiment: 1,
    first: 0,
    second: 1,
    first_left: true,
    batch: Some(3),
    ticket: 9,
    chosen_at: 100,
    issued_at: 0,
    audience: Audience { unit: None, segment: None },
    expires_at: CHANGED_AT + 60_000,
    nonce: 77,
};

fn shown() -> PagePayload {
    let slot = |team| CreditSlot { ranks: [1, 2], team: Some(team), competitive: true };
    let slots = [Team::Left, Team::Right].map(slot).to_vec();
    let sheet = CreditSheet { depths: [2, 2], informative: true, fell_back: false, slots };
    PagePayload { method: 1, sheet, documents: vec![[7; 5], [8; 5]] }
}

/// The first byte selects how the rest becomes a token: as its text, as its bytes before base64, as
/// edits of a signed token, or as the content of a token to sign.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    match bytes.below(4) {
        0 => {
            if let Ok(text) = std::str::from_utf8(bytes.0) {
                refused_or_signed(text);
            }
        }
        1 => refused_or_signed(&URL_SAFE_NO_PAD.encode(bytes.0)),
        2 => edited(bytes),
        _ => signed_anew(bytes.0),
    }
}

/// Some signed texts, for callers that feed damaged ones.
#[allow(dead_code, reason = "only the tests call it; libFuzzer makes its own inputs")]
pub fn known() -> Vec<String> {
    SCENE.signed.iter().map(|(text, _)| text.clone()).chain([SCENE.session.clone()]).collect()
}

/// Check that `text` opens exactly if it was signed, byte for byte.
pub fn refused_or_signed(text: &str) {
    let Scene { keys, signed, session } = &*SCENE;
    let known = signed.iter().find(|(known, _)| known == text);
    match (keys.open(text), known) {
        (Ok(read), Some((_, meant))) => assert_eq!(read, *meant),
        (Ok(read), None) => panic!("{text} was never signed, but opens as {read:?}"),
        (Err(error), Some(_)) => panic!("{text} was signed, but is refused: {error}"),
        (Err(error), None) => assert!(!error.to_string().is_empty()),
    }
    assert_eq!(keys.open_session(text).is_some(), text == session, "{text}");
}

/// Apply edits of three bytes each to a signed token: the place, the kind of edit, and its operand.
fn edited(mut bytes: Bytes<'_>) {
    let (text, _) = &SCENE.signed[bytes.below(SCENE.signed.len())];
    let mut token = URL_SAFE_NO_PAD.decode(text).expect("base64");
    while !bytes.is_empty() {
        let (place, how, with) = (usize::from(bytes.byte()), bytes.below(4), bytes.byte());
        let at = place % (token.len() + 1);
        match how {
            0 if at < token.len() => token[at] ^= with,
            1 => token.insert(at, with),
            2 if at < token.len() => drop(token.remove(at)),
            _ => token.truncate(at.max(1)),
        }
    }
    refused_or_signed(&URL_SAFE_NO_PAD.encode(token));
}

/// Sign a token, or a token and a page, with any content. It must decode to the same content, under
/// the key that was active at its time.
fn signed_anew(content: &[u8]) {
    let keys = &SCENE.keys;
    let Ok((duel, rest)) = postcard::take_from_bytes::<DuelToken>(content) else { return };
    let key = if duel.issued_at >= CHANGED_AT { 9 } else { 7 };
    assert_eq!(keys.key_of(&duel), key);
    assert_eq!(keys.open(&keys.sign(&duel)), Ok(DuelId { duel, key, page: None }));
    let Ok(shown) = postcard::from_bytes::<PagePayload>(rest) else { return };
    let page = keys.seal(key, &duel, &shown).expect("a key");
    if shown.is_sound() && page.len() <= 20_000 {
        assert_eq!(keys.open(&page), Ok(DuelId { duel, key, page: Some(shown) }));
    } else {
        assert!(keys.open(&page).is_err(), "{shown:?} is not sound");
    }
}
