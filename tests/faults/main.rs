//! Real processes, a real PostgreSQL, and faults in every connection and layer.
//!
//! Each test injects one fault repeatedly while callers request and answer duels, and ends with the
//! checks in [`verify`]. Every acknowledged outcome is in the log exactly once, at its acknowledged
//! position. Every replica's standings are the fold of the log from its start. Every response is
//! one that `openapi.yaml` documents.
//!
//! `scripts/test` runs the short form. This injects each fault twenty times:
//!
//! ```text
//! RANKDUEL_FAULT_ROUNDS=20 scripts/test --test faults -- --nocapture --test-threads 4
//! ```

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod clock;
mod cluster;
mod damage;
mod disk;
mod documented;
mod failover;
mod hangups;
mod kills;
mod load;
mod network;
mod orders;
mod outage;
mod power;
mod proxy;
mod scene;
mod storms;
mod verify;

use std::time::Duration;

use crate::scene::Scene;
use crate::verify::verify;

/// How often a test injects its fault: `short` times, or RANKDUEL_FAULT_ROUNDS times if that is
/// set.
fn rounds(short: u64) -> u64 {
    match std::env::var("RANKDUEL_FAULT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("RANKDUEL_FAULT_ROUNDS is a number"),
        Err(_) => short,
    }
}

/// Inject a fault at random moments while callers work, `short` times or as [`rounds`] says, and
/// verify the log. `url` is the database itself, without a proxy.
async fn inject(
    mut scene: Scene,
    url: &str,
    fault: &'static str,
    short: u64,
    mut once: impl AsyncFnMut(&mut Scene, u64),
) {
    let times = rounds(short);
    scene.open();
    for round in 0..times {
        scene.acknowledges(20).await;
        some_moment(100).await;
        once(&mut scene, round).await;
    }
    scene.acknowledges(20).await;
    verify(scene, url, fault, times).await;
}

/// Wait for a random time of up to `most_ms`.
async fn some_moment(most_ms: u64) {
    let drawn = rankduel_store::entropy::number().expect("randomness");
    tokio::time::sleep(Duration::from_millis(drawn % most_ms.max(1))).await;
}
