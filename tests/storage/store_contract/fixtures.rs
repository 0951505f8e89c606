//! Events, experiments and checks that the tests share.

use dueling_bandits::Answer;
use rankduel_engine::access::{Actor, NewKey};
use rankduel_store::events::*;
use rankduel_store::*;
use serde_json::json;

pub const NOW: i64 = 1_790_000_000_000;

/// An outcome that can be identified by its number.
pub fn outcome(number: u64) -> Event {
    Event::Outcome(OutcomeEvent {
        first: (number % 7) as u16,
        second: (number % 11) as u16,
        first_left: number.is_multiple_of(2),
        answer: [Answer::First, Answer::Second, Answer::Tie, Answer::None][(number % 4) as usize],
        batch: number.is_multiple_of(3).then_some(number as u32),
        ticket: number,
        chosen_at: number / 2,
        issued_at: NOW + number as i64,
        unit: None,
        segment: None,
    })
}

pub fn new_event(nonce: Nonce, number: u64) -> NewEvent {
    NewEvent::new(nonce, outcome(number))
}

pub fn new_experiment(name: &str) -> NewExperiment {
    let id = entropy::experiment_id().expect("randomness");
    NewExperiment {
        id,
        name: name.into(),
        spec: "{}".into(),
        seed: 1,
        created_at: NOW,
        audit: None,
    }
}

pub async fn create(store: &SharedStore, name: &str) -> ExperimentRecord {
    match store.create_experiment(&new_experiment(name)).await.unwrap() {
        Created::New(record) => record,
        other => panic!("{other:?}"),
    }
}

/// The whole log without its first entry, the creation; checks that its positions are dense.
pub async fn whole_log(store: &SharedStore, experiment: ExperimentId) -> Vec<LogEntry> {
    let mut log = store.read(experiment, 0, u32::MAX).await.unwrap();
    let positions: Vec<u64> = log.iter().map(|entry| entry.position).collect();
    assert_eq!(
        positions,
        (1..=log.len() as u64).collect::<Vec<_>>(),
        "the log is dense and in order"
    );
    let heads = store.heads(&[experiment]).await.unwrap();
    assert_eq!(heads[0].head, log.len() as u64, "the head is the last position");
    let first = log.remove(0);
    assert_eq!(first.nonce, CREATION);
    assert!(matches!(first.event, Event::Control(ControlEvent::Created { .. })), "{first:?}");
    log
}

/// Conclude and archive an experiment of `create`.
pub async fn archive(store: &SharedStore, record: &ExperimentRecord) {
    let event = |nonce, archived| {
        NewEvent::new(nonce, changed(json!({"status": "concluded", "archived": archived})))
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

/// Somebody makes this change, which is opaque to the store.
pub fn changed(patch: serde_json::Value) -> Event {
    Event::Control(ControlEvent::Changed { patch, by: "anyone".into() })
}

/// A note for the audit log.
pub fn note(what: &'static str) -> AuditNote {
    AuditNote::new(&Actor::command_line(), what, "it", NOW)
}

/// The actions in the audit log, newest first.
pub async fn noted(store: &SharedStore) -> Vec<String> {
    store.audit(None, i64::MAX, 100).await.unwrap().into_iter().map(|record| record.what).collect()
}

/// One event of each kind, and the limits of every number.
pub fn every_event() -> Vec<Event> {
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
                unit: high.then_some(u64::MAX),
                segment: (index % 4 > 1).then(|| "x".repeat(32).try_into().expect("a segment")),
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
        ControlEvent::SelfDuels { counts: vec![], alone: Vec::new() },
        ControlEvent::SelfDuels {
            counts: vec![(0, 1), (u16::MAX, u64::MAX)],
            alone: vec![UnitHash(0), UnitHash(u64::MAX)],
        },
        ControlEvent::Created { spec: json!({"rankers": ["naïve \u{1f50d} \"x\"", null, 1e300]}) },
        ControlEvent::Changed { patch: json!({"enlist": [u64::MAX, 0.1]}), by: "key:ä".into() },
        ControlEvent::BatchResults { batch: 0, part: None, results: vec![] },
        ControlEvent::BatchResults { batch: u32::MAX, part: Some(1), results: vec![pair; 1000] },
    ] {
        events.push(Event::Control(other));
    }
    events
}

pub fn assert_corrupt<T: std::fmt::Debug>(result: Result<T, StoreError>, named: &str) {
    match result {
        Err(StoreError::Corrupt(message)) => assert!(message.contains(named), "{message}"),
        other => panic!("{other:?}"),
    }
}

pub fn api_key(name: &str) -> ApiKeyRecord {
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

/// A note about `subject`.
pub fn note_of(what: &'static str, subject: &str) -> AuditNote {
    AuditNote::new(&Actor::command_line(), what, subject, NOW)
}

/// An answer with this text.
pub fn new_answer(text: &str, state: &str, group: u8, due_at: Option<i64>) -> NewAnswer {
    NewAnswer { text: text.into(), state: state.into(), group, due_at }
}
