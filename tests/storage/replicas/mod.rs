//! Several servers on one database: replication, eviction, key rotation, and stops.

mod archived;
mod capacity;
mod gone_back;
mod keys;
mod lame_duck;
mod large_batches;
mod rankers;
pub mod replication;
mod verdicts;
mod versions;

use crate::support::TestDatabase;
use crate::support::client::Client;
use crate::support::server::Process;

/// The program on this database with these flags, and a client of it.
fn serve(database: &TestDatabase, flags: &[&str]) -> (Process, Client) {
    Process::serving(&database.url, flags)
}

/// Flags of a server that never polls within a test.
const NEVER_LOOKS: [&str; 4] = ["--poll-milliseconds", "3600000", "--log", "warn"];
