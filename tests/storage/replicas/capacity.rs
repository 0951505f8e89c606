//! Experiments that are evicted from memory reload with the same state.

use std::time::Duration;

use rankduel::service::ServiceSettings;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::TestDatabase;
use crate::support::client::{assert_has, eventually, steady, until};
use crate::support::failing_store::{FailingStore, Mode};
use crate::support::server::{outcome, rankduel_on};
use crate::support::service::{Server, Settings};

on_both_databases! {
    idle_experiments_are_evicted_and_reload_unchanged
    requests_during_an_eviction_are_not_lost
    memory_is_bounded
    an_experiment_that_hangs_delays_neither_memory_nor_keys
}

/// Bytes of experiments with 64 rankers, which take 16 KiB, 1 KiB for each ranker, and 39 bytes for
/// each of 64² pairs: 7 of them fit.
const LIMIT: u64 = 27 << 16;

/// Create 20 experiments with 64 rankers and answer one duel of each.
async fn twenty_large_ones(server: &Server) {
    let rankers: Vec<_> = (0..64).map(|number| format!("r{number}")).collect();
    let rankers: Vec<&str> = rankers.iter().map(String::as_str).collect();
    for number in 0..20 {
        let name = format!("e{number}");
        server.create(&steady(&name, &rankers)).await;
        let duel = server.pair(&name).await;
        assert_eq!(server.answer(&name, &duel, "left").await, 2);
    }
}

async fn room(server: &Server) {
    until("room", async || {
        let bytes: u64 = server.service.loaded().iter().map(|loaded| loaded.bytes()).sum();
        bytes <= LIMIT
    })
    .await;
}

fn settings(idle_after: Duration, memory_bytes: u64) -> Settings {
    let service = ServiceSettings { idle_after, memory_bytes, ..ServiceSettings::default() };
    Settings { service, ..Settings::default() }
}

async fn idle_experiments_are_evicted_and_reload_unchanged(database: TestDatabase) {
    let server =
        Server::with(database.store().await, settings(Duration::from_secs(60), 1 << 30)).await;
    server
        .create(&json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "d-ts"},
            "conclude_at": "never"}))
        .await;
    server.create(&steady("batch", &["a", "b"])).await;
    let mut self_duels = 0;
    while self_duels < 10 {
        let duel = server.next_duel("search").await;
        match duel["self_duel"] == true {
            true => self_duels += 1,
            false => drop(server.answer("search", &duel, "left").await),
        }
    }
    let before = server.standings("search").await;
    let out = server.pair("batch").await;
    // An experiment with a batch comparison in flight is not idle.
    server.clock.advance_ms(61_000);
    until("the eviction of idle experiments", async || server.service.loaded().len() == 1).await;
    assert_eq!(server.service.loaded()[0].name, "batch", "a comparison of its batch is in flight");
    assert_eq!(database.count("select count(*) from snapshot").await, 1);

    let after = server.standings("search").await;
    for field in ["duels", "outcomes", "wins"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(after["self_duels"], self_duels, "self-duels are written first: {after}");
    server.answer("batch", &out, "left").await;
    server.clock.advance_ms(61_000);
    eventually("all evictions", async || server.service.loaded().is_empty().then_some(())).await;
    assert_eq!(server.position("batch").await, 2);
    server.stop().await;
}

/// Everything is idle at all times, while callers request and answer duels.
async fn requests_during_an_eviction_are_not_lost(database: TestDatabase) {
    let server =
        Server::with(database.store().await, settings(Duration::from_millis(1), 1 << 30)).await;
    server
        .create(&json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "d-ts"},
            "conclude_at": "never"}))
        .await;
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let client = server.client();
        let clock = server.clock.clone();
        callers.spawn(async move {
            let (mut answers, mut self_duels) = (0, 0);
            let mut ticks = tokio::time::interval(Duration::from_millis(3));
            for _ in 0..1500 {
                ticks.tick().await;
                clock.advance_ms(10);
                let duel = client.next_duel("search").await;
                if duel["self_duel"] == true {
                    self_duels += 1;
                } else {
                    client.answer("search", &duel, "left").await;
                    answers += 1;
                }
            }
            (answers, self_duels)
        });
    }
    let counts = callers.join_all().await;
    let answers: i64 = counts.iter().map(|(answers, _)| answers).sum();
    let self_duels: i64 = counts.iter().map(|(_, self_duels)| self_duels).sum();
    assert!(answers > 0 && self_duels > 0);
    let dropped = database.count("select count(*) from snapshot").await;
    assert!(dropped > 0, "it was never evicted");
    server.stop().await;
    assert_eq!(database.count("select count(*) from log where kind = 0").await, answers);
    let server = Server::start(database.connect().await).await;
    let standings = server.standings("search").await;
    assert_has(&standings, json!({"duels": answers, "self_duels": self_duels}));
}

async fn memory_is_bounded(database: TestDatabase) {
    let server =
        Server::with(database.store().await, settings(Duration::from_secs(3600), LIMIT)).await;
    twenty_large_ones(&server).await;
    room(&server).await;
    assert!(server.service.loaded().len() >= 6, "more were evicted than needed");
    for number in 0..20 {
        assert_eq!(server.position(&format!("e{number}")).await, 2);
    }
    server.stop().await;
}

/// Maintenance of one experiment waits for the database all the time.
async fn an_experiment_that_hangs_delays_neither_memory_nor_keys(database: TestDatabase) {
    let store = FailingStore::new(database.store().await);
    let mut settings = settings(Duration::from_secs(3600), LIMIT);
    settings.service.maintain_every = Duration::from_millis(50);
    let server = Server::with(store.clone(), settings).await;
    server
        .create(&json!({"name": "stuck", "rankers": ["a", "b"], "conclude_at": {"max_duels": 1}}))
        .await;
    store.set(Mode::FindingHangs);
    let duel = server.pair("stuck").await;
    server.answer("stuck", &duel, "left").await;

    twenty_large_ones(&server).await;
    room(&server).await;
    let create = ["keys", "create", "first", "--scope", "admin"];
    assert_eq!(outcome(rankduel_on(&database.url, &create)).0, Some(0));
    until("a key is needed", async || server.get("/v1/experiments/e1").await.status == 401).await;
    let status = "select count(*) from experiment where status = 'concluded'";
    assert_eq!(database.count(status).await, 0);

    store.set(Mode::Fine);
    until("the conclusion", async || {
        // it may have left memory
        server.service.experiment("stuck").await.expect("an experiment");
        database.count(status).await == 1
    })
    .await;
    server.stop().await;
}
