//! Connections to the database are cut, stalled and slowed.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::proxy::{Mode, Proxy};
use crate::scene::Scene;
use crate::support::client::eventually;
use crate::verify::verify;
use crate::{rounds, some_moment};

struct Way {
    cluster: Cluster,
    proxy: Proxy,
    scene: Scene,
}

/// Two processes that reach their database through a proxy, with callers.
async fn way() -> Way {
    let cluster = Cluster::start().await;
    cluster.database("rankduel").await;
    let proxy = Proxy::to(cluster.socket()).await;
    let mut scene = Scene::set(&proxy.url("rankduel"), 2).await;
    scene.open();
    Way { cluster, proxy, scene }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break() {
    let times = rounds(4);
    let Way { cluster, proxy, scene } = way().await;
    for _ in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        proxy.set(Mode::Cut);
        scene.refuses().await;
        some_moment(300).await;
        proxy.set(Mode::Pass);
    }
    scene.acknowledges(20).await;
    verify(scene, &cluster.url("rankduel"), "connection to PostgreSQL cut", times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break_before_a_commit() {
    let times = rounds(10);
    cut_at_commits(Mode::CutBeforeCommit, "connection cut before a commit", times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break_after_a_commit() {
    let times = rounds(10);
    cut_at_commits(Mode::CutAfterCommit, "connection cut after a commit", times).await;
}

/// Cut every connection at a commit for a while, then none. Callers repeat their answers until
/// they are acknowledged.
async fn cut_at_commits(mode: Mode, fault: &'static str, times: u64) {
    let Way { cluster, proxy, scene } = way().await;
    while proxy.cut_at_commits() < times {
        let enough = proxy.cut_at_commits() + 5;
        scene.acknowledges(20).await;
        proxy.set(mode);
        eventually("a commit", async || (proxy.cut_at_commits() >= enough).then_some(())).await;
        proxy.set(Mode::Pass);
    }
    scene.acknowledges(20).await;
    let times = proxy.cut_at_commits();
    verify(scene, &cluster.url("rankduel"), fault, times).await;
}

/// The stall is longer than the timeout of a commit, so callers get an error response.
#[tokio::test(flavor = "multi_thread")]
async fn connections_stall() {
    let times = rounds(1);
    let Way { cluster, proxy, scene } = way().await;
    for _ in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        proxy.set(Mode::Stall);
        scene.refuses().await;
        proxy.set(Mode::Pass);
    }
    scene.acknowledges(20).await;
    verify(scene, &cluster.url("rankduel"), "connection stalled", times).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_slow() {
    let times = rounds(2);
    let Way { cluster, proxy, scene } = way().await;
    for round in 0..times {
        proxy.set(Mode::Slow(20 + 80 * (round % 2)));
        scene.acknowledges(20).await;
        some_moment(500).await;
        proxy.set(Mode::Pass);
        scene.acknowledges(20).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    verify(scene, &cluster.url("rankduel"), "connection slowed", times).await;
}
