//! Each process reads the entries of the others, after a notification or by polling.

use super::{NEVER_LOOKS, serve};
use crate::support::client::{Client, eventually, settings_of, steady, until};
use crate::support::{Kind, TestDatabase, fresh_database};

on_postgres! {
    polling_alone_suffices
}

/// Two servers with these flags follow each other.
async fn two_follow(database: &TestDatabase, flags: &[&str]) {
    let ((_one, one), (_other, other)) = (serve(database, flags), serve(database, flags));
    each_follows(&one, &other).await;
}

/// Each server answers duels of the other, and reads the entries that the other appends.
pub async fn each_follows(one: &Client, other: &Client) {
    one.create(&steady("search", &["a", "b", "c"])).await;
    assert_eq!(other.position("search").await, 1, "the other has it in memory");
    let arrives = async |at: &Client, position| {
        until("the entries of the other server", async || at.position("search").await >= position)
            .await;
    };
    for position in (2..=20).step_by(2) {
        let duel = one.next_duel("search").await;
        assert_eq!(other.answer("search", &duel, "left").await, position);
        arrives(one, position).await;
        let duel = other.next_duel("search").await;
        assert_eq!(one.answer("search", &duel, "right").await, position + 1);
        arrives(other, position + 1).await;
    }
    one.patch("search", &serde_json::json!({"status": "paused"})).await.json(200);
    eventually("the change at the other server", async || {
        let experiment = other.experiment("search").await;
        (experiment["status"] == "paused").then(|| assert_eq!(experiment["version"], 2))
    })
    .await;
    assert_eq!(one.standings("search").await, other.standings("search").await);
    let [first, second] = [one, other].map(|client| client.experiment("search"));
    assert_eq!(settings_of(first.await), settings_of(second.await));
}

async fn polling_alone_suffices(database: TestDatabase) {
    two_follow(&database, &["--no-listen", "--poll-milliseconds", "20"]).await;
}

/// The servers poll once an hour.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_alone_suffice_on_postgresql() {
    let database = fresh_database(Kind::Postgres).await;
    two_follow(&database, &NEVER_LOOKS).await;
}

/// The listening connection is cut repeatedly; after it is restored, the server polls for entries
/// whose notifications it missed.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listening_connection_is_restored() {
    let database = fresh_database(Kind::Postgres).await;
    let ((_one, one), (_other, other)) =
        (serve(&database, &NEVER_LOOKS), serve(&database, &NEVER_LOOKS));
    one.create(&steady("search", &["a", "b"])).await;
    assert_eq!(other.position("search").await, 1);
    for position in 2..=4 {
        database
            .execute(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and query ilike 'listen%'",
            )
            .await;
        let duel = one.next_duel("search").await;
        assert_eq!(one.answer("search", &duel, "left").await, position);
        until("entries whose notification was lost", async || {
            other.position("search").await == position
        })
        .await;
    }
}
