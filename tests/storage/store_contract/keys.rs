//! Signing keys and API keys.

use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    a_race_creates_one_signing_key
    signing_keys_have_32_bytes_and_any_number
    signing_keys_are_added_and_removed
    api_keys_round_trip
    a_key_is_revoked_once
    a_rotation_shortens_and_never_extends_a_key
    the_last_use_of_a_key_never_moves_back
}

async fn a_race_creates_one_signing_key(database: TestDatabase) {
    let stores = [database.store().await, database.store().await];
    assert_eq!(stores[0].signing_keys().await.unwrap(), []);
    let tasks: Vec<_> = (0..8_u8)
        .map(|number| {
            let store = stores[usize::from(number) % 2].clone();
            let key = SigningKey {
                id: u32::MAX - u32::from(number),
                secret: [number; 32],
                created_at: NOW,
                active_from: NOW,
            };
            tokio::spawn(async move { store.ensure_signing_key(&key).await.unwrap() })
        })
        .collect();
    let kept = {
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        assert!(
            answers.windows(2).all(|pair| pair[0] == pair[1]),
            "all calls return the same key: {answers:?}"
        );
        answers.swap_remove(0)
    };
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0].secret,
        [(u32::MAX - kept[0].id) as u8; 32],
        "id and secret belong together"
    );
    assert_eq!(stores[0].signing_keys().await.unwrap(), kept);
}

async fn signing_keys_have_32_bytes_and_any_number(database: TestDatabase) {
    let store = database.store().await;
    let key = SigningKey {
        id: 0,
        secret: std::array::from_fn(|index| 255 - index as u8),
        created_at: i64::MIN,
        active_from: i64::MIN,
    };
    assert_eq!(store.ensure_signing_key(&key).await.unwrap(), std::slice::from_ref(&key));
    assert_eq!(store.signing_keys().await.unwrap(), std::slice::from_ref(&key));
    assert!(!format!("{key:?}").contains("255"), "a key's debug form shows no secret");
}

async fn signing_keys_are_added_and_removed(database: TestDatabase) {
    let store = database.store().await;
    let key =
        |id, active_from| SigningKey { id, secret: [id as u8; 32], created_at: NOW, active_from };
    store.ensure_signing_key(&key(1, NOW)).await.unwrap();
    store.add_signing_key(&key(3, NOW + 20), &note("added")).await.unwrap();
    store.add_signing_key(&key(2, NOW + 10), &note("added")).await.unwrap();
    assert_eq!(
        store.signing_keys().await.unwrap(),
        [key(3, NOW + 20), key(2, NOW + 10), key(1, NOW)]
    );
    assert!(
        store.add_signing_key(&key(2, NOW), &note("again")).await.is_err(),
        "an id is used once"
    );
    assert!(store.remove_signing_key(2, &note("removed")).await.unwrap());
    assert!(!store.remove_signing_key(2, &note("again")).await.unwrap());
    assert_eq!(store.signing_keys().await.unwrap(), [key(3, NOW + 20), key(1, NOW)]);
    assert_eq!(
        noted(&store).await,
        ["removed", "added", "added"],
        "only changes are in the audit log"
    );
}

async fn key(store: &SharedStore, id: &str) -> ApiKeyRecord {
    let keys = store.api_keys().await.unwrap();
    keys.into_iter().find(|key| key.id == id).expect("the key")
}

async fn api_keys_round_trip(database: TestDatabase) {
    let store = database.store().await;
    assert_eq!(store.api_keys().await.unwrap(), []);
    let full = ApiKeyRecord {
        experiments: Some(vec!["search".into(), "ads".into()]),
        replaces: Some("00000000".into()),
        expires_at: Some(NOW + 1),
        ..api_key("Søk ✓")
    };
    let reference = api_key("plain");
    for key in [&full, &reference] {
        store.add_api_key(key, None, &note_of("key-created", &key.id)).await.unwrap();
    }
    let mut wanted = vec![full.clone(), reference];
    wanted.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(store.api_keys().await.unwrap(), wanted);
    let again = ApiKeyRecord { name: "another".into(), ..full };
    let refused = store.add_api_key(&again, None, &note_of("key-created", &again.id)).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert_eq!(
        store.audit(None, i64::MAX, 10).await.unwrap().len(),
        2,
        "a failed change is not in the audit log"
    );
}

async fn a_key_is_revoked_once(database: TestDatabase) {
    let store = database.store().await;
    let one = api_key("one");
    store.add_api_key(&one, None, &note_of("key-created", &one.id)).await.unwrap();
    let revoke = async |id: &str, at| {
        store.revoke_api_key(id, at, &note_of("key-revoked", id)).await.unwrap()
    };
    assert!(revoke(&one.id, NOW + 5).await);
    assert!(!revoke(&one.id, NOW + 6).await, "it is already revoked");
    assert!(!revoke("ffffffff", NOW).await, "the key does not exist");
    assert_eq!(key(&store, &one.id).await.revoked_at, Some(NOW + 5));
    let whats: Vec<_> = store
        .audit(None, i64::MAX, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.what)
        .collect();
    assert_eq!(whats, ["key-revoked", "key-created"]);
}

async fn a_rotation_shortens_and_never_extends_a_key(database: TestDatabase) {
    let store = database.store().await;
    let for_ever = api_key("for ever");
    let short = ApiKeyRecord { expires_at: Some(NOW + 10), ..api_key("short") };
    for old in [&for_ever, &short] {
        store.add_api_key(old, None, &note_of("key-created", &old.id)).await.unwrap();
        let new = ApiKeyRecord { replaces: Some(old.id.clone()), ..api_key("new") };
        store
            .add_api_key(&new, Some((&old.id, NOW + 100)), &note_of("key-rotated", &old.id))
            .await
            .unwrap();
        assert_eq!(key(&store, &new.id).await, new);
    }
    assert_eq!(key(&store, &for_ever.id).await.expires_at, Some(NOW + 100));
    assert_eq!(key(&store, &short.id).await.expires_at, Some(NOW + 10));
}

async fn the_last_use_of_a_key_never_moves_back(database: TestDatabase) {
    let store = database.store().await;
    let one = api_key("one");
    store.add_api_key(&one, None, &note_of("key-created", &one.id)).await.unwrap();
    for (at, then) in [(NOW + 7, NOW + 7), (NOW, NOW + 7), (NOW + 8, NOW + 8)] {
        store.note_key_uses(&[(one.id.clone(), at), ("ffffffff".into(), at)]).await.unwrap();
        assert_eq!(key(&store, &one.id).await.last_used_at, Some(then));
    }
}
