//! A large body is read on other threads than a small one, and gets the same answer.

use std::sync::Arc;

use axum::routing::post;
use rankduel::http::server::ConnectionSettings;
use rankduel::http::{JsonBody, ShellSettings};
use rankduel_engine::clock::SystemClock;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, JSON, steady};
use crate::support::server::Api;
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    feedback_in_a_large_body_counts_once
}

on_sqlite! {
    large_feedback_on_pages_has_a_result_for_each_item
}

const FEEDBACK: &str = "/v1/experiments/search/feedback";
const UBI: &str = "/v1/experiments/search/feedback/ubi";

/// The same JSON, with so much white space behind it that the body is large.
fn large(body: &str) -> String {
    format!("{body}{}", " ".repeat(64 * 1024))
}

async fn send(server: &Server, method: &str, path: &str, body: String) -> Answer {
    server.send(method, path, &[JSON, ("if-match", "*")], body.into_bytes()).await
}

/// Status and body, without what names the request.
fn said(answer: &Answer) -> (u16, Value) {
    let mut body: Value = serde_json::from_slice(&answer.bytes).expect("JSON");
    if let Some(members) = body.as_object_mut() {
        members.remove("request_id");
    }
    (answer.status, body)
}

/// The name of the thread on which a body is read.
struct ReadBy(String);

impl<'de> Deserialize<'de> for ReadBy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Ok(Self(std::thread::current().name().unwrap_or_default().to_owned()))
    }
}

#[tokio::test]
async fn a_large_body_is_read_on_a_thread_for_large_bodies() {
    let router =
        vec![("/read-by", post(|JsonBody(ReadBy(thread)): JsonBody<ReadBy>| async { thread }))];
    let (settings, connections) = (ShellSettings::default(), ConnectionSettings::default());
    let api =
        Api::start_with(Kind::Sqlite, &settings, Arc::new(SystemClock), connections, router).await;
    let client = Client::new(&api.server.url(""));
    let read_by = async |body: String| {
        client.send("POST", "/read-by", &[JSON], body.into_bytes()).await.text()
    };
    let small = read_by("{}".to_owned()).await;
    assert!(!small.starts_with("body-"), "a small body was read on {small}");
    let large = read_by(large("{}")).await;
    assert!(large.starts_with("body-"), "a large body was read on {large:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_the_same_on_both_sides_of_the_limit() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    let batches = json!({
        "name": "batches", "rankers": ["a", "b", "c"],
        "policy": {"kind": "pcomp", "horizon": 1000, "batches": 3},
    });
    server.create(&batches).await;
    let duel = server.pair("search").await;
    let duel = duel["duel_id"].as_str().expect("a text");
    let next = "/v1/experiments/search/next-duel";
    let interleave = "/v1/experiments/search/interleave";
    let results = "/v1/experiments/batches/batch/results";
    let cases = [
        (FEEDBACK, "{\"feedback\": [,]}".to_owned(), 400),
        (FEEDBACK, "{} {}".to_owned(), 400),
        (FEEDBACK, "[]".to_owned(), 422),
        (FEEDBACK, "{\"feedback\": []}".to_owned(), 422),
        (FEEDBACK, json!({"feedback": vec![json!({}); 1001]}).to_string(), 422),
        (FEEDBACK, json!({"duel_id": 7, "outcome": "left"}).to_string(), 422),
        (FEEDBACK, json!({"duel_id": duel, "outcome": "up"}).to_string(), 422),
        (FEEDBACK, json!({"duel_id": duel, "left_clicks": 1}).to_string(), 422),
        (FEEDBACK, json!({"duel_id": duel, "clicks": [0]}).to_string(), 422),
        (FEEDBACK, json!({"duel_id": "no duel", "outcome": "left"}).to_string(), 422),
        (FEEDBACK, json!({"feedback": [{"duel_id": "x", "outcome": "left"}, 7]}).to_string(), 200),
        (UBI, json!({"events": []}).to_string(), 422),
        (UBI, json!({"events": [], "duel": 1}).to_string(), 422),
        (
            UBI,
            json!({"events": [7, {"action_name": "look"}, {"action_name": "click"}]}).to_string(),
            200,
        ),
        (next, "nothing".to_owned(), 400),
        (next, json!({"rankings": {"a": []}, "length": 3}).to_string(), 422),
        (next, json!({"rankings": {"a": [1]}}).to_string(), 422),
        (interleave, json!({"duel_id": duel, "left": ["x", 1], "length": 1}).to_string(), 422),
        (interleave, json!({"duel_id": duel, "left": ["x"], "length": 1}).to_string(), 422),
        (results, json!({"batch": 1, "results": [{"left": "a"}]}).to_string(), 422),
        (results, json!({"batch": 1, "results": []}).to_string(), 422),
        (results, json!({"batch": 9, "results": []}).to_string(), 409),
        ("/v1/experiments", json!({"name": "x", "rankers": ["a", 1]}).to_string(), 422),
        ("/v1/experiments", json!({"name": "x", "rankers": ["a", "a"]}).to_string(), 422),
    ];
    for (path, body, status) in cases {
        let small = said(&send(&server, "POST", path, body.clone()).await);
        assert_eq!(small.0, status, "{path} {body}: {}", small.1);
        assert_eq!(said(&send(&server, "POST", path, large(&body)).await), small, "{path} {body}");
    }
    let path = "/v1/experiments/search";
    let body = json!({"enlist": {"id": 1}}).to_string();
    let small = said(&send(&server, "PATCH", path, body.clone()).await);
    assert_eq!(small.0, 422);
    assert_eq!(said(&send(&server, "PATCH", path, large(&body)).await), small);
    let unknown = "/v1/experiments/nothing/feedback";
    let body = json!({"duel_id": duel, "outcome": "left"}).to_string();
    let small = said(&send(&server, "POST", unknown, body.clone()).await);
    assert_eq!((small.0, said(&send(&server, "POST", unknown, large(&body)).await)), (404, small));
}

async fn feedback_in_a_large_body_counts_once(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for number in 1..=4_u64 {
        let duel = server.pair("search").await;
        let small = json!({"duel_id": duel["duel_id"], "outcome": "left"}).to_string();
        let mut bodies = [large(&small), small];
        if number % 2 == 0 {
            bodies.reverse();
        }
        let [first, second] = bodies;
        let receipt = |status: &str| json!({"status": status, "position": number + 1});
        let recorded = send(&server, "POST", FEEDBACK, first).await.json(200);
        assert_eq!(recorded, receipt("recorded"));
        let duplicate = send(&server, "POST", FEEDBACK, second).await.json(200);
        assert_eq!(duplicate, receipt("duplicate"));
    }
    assert_eq!(server.position("search").await, 5);
}

/// So many bytes of `duel_id`s that they are opened on the threads for large bodies.
async fn large_feedback_on_pages_has_a_result_for_each_item(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let ids = |side: &str| (0..600).map(|id| format!("{side}{id}")).collect::<Vec<_>>();
    let mut pages = Vec::new();
    for _ in 0..20 {
        let duel = server.pair("search").await;
        let body = json!({
            "duel_id": duel["duel_id"], "left": ids("l"), "right": ids("r"), "length": 600,
        });
        let page = server.post("/v1/experiments/search/interleave", &body).await.json(200);
        pages.push(page["duel_id"].clone());
    }
    let item = |duel: &Value, at: u32| json!({"duel_id": duel, "clicks": [at], "final": false});
    let mut items: Vec<Value> = pages.iter().map(|duel| item(duel, 1)).collect();
    items.push(item(&pages[0], 1));
    items.push(item(&pages[0], 600));
    items.push(json!({"duel_id": "no duel", "outcome": "left"}));
    items.push(json!(7));
    let body = json!({"feedback": items});
    assert!(body.to_string().len() > 64 * 1024, "the body is small");
    let answer = server.post(FEEDBACK, &body).await.json(200);
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), items.len());
    for (position, result) in (2..).zip(&results[..20]) {
        assert_eq!(*result, json!({"status": "recorded", "position": position}));
    }
    assert_eq!(results[20], json!({"status": "duplicate", "position": 2}));
    for (result, what) in results[21..].iter().zip(["/clicks/0", "not", "object"]) {
        assert_eq!(result["status"], "invalid", "{result}");
        assert!(result["detail"].to_string().contains(what), "{result}");
    }
    // One by one, in small bodies, they have been sent before.
    for (position, duel) in (2..).zip(&pages) {
        let again = server.feedback("search", &item(duel, 1)).await.json(200);
        assert_eq!(again, json!({"status": "duplicate", "position": position}));
    }
    let events: Vec<Value> = (0..20)
        .map(|page| {
            json!({"action_name": "click", "query_id": pages[page],
                "event_attributes": {"position": {"ordinal": 3}}})
        })
        .collect();
    let answer = server.post(UBI, &json!({"events": events})).await.json(200);
    let results = answer["results"].as_array().expect("results");
    assert!(results.iter().all(|result| result["status"] == "recorded"), "{answer}");
}
