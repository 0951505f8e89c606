//! Real processes, a real PostgreSQL, and faults in every connection and layer.
//!
//! Each test injects one fault repeatedly while callers request and answer duels, and ends with the
//! checks in [`verify`]. Every acknowledged outcome is in the log exactly once, at its acknowledged
//! position. Every replica's standings are the fold of the log from its start. Every response is
//! one that `openapi.yaml` documents.
//!
//! `scripts/test` runs the short form. `scripts/faults --rounds 20` injects each fault twenty times
//! and prints the table.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod clock;
mod cluster;
mod damage;
mod disk;
mod documented;
mod failover;
mod kills;
mod load;
mod network;
mod proxy;
mod report;
mod scene;
mod storms;
mod verify;

use std::time::Duration;

/// How often a test injects its fault: `short` times, or RANKDUEL_FAULT_ROUNDS times if that is
/// set.
fn rounds(short: u64) -> u64 {
    match std::env::var("RANKDUEL_FAULT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("RANKDUEL_FAULT_ROUNDS is a number"),
        Err(_) => short,
    }
}

/// Wait for a random time of up to `most_ms`.
async fn some_moment(most_ms: u64) {
    let drawn = rankduel::entropy::number().expect("randomness");
    tokio::time::sleep(Duration::from_millis(drawn % most_ms.max(1))).await;
}
