//! Connections to the database are cut, stalled and slowed.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::proxy::{Mode, Proxy};
use crate::scene::Scene;
use crate::support::client::until;
use crate::verify::verify;
use crate::{inject, rounds, some_moment};

/// A database, a proxy in front of it, and two processes that use the proxy.
async fn way() -> (Cluster, Proxy, Scene) {
    let cluster = Cluster::start().await;
    cluster.database("rankduel").await;
    let proxy = Proxy::to(cluster.socket()).await;
    let scene = Scene::set(&proxy.url("rankduel"), 2).await;
    (cluster, proxy, scene)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break() {
    let (cluster, proxy, scene) = way().await;
    let fault = "connection to PostgreSQL cut";
    inject(scene, &cluster.url("rankduel"), fault, 4, async |scene, _| {
        proxy.set(Mode::Cut);
        scene.refuses().await;
        some_moment(300).await;
        proxy.set(Mode::Pass);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break_before_a_commit() {
    cut_at_commits(Mode::CutBeforeCommit, "connection cut before a commit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_break_after_a_commit() {
    cut_at_commits(Mode::CutAfterCommit, "connection cut after a commit").await;
}

/// Cut every connection at a commit for a while, then none. Callers repeat their answers until
/// they are acknowledged.
async fn cut_at_commits(mode: Mode, fault: &'static str) {
    let (cluster, proxy, mut scene) = way().await;
    let times = rounds(10);
    scene.open();
    while proxy.cut_at_commits() < times {
        let enough = proxy.cut_at_commits() + 5;
        scene.acknowledges(20).await;
        proxy.set(mode);
        until("a commit", async || proxy.cut_at_commits() >= enough).await;
        proxy.set(Mode::Pass);
    }
    scene.acknowledges(20).await;
    let times = proxy.cut_at_commits();
    verify(scene, &cluster.url("rankduel"), fault, times).await;
}

/// The stall is longer than the timeout of a commit, so callers get an error response.
#[tokio::test(flavor = "multi_thread")]
async fn connections_stall() {
    let (cluster, proxy, scene) = way().await;
    inject(scene, &cluster.url("rankduel"), "connection stalled", 1, async |scene, _| {
        proxy.set(Mode::Stall);
        scene.refuses().await;
        proxy.set(Mode::Pass);
    })
    .await;
}

/// Longer than every time limit of a request, and about as long as those of the server's own calls.
#[tokio::test(flavor = "multi_thread")]
async fn connections_stall_for_ten_seconds() {
    let (cluster, proxy, scene) = way().await;
    inject(scene, &cluster.url("rankduel"), "connection stalled for 8 to 12 s", 2, async |_, _| {
        proxy.set(Mode::Stall);
        tokio::time::sleep(Duration::from_secs(8)).await;
        some_moment(4_000).await;
        proxy.set(Mode::Pass);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_slow() {
    let (cluster, proxy, scene) = way().await;
    inject(scene, &cluster.url("rankduel"), "connection slowed", 2, async |scene, round| {
        proxy.set(Mode::Slow(20 + 80 * (round % 2)));
        scene.acknowledges(20).await;
        proxy.set(Mode::Pass);
    })
    .await;
}
