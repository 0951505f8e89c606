//! Store operations for several processes and long-lived databases: archived logs, notices, key
//! rotation, pruning, import.

use rankduel::access::Actor;
use rankduel::events::*;
use rankduel::store::*;

use super::{NOW, create, new_event, whole_log};
use crate::support::{Kind, TestDatabase};

on_both_databases! {
    an_archived_log_refuses_new_events_and_recognizes_repeats
    a_newer_migration_that_only_expands_is_accepted
    signing_keys_are_added_and_removed
    a_change_without_its_note_is_rolled_back
    every_name_is_listed
    a_log_is_pruned_below_a_snapshot
    an_import_is_all_or_nothing
    commits_of_other_stores_are_notified
}

/// Conclude and archive an experiment of `create`.
async fn archive(store: &SharedStore, record: &ExperimentRecord) {
    let event = |nonce, archived| {
        let status = Status::Concluded;
        let event = ControlEvent::Status { status, winner: None, archived, reason: None };
        NewEvent::new(nonce, Event::Control(event))
    };
    let conclude = Change { status: Some(Status::Concluded), ..Change::default() };
    let changed =
        store.change_experiment(record.id, 1, &conclude, event(901, false), NOW).await.unwrap();
    assert!(matches!(changed, Changed::Done(_)));
    let archive = Change { archived_at: Some(NOW), ..Change::default() };
    let changed =
        store.change_experiment(record.id, 2, &archive, event(902, true), NOW).await.unwrap();
    assert!(matches!(changed, Changed::Done(_)));
}

async fn an_archived_log_refuses_new_events_and_recognizes_repeats(database: TestDatabase) {
    let store = database.store().await;
    let (gone, open) = (create(&store, "gone").await, create(&store, "open").await);
    store.append(&[(gone.id, new_event(1, 1))], NOW).await.unwrap();
    archive(&store, &gone).await;
    assert!(store.heads(&[gone.id]).await.unwrap()[0].archived);
    let call = [
        (gone.id, new_event(1, 1)),
        (open.id, new_event(2, 2)),
        (gone.id, new_event(3, 3)),
        (gone.id, new_event(1, 2)),
    ];
    assert_eq!(
        store.append(&call, NOW).await.unwrap(),
        [Appended::Duplicate(1), Appended::Recorded(1), Appended::Archived, Appended::Conflict(1)]
    );
    assert_eq!(whole_log(&store, gone.id).await.len(), 3);
}

async fn a_newer_migration_that_only_expands_is_accepted(database: TestDatabase) {
    let store = database.store().await;
    database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             select 999999, 'expand the future', success, checksum, 1 from _sqlx_migrations where version = 1",
        )
        .await;
    store.check().await.unwrap();
    store.migrate().await.unwrap();
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

/// A note for the audit log.
fn note(what: &'static str) -> AuditNote {
    AuditNote::new(&Actor::command_line(), what, "it", NOW)
}

/// The actions in the audit log, newest first.
async fn noted(store: &SharedStore) -> Vec<String> {
    store.audit(None, i64::MAX, 100).await.unwrap().into_iter().map(|record| record.what).collect()
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
        Snapshot { experiment: record.id, position: 3, format: 1, state: vec![1], created_at: NOW };
    store.save_snapshot(&snapshot).await.unwrap();
    let record = store.experiment("search").await.unwrap().unwrap();
    let imported = ExperimentRecord { name: "imported".into(), head: 0, ..record.clone() };

    database.execute("alter table audit rename to lost").await;
    assert!(store.add_signing_key(&key(2), &note("added")).await.is_err());
    assert!(store.remove_signing_key(1, &note("removed")).await.is_err());
    assert_eq!(store.signing_keys().await.unwrap(), [key(1)]);
    assert!(store.prune(record.id, 3, 1, &note("pruned")).await.is_err());
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
    assert!(store.prune(record.id, 3, 1, &note("pruned")).await.unwrap());
    store.import(&imported, None, &mut std::iter::empty(), Some(&note("imported"))).await.unwrap();
    store.add_signing_key(&key(2), &note("added")).await.unwrap();
    assert!(store.remove_signing_key(1, &note("removed")).await.unwrap());
    let noted = noted(&store).await;
    assert_eq!(noted[..noted.len() - before], ["removed", "added", "imported", "pruned"]);
}

async fn every_name_is_listed(database: TestDatabase) {
    let store = database.store().await;
    for name in ["b", "a", "c"] {
        let record = create(&store, name).await;
        if name == "b" {
            archive(&store, &record).await;
        }
    }
    assert_eq!(store.names("", 2).await.unwrap(), ["a", "b"]);
    assert_eq!(store.names("b", 9).await.unwrap(), ["c"]);
}

async fn a_log_is_pruned_below_a_snapshot(database: TestDatabase) {
    let store = database.store().await;
    let record = create(&store, "search").await;
    let events: Vec<_> =
        (1..=25_000).map(|number| (record.id, new_event(number, number as u64))).collect();
    for page in events.chunks(10_000) {
        store.append(page, NOW).await.unwrap();
    }
    let snapshot = |format, position| Snapshot {
        experiment: record.id,
        position,
        format,
        state: vec![format as u8],
        created_at: NOW,
    };
    let pruned =
        async |to, format| store.prune(record.id, to, format, &note("pruned")).await.unwrap();
    assert!(!pruned(22_000, 1).await, "the experiment is running");
    let conclude = Change { status: Some(Status::Concluded), ..Change::default() };
    let event = Event::Control(ControlEvent::Status {
        status: Status::Concluded,
        winner: None,
        archived: false,
        reason: None,
    });
    store.change_experiment(record.id, 1, &conclude, NewEvent::new(0, event), NOW).await.unwrap();
    assert!(!pruned(22_000, 1).await, "there is no snapshot");
    store.save_snapshot(&snapshot(1, 22_000)).await.unwrap();
    store.save_snapshot(&snapshot(2, 3)).await.unwrap();
    assert_eq!(store.snapshots(record.id).await.unwrap(), [snapshot(1, 22_000), snapshot(2, 3)]);
    assert!(!pruned(22_001, 1).await, "the snapshot is below");
    assert!(!pruned(22_000, 2).await, "the snapshot of that format is below");
    assert!(!pruned(30_000, 1).await, "the log is not so long");
    assert_eq!(whole_log(&store, record.id).await.len(), 25_001);

    assert!(pruned(22_000, 1).await);
    let left = store.read(record.id, 0, u32::MAX).await.unwrap();
    assert_eq!((left[0].position, left.len()), (22_001, 3001));
    assert_eq!(store.experiment("search").await.unwrap().unwrap().pruned_to, 22_000);
    assert!(pruned(22_000, 1).await, "pruning again is harmless");
    assert!(!pruned(21_000, 1).await, "it does not go back");
    // Appends continue after pruning.
    assert_eq!(
        store.append(&[(record.id, new_event(99_999, 1))], NOW).await.unwrap(),
        [Appended::Recorded(25_002)]
    );
}

async fn an_import_is_all_or_nothing(database: TestDatabase) {
    let store = database.store().await;
    let wanted = ExperimentRecord {
        id: -7,
        name: "search".into(),
        spec: "{}".into(),
        seed: u64::MAX,
        status: Status::Concluded,
        winner: Some(3),
        version: 9,
        head: 5,
        created_at: NOW,
        updated_at: NOW + 1,
        archived_at: Some(NOW + 2),
        pruned_to: 2,
        interleaving: Some(r#"{"version":2}"#.into()),
    };
    let entry = |position: u64| LogEntry {
        position,
        nonce: position.into(),
        recorded_at: NOW + position as i64 / 2,
        event: new_event(position.into(), position).event,
    };
    let base = Snapshot { experiment: 0, position: 2, format: 4, state: vec![9], created_at: NOW };
    let mut broken = vec![Ok(vec![entry(3)]), Err("the file ends".to_string())].into_iter();
    let failed = store.import(&wanted, Some(&base), &mut broken, None).await;
    assert!(failed.is_err_and(|error| error.to_string().contains("the file ends")));
    assert_eq!(store.experiment("search").await.unwrap(), None);

    let pages = || vec![Ok(vec![entry(3), entry(4)]), Ok(vec![entry(5)])].into_iter();
    let Imported::New(record) =
        store.import(&wanted, Some(&base), &mut pages(), None).await.unwrap()
    else {
        panic!("it is new")
    };
    assert_eq!(record, ExperimentRecord { id: record.id, ..wanted.clone() });
    assert_eq!(store.experiment("search").await.unwrap(), Some(record.clone()));
    assert_eq!(store.read(record.id, 0, 9).await.unwrap(), [entry(3), entry(4), entry(5)]);
    assert_eq!(
        store.snapshots(record.id).await.unwrap(),
        [Snapshot { experiment: record.id, ..base.clone() }]
    );
    let again = store.import(&wanted, Some(&base), &mut pages(), None).await.unwrap();
    assert_eq!(again, Imported::Taken(record));
}

async fn commits_of_other_stores_are_notified(database: TestDatabase) {
    let (own, other) = (database.store().await, database.store().await);
    let id = create(&own, "search").await.id;
    let notices = own.listen().await.unwrap();
    let mut notices = match database.kind {
        Kind::Sqlite => return assert!(notices.is_none()),
        Kind::Postgres => notices.expect("a server that notifies"),
    };
    own.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    other.append(&[(id, new_event(2, 2)), (id, new_event(3, 3))], NOW).await.unwrap();
    // The store's own commit is not reported.
    assert_eq!(notices.next().await.unwrap(), Some(Notice { experiment: id, head: 3 }));
    // A lost connection is restored, and the loss is reported.
    database
        .execute(
            "select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and query ilike 'listen%'",
        )
        .await;
    while notices.next().await.is_ok_and(|notice| notice.is_some()) {}
    drop(notices); // and the only listening connection with it
    let mut notices = own.listen().await.unwrap().expect("a server that notifies");
    other.append(&[(id, new_event(4, 4))], NOW).await.unwrap();
    assert_eq!(notices.next().await.unwrap(), Some(Notice { experiment: id, head: 4 }));
}
