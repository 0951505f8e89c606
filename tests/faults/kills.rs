//! Processes and databases die at random moments.

use crate::cluster::{Cluster, End};
use crate::scene::Scene;
use crate::support::TestDatabase;
use crate::{inject, some_moment};

on_both_databases! {
    a_replica_is_killed
    a_replica_is_stopped
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
