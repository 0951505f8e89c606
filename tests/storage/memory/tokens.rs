//! Signed duel ids, sealed pages and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use interleaving::{CreditSheet, CreditSlot, Team};

use rankduel_engine::tokens::duel_token::{DuelId, DuelToken, TokenError};
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_engine::tokens::page_payload::{DuelSecrets, PagePayload, slot_token};
use rankduel_store::SigningKey;
use rankduel_store::audience::{Audience, Segment};

/// Bytes of the tag of a sealed page.
const TAG_BYTES: usize = 16;

fn key_set(secret: u8) -> SigningKeySet {
    SigningKeySet::new(&[SigningKey { id: 7, secret: [secret; 32], created_at: 0, active_from: 0 }])
        .expect("one key")
}

#[test]
fn a_sealed_session_can_be_opened_and_no_other_text_can() {
    let keys = key_set(1);
    let sealed = keys.seal_session(b"who and until when", 0);
    assert_eq!(keys.open_session(&sealed).as_deref(), Some(&b"who and until when"[..]));
    assert_eq!(key_set(2).open_session(&sealed), None);
    let duel = keys.sign(&token());
    for other in ["", "AAAA", &duel, &sealed[1..], &format!("{sealed}A")] {
        assert_eq!(keys.open_session(other), None, "{other}");
    }
    assert!(keys.verify(&sealed).is_err(), "a session is not a duel");
    for at in 0..sealed.len() {
        let mut changed = sealed.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert_eq!(keys.open_session(std::str::from_utf8(&changed).unwrap()), None, "at {at}");
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
        audience: Audience { unit: Some(u64::MAX), segment: None },
    }
}

#[test]
fn a_signed_token_can_be_read() {
    let segment = |name: &str| Segment::try_from(name).expect("a segment");
    let segments = ["a", "abcdefgh", "mobile", "zürich", &"x".repeat(32)].map(segment);
    for segment in [None].into_iter().chain(segments.map(Some)) {
        for unit in [None, Some(0), Some(u64::MAX)] {
            let token = DuelToken { audience: Audience { unit, segment }, ..token() };
            assert_eq!(key_set(1).verify(&key_set(1).sign(&token)), Ok(token));
        }
    }
}

fn page(teams: &[Team]) -> PagePayload {
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
fn a_sealed_page_can_be_read_and_every_change_is_detected() {
    let (keys, sealed_page) = (key_set(1), page(&[Team::Left, Team::Both, Team::Right]));
    let text = keys.seal(7, &token(), &sealed_page).expect("a known key");
    let read = DuelId { duel: token(), key: 7, page: Some(sealed_page) };
    assert_eq!(keys.open(&text), Ok(read));
    assert_eq!(keys.verify(&text), Ok(token()));
    assert_eq!(key_set(2).open(&text), Err(TokenError::Forged));
    let bytes = URL_SAFE_NO_PAD.decode(&text).expect("base64url");
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(
            keys.open(&URL_SAFE_NO_PAD.encode(changed)).is_err(),
            "bit {bit} flipped was accepted"
        );
    }
    for length in 0..text.len() {
        assert!(keys.open(&text[..length]).is_err(), "{length} characters were accepted");
    }
}

/// All pages of a duel have the same nonce. A plain stream cipher would show where they differ.
#[test]
fn two_pages_of_one_duel_share_no_key_stream() {
    let keys = key_set(1);
    let [one, other] = [Team::Left, Team::Right].map(|last| {
        let mut teams = [Team::Left; 40];
        teams[39] = last;
        let text = keys.seal(7, &token(), &page(&teams)).expect("a known key");
        URL_SAFE_NO_PAD.decode(text).expect("base64url")
    });
    let reference = postcard::to_stdvec(&page(&[Team::Left; 40])).expect("plain numbers").len();
    let start = one.len() - TAG_BYTES - reference;
    let same = one.iter().zip(&other).skip(start).filter(|(one, other)| one == other).count();
    assert!(same < reference / 8, "{same} of {reference} bytes are the same");
    assert_eq!(one[..start], other[..start]);
}

#[test]
fn each_duel_has_its_own_secrets() {
    let secrets = |secret, nonce| key_set(secret).secrets(7, nonce).expect("a known key");
    let of = |secrets: DuelSecrets| {
        let name = secrets.document("d");
        (secrets.seed(), name, slot_token(0, &name), slot_token(1, &name), secrets.document("e"))
    };
    let one = of(secrets(1, 5));
    assert_eq!(one, of(secrets(1, 5)));
    for other in [of(secrets(2, 5)), of(secrets(1, 6))] {
        assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
    }
    assert!(one.2 != one.3 && one.1 != one.4);
}

#[test]
fn a_token_of_a_removed_key_has_its_own_error() {
    let other =
        SigningKeySet::new(&[SigningKey { id: 8, secret: [1; 32], created_at: 0, active_from: 0 }])
            .expect("one key");
    assert_eq!(other.verify(&key_set(1).sign(&token())), Err(TokenError::UnknownKey));
}

#[test]
fn a_key_signs_from_its_time_and_verifies_before() {
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
