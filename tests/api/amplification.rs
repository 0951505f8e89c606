//! Feedback does not amplify: what a request costs and what it stores are bounded by its size.

use rankduel::http::ProblemKind;
use rankduel::service::ServiceSettings;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::service::{Server, Settings};

on_both_databases! {
    events_on_a_page_are_stored_in_proportion_to_their_request
    each_piece_describes_its_page
    open_pages_are_limited_for_each_experiment
}

on_sqlite! {
    pieces_count_as_they_would_alone
}

const UBI: &str = "/v1/experiments/search/feedback/ubi";

async fn start(database: &TestDatabase) -> Server {
    Server::running(database, &steady("search", &["a", "b"])).await
}

/// A new duel with its page of this many results, half of them from either ranker.
async fn page(server: &Server, shown: usize) -> Value {
    let duel = server.pair("search").await;
    let ids = |side: &str| (0..shown).map(|id| format!("{side}{id}")).collect::<Vec<_>>();
    let body = json!({
        "duel_id": duel["duel_id"], "left": ids("l"), "right": ids("r"), "length": shown,
    });
    server.post("/v1/experiments/search/interleave", &body).await.json(200)
}

fn ubi_click(query: &str, position: usize) -> Value {
    json!({"action_name": "click", "query_id": query,
        "event_attributes": {"position": {"ordinal": position + 1}}})
}

async fn standings(server: &Server) -> Value {
    server.standings("search").await["outcomes"].clone()
}

async fn entries(database: &TestDatabase) -> i64 {
    database.count("select count(*) from log").await
}

async fn stored_bytes(database: &TestDatabase) -> i64 {
    database.count("select cast(coalesce(sum(length(detail)), 0) as bigint) from log").await
}

async fn sheets(database: &TestDatabase) -> i64 {
    database.count("select count(*) from log where detail like '%\"sheet\"%'").await
}

async fn events_on_a_page_are_stored_in_proportion_to_their_request(database: TestDatabase) {
    let server = start(&database).await;
    let page = page(&server, 1000).await;
    let events: Vec<_> = (0..1000).map(|event| ubi_click("q", event % 100)).collect();
    let body = json!({"duels": {"q": page["duel_id"]}, "events": events});
    let sent = body.to_string().len() as i64;
    let receipts = server.post(UBI, &body).await.json(200);
    let receipts = receipts["results"].as_array().expect("results");
    assert_eq!(receipts[99], json!({"status": "recorded", "position": 2}));
    assert_eq!(receipts[100], json!({"status": "duplicate", "position": 2}));
    assert_eq!(entries(&database).await, 2);
    let stored = stored_bytes(&database).await;
    assert!(stored < sent, "{sent} bytes of events store {stored}");

    // A repeat changes nothing, and neither does a repeat of a part.
    let again = server.post(UBI, &body).await.json(200);
    assert!(
        again["results"]
            .as_array()
            .expect("results")
            .iter()
            .all(|one| one["status"] == "duplicate"),
        "{again}"
    );
    assert_eq!(entries(&database).await, 2);
    // Other events are stored with the page, which their request has in its `duel_id`.
    let other = json!({"duels": {"q": page["duel_id"]}, "events": [ubi_click("q", 500)]});
    assert_eq!(
        server.post(UBI, &other).await.json(200)["results"],
        json!([{"status": "recorded", "position": 3}])
    );
    let (sent, grown) = (other.to_string().len() as i64, stored_bytes(&database).await - stored);
    assert!(grown < sent, "{sent} bytes with one more event store {grown}");
}

async fn each_piece_describes_its_page(database: TestDatabase) {
    let server = start(&database).await;
    let other = Server::start(database.connect().await).await;
    let page = page(&server, 100).await;
    let piece = |position: usize, last: bool| json!({"duel_id": page["duel_id"], "clicks": [position], "final": last});
    for position in 0..10 {
        let receipt = server.feedback("search", &piece(position, false)).await.json(200);
        assert_eq!(receipt, json!({"status": "recorded", "position": position + 2}));
    }
    // So the pieces count although the log loses any other of them.
    assert_eq!(sheets(&database).await, 10);
    for server in [&server, &other] {
        for position in 0..10 {
            let receipt = server.feedback("search", &piece(position, false)).await.json(200);
            assert_eq!(receipt, json!({"status": "duplicate", "position": position + 2}));
        }
    }
    assert_eq!(server.feedback("search", &piece(10, true)).await.json(200)["status"], "recorded");
    for server in [&server, &other] {
        let again = server.feedback("search", &piece(10, true)).await.json(200);
        assert_eq!(again, json!({"status": "duplicate", "position": 12}));
        let late = server.feedback("search", &piece(11, false)).await.json(200);
        assert_eq!(late["status"], "late");
    }
    let settled = standings(&server).await;
    let total: u64 = settled.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(total, 1, "{settled}");
    // A server that folds the log from its beginning finds the same.
    let folded = Server::start(database.connect().await).await;
    assert_eq!(standings(&folded).await, settled);
}

async fn pieces_count_as_they_would_alone(database: TestDatabase) {
    let server = start(&database).await;
    let (together, alone) = (page(&server, 8).await, page(&server, 8).await);
    let item = |page: &Value, clicks: Value, last: bool| json!({"duel_id": page["duel_id"], "clicks": clicks, "final": last});
    let pieces =
        [(json!([0, 1]), false), (json!([1]), false), (json!([2]), true), (json!([3]), false)];
    let items: Vec<_> =
        pieces.iter().map(|(clicks, last)| item(&together, clicks.clone(), *last)).collect();
    let many = server.feedback("search", &json!({"feedback": items})).await.json(200);
    assert_eq!(
        many["results"],
        json!([
            {"status": "recorded", "position": 2},
            {"status": "duplicate", "position": 2},
            {"status": "recorded", "position": 3},
            {"status": "late", "position": 3,
             "detail": "the duel was settled before these clicks (log position 3); they change nothing"},
        ])
    );
    for (clicks, last) in &pieces[..3] {
        server.feedback("search", &item(&alone, clicks.clone(), *last)).await.json(200);
    }
    let one = standings(&server).await;
    assert_eq!(
        one.as_object().expect("counts").values().filter_map(Value::as_u64).sum::<u64>(),
        2,
        "{one}"
    );
    // Clicks beyond the hundredth position count as little together as alone.
    let (together, alone) = (page(&server, 200).await, page(&server, 200).await);
    let halves: [Vec<usize>; 2] = [(60..160).collect(), (0..60).collect()];
    let items: Vec<_> = halves.iter().map(|half| item(&together, json!(half), false)).collect();
    let many = server.feedback("search", &json!({"feedback": items})).await.json(200);
    assert_eq!(many["results"][1]["status"], "duplicate", "there is no room for it");
    for half in &halves {
        server.feedback("search", &item(&alone, json!(half), false)).await.json(200);
    }
    for page in [&together, &alone] {
        server.feedback("search", &item(page, json!([]), true)).await.json(200);
    }
    // A reported outcome takes the place of the clicks before it, in one request too.
    let page = page(&server, 8).await;
    let items = json!({"feedback": [
        item(&page, json!([0]), false),
        {"duel_id": page["duel_id"], "outcome": "tie"},
    ]});
    let before = standings(&server).await["tie"].as_u64().expect("a count");
    server.feedback("search", &items).await.json(200);
    assert_eq!(standings(&server).await["tie"], before + 1);
}

async fn open_pages_are_limited_for_each_experiment(database: TestDatabase) {
    let service = ServiceSettings { open_pages_bytes_max: 5000, ..ServiceSettings::default() };
    let settings = Settings { service, ..Settings::default() };
    let server = Server::with(database.store().await, settings).await;
    for name in ["search", "other"] {
        server.create(&steady(name, &["a", "b"])).await;
    }
    let item = |page: &Value, last: bool| json!({"duel_id": page["duel_id"], "clicks": [0], "final": last});
    let mut open = Vec::new();
    let refused = loop {
        let page = page(&server, 40).await;
        let answer = server.feedback("search", &item(&page, false)).await;
        if answer.status != 200 {
            answer.problem(ProblemKind::Overloaded);
            break page;
        }
        open.push(page);
        assert!(open.len() < 20, "there is no limit");
    };
    assert!(open.len() > 2, "{} pages are open", open.len());
    // Clicks that settle their duel, outcomes and other experiments are not affected.
    assert_eq!(server.feedback("search", &item(&refused, true)).await.status, 200);
    let duel = server.pair("search").await;
    server.answer("search", &duel, "left").await;
    let duel = server.pair("other").await;
    server.answer("other", &duel, "left").await;
    // Once a duel is settled, there is room again.
    server.feedback("search", &item(&open[0], true)).await.json(200);
    let page = page(&server, 8).await;
    server.feedback("search", &item(&page, false)).await.json(200);
}
