//! Processes and databases die at random moments.

use crate::cluster::{Cluster, End};
use crate::scene::Scene;
use crate::support::{Kind, TestDatabase, fresh_database};
use crate::verify::verify;
use crate::{rounds, some_moment};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_on_sqlite_is_killed() {
    replica_is_killed(fresh_database(Kind::Sqlite).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_on_postgres_is_killed() {
    replica_is_killed(fresh_database(Kind::Postgres).await).await;
}

/// Two processes; one or both are killed.
async fn replica_is_killed(database: TestDatabase) {
    let times = rounds(4);
    let mut scene = Scene::set(&database.url, 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        let victims =
            if round % 3 == 2 { 0..2 } else { (round % 2) as usize..(round % 2) as usize + 1 };
        for victim in victims.clone() {
            scene.kill(victim);
        }
        for victim in victims {
            scene.start(victim);
        }
    }
    scene.acknowledges(20).await;
    verify(scene, &database.url, "kill -9 of rankduel", times).await;
}

/// The database is killed and started again; the processes stay.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_killed() {
    let times = rounds(3);
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let mut scene = Scene::set(&url, 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        cluster.end(if round % 2 == 0 { End::Immediate } else { End::Kill });
        scene.refuses().await;
        cluster.start_again().await;
    }
    scene.acknowledges(20).await;
    verify(scene, &url, "kill -9 or immediate stop of PostgreSQL", times).await;
}

/// The database and a process are killed; both are started again.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_and_a_replica_are_killed() {
    let times = rounds(2);
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let mut scene = Scene::set(&url, 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        cluster.end(if round % 2 == 0 { End::Kill } else { End::Immediate });
        some_moment(100).await;
        scene.kill((round % 2) as usize);
        cluster.start_again().await;
        scene.start((round % 2) as usize);
    }
    scene.acknowledges(20).await;
    verify(scene, &url, "kill -9 of both", times).await;
}

/// The database is restarted cleanly, as for an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_restarted() {
    let times = rounds(2);
    let mut cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let mut scene = Scene::set(&url, 2).await;
    scene.open();
    for _ in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        cluster.restart().await;
    }
    scene.acknowledges(20).await;
    verify(scene, &url, "restart of PostgreSQL", times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_on_sqlite_is_stopped() {
    replica_is_stopped(fresh_database(Kind::Sqlite).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_on_postgres_is_stopped() {
    replica_is_stopped(fresh_database(Kind::Postgres).await).await;
}

/// SIGTERM under load: the process finishes its requests and reports a clean stop.
async fn replica_is_stopped(database: TestDatabase) {
    let times = rounds(2);
    let mut scene = Scene::set(&database.url, 2).await;
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        scene.stop((round % 2) as usize);
        scene.start((round % 2) as usize);
    }
    scene.acknowledges(20).await;
    verify(scene, &database.url, "SIGTERM under load", times).await;
}
