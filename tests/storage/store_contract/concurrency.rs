//! Several callers, several stores, abandoned calls, and notices.

use std::collections::{BTreeMap, BTreeSet};

use rankduel_store::*;

use super::fixtures::*;
use crate::support::{Kind, TestDatabase};

on_all_databases! {
    two_stores_on_sqlite_agree
    abandoned_calls_leave_the_log_intact
    commits_of_other_stores_are_notified
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
            let mut appended = Vec::new();
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
                appended.extend(events.into_iter().zip(answers));
            }
            appended
        }));
    }
    let mut appended = Vec::new();
    for task in tasks {
        appended.extend(task.await.unwrap());
    }
    assert_eq!(appended.len() as u64, TASKS * CALLS * EVENTS);

    let mut logs = BTreeMap::new();
    for id in &experiments {
        let log = whole_log(&stores[0], *id).await;
        let nonces: BTreeSet<_> = log.iter().map(|entry| entry.nonce).collect();
        assert_eq!(nonces.len(), log.len(), "a nonce counts once");
        logs.insert(*id, log);
    }
    let mut recorded = 0;
    for ((experiment, new), answer) in appended {
        let (Appended::Recorded(position) | Appended::Duplicate(position)) = answer else {
            panic!("{answer:?} for {new:?}")
        };
        recorded += usize::from(matches!(answer, Appended::Recorded(_)));
        let entry = &logs[&experiment][position as usize - 2];
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

async fn two_stores_on_sqlite_agree(database: TestDatabase) {
    let stores = [database.store().await, database.store().await];
    race(&stores).await;
    let seen = stores[1].experiment("one").await.unwrap().unwrap();
    stores[0].append(&[(seen.id, new_event(1 << 100, 1))], NOW).await.unwrap();
    let heads = stores[1].heads(&[seen.id]).await.unwrap();
    assert_eq!(heads[0].head, seen.head + 1, "each store reads the entries of the other");
}

/// Poll `future` at most this many times, then drop it.
pub async fn abandoned_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
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
            let position = |number| polls * size + number + 2;
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

async fn commits_of_other_stores_are_notified(database: TestDatabase) {
    let (own, other) = (database.store().await, database.store().await);
    let id = create(&own, "search").await.id;
    let notices = own.listen().await.unwrap();
    let mut notices = match database.kind {
        Kind::Sqlite => return assert!(notices.is_none()),
        Kind::Postgres => notices.expect("a server that notifies"),
    };
    other.append(&[(id, new_event(1, 1)), (id, new_event(2, 2))], NOW).await.unwrap();
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
    other.append(&[(id, new_event(3, 3))], NOW).await.unwrap();
    assert_eq!(notices.next().await.unwrap(), Some(Notice { experiment: id, head: 4 }));
}
