//! Calls whose futures are dropped: at any await, and after any time. Whatever was dropped, every
//! later answer is right.

use std::pin::Pin;
use std::time::Duration;

use rankduel_engine::access::Actor;
use rankduel_store::*;

use super::concurrency::abandoned_after;
use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    dropped_calls_leave_every_later_answer_right
}

/// Tasks that use one store at the same time: they share few connections.
const TASKS: u64 = 8;
/// Calls that each task drops.
const DROPPED: u64 = 250;
/// Entries of each experiment: enough for a bulk read that takes several packets.
const ENTRIES: u64 = 2_000;
const NAMES: [&str; 3] = ["one", "two", "three"];
const FORMAT: u32 = 1;

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// The entry at `position` of the experiment with this number.
fn number_at(experiment: usize, position: u64) -> u64 {
    experiment as u64 * 1_000_000 + position
}

struct Scene {
    store: SharedStore,
    experiments: Vec<ExperimentRecord>,
    /// Grows while the test runs.
    growing: ExperimentId,
    keys: Vec<ApiKeyRecord>,
    signing: Vec<SigningKey>,
    note: AuditNote,
}

impl Scene {
    async fn start(database: &TestDatabase) -> Self {
        let store = database.store().await;
        let note = AuditNote::of_experiment(&Actor::anyone(), "test", "one", NOW);
        let mut experiments = Vec::new();
        for (number, name) in NAMES.iter().enumerate() {
            let record = create(&store, name).await;
            let events: Vec<_> = (2..=ENTRIES)
                .map(|position| number_at(number, position))
                .map(|number| (record.id, new_event(number.into(), number)))
                .collect();
            store.append(&events, NOW).await.unwrap();
            let state = vec![number as u8; 100];
            let (experiment, position) = (record.id, 7);
            let snapshot =
                Snapshot { experiment, position, format: FORMAT, state, created_at: NOW };
            store.save_snapshot(&snapshot).await.unwrap();
            experiments.push(record);
        }
        for number in 0..3 {
            let key = ApiKeyRecord {
                id: format!("{number:08x}"),
                digest: [number; 32],
                name: "test".into(),
                scopes: "read".into(),
                experiments: None,
                replaces: None,
                created_at: NOW,
                expires_at: None,
                revoked_at: None,
                last_used_at: None,
            };
            store.add_api_key(&key, None, &note).await.unwrap();
        }
        let key = SigningKey { id: 1, secret: [7; 32], created_at: NOW, active_from: NOW };
        store.ensure_signing_key(&key).await.unwrap();
        store.end_session(&[9; 16], NOW, 0).await.unwrap();
        let growing = create(&store, "growing").await.id;
        let (keys, signing) =
            (store.api_keys().await.unwrap(), store.signing_keys().await.unwrap());
        Self { store, experiments, growing, keys, signing, note }
    }

    /// One of all operations, which is going to be dropped. Those that write change nothing that
    /// [`Scene::check`] looks at.
    fn operation(&self, kind: u64, number: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let store = &self.store;
        let record = &self.experiments[(number % 3) as usize];
        let after = number % ENTRIES;
        let unique = u128::from(number) | 1 << 90;
        Box::pin(async move {
            match kind {
                0 => drop(store.read(record.id, 0, u32::MAX).await),
                1 => drop(store.read(record.id, after, 20).await),
                2 => drop(store.experiment(&record.name).await),
                3 => drop(store.listed(&ListFilter::default(), None, 100).await),
                4 => drop(store.names("", 100).await),
                5 => drop(store.heads(&[record.id, self.growing]).await),
                6 => drop(store.find(record.id, &[number_at(0, after).into()]).await),
                7 => drop(store.api_keys().await),
                8 => drop(store.signing_keys().await),
                9 => drop(store.ended_sessions().await),
                10 => drop(store.newest_snapshot(record.id, FORMAT).await),
                11 => drop(store.snapshots(record.id).await),
                12 => drop(store.audit(None, i64::MAX, 100).await),
                13 => drop(store.check().await),
                14 => {
                    let events = [(self.growing, new_event(unique, number))];
                    drop(store.append(&events, NOW).await);
                }
                15 => {
                    let events: Vec<_> = (0..600)
                        .map(|event| (self.growing, new_event(unique + (event << 64), number)))
                        .collect();
                    drop(store.append(&events, NOW).await);
                }
                16 => {
                    let new = new_experiment(&format!("new {}", number % 100));
                    drop(store.create_experiment(&new).await);
                }
                17 => {
                    let event = NewEvent::new(unique, changed(Default::default()));
                    let change = Change { audit: Some(self.note.clone()), ..Change::default() };
                    let head = store.experiment("growing").await;
                    if let Ok(Some(record)) = head {
                        let (id, version) = (record.id, record.version);
                        drop(store.change_experiment(id, version, &change, event, NOW).await);
                    }
                }
                18 => {
                    let state = vec![(number % 3) as u8; 100];
                    let experiment = record.id;
                    let (position, format, created_at) = (8, 2, NOW);
                    let snapshot = Snapshot { experiment, position, format, state, created_at };
                    drop(store.save_snapshot(&snapshot).await);
                }
                19 => drop(store.note_key_uses(&[("none".into(), NOW)]).await),
                20 => drop(store.revoke_api_key("none", NOW, &self.note).await),
                21 => drop(store.end_session(&[9; 16], NOW, 0).await),
                22 => drop(store.prune(record.id, 5, FORMAT, &self.note).await),
                23 => {
                    let notice = WebhookNotice {
                        id: unique.to_string(),
                        experiment: "growing".into(),
                        body: "{}".into(),
                        queued_at: NOW,
                        attempts: 0,
                    };
                    let kept = new_answer("kept", "result", 1, None);
                    let saved = store.save_answer(self.growing, 0, None, &kept, Some(&notice));
                    drop(saved.await);
                }
                24 => drop(store.take_notice(number.is_multiple_of(2), NOW, NOW + 1).await),
                _ => {
                    let name = format!("imported {}", number % 100);
                    let id = entropy::experiment_id().expect("randomness");
                    let record = ExperimentRecord { id, name, head: 0, ..record.clone() };
                    drop(store.import(&record, None, &mut std::iter::empty(), None).await);
                }
            }
        })
    }

    /// One ordinary operation, whose answer is known.
    async fn check(&self, kind: u64, number: u64) {
        let store = &self.store;
        let at = (number % 3) as usize;
        let record = &self.experiments[at];
        let after = 1 + number % (ENTRIES - 2);
        match kind {
            0 | 1 => {
                let limit = if kind == 0 { u32::MAX } else { 20 };
                let entries = store.read(record.id, after, limit).await.unwrap();
                let last = ENTRIES.min(after.saturating_add(limit.into()));
                let read: Vec<_> =
                    entries.iter().map(|entry| (entry.position, entry.nonce)).collect();
                let expected: Vec<_> = (after + 1..=last)
                    .map(|position| (position, number_at(at, position).into()))
                    .collect();
                assert_eq!(read, expected, "the log of {} after {after}", record.name);
            }
            2 => {
                let found = store.experiment(&record.name).await.unwrap().expect("it exists");
                assert_eq!((found.id, &found.name), (record.id, &record.name));
                assert_eq!(store.experiment("nobody").await.unwrap(), None);
            }
            3 => {
                let heads = store.heads(&[record.id]).await.unwrap();
                assert_eq!(heads.len(), 1);
                assert_eq!((heads[0].experiment, heads[0].head), (record.id, ENTRIES));
            }
            4 => assert_eq!(store.api_keys().await.unwrap(), self.keys),
            5 => assert_eq!(store.signing_keys().await.unwrap(), self.signing),
            6 => assert_eq!(store.ended_sessions().await.unwrap(), [[9; 16]]),
            7 => {
                let snapshot = store.newest_snapshot(record.id, FORMAT).await.unwrap();
                assert_eq!(snapshot.expect("it was saved").state, vec![at as u8; 100]);
            }
            8 => {
                let nonce = number_at(at, after + 1).into();
                let found = store.find(record.id, &[nonce, 1 << 100]).await.unwrap();
                assert_eq!(found[0].as_ref().map(|entry| entry.position), Some(after + 1));
                assert_eq!(found[1], None);
            }
            _ => {
                let nonce = u128::from(number) | 2 << 90;
                let event = new_event(nonce, number);
                let appended = store.append(&[(self.growing, event)], NOW).await.unwrap();
                let [Appended::Recorded(position) | Appended::Duplicate(position)] = appended[..]
                else {
                    panic!("{appended:?}")
                };
                let entries = store.read(self.growing, position - 1, 1).await.unwrap();
                let read: Vec<_> =
                    entries.iter().map(|entry| (entry.position, entry.nonce)).collect();
                assert_eq!(read, [(position, nonce)]);
            }
        }
    }
}

async fn dropped_calls_leave_every_later_answer_right(database: TestDatabase) {
    let scene = std::sync::Arc::new(Scene::start(&database).await);
    let tasks = (1..=TASKS).map(|task| {
        let scene = std::sync::Arc::clone(&scene);
        tokio::spawn(async move {
            let mut random = Numbers(task.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut dropped = 0;
            for _ in 0..DROPPED {
                let operation = scene.operation(random.below(26), random.below(1 << 40));
                let ended = match random.below(2) {
                    0 => abandoned_after(random.below(12) as usize, operation).await,
                    _ => {
                        let limit = Duration::from_micros(random.below(4_000));
                        tokio::time::timeout(limit, operation).await.ok()
                    }
                };
                dropped += u64::from(ended.is_none());
                scene.check(random.below(10), random.below(1 << 40)).await;
            }
            dropped
        })
    });
    let mut dropped = 0;
    for task in tasks.collect::<Vec<_>>() {
        dropped += task.await.unwrap();
    }
    assert!(dropped > TASKS * DROPPED / 4, "{dropped} calls were dropped");
    assert_eq!(scene.store.foreign_answers(), 0);
    whole_log(&scene.store, scene.growing).await;
}
