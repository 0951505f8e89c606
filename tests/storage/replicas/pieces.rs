//! Pieces of clicks, sent to any server.

use serde_json::{Value, json};

use super::serve;
use crate::support::TestDatabase;
use crate::support::client::{Client, steady, until, with};

on_postgres! {
    pieces_at_two_servers_are_one_outcome
}

const LEFT: [&str; 3] = ["l1", "l2", "l3"];
const RIGHT: [&str; 3] = ["r1", "r2", "r3"];

async fn page(one: &Client, other: &Client) -> Value {
    let duel = one.next_duel("search").await;
    let body = json!({"duel_id": duel["duel_id"], "left": LEFT, "right": RIGHT, "length": 6});
    let path = "/v1/experiments/search/interleave";
    let page = other.post(path, &body).await.json(200);
    assert_eq!(one.post(path, &body).await.json(200), page, "the same page");
    page
}

async fn send(client: &Client, page: &Value, piece: Value, last: bool) -> Value {
    let body = json!({"duel_id": page["duel_id"], "clicks": piece, "final": last});
    client.feedback("search", &body).await.json(200)["status"].clone()
}

async fn pieces_at_two_servers_are_one_outcome(database: TestDatabase) {
    let ((_one, one), (_other, other)) =
        (serve(&database, &["--log", "warn"]), serve(&database, &["--log", "warn"]));
    one.create(&with(steady("search", &["a", "b"]), json!({"settle_after_seconds": 8}))).await;
    // Half of them are settled by their last piece, at either server; the others by their settling
    // time, at both servers at once.
    let mut pages = Vec::new();
    for number in 0..10 {
        let page = page(&one, &other).await;
        let (here, there) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
        assert_eq!(send(here, &page, json!(["l1"]), false).await, "recorded");
        assert_eq!(send(there, &page, json!(["l1"]), false).await, "duplicate");
        assert_eq!(send(there, &page, json!(["r1", "r2"]), false).await, "recorded");
        if number < 5 {
            assert_eq!(send(here, &page, json!(["l2"]), true).await, "recorded");
            assert_eq!(send(there, &page, json!(["l2"]), true).await, "duplicate");
            assert_eq!(send(there, &page, json!(["l3"]), false).await, "late");
        }
        pages.push(page);
    }
    let expected = json!({"left": 0, "right": 5, "tie": 5, "none": 0});
    for client in [&one, &other] {
        until("all are settled", async || client.standings("search").await["outcomes"] == expected)
            .await;
    }
    // Ten pages with two pieces each, and one entry that settles each page.
    assert_eq!(database.count("select count(*) from log").await, 30);
    for page in &pages {
        assert_eq!(send(&one, page, json!(["l1", "l2", "l3"]), false).await, "late");
    }
    assert_eq!(one.standings("search").await, other.standings("search").await);
    let statistics = "/v1/experiments/search/statistics";
    assert_eq!(one.get(statistics).await.json(200), other.get(statistics).await.json(200));
}
