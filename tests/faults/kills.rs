//! Processes and databases die at random moments.

use serde_json::{Value, json};

use crate::cluster::{Cluster, End};
use crate::scene::Scene;
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually};
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::{inject, some_moment};

on_both_databases! {
    a_replica_is_killed
    a_replica_is_stopped
    a_kill_loses_no_page_without_a_value
}

/// One of the processes or all of them are killed.
async fn a_replica_is_killed(database: TestDatabase) {
    let scene = Scene::set(&database.url, 2).await;
    inject(scene, &database.url, "kill -9 of rankduel", 4, async |scene, round| {
        let one = round as usize % scene.places();
        let victims = if round % 3 == 2 { 0..scene.places() } else { one..one + 1 };
        victims.clone().for_each(|victim| scene.kill(victim));
        victims.for_each(|victim| scene.start(victim));
    })
    .await;
}

/// The pages of a metric that were issued are in the log before the first value of one of them:
/// those that send nothing are missing after a crash too, and do not speak for their ranker.
async fn a_kill_loses_no_page_without_a_value(database: TestDatabase) {
    const PAGES: usize = 60;
    let start =
        || Process::start(rankduel_on(&database.url, &["serve", FREE_PORT, "--log", "error"]));
    let process = start();
    let server = Client::new(&process.url);
    server
        .create(&json!({
            "name": "search", "rankers": ["now", "next"], "policy": {"kind": "uniform"},
            "conclude_at": "never", "answer_window_seconds": 0, "value_window_seconds": 5,
            "metrics": [{"name": "failed", "cap": 1, "limit": 0.2, "on_harm": "tell"}],
        }))
        .await;
    let mut last = Value::Null;
    for _ in 0..PAGES {
        last = server.pair("search").await;
    }
    // one page in a hurry; the others fail, and say nothing
    let values = json!({"now": {"failed": 0}, "next": {"failed": 0}});
    let body = json!({"duel_id": last["duel_id"], "metrics": values});
    assert_eq!(server.feedback("search", &body).await.json(200)["status"], "recorded");
    process.signal("KILL");
    process.wait();
    let process = start();
    let server = Client::new(&process.url);
    // they may be of two cohorts
    let claim = eventually("the end of the window of all pages", async || {
        let claims = server.report("search", "claims").await;
        let claims = claims["claims"].as_array().expect("a list").clone();
        claims.into_iter().find(|claim| claim["metric"]["pages"] == PAGES)
    })
    .await;
    let missing = claim["metric"]["missing_share"].as_f64().expect("a share");
    assert!((missing - (PAGES - 1) as f64 / PAGES as f64).abs() < 1e-6, "{claim}");
    process.stop();
}

/// SIGTERM under load: the process finishes its requests and reports a clean stop.
async fn a_replica_is_stopped(database: TestDatabase) {
    let scene = Scene::set(&database.url, 2).await;
    inject(scene, &database.url, "SIGTERM under load", 2, async |scene, round| {
        let one = round as usize % scene.places();
        scene.stop(one);
        scene.start(one);
    })
    .await;
}

/// The database is killed and started again; the processes stay.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_killed() {
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let scene = Scene::set(&url, 2).await;
    let fault = "kill -9 or immediate stop of PostgreSQL";
    inject(scene, &url, fault, 3, async |scene, round| {
        cluster.end(if round % 2 == 0 { End::Immediate } else { End::Kill });
        scene.refuses().await;
        cluster.start_again().await;
    })
    .await;
}

/// The database and a process are killed; both are started again.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_and_a_replica_are_killed() {
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let scene = Scene::set(&url, 2).await;
    inject(scene, &url, "kill -9 of both", 2, async |scene, round| {
        cluster.end(if round % 2 == 0 { End::Kill } else { End::Immediate });
        some_moment(100).await;
        scene.kill((round % 2) as usize);
        cluster.start_again().await;
        scene.start((round % 2) as usize);
    })
    .await;
}

/// The database is restarted cleanly, as for an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_restarted() {
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let scene = Scene::set(&url, 2).await;
    inject(scene, &url, "restart of PostgreSQL", 2, async |_, _| cluster.restart().await).await;
}
