//! `kill -9` while clicks arrive in pieces.

use serde_json::{Value, json};

use super::{folded_from_the_start, serve};
use crate::support::TestDatabase;
use crate::support::client::{Client, PATIENCE, steady};

on_both_databases! {
    pieces_give_the_same_outcomes_with_and_without_a_kill
}

const LEFT: [&str; 4] = ["l1", "l2", "l3", "l4"];
const RIGHT: [&str; 4] = ["r1", "r2", "r3", "r4"];
const PAGES: usize = 24;

/// The pieces of one page, and whether its last piece settles it; other pages are settled by an
/// additional empty piece.
fn pieces(number: usize) -> (Vec<Value>, bool) {
    let pieces = match number % 6 {
        0 => vec![json!(["l1"]), json!(["r1"]), json!(["r2"])],
        1 => vec![json!(["l1", "l2"]), json!(["r1"]), json!(["l1"])],
        2 => vec![json!([]), json!([]), json!([])],
        3 => vec![json!(["l4"]), json!(["r4"]), json!([])],
        4 => vec![json!([{"document": "r1"}]), json!(["l1"]), json!(["l1", "l2"])],
        _ => vec![json!(["r3"]), json!(["r3"]), json!([{"document": "l1"}])],
    };
    (pieces, number.is_multiple_of(2))
}

async fn create(client: &Client, name: &str) -> Vec<Value> {
    client.create(&steady(name, &["a", "b"])).await;
    let mut pages = Vec::new();
    for _ in 0..PAGES {
        let duel = client.next_duel(name).await;
        let body = json!({"duel_id": duel["duel_id"], "left": LEFT, "right": RIGHT, "length": 8});
        let page =
            client.post(&format!("/v1/experiments/{name}/interleave"), &body).await.json(200);
        pages.push(page);
    }
    pages
}

async fn send(client: &Client, name: &str, page: &Value, piece: &Value, last: bool) -> String {
    let body = json!({"duel_id": page["duel_id"], "clicks": piece, "final": last});
    let receipt = client.feedback(name, &body).await.json(200);
    receipt["status"].as_str().expect("a status").to_owned()
}

/// The wins of both sides, ties and pages without a signal, once every page is settled.
async fn settled(client: &Client, name: &str, pages: &[Value]) -> Value {
    for (number, page) in pages.iter().enumerate() {
        if !pieces(number).1 {
            assert_eq!(send(client, name, page, &json!([]), true).await, "recorded");
        }
    }
    let standings = client.standings(name).await;
    assert_eq!(standings["duels"], PAGES);
    standings["outcomes"].clone()
}

async fn pieces_give_the_same_outcomes_with_and_without_a_kill(database: TestDatabase) {
    let (mut process, mut client) = serve(&database);
    let undisturbed = create(&client, "undisturbed").await;
    let killed = create(&client, "killed").await;
    for turn in 0..3 {
        for (number, page) in undisturbed.iter().enumerate() {
            let (pieces, last) = pieces(number);
            send(&client, "undisturbed", page, &pieces[turn], last && turn == 2).await;
        }
    }
    for turn in 0..3 {
        for (number, page) in killed.iter().enumerate() {
            let (pieces, last) = pieces(number);
            let last = last && turn == 2;
            let (sent, page, piece) = (client.clone(), page.clone(), pieces[turn].clone());
            // Some are sent at the moment of the kill. Whether they were recorded is unknown, so
            // they are sent again.
            if number % 8 == 5 {
                let (page, piece) = (page.clone(), piece.clone());
                let sending = tokio::spawn(async move {
                    let body = json!({"duel_id": page["duel_id"], "clicks": piece, "final": last})
                        .to_string();
                    let path = "/v1/experiments/killed/feedback";
                    let headers = [crate::support::client::JSON];
                    drop(sent.try_send("POST", path, &headers, body.into_bytes()).await);
                });
                process.signal("KILL");
                process.wait();
                tokio::time::timeout(PATIENCE, sending).await.expect("an end").expect("no panic");
                (process, client) = serve(&database);
            }
            let status = send(&client, "killed", &page, &piece, last).await;
            assert!(["recorded", "duplicate"].contains(&status.as_str()), "{status}");
            assert_eq!(send(&client, "killed", &page, &piece, last).await, "duplicate");
        }
    }
    let expected = settled(&client, "undisturbed", &undisturbed).await;
    assert_eq!(settled(&client, "killed", &killed).await, expected);
    let total: u64 = expected.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(total, PAGES as u64);
    for page in &killed {
        assert_eq!(send(&client, "killed", page, &json!(["l3", "l4", "r1"]), false).await, "late");
    }
    let standings = client.standings("killed").await;
    process.stop();
    assert_eq!(folded_from_the_start(&database, "killed").await, standings);
}
