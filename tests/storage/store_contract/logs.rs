//! Logs: one caller appends, reads and finds entries.

use rankduel_store::events::*;
use rankduel_store::*;
use uuid::Uuid;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    a_log_is_dense_and_ordered
    a_difference_in_one_field_is_a_conflict
    unknown_experiments_are_missing
    every_event_round_trips
    large_chunks_equal_small_ones
    events_are_found_by_nonce
    corrupt_rows_are_reported
    clicks_are_too_late_once_their_duel_is_settled
    an_event_that_follows_a_position_is_refused_beyond_it
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
    let recorded: Vec<_> = [2, 2, 3, 4, 3].map(Appended::Recorded).into();
    assert_eq!(store.append(&call, NOW).await.unwrap(), recorded);
    let more = [(two, new_event(6, 6)), (one, new_event(7, 7))];
    assert_eq!(
        store.append(&more, NOW + 9).await.unwrap(),
        [Appended::Recorded(4), Appended::Recorded(5)]
    );

    let entry = |position, nonce: Nonce, recorded_at| LogEntry {
        position,
        nonce,
        recorded_at,
        event: outcome(nonce as u64),
    };
    assert_eq!(
        whole_log(&store, one).await,
        [entry(2, 1, NOW), entry(3, 3, NOW), entry(4, 4, NOW), entry(5, 7, NOW + 9)]
    );
    assert_eq!(
        whole_log(&store, two).await,
        [entry(2, 2, NOW), entry(3, 5, NOW), entry(4, 6, NOW + 9)]
    );
    let record = store.experiment("one").await.unwrap().unwrap();
    assert_eq!(
        (record.head, record.version, record.updated_at),
        (5, 1, NOW),
        "appending changes the head alone"
    );
}

async fn a_difference_in_one_field_is_a_conflict(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    let Event::Outcome(same) = outcome(1) else { unreachable!() };
    for other in [
        OutcomeEvent { first_left: !same.first_left, ..same },
        OutcomeEvent { batch: Some(0), ..same },
        OutcomeEvent { issued_at: same.issued_at + 1, ..same },
    ] {
        let event = NewEvent::new(1, Event::Outcome(other));
        assert_eq!(store.append(&[(id, event)], NOW + 1).await.unwrap(), [Appended::Conflict(2)]);
    }
    let log = whole_log(&store, id).await;
    assert_eq!((&log[0].event, log[0].recorded_at), (&outcome(1), NOW), "the first is kept");
}

async fn unknown_experiments_are_missing(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let nobody = id + 1000;
    let call =
        [(nobody, new_event(1, 1)), (id, new_event(1, 1)), (ExperimentId::MIN, new_event(2, 2))];
    assert_eq!(
        store.append(&call, NOW).await.unwrap(),
        [Appended::Missing, Appended::Recorded(2), Appended::Missing]
    );
    assert_eq!(store.append(&call[..1], NOW).await.unwrap(), [Appended::Missing]);
    assert_eq!(whole_log(&store, id).await.len(), 1);
    assert_eq!(store.read(nobody, 0, 10).await.unwrap(), []);
    assert_eq!(
        store.heads(&[nobody, id, id]).await.unwrap(),
        [Head { experiment: id, version: 1, head: 2, archived: false }],
        "each known experiment once"
    );
    assert_eq!(store.heads(&[]).await.unwrap(), []);
    let change =
        store.change_experiment(nobody, 1, &Change::default(), new_event(9, 9), NOW).await.unwrap();
    assert_eq!(change, Changed::Missing);
    assert_eq!(store.newest_snapshot(nobody, 1).await.unwrap(), None);
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
        let expected: Vec<_> = (2..=events.len() as u64 + 1)
            .map(|position| match index {
                0 => Appended::Recorded(position),
                _ => Appended::Duplicate(position),
            })
            .collect();
        assert_eq!(store.append(&call, recorded_at).await.unwrap(), expected);
    }
    let expected: Vec<_> = events
        .into_iter()
        .zip(2..)
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
    assert_eq!(small.len(), call.len() + 1, "with the creation");
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

async fn corrupt_rows_are_reported(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let other = NewEvent::new(
        2,
        Event::Control(ControlEvent::SelfDuels { counts: vec![], alone: Vec::new() }),
    );
    store.append(&[(id, new_event(1, 1)), (id, other)], NOW).await.unwrap();
    for damage in [
        "update log set answer = 4 where position = 2",
        "update log set answer = 0, first_ranker = 65536 where position = 2",
        "update log set first_ranker = null where position = 2",
    ] {
        database.execute(damage).await;
        assert_corrupt(store.read(id, 0, 10).await, "log entry 2 ");
        assert_corrupt(store.find(id, &[1]).await, "log entry 2 ");
        assert_corrupt(store.append(&[(id, new_event(1, 1))], NOW).await, "log entry 2 ");
    }
    assert_eq!(store.read(id, 2, 10).await.unwrap().len(), 1, "intact entries are read");
    for damage in [
        r#"update log set detail = '{"kind":"from_the_future"}' where position = 3"#,
        r#"update log set detail = '{"kind":"self_duels","counts":[],"more":1}'
           where position = 3"#,
        "update log set detail = null where position = 3",
    ] {
        database.execute(damage).await;
        assert_corrupt(store.read(id, 2, 10).await, "log entry 3 ");
    }
    database.execute("update experiment set winner = 0, seed = -1").await;
    assert_eq!(store.experiment("one").await.unwrap().unwrap().seed, u64::MAX);
}

async fn clicks_are_too_late_once_their_duel_is_settled(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let (one, other) = (1 << 100, 1 << 101);
    let clicks = |duel: Nonce, nonce: Nonce, position: u16| NewEvent {
        nonce,
        follows: None,
        event: Event::Control(ControlEvent::Clicks(Box::new(ClicksEvent {
            duel: Uuid::from_u128(duel),
            first: 0,
            second: 1,
            first_left: true,
            batch: Some(u32::MAX),
            ticket: u64::MAX,
            chosen_at: 0,
            issued_at: NOW,
            unit: None,
            segment: None,
            method: 1,
            sheet: Some("AA".into()),
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
        [Recorded(2), Recorded(3), Recorded(4), TooLate(4), Recorded(5)]
    );
    assert_eq!(
        append(&events).await,
        [Duplicate(2), Duplicate(3), Duplicate(4), TooLate(4), Duplicate(5)]
    );
    let late =
        [clicks(one, 5, 0), settled(one), clicks(one, one, 9), settled(other), clicks(other, 6, 1)];
    assert_eq!(
        append(&late).await,
        [TooLate(4), Conflict(4), Conflict(4), Recorded(6), TooLate(6)]
    );
    let log = whole_log(&store, id).await;
    assert_eq!(log.len(), 5);
    for (entry, event) in log.iter().zip(events[..3].iter().chain([&events[4], &late[3]])) {
        assert_eq!((entry.nonce, &entry.event), (event.nonce, &event.event));
    }
}

async fn an_event_that_follows_a_position_is_refused_beyond_it(database: TestDatabase) {
    use Appended::{Conflict, Duplicate, Recorded, TooLate};
    let store = database.store().await;
    let other = database.connect().await;
    let id = create(&store, "one").await.id;
    let after = |nonce, follows| NewEvent { follows: Some(follows), ..new_event(nonce, 1) };
    let append = async |store: &SharedStore, events: &[NewEvent]| {
        let events: Vec<_> = events.iter().map(|event| (id, event.clone())).collect();
        store.append(&events, NOW).await.unwrap()
    };
    assert_eq!(append(&store, &[after(1, 1), after(2, 1)]).await, [Recorded(2), TooLate(2)]);
    assert_eq!(append(&other, &[new_event(3, 3)]).await, [Recorded(3)]);
    assert_eq!(append(&store, &[after(2, 2)]).await, [TooLate(3)]);
    assert_eq!(append(&store, &[new_event(4, 4), after(2, 3)]).await, [Recorded(4), TooLate(4)]);
    assert_eq!(append(&store, &[after(2, 4)]).await, [Recorded(5)]);
    // what the log has is a repeat or a conflict, wherever the log ends
    let different = NewEvent { follows: Some(2), ..new_event(2, 9) };
    assert_eq!(append(&other, &[after(2, 2), different]).await, [Duplicate(5), Conflict(5)]);
    assert_eq!(whole_log(&store, id).await.len(), 4);
}
