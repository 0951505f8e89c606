//! What one process appends, the other has: told by the database, or found by looking.

use super::{NEVER_LOOKS, serve};
use crate::support::client::{Client, eventually, steady};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    looking_alone_is_enough
}

/// Both answer duels of the other, and each comes to know what the other has appended.
async fn both_follow(database: &TestDatabase, flags: &[&str]) {
    let ((_one, one), (_other, other)) = (serve(database, flags), serve(database, flags));
    one.create(&steady("search", &["a", "b", "c"])).await;
    assert_eq!(other.position("search").await, 0, "the other has it in memory");
    let arrives = async |at: &Client, position| {
        eventually("what the other has appended", async || {
            (at.position("search").await >= position).then_some(())
        })
        .await;
    };
    for position in (1..=20).step_by(2) {
        let duel = one.next_duel("search").await;
        assert_eq!(other.answer("search", &duel, "left").await, position);
        arrives(&one, position).await;
        let duel = other.next_duel("search").await;
        assert_eq!(one.answer("search", &duel, "right").await, position + 1);
        arrives(&other, position + 1).await;
    }
    one.patch("search", &serde_json::json!({"status": "paused"})).await.json(200);
    eventually("the change at the other", async || {
        let experiment = other.get("/v1/experiments/search").await.json(200);
        (experiment["status"] == "paused").then(|| assert_eq!(experiment["version"], 2))
    })
    .await;
    assert_eq!(one.standings("search").await, other.standings("search").await);
    let tags = [&one, &other].map(|client| client.get("/v1/experiments/search"));
    let [first, second] = tags;
    assert_eq!(first.await.json(200), second.await.json(200));
}

async fn looking_alone_is_enough(database: TestDatabase) {
    both_follow(&database, &["--no-listen", "--poll-milliseconds", "20"]).await;
}

/// Neither looks for an hour.
#[tokio::test(flavor = "multi_thread")]
async fn being_told_alone_is_enough_on_postgresql() {
    let database = fresh_database(Kind::Postgres).await;
    both_follow(&database, &NEVER_LOOKS).await;
}

/// The connection that listens is cut again and again; what was told meanwhile is looked for when
/// it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_is_made_again() {
    let database = fresh_database(Kind::Postgres).await;
    let ((_one, one), (_other, other)) =
        (serve(&database, &NEVER_LOOKS), serve(&database, &NEVER_LOOKS));
    one.create(&steady("search", &["a", "b"])).await;
    assert_eq!(other.position("search").await, 0);
    for position in 1..=3 {
        database
            .execute(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and query ilike 'listen%'",
            )
            .await;
        let duel = one.next_duel("search").await;
        assert_eq!(one.answer("search", &duel, "left").await, position);
        eventually("what was told while nobody listened", async || {
            (other.position("search").await == position).then_some(())
        })
        .await;
    }
}
