//! Feedback on one duel adds a bounded number of entries to the log, whatever is sent, however
//! often and to whichever server.

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, until, with};
use crate::support::service::Server;

on_both_databases! {
    a_value_that_comes_again_is_ignored
    clicks_on_one_page_have_a_bounded_number_of_entries
    a_page_that_is_made_again_is_no_other_page
}

/// Entries with clicks that the log keeps for one duel.
const CLICK_PLACES: i64 = 128;

fn experiment() -> Value {
    json!({
        "name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}, "seed": 3,
        "conclude_at": "never", "answer_window_seconds": 0, "duel_ttl_seconds": 3600,
        "value_window_seconds": 3600,
        "metrics": [
            {"name": "latency_ms", "cap": 1000, "limit": 400, "on_harm": "tell"},
            {"name": "failed", "cap": 1, "limit": 0.1, "on_harm": "tell"},
        ],
    })
}

/// Entries with values or with the page of a duel.
async fn entries(database: &TestDatabase) -> i64 {
    database.count("select count(*) from log where detail like '%\"values\",\"pages\"%'").await
}

/// Pages in the log without or with values.
async fn pages(database: &TestDatabase) -> usize {
    let log = "select detail from log where detail like '%\"values\",\"pages\"%'";
    let pages = database.texts(log.to_owned()).await;
    pages.iter().flatten().map(|text| text.matches("\"duel\"").count()).sum()
}

async fn send(server: &Client, duel: &Value, metrics: Value) -> Value {
    let body = json!({"duel_id": duel["duel_id"], "metrics": metrics});
    server.feedback("search", &body).await.json(200)
}

fn pointers(receipt: &Value) -> Vec<&str> {
    let ignored = receipt["ignored"].as_array();
    ignored.into_iter().flatten().filter_map(|it| it["pointer"].as_str()).collect()
}

async fn a_value_that_comes_again_is_ignored(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment()).await;
    let duel = first.pair("search").await;
    let receipt = send(&first, &duel, json!({"a": {"latency_ms": 10}})).await;
    assert_eq!((&receipt["status"], &receipt["ignored"]), (&json!("recorded"), &Value::Null));
    let head = entries(&database).await;
    for server in [&first, &second] {
        // the same again
        let again = send(server, &duel, json!({"a": {"latency_ms": 10}})).await;
        assert_eq!((&again["status"], &again["ignored"]), (&json!("duplicate"), &Value::Null));
        // a growing basket
        for value in 11..60 {
            let other = send(server, &duel, json!({"a": {"latency_ms": value}})).await;
            assert_eq!(other["status"], "ignored", "{other}");
            assert_eq!(pointers(&other), ["/metrics/a/latency_ms"], "{other}");
        }
    }
    assert_eq!(entries(&database).await, head);

    // a value that the first report lacks is one more entry, at whichever server
    let more = json!({"a": {"latency_ms": 12, "failed": 0}, "b": {"latency_ms": 7}});
    let receipt = send(&second, &duel, more.clone()).await;
    assert_eq!(receipt["status"], "recorded", "{receipt}");
    assert_eq!(pointers(&receipt), ["/metrics/a/latency_ms"], "{receipt}");
    assert_eq!(entries(&database).await, head + 2);
    for server in [&first, &second] {
        let other = json!({"a": {"failed": 1}, "b": {"latency_ms": 7}});
        let receipt = send(server, &duel, other).await;
        assert_eq!(pointers(&receipt), ["/metrics/a/failed"], "{receipt}");
        // beside an answer they spoil nothing
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "metrics": {"b": {"latency_ms": 8}}});
        let receipt = server.feedback("search", &body).await.json(200);
        assert_ne!(receipt["status"], "ignored", "{receipt}");
        assert_eq!(pointers(&receipt), ["/metrics/b/latency_ms"], "{receipt}");
    }
    assert_eq!(entries(&database).await, head + 2);

    // items of one request about one page
    let duel = first.pair("search").await;
    let item =
        |value: u32| json!({"duel_id": duel["duel_id"], "metrics": {"b": {"latency_ms": value}}});
    let body = json!({"feedback": (0..200).map(|item_at| item(item_at / 2)).collect::<Vec<_>>()});
    let head = entries(&database).await;
    let receipts = first.feedback("search", &body).await.json(200);
    let statuses = receipts["results"].as_array().expect("results").iter();
    let statuses: Vec<_> = statuses.map(|it| it["status"].as_str().expect("a status")).collect();
    assert_eq!(statuses[..3], ["recorded", "duplicate", "ignored"]);
    assert!(statuses[2..].iter().all(|status| *status == "ignored"), "{statuses:?}");
    assert_eq!(entries(&database).await, head + 2, "the page, and its value");
}

async fn clicks_on_one_page_have_a_bounded_number_of_entries(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment()).await;
    let duel = first.pair("search").await;
    let ids = |side: &str| (0..6).map(|id| format!("{side}{id}")).collect::<Vec<_>>();
    let body =
        json!({"duel_id": duel["duel_id"], "left": ids("l"), "right": ids("r"), "length": 10});
    let page = first.post("/v1/experiments/search/interleave", &body).await.json(200);
    let piece = |number: u32| {
        let clicks: Vec<_> = (0..10).filter(|bit| number >> bit & 1 == 1).collect();
        json!({"duel_id": page["duel_id"], "clicks": clicks, "final": false})
    };
    let mut recorded = Vec::new();
    // ever other ones: all sets of positions
    for number in 1..400 {
        let server = if number % 2 == 0 { &first } else { &second };
        let receipt = server.feedback("search", &piece(number)).await.json(200);
        match receipt["status"].as_str() {
            Some("recorded") => recorded.push(number),
            Some("duplicate" | "ignored") => {}
            _ => panic!("{receipt}"),
        }
    }
    let logged = "select count(*) from log where detail like '%\"clicks\",\"duel\"%'";
    let count = database.count(logged).await;
    assert_eq!(count, recorded.len() as i64);
    assert!((100..=CLICK_PLACES).contains(&count), "{count} entries");
    // a server that has read the log anew knows each of them
    let third = Server::start(database.connect().await).await;
    for number in recorded {
        let again = third.feedback("search", &piece(number)).await.json(200);
        assert_eq!(again["status"], "duplicate", "{again}");
    }
    let last = with(piece(3), json!({"final": true}));
    assert_eq!(third.feedback("search", &last).await.json(200)["status"], "recorded");
    assert_eq!(database.count(logged).await, count + 1, "the one that settles");
    for number in 400..420 {
        let late = third.feedback("search", &piece(number)).await.json(200);
        assert_eq!(late["status"], "late", "{late}");
    }
    assert_eq!(database.count(logged).await, count + 1);
}

async fn a_page_that_is_made_again_is_no_other_page(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment()).await;
    let duel = first.pair("search").await;
    for round in 0..6 {
        let server = if round % 2 == 0 { &first } else { &second };
        let value = json!({"a": {"latency_ms": 10 + round}});
        let body = json!({
            "duel_id": duel["duel_id"], "left": ["d1"], "right": ["d2"], "length": 2, "metrics": value,
        });
        let made = server.post("/v1/experiments/search/interleave", &body).await.json(200);
        let expected: &[&str] = if round == 0 { &[] } else { &["/metrics/a/latency_ms"] };
        assert_eq!(pointers(&made), expected, "{made}");
        // one more page, and all of this one has been appended that ever is
        let before = pages(&database).await;
        server.pair("search").await;
        until("the next page", async || pages(&database).await > before).await;
        let head = first.position("search").await.max(second.position("search").await);
        for server in [&first, &second] {
            until("the log", async || server.position("search").await >= head).await;
        }
    }
    // the page once, perhaps with its value in a second entry, and six others
    let pages = pages(&database).await;
    assert!((7..=8).contains(&pages), "{pages}");
}
