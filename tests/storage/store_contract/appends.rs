//! Appends of every size and composition give the results of a simple model, whichever statements a
//! database uses for them.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rankduel_store::events::*;
use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_all_databases! {
    appends_of_every_size_match_a_model
    a_failed_append_leaves_nothing
    concurrent_events_of_two_processes_all_count
}

/// Every unit has a transaction of its own there.
mod distributed {
    use crate::support::fresh_distributed_database;

    #[tokio::test(flavor = "multi_thread")]
    async fn appends_of_every_size_match_a_model() {
        super::appends_of_every_size_match_a_model(fresh_distributed_database().await).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_events_of_two_processes_all_count() {
        super::concurrent_events_of_two_processes_all_count(fresh_distributed_database().await)
            .await;
    }
}

/// Logs as plain lists.
#[derive(Default)]
struct Model {
    logs: BTreeMap<ExperimentId, Vec<NewEvent>>,
    archived: Vec<ExperimentId>,
}

impl Model {
    fn append(&mut self, events: &[(ExperimentId, NewEvent)]) -> Vec<Appended> {
        events.iter().map(|(experiment, new)| self.append_one(*experiment, new)).collect()
    }

    fn append_one(&mut self, experiment: ExperimentId, new: &NewEvent) -> Appended {
        let Some(log) = self.logs.get_mut(&experiment) else { return Appended::Missing };
        if let Some(place) = log.iter().position(|known| known.nonce == new.nonce) {
            let position = place as u64 + 2;
            return if log[place] == *new {
                Appended::Duplicate(position)
            } else {
                Appended::Conflict(position)
            };
        }
        if self.archived.contains(&experiment) {
            return Appended::Archived;
        }
        log.push(new.clone());
        Appended::Recorded(log.len() as u64 + 1)
    }
}

/// An append of this many events to this many experiments; one event in `oddity` is not new.
fn append_of(
    size: usize,
    experiments: &[ExperimentId],
    oddity: Option<u32>,
    model: &Model,
    rng: &mut StdRng,
) -> Vec<(ExperimentId, NewEvent)> {
    let mut events: Vec<(ExperimentId, NewEvent)> = Vec::with_capacity(size);
    for _ in 0..size {
        let experiment = experiments[rng.random_range(0..experiments.len())];
        let fresh = new_event(rng.random(), rng.random_range(0..1 << 40));
        let odd = oddity.is_some_and(|one_in| rng.random_range(0..one_in) == 0);
        let known = model.logs.get(&experiment).filter(|log| odd && !log.is_empty());
        events.push(match (known, rng.random_range(0..3)) {
            (Some(log), 0) => (experiment, log[rng.random_range(0..log.len())].clone()),
            (Some(log), 1) => {
                let nonce = log[rng.random_range(0..log.len())].nonce;
                (experiment, NewEvent { nonce, ..fresh })
            }
            (Some(_), _) if !events.is_empty() => events[rng.random_range(0..events.len())].clone(),
            _ => (experiment, fresh),
        });
    }
    events
}

async fn appends_of_every_size_match_a_model(database: TestDatabase) {
    let store = database.store().await;
    let mut rng = StdRng::seed_from_u64(7);
    let mut model = Model::default();
    for number in 0..30 {
        model.logs.insert(create(&store, &format!("experiment-{number}")).await.id, Vec::new());
    }
    let there: Vec<ExperimentId> = model.logs.keys().copied().collect();
    let missing = there.iter().max().expect("some") + 1;
    for round in 0..4 {
        for size in [1, 2, 40, 255, 256, 512, 513, 900] {
            for (count, oddity) in
                [(1, None), (3, Some(50)), (16, None), (17, Some(500)), (30, None)]
            {
                let mut experiments = there[..count].to_vec();
                if round == 2 && size == 40 {
                    experiments.push(missing);
                }
                if round == 3 && size == 2 && count == 3 {
                    let first = there[0];
                    let change = Change { archived_at: Some(NOW), ..Change::default() };
                    let counts = vec![(0, 1)];
                    let event = NewEvent::new(
                        1,
                        Event::Control(ControlEvent::SelfDuels { counts, alone: Vec::new() }),
                    );
                    let changed = store
                        .change_experiment(first, 1, &change, event.clone(), NOW)
                        .await
                        .unwrap();
                    assert!(matches!(changed, Changed::Done(_)), "{changed:?}");
                    model.logs.get_mut(&first).expect("there").push(event);
                    model.archived.push(first);
                }
                let events = append_of(size, &experiments, oddity, &model, &mut rng);
                let expected = model.append(&events);
                // A newly opened store has not seen the earlier repeats.
                let new_store = database.connect().await;
                let by = if rng.random() { &store } else { &new_store };
                let answers = by.append(&events, NOW).await.unwrap();
                assert_eq!(
                    answers, expected,
                    "{size} events of {count} experiments, round {round}"
                );
                new_store.close().await;
            }
        }
    }
    for (experiment, events) in &model.logs {
        let log = whole_log(&store, *experiment).await;
        let log: Vec<_> =
            log.into_iter().map(|entry| NewEvent::new(entry.nonce, entry.event)).collect();
        assert_eq!(log, *events);
    }
}

/// The append to the second experiment's log fails, so nothing is appended to either.
async fn a_failed_append_leaves_nothing(database: TestDatabase) {
    let store = database.store().await;
    let (one, other) = (create(&store, "one").await.id, create(&store, "other").await.id);
    // An occupied position, which no program leaves: the next append to this log must fail.
    store.append(&[(other, new_event(1, 1))], NOW).await.unwrap();
    database.execute_text(format!("update experiment set head = 1 where id = {other}")).await;
    for size in [1, 300, 600] {
        let events: Vec<_> = (0..size)
            .flat_map(|number| {
                [(one, new_event(100 + number, 1)), (other, new_event(100 + number, 1))]
            })
            .collect();
        assert!(matches!(store.append(&events, NOW).await, Err(StoreError::Refused(_))));
        assert_eq!(whole_log(&store, one).await, []);
    }
}

async fn concurrent_events_of_two_processes_all_count(database: TestDatabase) {
    let stores = [database.store().await, database.connect().await];
    let mut experiments = Vec::new();
    for number in 0..6 {
        experiments.push(create(&stores[0], &format!("experiment-{number}")).await.id);
    }
    let sizes = [1_u128, 7, 300, 700];
    let appends = stores.iter().zip(0_u128..).map(async |(store, process)| {
        for call in 0..24_u128 {
            let nonce = |number: u128| process << 64 | call << 32 | number;
            let events: Vec<_> = (0..sizes[call as usize % sizes.len()])
                .flat_map(|number| {
                    // Each process names the experiments in a different order.
                    let order: Vec<_> = match process {
                        0 => experiments.clone(),
                        _ => experiments.iter().rev().copied().collect(),
                    };
                    order
                        .into_iter()
                        .map(move |experiment| (experiment, new_event(nonce(number), 5)))
                })
                .collect();
            let answers = store.append(&events, NOW).await.unwrap();
            assert!(answers.iter().all(|answer| matches!(answer, Appended::Recorded(_))));
        }
    });
    futures_util::future::join_all(appends).await;
    let each: u128 = 2 * 6 * sizes.iter().sum::<u128>();
    for experiment in experiments {
        assert_eq!(whole_log(&stores[0], experiment).await.len() as u128, each);
    }
}
