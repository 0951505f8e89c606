//! Many clients at once: all with the same answer, or all about one pair.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::load::{Fate, Office, SentAnswer};
use crate::rounds;
use crate::scene::Scene;
use crate::support::TestDatabase;
use crate::verify::verify;

on_both_databases! {
    all_clients_send_the_same_answer
    all_clients_answer_about_one_pair
}

const CLIENTS: usize = 64;
/// Number of answers that all clients send at once.
const DUELS: u64 = 10;

/// The clients use all processes, and repeat after these were killed.
async fn all_clients_send_the_same_answer(database: TestDatabase) {
    let times = rounds(1);
    let mut scene = Scene::set(&database.url, 2).await;
    for _ in 0..times {
        let client = scene.client(0);
        let mut duels = Vec::new();
        for _ in 0..DUELS {
            duels.push(client.pair("steady").await["duel_id"].as_str().expect("an id").to_owned());
        }
        let first = storm(&scene.office, &duels).await;
        for (duel, receipts) in duels.iter().zip(&first) {
            let positions = positions(receipts);
            assert_eq!(count(receipts, "recorded"), 1, "{receipts:?}");
            assert_eq!(count(receipts, "duplicate"), CLIENTS - 1, "{receipts:?}");
            let fate = Fate::Acknowledged(positions[0]);
            let sent = SentAnswer { name: "steady".into(), outcome: "left", fate };
            scene.office.know(|memory| memory.duels.insert(duel.clone(), sent));
        }
        for replica in 0..scene.places() {
            scene.kill(replica);
            scene.start(replica);
        }
        for (before, receipts) in first.iter().zip(&storm(&scene.office, &duels).await) {
            assert_eq!(count(receipts, "duplicate"), CLIENTS, "{receipts:?}");
            assert_eq!(positions(receipts), positions(before));
        }
    }
    let storms = times * DUELS * 2;
    verify(scene, &database.url, "the same answer from 64 clients", storms).await;
}

fn count(receipts: &[Value], status: &str) -> usize {
    receipts.iter().filter(|receipt| receipt["status"] == status).count()
}

/// The distinct log positions in these receipts.
fn positions(receipts: &[Value]) -> Vec<u64> {
    let mut positions: Vec<_> =
        receipts.iter().map(|receipt| receipt["position"].as_u64().expect("a position")).collect();
    positions.sort_unstable();
    positions.dedup();
    assert_eq!(positions.len(), 1, "{receipts:?}");
    positions
}

/// All clients send each of these answers at once; returns the receipts of each client in order.
async fn storm(office: &Arc<Office>, duels: &[String]) -> Vec<Vec<Value>> {
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (office, duels) = (Arc::clone(office), duels.to_vec());
        clients.spawn(async move {
            let mut receipts = Vec::new();
            for duel in duels {
                let body = json!({"duel_id": duel, "outcome": "left"});
                let feedback = "POST /v1/experiments/{name}/feedback";
                receipts.push(loop {
                    if let Some(answer) = office.ask(client, feedback, "steady", Some(&body)).await
                    {
                        break answer.json(200);
                    }
                });
            }
            receipts
        });
    }
    let by_client = clients.join_all().await;
    (0..duels.len())
        .map(|duel| by_client.iter().map(|receipts| receipts[duel].clone()).collect())
        .collect()
}

/// Hundreds of clients, and one experiment with two rankers.
async fn all_clients_answer_about_one_pair(database: TestDatabase) {
    let times = rounds(1);
    let scene = Scene::set(&database.url, 2).await;
    let callers = scene.office.open(300, &["pair"]);
    for _ in 0..times {
        scene.acknowledges(600).await;
    }
    scene.office.close();
    callers.join_all().await;
    verify(scene, &database.url, "300 clients on one pair", times).await;
}
