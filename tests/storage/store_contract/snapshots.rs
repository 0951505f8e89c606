//! Snapshots, pruning and import.

use rankduel_store::events::*;
use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    the_newest_snapshot_of_each_format_is_kept
    a_log_is_pruned_below_a_snapshot
    an_import_is_all_or_nothing
}

async fn the_newest_snapshot_of_each_format_is_kept(database: TestDatabase) {
    let store = database.store().await;
    let (one, two) = (create(&store, "one").await.id, create(&store, "two").await.id);
    let snapshot = |experiment, format, position, byte: u8| Snapshot {
        experiment,
        position,
        format,
        state: vec![byte; 5],
        created_at: NOW,
    };
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), None);

    store.save_snapshot(&snapshot(one, 1, 2, 0)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), None, "the log is shorter");
    database.execute("update experiment set head = 20").await;
    store.save_snapshot(&snapshot(one, 1, 10, 1)).await.unwrap();
    store.save_snapshot(&snapshot(one, 2, 5, 2)).await.unwrap();
    store.save_snapshot(&snapshot(two, 1, 7, 3)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), Some(snapshot(one, 1, 10, 1)));
    assert_eq!(store.newest_snapshot(one, 2).await.unwrap(), Some(snapshot(one, 2, 5, 2)));
    assert_eq!(store.newest_snapshot(one, 3).await.unwrap(), None, "another format is not read");
    assert_eq!(store.newest_snapshot(two, 1).await.unwrap(), Some(snapshot(two, 1, 7, 3)));

    // A late snapshot does not replace a newer one.
    store.save_snapshot(&snapshot(one, 1, 9, 4)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), Some(snapshot(one, 1, 10, 1)));
    // At the same position, the newest bytes are kept.
    store.save_snapshot(&snapshot(one, 1, 10, 5)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), Some(snapshot(one, 1, 10, 5)));

    let large =
        Snapshot { state: (0..=255).cycle().take(1 << 20).collect(), ..snapshot(one, 1, 20, 0) };
    store.save_snapshot(&large).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), Some(large));
    assert_eq!(
        database.count("select count(*) from snapshot").await,
        3,
        "one for each experiment and format"
    );
    assert_eq!(store.newest_snapshot(one, 2).await.unwrap(), Some(snapshot(one, 2, 5, 2)));

    // The log went back: snapshots beyond its end are removed when another one is saved.
    database.execute("update experiment set head = 12").await;
    store.save_snapshot(&snapshot(one, 1, 13, 7)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), None);
    store.save_snapshot(&snapshot(one, 1, 12, 8)).await.unwrap();
    assert_eq!(store.newest_snapshot(one, 1).await.unwrap(), Some(snapshot(one, 1, 12, 8)));

    let extreme = snapshot(two, u32::MAX, 0, 6);
    store.save_snapshot(&extreme).await.unwrap();
    assert_eq!(store.newest_snapshot(two, u32::MAX).await.unwrap(), Some(extreme));
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
    let event = changed(Default::default());
    store.change_experiment(record.id, 1, &conclude, NewEvent::new(0, event), NOW).await.unwrap();
    assert!(!pruned(22_000, 1).await, "there is no snapshot");
    store.save_snapshot(&snapshot(1, 22_000)).await.unwrap();
    store.save_snapshot(&snapshot(2, 3)).await.unwrap();
    assert_eq!(store.snapshots(record.id).await.unwrap(), [snapshot(1, 22_000), snapshot(2, 3)]);
    assert!(!pruned(22_001, 1).await, "the snapshot is below");
    assert!(!pruned(22_000, 2).await, "the snapshot of that format is below");
    assert!(!pruned(30_000, 1).await, "the log is shorter");
    assert_eq!(whole_log(&store, record.id).await.len(), 25_001);

    assert!(pruned(22_000, 1).await);
    let left = store.read(record.id, 0, u32::MAX).await.unwrap();
    assert_eq!((left[0].position, left.len()), (22_001, 3002));
    assert_eq!(store.experiment("search").await.unwrap().unwrap().pruned_to, 22_000);
    assert!(pruned(22_000, 1).await, "pruning again is harmless");
    assert!(!pruned(21_000, 1).await, "a log is never unpruned");
    // Appends continue after pruning.
    assert_eq!(
        store.append(&[(record.id, new_event(99_999, 1))], NOW).await.unwrap(),
        [Appended::Recorded(25_003)]
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
        answer: None,
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
    let Created::New(record) =
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
    assert_eq!(again, Created::Taken(record));
}
