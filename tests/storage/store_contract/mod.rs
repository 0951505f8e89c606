//! The contract of a store, tested on both databases.
//!
//! Every test runs twice, each time on a new database.

mod access;
mod appends;
mod faults;
mod retention;
mod urls;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::TestDatabase;
use dueling_bandits::Answer;
use rankduel::events::*;
use rankduel::store::*;
use uuid::Uuid;

on_both_databases! {
    clicks_are_too_late_once_their_duel_is_settled
    an_experiment_is_created_once_and_found_by_name
    a_log_is_dense_and_ordered
    a_nonce_counts_once_within_a_call
    a_nonce_counts_once_across_calls
    nonces_are_per_experiment
    unknown_experiments_are_missing
    every_event_round_trips
    concurrent_appenders_count_each_nonce_once
    two_stores_on_one_database_agree
    a_log_is_read_in_chunks
    large_chunks_equal_small_ones
    events_are_found_by_nonce
    a_change_needs_the_newest_version
    archived_experiments_are_not_listed_and_keep_their_name
    experiments_are_listed_by_the_bytes_of_their_names
    strings_round_trip
    the_newest_snapshot_of_each_format_is_kept
    a_race_creates_one_signing_key
    signing_keys_have_32_bytes_and_any_number
    repeated_and_concurrent_migrations_change_nothing
    a_missing_schema_is_reported
    a_newer_schema_is_reported
    a_changed_migration_is_reported
    a_closed_store_is_unavailable
    corrupt_rows_are_reported
    abandoned_calls_leave_the_log_intact
    one_call_appends_ten_thousand_events
}

const NOW: i64 = 1_790_000_000_000;

/// An outcome that can be identified by its number.
fn outcome(number: u64) -> Event {
    Event::Outcome(OutcomeEvent {
        first: (number % 7) as u16,
        second: (number % 11) as u16,
        first_left: number.is_multiple_of(2),
        answer: [Answer::First, Answer::Second, Answer::Tie, Answer::None][(number % 4) as usize],
        batch: number.is_multiple_of(3).then_some(number as u32),
        ticket: number,
        chosen_at: number / 2,
        issued_at: NOW + number as i64,
    })
}

fn new_event(nonce: Nonce, number: u64) -> NewEvent {
    NewEvent::new(nonce, outcome(number))
}

async fn create(store: &SharedStore, name: &str) -> ExperimentRecord {
    let new = NewExperiment {
        name: name.into(),
        spec: "{}".into(),
        seed: 1,
        created_at: NOW,
        audit: None,
    };
    match store.create_experiment(&new).await.unwrap() {
        Created::New(record) => record,
        Created::Taken(record) => panic!("{record:?} exists"),
    }
}

/// The whole log; checks that its positions are dense.
async fn whole_log(store: &SharedStore, experiment: ExperimentId) -> Vec<LogEntry> {
    let log = store.read(experiment, 0, u32::MAX).await.unwrap();
    let positions: Vec<u64> = log.iter().map(|entry| entry.position).collect();
    assert_eq!(
        positions,
        (1..=log.len() as u64).collect::<Vec<_>>(),
        "the log is dense and in order"
    );
    let heads = store.heads(&[experiment]).await.unwrap();
    assert_eq!(heads[0].head, log.len() as u64, "the head is the last position");
    log
}

async fn an_experiment_is_created_once_and_found_by_name(database: TestDatabase) {
    let store = database.store().await;
    let new = NewExperiment {
        name: "search".into(),
        spec: r#"{"policy":"uniform"}"#.into(),
        seed: u64::MAX,
        created_at: NOW,
        audit: None,
    };
    let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
        panic!("it is new")
    };
    assert_eq!(
        record,
        ExperimentRecord {
            id: record.id,
            name: "search".into(),
            spec: new.spec.clone(),
            seed: u64::MAX,
            status: Status::Running,
            winner: None,
            version: 1,
            head: 0,
            created_at: NOW,
            updated_at: NOW,
            archived_at: None,
            pruned_to: 0,
            interleaving: None,
        }
    );
    let again = NewExperiment { spec: "{}".into(), seed: 2, created_at: NOW + 1, ..new };
    assert_eq!(store.create_experiment(&again).await.unwrap(), Created::Taken(record.clone()));
    assert_eq!(store.experiment("search").await.unwrap(), Some(record.clone()));
    assert_eq!(
        store.experiment("Search").await.unwrap(),
        None,
        "names are compared by their bytes"
    );
    assert_ne!(create(&store, "other").await.id, record.id);
}

async fn a_log_is_dense_and_ordered(database: TestDatabase) {
    let store = database.store().await;
    let (one, two) = (create(&store, "one").await.id, create(&store, "two").await.id);
    assert_eq!(store.append(&[], NOW).await.unwrap(), []);
    let call = [
        (one, new_event(1, 1)),
        (two, new_event(2, 2)),
        (one, new_event(3, 3)),
        (one, new_event(4, 4)),
        (two, new_event(5, 5)),
    ];
    let recorded: Vec<_> = [1, 1, 2, 3, 2].map(Appended::Recorded).into();
    assert_eq!(store.append(&call, NOW).await.unwrap(), recorded);
    let more = [(two, new_event(6, 6)), (one, new_event(7, 7))];
    assert_eq!(
        store.append(&more, NOW + 9).await.unwrap(),
        [Appended::Recorded(3), Appended::Recorded(4)]
    );

    let entry = |position, nonce: Nonce, recorded_at| LogEntry {
        position,
        nonce,
        recorded_at,
        event: outcome(nonce as u64),
    };
    assert_eq!(
        whole_log(&store, one).await,
        [entry(1, 1, NOW), entry(2, 3, NOW), entry(3, 4, NOW), entry(4, 7, NOW + 9)]
    );
    assert_eq!(
        whole_log(&store, two).await,
        [entry(1, 2, NOW), entry(2, 5, NOW), entry(3, 6, NOW + 9)]
    );
    let record = store.experiment("one").await.unwrap().unwrap();
    assert_eq!(
        (record.head, record.version, record.updated_at),
        (4, 1, NOW),
        "appending changes the head alone"
    );
}

async fn a_nonce_counts_once_within_a_call(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let call = [
        (id, new_event(1, 1)),
        (id, new_event(2, 2)),
        (id, new_event(1, 1)),
        (id, new_event(2, 3)),
        (id, new_event(3, 3)),
    ];
    assert_eq!(
        store.append(&call, NOW).await.unwrap(),
        [
            Appended::Recorded(1),
            Appended::Recorded(2),
            Appended::Duplicate(1),
            Appended::Conflict(2),
            Appended::Recorded(3)
        ]
    );
    let log = whole_log(&store, id).await;
    assert_eq!(log.iter().map(|entry| entry.nonce).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(log[1].event, outcome(2), "the first event is kept");
}

async fn a_nonce_counts_once_across_calls(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1)), (id, new_event(2, 2))], NOW).await.unwrap();
    let call = [(id, new_event(2, 2)), (id, new_event(3, 3)), (id, new_event(1, 9))];
    assert_eq!(
        store.append(&call, NOW + 1).await.unwrap(),
        [Appended::Duplicate(2), Appended::Recorded(3), Appended::Conflict(1)]
    );
    assert_eq!(
        store.append(&call, NOW + 2).await.unwrap(),
        [Appended::Duplicate(2), Appended::Duplicate(3), Appended::Conflict(1)],
        "a call that only repeats writes nothing"
    );
    let log = whole_log(&store, id).await;
    assert_eq!(log.len(), 3);
    assert_eq!((&log[0].event, log[0].recorded_at), (&outcome(1), NOW), "the first is kept");

    // A difference in one field makes it another event.
    let Event::Outcome(same) = outcome(1) else { unreachable!() };
    for other in [
        OutcomeEvent { first_left: !same.first_left, ..same },
        OutcomeEvent { batch: Some(0), ..same },
        OutcomeEvent { issued_at: same.issued_at + 1, ..same },
    ] {
        let event = NewEvent::new(1, Event::Outcome(other));
        assert_eq!(store.append(&[(id, event)], NOW).await.unwrap(), [Appended::Conflict(1)]);
    }
}

async fn nonces_are_per_experiment(database: TestDatabase) {
    let store = database.store().await;
    let (one, two) = (create(&store, "one").await.id, create(&store, "two").await.id);
    let call = [(one, new_event(1, 1)), (two, new_event(1, 2)), (two, new_event(1, 1))];
    assert_eq!(
        store.append(&call, NOW).await.unwrap(),
        [Appended::Recorded(1), Appended::Recorded(1), Appended::Conflict(1)]
    );
    assert_eq!(
        store.append(&[(two, new_event(1, 2))], NOW).await.unwrap(),
        [Appended::Duplicate(1)]
    );
    assert_eq!(whole_log(&store, one).await[0].event, outcome(1));
    assert_eq!(whole_log(&store, two).await[0].event, outcome(2));
}

async fn unknown_experiments_are_missing(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let nobody = id + 1000;
    let call =
        [(nobody, new_event(1, 1)), (id, new_event(1, 1)), (ExperimentId::MIN, new_event(2, 2))];
    assert_eq!(
        store.append(&call, NOW).await.unwrap(),
        [Appended::Missing, Appended::Recorded(1), Appended::Missing]
    );
    assert_eq!(store.append(&call[..1], NOW).await.unwrap(), [Appended::Missing]);
    assert_eq!(whole_log(&store, id).await.len(), 1);
    assert_eq!(store.read(nobody, 0, 10).await.unwrap(), []);
    assert_eq!(
        store.heads(&[nobody, id, id]).await.unwrap(),
        [Head { experiment: id, version: 1, head: 1, archived: false }],
        "each known experiment once"
    );
    assert_eq!(store.heads(&[]).await.unwrap(), []);
    let change =
        store.change_experiment(nobody, 1, &Change::default(), new_event(9, 9), NOW).await.unwrap();
    assert_eq!(change, Changed::Missing);
    assert_eq!(store.newest_snapshot(nobody, 1).await.unwrap(), None);
}

/// One event of each kind, and the limits of every number.
fn every_event() -> Vec<Event> {
    let answers = [Answer::First, Answer::Second, Answer::Tie, Answer::None];
    let mut events: Vec<Event> = answers
        .into_iter()
        .enumerate()
        .map(|(index, answer)| {
            let high = index % 2 == 1;
            Event::Outcome(OutcomeEvent {
                first: if high { u16::MAX } else { 0 },
                second: if high { 0 } else { u16::MAX },
                first_left: high,
                answer,
                batch: if high { Some(u32::MAX) } else { None },
                ticket: if high { u64::MAX } else { 0 },
                chosen_at: if high { u64::MAX } else { 0 },
                issued_at: if high { i64::MAX } else { i64::MIN },
            })
        })
        .collect();
    // Both sides of the sign bit.
    for ticket in [i64::MAX as u64, 1 << 63] {
        let Event::Outcome(outcome) = events[0] else { unreachable!() };
        events.push(Event::Outcome(OutcomeEvent { ticket, batch: Some(0), ..outcome }));
    }
    let pair = PairResult {
        first: 0,
        second: u16::MAX,
        first_wins: u32::MAX,
        second_wins: 0,
        ties: u32::MAX,
    };
    for other in [
        ControlEvent::SelfDuels { counts: vec![] },
        ControlEvent::SelfDuels { counts: vec![(0, 1), (u16::MAX, u64::MAX)] },
        ControlEvent::RankerEnlisted { ranker: u16::MAX, id: "naïve \u{1f50d} \"x\"".into() },
        ControlEvent::RankerRetired { ranker: 0 },
        ControlEvent::BatchResults { batch: 0, results: vec![] },
        ControlEvent::BatchResults { batch: u32::MAX, results: vec![pair; 1000] },
        ControlEvent::Status {
            status: Status::Running,
            winner: None,
            archived: false,
            reason: None,
        },
        ControlEvent::Status {
            status: Status::Paused,
            winner: Some(0),
            archived: true,
            reason: None,
        },
        ControlEvent::Status {
            status: Status::Concluded,
            winner: Some(u16::MAX),
            archived: true,
            reason: None,
        },
    ] {
        events.push(Event::Control(other));
    }
    events
}

async fn every_event_round_trips(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let nonces = [0, 1, Nonce::MAX, Nonce::MAX - 1, 1 << 127, (1 << 127) - 1, 1 << 64];
    let events: Vec<NewEvent> = every_event()
        .into_iter()
        .enumerate()
        .map(|(index, event)| {
            NewEvent::new(nonces.get(index).copied().unwrap_or(1000 + index as u128), event)
        })
        .collect();
    let call: Vec<_> = events.iter().map(|event| (id, event.clone())).collect();
    for (index, recorded_at) in [i64::MIN, i64::MAX].into_iter().enumerate() {
        // In the second round, the same events are repeats, whatever their kind.
        let expected: Vec<_> = (1..=events.len() as u64)
            .map(|position| match index {
                0 => Appended::Recorded(position),
                _ => Appended::Duplicate(position),
            })
            .collect();
        assert_eq!(store.append(&call, recorded_at).await.unwrap(), expected);
    }
    let expected: Vec<_> = events
        .into_iter()
        .zip(1..)
        .map(|(new, position)| LogEntry {
            position,
            nonce: new.nonce,
            recorded_at: i64::MIN,
            event: new.event,
        })
        .collect();
    assert_eq!(whole_log(&store, id).await, expected);
    store.append(&[(id, new_event(5000, 1))], i64::MAX).await.unwrap();
    assert_eq!(whole_log(&store, id).await.last().unwrap().recorded_at, i64::MAX);
}

/// Appenders with overlapping nonces, on stores that share one database.
async fn race(stores: &[SharedStore]) {
    const TASKS: u64 = 32;
    const CALLS: u64 = 8;
    const EVENTS: u64 = 6;
    const NONCES: u64 = 200; // per experiment; 3 * 200 are fewer than the 32 * 8 * 6 events
    let mut experiments = Vec::new();
    for name in ["one", "two", "three"] {
        experiments.push(create(&stores[0], name).await.id);
    }
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let store = stores[task as usize % stores.len()].clone();
        let experiments = experiments.clone();
        tasks.push(tokio::spawn(async move {
            let mut told = Vec::new();
            for call in 0..CALLS {
                // A fixed walk over nonces; each task names the experiments in a different order.
                let events: Vec<_> = (0..EVENTS)
                    .map(|event| {
                        let walk = task * 7919 + call * 104_729 + event * 1_299_709;
                        let nonce = walk % NONCES;
                        (
                            experiments[((walk / NONCES + task) % 3) as usize],
                            new_event(nonce.into(), nonce),
                        )
                    })
                    .collect();
                let answers = store.append(&events, NOW).await.unwrap();
                told.extend(events.into_iter().zip(answers));
            }
            told
        }));
    }
    let mut told = Vec::new();
    for task in tasks {
        told.extend(task.await.unwrap());
    }
    assert_eq!(told.len() as u64, TASKS * CALLS * EVENTS);

    let mut logs = BTreeMap::new();
    for id in &experiments {
        let log = whole_log(&stores[0], *id).await;
        let nonces: BTreeSet<_> = log.iter().map(|entry| entry.nonce).collect();
        assert_eq!(nonces.len(), log.len(), "a nonce counts once");
        logs.insert(*id, log);
    }
    let mut recorded = 0;
    for ((experiment, new), answer) in told {
        let (Appended::Recorded(position) | Appended::Duplicate(position)) = answer else {
            panic!("{answer:?} for {new:?}")
        };
        recorded += usize::from(matches!(answer, Appended::Recorded(_)));
        let entry = &logs[&experiment][position as usize - 1];
        assert_eq!(
            (entry.nonce, &entry.event),
            (new.nonce, &new.event),
            "the result names the position of the entry"
        );
    }
    assert_eq!(
        recorded,
        logs.values().map(Vec::len).sum::<usize>(),
        "one caller recorded each entry"
    );
}

async fn concurrent_appenders_count_each_nonce_once(database: TestDatabase) {
    let store = database.store().await;
    race(&[store]).await;
}

async fn two_stores_on_one_database_agree(database: TestDatabase) {
    let stores = [database.store().await, database.store().await];
    race(&stores).await;
    let seen = stores[1].experiment("one").await.unwrap().unwrap();
    stores[0].append(&[(seen.id, new_event(1 << 100, 1))], NOW).await.unwrap();
    let heads = stores[1].heads(&[seen.id]).await.unwrap();
    assert_eq!(heads[0].head, seen.head + 1, "each store reads the entries of the other");
}

/// Chunks of some thousand entries use another query.
async fn large_chunks_equal_small_ones(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let mut events = every_event();
    events.extend((0..2500).map(outcome));
    let call: Vec<_> = events
        .into_iter()
        .zip(0..)
        .map(|(event, nonce)| (id, NewEvent::new(nonce, event)))
        .collect();
    store.append(&call, i64::MIN).await.unwrap();
    let mut small: Vec<LogEntry> = Vec::new();
    while let page = store.read(id, small.len() as u64, 100).await.unwrap()
        && !page.is_empty()
    {
        small.extend(page);
    }
    assert_eq!(small.len(), call.len());
    assert_eq!(store.read(id, 0, 50_000).await.unwrap(), small);
    assert_eq!(store.read(id, 0, 2400).await.unwrap(), small[..2400]);
    assert_eq!(store.read(id, 10, 50_000).await.unwrap(), small[10..]);
    assert_eq!(store.read(id, small.len() as u64, 50_000).await.unwrap(), []);
    assert_eq!(store.read(id, u64::MAX, u32::MAX).await.unwrap(), []);
    assert_eq!(store.read(id + 1, 0, 50_000).await.unwrap(), []);

    database.execute("update log set answer = 9 where position = 2000").await;
    let error = store.read(id, 0, 50_000).await.unwrap_err();
    assert!(error.to_string().contains("log entry 2000 of experiment"), "{error}");
}

async fn a_log_is_read_in_chunks(database: TestDatabase) {
    let store = database.store().await;
    let (id, other) = (create(&store, "one").await.id, create(&store, "two").await.id);
    let call: Vec<_> = (1..=250)
        .flat_map(|number| {
            [(id, new_event(number.into(), number)), (other, new_event(number.into(), number + 1))]
        })
        .collect();
    store.append(&call, NOW).await.unwrap();
    let mut paged = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let after = paged.last().map_or(0, |entry: &LogEntry| entry.position);
        let page = store.read(id, after, 100).await.unwrap();
        if page.is_empty() {
            break;
        }
        sizes.push(page.len());
        paged.extend(page);
    }
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(paged, whole_log(&store, id).await);
    assert_eq!(store.read(id, 0, 0).await.unwrap(), []);
    assert_eq!(store.read(id, 249, 10).await.unwrap(), paged[249..]);
    assert_eq!(store.read(id, 250, 10).await.unwrap(), []);
    assert_eq!(store.read(id, u64::MAX, 10).await.unwrap(), []);
}

async fn events_are_found_by_nonce(database: TestDatabase) {
    let store = database.store().await;
    let (one, two) = (create(&store, "one").await.id, create(&store, "two").await.id);
    store
        .append(&[(one, new_event(7, 1)), (two, new_event(8, 2)), (one, new_event(9, 3))], NOW)
        .await
        .unwrap();
    let log = whole_log(&store, one).await;
    assert_eq!(
        store.find(one, &[9, 8, 7, 9]).await.unwrap(),
        [Some(log[1].clone()), None, Some(log[0].clone()), Some(log[1].clone())],
        "in the requested order, of this experiment only"
    );
    assert_eq!(store.find(one, &[]).await.unwrap(), []);
    assert_eq!(store.find(one + 1000, &[7]).await.unwrap(), [None]);
}

async fn a_change_needs_the_newest_version(database: TestDatabase) {
    let store = database.store().await;
    let before = create(&store, "one").await;
    store.append(&[(before.id, new_event(1, 1))], NOW).await.unwrap();
    let event = |nonce, status, winner| {
        let event = ControlEvent::Status { status, winner, archived: false, reason: None };
        NewEvent::new(nonce, Event::Control(event))
    };

    let conclude = Change {
        status: Some(Status::Concluded),
        winner: Some(Some(u16::MAX)),
        ..Change::default()
    };
    let concluded = event(2, Status::Concluded, Some(u16::MAX));
    let after = ExperimentRecord {
        status: Status::Concluded,
        winner: Some(u16::MAX),
        version: 2,
        head: 2,
        updated_at: NOW + 5,
        ..before.clone()
    };
    let done =
        store.change_experiment(before.id, 1, &conclude, concluded.clone(), NOW + 5).await.unwrap();
    assert_eq!(done, Changed::Done(after.clone()));
    assert_eq!(store.experiment("one").await.unwrap(), Some(after.clone()));
    let log = whole_log(&store, before.id).await;
    assert_eq!((log[1].nonce, &log[1].event, log[1].recorded_at), (2, &concluded.event, NOW + 5));

    for version in [0, 1, 3, u64::MAX] {
        let pause = Change { status: Some(Status::Paused), ..Change::default() };
        let stale = store
            .change_experiment(before.id, version, &pause, event(3, Status::Paused, None), NOW + 6)
            .await
            .unwrap();
        assert_eq!(stale, Changed::Stale(after.clone()), "version {version}");
    }
    assert_eq!(whole_log(&store, before.id).await.len(), 2, "a stale change logs nothing");

    // Only the winner changes: it is removed.
    let reopen = Change { winner: Some(None), ..Change::default() };
    let done = store
        .change_experiment(before.id, 2, &reopen, event(3, Status::Concluded, None), NOW + 7)
        .await
        .unwrap();
    let after =
        ExperimentRecord { winner: None, version: 3, head: 3, updated_at: NOW + 7, ..after };
    assert_eq!(done, Changed::Done(after.clone()));
    assert_eq!(
        store.heads(&[before.id]).await.unwrap(),
        [Head { experiment: before.id, version: 3, head: 3, archived: false }]
    );

    // One of many concurrent changes succeeds.
    let tasks: Vec<_> = (0..8)
        .map(|number: u128| {
            let (store, id) = (store.clone(), before.id);
            let event = event(10 + number, Status::Running, None);
            tokio::spawn(async move {
                let change = Change { status: Some(Status::Running), ..Change::default() };
                store.change_experiment(id, 3, &change, event, NOW + 8).await.unwrap()
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            Changed::Done(_) => done += 1,
            Changed::Stale(record) => assert_eq!(record.version, 4),
            Changed::Missing => panic!("it exists"),
        }
    }
    assert_eq!(done, 1);
    assert_eq!(whole_log(&store, before.id).await.len(), 4);
}

async fn archived_experiments_are_not_listed_and_keep_their_name(database: TestDatabase) {
    let store = database.store().await;
    let one = create(&store, "one").await;
    create(&store, "two").await;
    store.append(&[(one.id, new_event(1, 1))], NOW).await.unwrap();
    let archive = Change { archived_at: Some(NOW + 1), ..Change::default() };
    let event = ControlEvent::Status {
        status: Status::Running,
        winner: None,
        archived: true,
        reason: None,
    };
    let event = NewEvent::new(2, Event::Control(event));
    let Changed::Done(archived) =
        store.change_experiment(one.id, 1, &archive, event, NOW + 1).await.unwrap()
    else {
        panic!("it is not stale")
    };
    assert_eq!(archived.archived_at, Some(NOW + 1));

    let listed: Vec<_> =
        store.experiments(None, 10).await.unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(listed, ["two"]);
    assert_eq!(store.experiment("one").await.unwrap(), Some(archived.clone()));
    let again = NewExperiment {
        name: "one".into(),
        spec: "{}".into(),
        seed: 9,
        created_at: NOW + 2,
        audit: None,
    };
    assert_eq!(store.create_experiment(&again).await.unwrap(), Created::Taken(archived));
    assert_eq!(whole_log(&store, one.id).await.len(), 2, "its log is kept");
}

async fn experiments_are_listed_by_the_bytes_of_their_names(database: TestDatabase) {
    let store = database.store().await;
    let mut names =
        ["b", "a", "B", "ä", "a-1", "a_1", "aa", "Z", "10", "9", "\u{e9}", "e\u{301}", "中"];
    for name in names {
        create(&store, name).await;
    }
    names.sort_unstable(); // by bytes
    let all: Vec<_> =
        store.experiments(None, 100).await.unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(all, names);

    let mut paged: Vec<String> = Vec::new();
    loop {
        let page = store.experiments(paged.last().map(String::as_str), 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        paged.extend(page.into_iter().map(|record| record.name));
    }
    assert_eq!(paged, names);
    let after: Vec<_> = store
        .experiments(Some("a0"), 2)
        .await
        .unwrap()
        .into_iter()
        .map(|record| record.name)
        .collect();
    assert_eq!(after, ["a_1", "aa"], "the cursor need not be an existing name");
    assert_eq!(store.experiments(None, 0).await.unwrap(), []);
}

async fn strings_round_trip(database: TestDatabase) {
    let store = database.store().await;
    let strings = [
        "'; drop table log; --",
        "\"quoted\" and \\ and \\' and ''",
        "$1 ?1 :a @b %s {0} {{}}",
        "line\nbreak\ttab\r\u{1}\u{7f}",
        "ünï 中文 🦀 \u{202e}rtl \u{feff}bom \u{10ffff}",
        " leading and trailing ",
        "",
        "null",
    ];
    for (index, text) in strings.iter().enumerate() {
        let new = NewExperiment {
            name: (*text).into(),
            spec: (*text).into(),
            seed: index as u64,
            created_at: NOW,
            audit: None,
        };
        let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
            panic!("{text:?} is new")
        };
        assert_eq!((record.name.as_str(), record.spec.as_str()), (*text, *text));
        assert_eq!(store.experiment(text).await.unwrap(), Some(record.clone()));
        assert_eq!(
            store.append(&[(record.id, new_event(1, 1))], NOW).await.unwrap(),
            [Appended::Recorded(1)]
        );
    }
    let long = "长".repeat(100_000);
    let new = NewExperiment {
        name: "long".into(),
        spec: long.clone(),
        seed: 0,
        created_at: NOW,
        audit: None,
    };
    store.create_experiment(&new).await.unwrap();
    assert_eq!(store.experiment("long").await.unwrap().unwrap().spec, long);
    assert_eq!(store.experiments(None, 100).await.unwrap().len(), strings.len() + 1);
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

    store.save_snapshot(&snapshot(one, 1, 1, 0)).await.unwrap();
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

async fn repeated_and_concurrent_migrations_change_nothing(database: TestDatabase) {
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let url = database.url.clone();
            tokio::spawn(async move {
                let store = connect(&url).await.unwrap();
                store.migrate().await.unwrap();
                store.check().await.unwrap();
                store.close().await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    assert_eq!(whole_log(&store, id).await.len(), 1);
}

fn assert_schema_error<T: std::fmt::Debug>(result: Result<T, StoreError>, advice: &str) {
    match result {
        Err(StoreError::Schema(message)) => assert!(message.contains(advice), "{message}"),
        other => panic!("{other:?}"),
    }
}

async fn a_missing_schema_is_reported(database: TestDatabase) {
    let store = database.connect().await;
    assert_schema_error(store.check().await, "run `rankduel migrate`");
    assert_schema_error(store.append(&[(1, new_event(1, 1))], NOW).await, "run `rankduel migrate`");
    assert_schema_error(store.experiments(None, 1).await, "run `rankduel migrate`");
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    database.execute("delete from _sqlx_migrations").await;
    assert_schema_error(store.check().await, "run `rankduel migrate`");
}

async fn a_newer_schema_is_reported(database: TestDatabase) {
    let store = database.store().await;
    database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             select 999999, 'from the future', success, checksum, 1 from _sqlx_migrations where version = 1",
        )
        .await;
    assert_schema_error(store.check().await, "upgrade rankduel");
    assert_schema_error(store.migrate().await, "upgrade rankduel");
}

async fn a_changed_migration_is_reported(database: TestDatabase) {
    let store = database.store().await;
    database
        .execute(
            "update _sqlx_migrations set description = 'x', checksum = substr(checksum, 2) where version = 1",
        )
        .await;
    assert_schema_error(store.check().await, "migration 1");
    assert_schema_error(store.migrate().await, "migration 1");
}

async fn a_closed_store_is_unavailable(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.close().await;
    let answer = store.append(&[(id, new_event(1, 1))], NOW).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    let again = database.connect().await;
    assert_eq!(again.append(&[(id, new_event(1, 1))], NOW).await.unwrap(), [Appended::Recorded(1)]);
}

async fn corrupt_rows_are_reported(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let other = NewEvent::new(2, Event::Control(ControlEvent::SelfDuels { counts: vec![] }));
    store.append(&[(id, new_event(1, 1)), (id, other)], NOW).await.unwrap();
    for damage in [
        "update log set answer = 4 where position = 1",
        "update log set answer = 0, first_ranker = 65536 where position = 1",
        "update log set first_ranker = null where position = 1",
    ] {
        database.execute(damage).await;
        assert_corrupt(store.read(id, 0, 10).await, "log entry 1 ");
        assert_corrupt(store.find(id, &[1]).await, "log entry 1 ");
        assert_corrupt(store.append(&[(id, new_event(1, 1))], NOW).await, "log entry 1 ");
    }
    assert_eq!(store.read(id, 1, 10).await.unwrap().len(), 1, "intact entries are read");
    for damage in [
        r#"update log set detail = '{"kind":"from_the_future"}' where position = 2"#,
        r#"update log set detail = '{"kind":"self_duels","counts":[],"more":1}' where position = 2"#,
        "update log set detail = null where position = 2",
    ] {
        database.execute(damage).await;
        assert_corrupt(store.read(id, 1, 10).await, "log entry 2 ");
    }
    database.execute("update experiment set winner = 0, seed = -1").await;
    assert_eq!(store.experiment("one").await.unwrap().unwrap().seed, u64::MAX);
}

fn assert_corrupt<T: std::fmt::Debug>(result: Result<T, StoreError>, named: &str) {
    match result {
        Err(StoreError::Corrupt(message)) => assert!(message.contains(named), "{message}"),
        other => panic!("{other:?}"),
    }
}

/// Poll `future` at most this many times, then drop it.
async fn abandoned_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
        std::task::Poll::Pending => {
            left -= 1;
            std::task::Poll::Pending
        }
    })
    .await
}

async fn abandoned_calls_leave_the_log_intact(database: TestDatabase) {
    let store = database.store().await;
    for (name, size) in [("few", 3), ("many", 3000)] {
        let id = create(&store, name).await.id;
        let mut abandoned = 0;
        for polls in 0..40 {
            let events: Vec<_> = (0..size)
                .map(|number| (id, new_event(u128::from(polls * size + number), number)))
                .collect();
            let answer = abandoned_after(polls as usize, store.append(&events, NOW)).await;
            abandoned += usize::from(answer.is_none());
            // It is unknown whether the call was committed, and repeating it is safe.
            let answers = store.append(&events, NOW).await.unwrap();
            let position = |number| polls * size + number + 1;
            let recorded: Vec<_> =
                (0..size).map(|number| Appended::Recorded(position(number))).collect();
            let repeated: Vec<_> =
                (0..size).map(|number| Appended::Duplicate(position(number))).collect();
            assert!(answers == recorded || answers == repeated, "all or nothing: {answers:?}");
        }
        let nonces: Vec<_> = whole_log(&store, id).await.iter().map(|entry| entry.nonce).collect();
        assert_eq!(nonces, (0..u128::from(40 * size)).collect::<Vec<_>>());
        assert!(abandoned > 0, "some calls were abandoned");
    }
}

async fn one_call_appends_ten_thousand_events(database: TestDatabase) {
    let store = database.store().await;
    let ids = [create(&store, "one").await.id, create(&store, "two").await.id];
    let events: Vec<_> = (0..10_000_u64)
        // Distributed like random nonces.
        .map(|number| {
            (
                ids[number as usize % 2],
                new_event(u128::from(number).wrapping_mul(u128::MAX / 7919), number),
            )
        })
        .collect();
    let recorded: Vec<_> = (0..10_000).map(|number| Appended::Recorded(number / 2 + 1)).collect();
    assert_eq!(store.append(&events, NOW).await.unwrap(), recorded);
    let repeated: Vec<_> = (0..10_000).map(|number| Appended::Duplicate(number / 2 + 1)).collect();
    assert_eq!(store.append(&events, NOW).await.unwrap(), repeated);
    for (index, id) in ids.into_iter().enumerate() {
        let log = whole_log(&store, id).await;
        let written = events.iter().skip(index).step_by(2);
        assert!(
            log.iter()
                .zip(written)
                .all(|(entry, (_, new))| entry.nonce == new.nonce && entry.event == new.event)
        );
        assert_eq!(log.len(), 5000);
    }
}

async fn clicks_are_too_late_once_their_duel_is_settled(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let (one, other) = (1 << 100, 1 << 101);
    let clicks = |duel: Nonce, nonce: Nonce, position: u16| NewEvent {
        nonce,
        event: Event::Control(ControlEvent::Clicks(Box::new(ClicksEvent {
            duel: Uuid::from_u128(duel),
            first: 0,
            second: 1,
            first_left: true,
            batch: Some(u32::MAX),
            ticket: u64::MAX,
            chosen_at: 0,
            issued_at: NOW,
            method: 1,
            sheet: "AA".into(),
            clicks: vec![(position, 100)],
        }))),
        superseded_by: Some(duel).filter(|duel| *duel != nonce),
    };
    let settled = |nonce| NewEvent::new(nonce, Event::Control(ControlEvent::Settled {}));
    let append = async |events: &[NewEvent]| {
        let events: Vec<_> = events.iter().map(|event| (id, event.clone())).collect();
        store.append(&events, NOW).await.unwrap()
    };
    use Appended::{Conflict, Duplicate, Recorded, TooLate};
    // Late clicks, within one call and against the log, are not recorded.
    let events = [
        clicks(one, 1, 0),
        clicks(one, 2, 1),
        clicks(one, one, 2),
        clicks(one, 3, 3),
        clicks(other, 4, 0),
    ];
    assert_eq!(
        append(&events).await,
        [Recorded(1), Recorded(2), Recorded(3), TooLate(3), Recorded(4)]
    );
    assert_eq!(
        append(&events).await,
        [Duplicate(1), Duplicate(2), Duplicate(3), TooLate(3), Duplicate(4)]
    );
    let late =
        [clicks(one, 5, 0), settled(one), clicks(one, one, 9), settled(other), clicks(other, 6, 1)];
    assert_eq!(
        append(&late).await,
        [TooLate(3), Conflict(3), Conflict(3), Recorded(5), TooLate(5)]
    );
    let log = whole_log(&store, id).await;
    assert_eq!(log.len(), 5);
    for (entry, event) in log.iter().zip(events[..3].iter().chain([&events[4], &late[3]])) {
        assert_eq!((entry.nonce, &entry.event), (event.nonce, &event.event));
    }
}
