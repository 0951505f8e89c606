//! Restarts: snapshots and pages with pieces of clicks go on as they were. `tests/faults`
//! has those under load.

mod pieces;
mod snapshots;

use crate::support::TestDatabase;
use crate::support::client::Client;
use crate::support::server::Process;
use serde_json::Value;

/// The program on this database, serving on a free port, and a client of it.
fn serve(database: &TestDatabase) -> (Process, Client) {
    Process::serving(&database.url, &["--log", "warn"])
}

/// Answer enough duels of an experiment for a snapshot: 11 000, in requests of 1000.
async fn answer_many(client: &Client, name: &str) {
    for round in 0..11 {
        let lease = serde_json::json!({"count": 1000});
        let leased =
            client.post(&format!("/v1/experiments/{name}/batch/lease"), &lease).await.json(200);
        let items: Vec<_> = leased["duels"]
            .as_array()
            .expect("duels")
            .iter()
            .enumerate()
            .map(|(number, duel)| {
                let outcome = ["left", "right", "left", "none", "tie"][(number + round) % 5];
                serde_json::json!({"duel_id": duel["duel_id"], "outcome": outcome})
            })
            .collect();
        let receipts =
            client.feedback(name, &serde_json::json!({"feedback": items})).await.json(200);
        for receipt in receipts["results"].as_array().expect("results") {
            assert_eq!(receipt["status"], "recorded");
        }
    }
}

/// The standings of a process that starts without snapshots and folds the log from its start.
async fn folded_from_the_start(database: &TestDatabase, name: &str) -> Value {
    database.execute("delete from snapshot").await;
    let (process, client) = serve(database);
    let standings = client.standings(name).await;
    process.stop();
    standings
}
