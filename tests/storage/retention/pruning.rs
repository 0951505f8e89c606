//! A log is pruned only where allowed and never silently, and the standings stay.

use rankduel::http::ProblemKind;
use serde_json::json;

use super::{filled, run, standings, succeed};
use crate::support::client::steady;
use crate::support::service::Server;
use crate::support::{TestDatabase, fresh_database};

on_both_databases! {
    pruning_removes_entries_and_keeps_the_standings
    an_unknown_snapshot_format_is_refused
    entries_of_unexpired_duels_are_not_pruned
}

async fn pruning_removes_entries_and_keeps_the_standings(database: TestDatabase) {
    let before = filled(&database).await;
    let entries = database.count("select count(*) from log").await;
    let export = succeed(&database, &["export", "search"]);
    let (code, _, error) = run(&database, &["prune", "young", "--yes"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("not concluded"), "{error}");
    let (code, _, error) = run(&database, &["prune", "search"]);
    assert_eq!(code, Some(2));
    let position = &before["position"];
    assert!(
        error.contains(&format!("forget {position} log entries")) && error.contains("--yes"),
        "{error}"
    );
    assert_eq!(
        database.count("select count(*) from log").await,
        entries,
        "nothing is pruned without --yes"
    );

    let printed = succeed(&database, &["prune", "search", "--yes"]);
    assert!(printed.contains(&format!("forgot {position} log entries")), "{printed}");
    assert_eq!(
        database.count("select count(*) from log").await,
        entries - position.as_i64().expect("one")
    );
    assert_eq!(standings(&database).await, before);
    succeed(&database, &["verify"]);
    let (code, _, error) = run(&database, &["prune", "search", "--yes"]);
    assert_eq!(code, Some(1), "nothing is left to prune: {error}");

    // The pruned experiment is recognized as the same, and the rest can be exported and imported.
    succeed(&database, &["import", &kept(&export)]);
    let other = fresh_database(database.kind).await;
    succeed(&other, &["migrate"]);
    succeed(&other, &["import", &kept(&succeed(&database, &["export", "search"]))]);
    assert_eq!(standings(&other).await, before);
    succeed(&other, &["verify"]);
}

/// The path of a new file with this text; the system removes it.
fn kept(text: &str) -> String {
    let (_, path) = tempfile::NamedTempFile::new().expect("a file").keep().expect("to keep it");
    std::fs::write(&path, text).expect("to write");
    path.to_str().expect("a path").to_owned()
}

async fn an_unknown_snapshot_format_is_refused(database: TestDatabase) {
    filled(&database).await;
    succeed(&database, &["prune", "search", "--yes"]);
    database.execute("update snapshot set format = format + 1").await;
    let server = Server::start(database.connect().await).await;
    server
        .get("/v1/experiments/search/standings")
        .await
        .problem_saying(ProblemKind::ExperimentUnreadable, "was pruned");
    server.next_duel("young").await;
    server.stop().await;
    let (code, printed, _) = run(&database, &["verify", "search"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("no later snapshot can be read"), "{printed}");
    let (code, _, error) = run(&database, &["export", "search"]);
    assert_eq!(code, Some(1), "{error}");
}

/// A repeat is refused, also after pruning; so only expired duels are pruned.
async fn entries_of_unexpired_duels_are_not_pruned(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    // Two hours ago, and now; a duel expires after an hour.
    let now = rankduel_engine::clock::Clock::now_ms(&rankduel_engine::clock::SystemClock);
    server.clock.advance_ms(now - 7_300_000 - crate::support::service::START_MS);
    let old = server.pair("search").await;
    server.answer("search", &old, "left").await;
    server.clock.advance_ms(7_300_000);
    let young = server.pair("search").await;
    server.answer("search", &young, "left").await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let (code, _, error) = run(&database, &["prune", "search"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("forget 2 log entries") && error.contains("position 2"), "{error}");
    succeed(&database, &["prune", "search", "--yes"]);
    assert_eq!(database.count("select min(position) from log").await, 3);
    let repeat =
        |duel: &serde_json::Value, outcome| json!({"duel_id": duel["duel_id"], "outcome": outcome});
    for outcome in ["left", "right"] {
        server.feedback("search", &repeat(&old, outcome)).await.problem(ProblemKind::DuelExpired);
    }
    assert_eq!(
        server.feedback("search", &repeat(&young, "left")).await.json(200)["status"],
        "duplicate"
    );
    let standings = server.standings("search").await;
    assert_eq!(standings["duels"], 2);
    server.stop().await;
    assert_eq!(super::standings(&database).await, standings);
}
