//! Real processes, a real PostgreSQL, and everything that can be broken between and below them.
//!
//! Each test breaks one thing again and again while callers ask for duels and answer them, and ends
//! in an audit ([`audit`]): every acknowledged outcome is in the log exactly once and where it was
//! said to be, every replica's standings are the fold of that log from its start, and nobody was
//! told anything that `openapi.yaml` does not say.
//!
//! `scripts/test` runs the short form. `scripts/faults --rounds 20` breaks each thing twenty times,
//! and prints the table.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod audit;
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

use std::time::Duration;

/// How often a test breaks what it breaks: `short` times, or as often as RANKDUEL_FAULT_ROUNDS
/// says.
fn rounds(short: u64) -> u64 {
    match std::env::var("RANKDUEL_FAULT_ROUNDS") {
        Ok(rounds) => rounds.parse().expect("RANKDUEL_FAULT_ROUNDS is a number"),
        Err(_) => short,
    }
}

/// A moment that nobody chose: up to `most_ms`, another one in each round and each run.
async fn some_moment(most_ms: u64) {
    let drawn = rankduel::entropy::number().expect("randomness");
    tokio::time::sleep(Duration::from_millis(drawn % most_ms.max(1))).await;
}
