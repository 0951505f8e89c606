//! A database whose experiments are on several nodes. These tests run on a database that only looks
//! so (`fresh_distributed_database`); `docs/scaling.md` says what was run on Citus by hand.

use rankduel_store::{AppendUnit, Appended, StoreError};
use serde_json::json;

use crate::store_contract::fixtures::{NOW, create, new_event, whole_log};
use crate::support::client::{steady, until};
use crate::support::server::{outcome, rankduel_on};
use crate::support::service::{Server, Settings};
use crate::support::{Kind, fresh_database, fresh_distributed_database};

#[tokio::test(flavor = "multi_thread")]
async fn an_experiment_is_a_unit_of_its_own() {
    for distributed in [false, true] {
        let database = match distributed {
            true => fresh_distributed_database().await,
            false => fresh_database(Kind::Postgres).await,
        };
        let store = database.store().await;
        let id = create(&store, "one").await.id;
        let unit = if distributed { AppendUnit::Experiment(id) } else { AppendUnit::Whole };
        assert_eq!(store.append_unit(id), unit);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_fails_leaves_those_of_other_experiments() {
    let database = fresh_distributed_database().await;
    let store = database.store().await;
    let (one, other) = (create(&store, "one").await.id, create(&store, "other").await.id);
    // An occupied position, which no program leaves: the next append to this log must fail.
    store.append(&[(other, new_event(1, 1))], NOW).await.unwrap();
    database.execute_text(format!("update experiment set head = 1 where id = {other}")).await;
    let events = [(other, new_event(2, 2)), (one, new_event(2, 2))];
    let answer = store.append(&events, NOW).await;
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
    assert_eq!(whole_log(&store, one).await.len(), 1);
    assert_eq!(store.append(&events[1..], NOW).await.unwrap(), [Appended::Duplicate(2)]);
}

/// A process that knows the database as a plain one learns that it was distributed.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_distributed_meanwhile_is_noticed() {
    let database = fresh_distributed_database().await;
    let early = database.connect().await;
    early.migrate().await.unwrap();
    early.check().await.unwrap();
    let (one, other) = (create(&early, "one").await.id, create(&early, "other").await.id);
    let events = |nonce| [(one, new_event(nonce, 1)), (other, new_event(nonce, 1))];
    early.append(&events(1), NOW).await.unwrap();
    database.store().await;
    // It is refused once; callers repeat it.
    assert!(early.append(&events(2), NOW).await.is_err());
    assert_eq!(early.append(&events(2), NOW).await.unwrap(), [Appended::Recorded(3); 2]);
}

const WAITING: &str = "select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'rankduel'
       and wait_event_type = 'Lock' and query not ilike '%set answer%'";

/// The others do not even wait: not for the first failed commit either.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_experiment_delays_no_other() {
    let database = fresh_distributed_database().await;
    let server = Server::with(database.store().await, Settings::default()).await;
    for name in ["locked", "healthy"] {
        server.create(&steady(name, &["a", "b"])).await;
    }
    let (stuck, healthy) = (server.pair("locked").await, server.pair("healthy").await);
    let held = database.hold("begin; select 1 from experiment where name = 'locked' for update");
    let held = held.await;
    let client = server.client();
    let body = json!({"duel_id": stuck["duel_id"], "outcome": "left"});
    let waiting = tokio::spawn(async move { client.feedback("locked", &body).await });
    until("a commit that waits for the lock", async || database.count(WAITING).await > 0).await;
    assert_eq!(server.answer("healthy", &healthy, "left").await, 2);
    assert!(!waiting.is_finished(), "the other experiment waited for the lock");
    drop(held);
    assert_eq!(waiting.await.unwrap().json(200)["status"], "recorded");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_database_with_the_extension_is_distributed() {
    for (kind, advice) in [(Kind::Sqlite, "only PostgreSQL"), (Kind::Postgres, "create extension")]
    {
        let database = fresh_database(kind).await;
        let (code, said, error) =
            outcome(rankduel_on(&database.url, &["migrate", "--distribute", "citus"]));
        assert_eq!(code, Some(1), "{error}");
        assert!(said.contains("has the schema of this version"), "{said}");
        assert!(error.contains("cannot be distributed") && error.contains(advice), "{error}");
        // It still serves.
        create(&database.connect().await, "one").await;
    }
}
