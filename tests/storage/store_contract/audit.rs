//! The audit log, and notes in one transaction with their action.

use rankduel_engine::access::Actor;
use rankduel_store::events::Status;
use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    a_change_and_its_note_are_one_transaction
    corrupt_key_rows_are_reported
    a_change_without_its_note_is_rolled_back
}

async fn a_change_and_its_note_are_one_transaction(database: TestDatabase) {
    let store = database.store().await;
    let new = NewExperiment {
        id: entropy::experiment_id().expect("randomness"),
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

async fn corrupt_key_rows_are_reported(database: TestDatabase) {
    let store = database.store().await;
    let one = api_key("one");
    store.add_api_key(&one, None, &note_of("key-created", &one.id)).await.unwrap();
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

/// A change and its audit note are one transaction: if the note cannot be written, the change does
/// not happen.
async fn a_change_without_its_note_is_rolled_back(database: TestDatabase) {
    let store = database.store().await;
    let key = |id| SigningKey { id, secret: [id as u8; 32], created_at: NOW, active_from: NOW };
    store.ensure_signing_key(&key(1)).await.unwrap();
    let record = create(&store, "search").await;
    store.append(&[(record.id, new_event(1, 1))], NOW).await.unwrap();
    archive(&store, &record).await;
    let snapshot =
        Snapshot { experiment: record.id, position: 4, format: 1, state: vec![1], created_at: NOW };
    store.save_snapshot(&snapshot).await.unwrap();
    let record = store.experiment("search").await.unwrap().unwrap();
    let id = entropy::experiment_id().expect("randomness");
    let imported = ExperimentRecord { id, name: "imported".into(), head: 0, ..record.clone() };

    database.execute("alter table audit rename to lost").await;
    assert!(store.add_signing_key(&key(2), &note("added")).await.is_err());
    assert!(store.remove_signing_key(1, &note("removed")).await.is_err());
    assert_eq!(store.signing_keys().await.unwrap(), [key(1)]);
    assert!(store.prune(record.id, 4, 1, &note("pruned")).await.is_err());
    assert_eq!(store.experiment("search").await.unwrap().unwrap().pruned_to, 0);
    assert_eq!(whole_log(&store, record.id).await.len(), 3);
    assert!(
        store
            .import(&imported, None, &mut std::iter::empty(), Some(&note("imported")))
            .await
            .is_err()
    );
    assert_eq!(store.experiment("imported").await.unwrap(), None);

    database.execute("alter table lost rename to audit").await;
    let before = noted(&store).await.len();
    assert!(store.prune(record.id, 4, 1, &note("pruned")).await.unwrap());
    store.import(&imported, None, &mut std::iter::empty(), Some(&note("imported"))).await.unwrap();
    store.add_signing_key(&key(2), &note("added")).await.unwrap();
    assert!(store.remove_signing_key(1, &note("removed")).await.unwrap());
    let noted = noted(&store).await;
    assert_eq!(noted[..noted.len() - before], ["removed", "added", "imported", "pruned"]);
}
