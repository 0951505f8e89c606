//! API keys and the audit log.

use rankduel::access::{Actor, NewKey};
use rankduel::events::*;
use rankduel::store::*;
use serde_json::json;

use super::{NOW, create, new_event};
use crate::support::TestDatabase;

on_both_databases! {
    api_keys_round_trip
    a_key_is_revoked_once
    a_rotation_shortens_and_never_extends_a_key
    the_last_use_of_a_key_never_moves_back
    the_audit_log_is_paginated_newest_first
    a_change_and_its_note_are_one_transaction
    a_note_from_several_servers_is_written_once
    corrupt_key_rows_are_reported
}

fn record(name: &str) -> ApiKeyRecord {
    let key = NewKey::generate().expect("randomness");
    ApiKeyRecord {
        id: key.id.as_str().into(),
        digest: key.digest,
        name: name.into(),
        scopes: "decide read".into(),
        experiments: None,
        replaces: None,
        created_at: NOW,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

fn note(what: &'static str, subject: &str) -> AuditNote {
    AuditNote::new(&Actor::command_line(), what, subject, NOW)
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
        ..record("Søk ✓")
    };
    let reference = record("plain");
    for key in [&full, &reference] {
        store.add_api_key(key, None, &note("key-created", &key.id)).await.unwrap();
    }
    let mut wanted = vec![full.clone(), reference];
    wanted.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(store.api_keys().await.unwrap(), wanted);
    let again = ApiKeyRecord { name: "another".into(), ..full };
    let refused = store.add_api_key(&again, None, &note("key-created", &again.id)).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert_eq!(
        store.audit(None, i64::MAX, 10).await.unwrap().len(),
        2,
        "a failed change is not in the audit log"
    );
}

async fn a_key_is_revoked_once(database: TestDatabase) {
    let store = database.store().await;
    let one = record("one");
    store.add_api_key(&one, None, &note("key-created", &one.id)).await.unwrap();
    let revoke =
        async |id: &str, at| store.revoke_api_key(id, at, &note("key-revoked", id)).await.unwrap();
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
    let for_ever = record("for ever");
    let short = ApiKeyRecord { expires_at: Some(NOW + 10), ..record("short") };
    for old in [&for_ever, &short] {
        store.add_api_key(old, None, &note("key-created", &old.id)).await.unwrap();
        let new = ApiKeyRecord { replaces: Some(old.id.clone()), ..record("new") };
        store
            .add_api_key(&new, Some((&old.id, NOW + 100)), &note("key-rotated", &old.id))
            .await
            .unwrap();
        assert_eq!(key(&store, &new.id).await, new);
    }
    assert_eq!(key(&store, &for_ever.id).await.expires_at, Some(NOW + 100));
    assert_eq!(key(&store, &short.id).await.expires_at, Some(NOW + 10));
}

async fn the_last_use_of_a_key_never_moves_back(database: TestDatabase) {
    let store = database.store().await;
    let one = record("one");
    store.add_api_key(&one, None, &note("key-created", &one.id)).await.unwrap();
    for (at, then) in [(NOW + 7, NOW + 7), (NOW, NOW + 7), (NOW + 8, NOW + 8)] {
        store.note_key_uses(&[(one.id.clone(), at), ("ffffffff".into(), at)]).await.unwrap();
        assert_eq!(key(&store, &one.id).await.last_used_at, Some(then));
    }
}

async fn the_audit_log_is_paginated_newest_first(database: TestDatabase) {
    let store = database.store().await;
    let by = Actor::service().in_request("the-request");
    let notes: Vec<_> = (0..7)
        .map(|number| AuditNote {
            before: (number % 2 == 0).then(|| json!({"number": number})),
            ..AuditNote::of_experiment(
                &by,
                "batch-closed",
                ["one", "other"][number % 2],
                NOW + number as i64,
            )
        })
        .collect();
    store.add_audit(&notes).await.unwrap();
    let (mut before, mut seen) = (i64::MAX, Vec::new());
    loop {
        let page = store.audit(None, before, 3).await.unwrap();
        let Some(last) = page.last() else { break };
        before = last.id;
        seen.extend(page);
    }
    seen.reverse();
    assert_eq!(seen.len(), notes.len());
    for (entry, note) in seen.iter().zip(&notes) {
        assert_eq!((entry.at, &*entry.what, &entry.subject), (note.at, note.what, &note.subject));
        assert_eq!(
            (&entry.experiment, &entry.before, &entry.after),
            (&note.experiment, &note.before, &None)
        );
        assert_eq!((&*entry.who, entry.request_id.as_deref()), ("service", Some("the-request")));
    }
    let of_other = store.audit(Some("other"), i64::MAX, 10).await.unwrap();
    assert_eq!(of_other.iter().map(|entry| entry.at - NOW).collect::<Vec<_>>(), [5, 3, 1]);
    assert_eq!(store.audit(Some("nobody"), i64::MAX, 10).await.unwrap(), []);
}

async fn a_change_and_its_note_are_one_transaction(database: TestDatabase) {
    let store = database.store().await;
    let new = NewExperiment {
        name: "search".into(),
        spec: "{}".into(),
        seed: 1,
        created_at: NOW,
        audit: Some(AuditNote::of_experiment(
            &Actor::anyone(),
            "experiment-created",
            "search",
            NOW,
        )),
    };
    let Created::New(search) = store.create_experiment(&new).await.unwrap() else {
        panic!("it is new")
    };
    store.create_experiment(&new).await.unwrap(); // changes nothing
    let pause = |version| Change {
        status: Some(Status::Paused),
        audit: Some(AuditNote::of_experiment(
            &Actor::anyone(),
            "experiment-changed",
            "search",
            version,
        )),
        ..Change::default()
    };
    let event = new_event(1, 1);
    store.change_experiment(search.id, 1, &pause(1), event.clone(), NOW).await.unwrap();
    let stale = store.change_experiment(search.id, 1, &pause(2), event.clone(), NOW).await.unwrap();
    assert!(matches!(stale, Changed::Stale(_)));
    // The nonce is taken, so the whole transaction is rolled back.
    let refused = store.change_experiment(search.id, 2, &pause(3), event, NOW).await;
    assert!(refused.is_err(), "{refused:?}");
    let entries = store.audit(Some("search"), i64::MAX, 10).await.unwrap();
    let entries: Vec<_> = entries.iter().map(|entry| (&*entry.what, entry.at)).collect();
    assert_eq!(entries, [("experiment-changed", 1), ("experiment-created", NOW)]);
    assert_eq!(create(&store, "silent").await.name, "silent");
    assert_eq!(store.audit(Some("silent"), i64::MAX, 10).await.unwrap(), []);
}

async fn a_note_from_several_servers_is_written_once(database: TestDatabase) {
    let (one, other) = (database.store().await, database.connect().await);
    let closed = |batch: u32| AuditNote {
        once: Some(format!("batch-closed 1 {batch}")),
        ..AuditNote::of_experiment(&Actor::service(), "batch-closed", "search", i64::from(batch))
    };
    let notes: Vec<_> = (0..20).map(closed).collect();
    let (first, second) = tokio::join!(one.add_audit(&notes), other.add_audit(&notes));
    first.unwrap();
    second.unwrap();
    one.add_audit(&notes[3..5]).await.unwrap();
    assert_eq!(one.audit(None, i64::MAX, 100).await.unwrap().len(), 20);
}

async fn corrupt_key_rows_are_reported(database: TestDatabase) {
    let store = database.store().await;
    let one = record("one");
    store.add_api_key(&one, None, &note("key-created", &one.id)).await.unwrap();
    database.execute("update api_key set experiments = 'not JSON'").await;
    let error = store.api_keys().await.unwrap_err();
    assert!(
        matches!(error, StoreError::Corrupt(_)) && error.to_string().contains(&one.id),
        "{error}"
    );
    database.execute("update audit set after = '{'").await;
    let error = store.audit(None, i64::MAX, 1).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Corrupt(_)) && error.to_string().contains("audit"),
        "{error}"
    );
}
