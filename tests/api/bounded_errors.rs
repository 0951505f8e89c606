//! A refusal is small, however many errors the request has and however long its texts are.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, steady};
use crate::support::service::Server;

on_sqlite! {
    a_refused_experiment_lists_few_errors
    a_refused_batch_or_page_lists_few_errors
    long_texts_are_cut
    unknown_events_name_few_of_the_known_ones
}

/// Most errors that a refusal lists.
const ERRORS_MAX: usize = 100;
/// No refusal is larger.
const BYTES_MAX: usize = 64 * 1024;

/// The errors of a refusal.
fn errors(answer: &Answer) -> Vec<Value> {
    assert!(answer.bytes.len() <= BYTES_MAX, "{} bytes", answer.bytes.len());
    let problem = answer.problem(ProblemKind::InvalidRequest);
    problem["errors"].as_array().expect("errors").clone()
}

async fn a_refused_experiment_lists_few_errors(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let refused = async |changes: Value| {
        let mut body = json!({"name": "search", "rankers": ["a", "b"]});
        for (field, value) in changes.as_object().expect("an object") {
            body[field] = value.clone();
        }
        errors(&server.post("/v1/experiments", &body).await)
    };
    // Of too many rankers, it only says that they are too many, and what to do.
    for count in [257, 100_000] {
        let found = refused(json!({"rankers": vec![""; count]})).await;
        assert_eq!((found.len(), &found[0]["pointer"]), (1, &json!("/rankers")));
        let detail = found[0]["detail"].as_str().expect("a text");
        assert!(detail.contains(&format!("2 to 256 rankers; this one has {count}: leave out")));
    }
    // Each of these has two errors: it is empty, and listed twice.
    let found = refused(json!({"rankers": vec![""; 256]})).await;
    assert_eq!((found.len(), &found[0]["pointer"]), (ERRORS_MAX, &json!("/rankers/0")));
    let events: serde_json::Map<String, Value> =
        (0..50_000).map(|event| (format!("event-{event}"), json!(0))).collect();
    let found = refused(json!({"event_weights": events})).await;
    assert_eq!((found.len(), &found[0]["pointer"]), (1, &json!("/event_weights")));
    // A few errors are all listed.
    let found = refused(json!({"rankers": ["a", "a", ""], "duel_ttl_seconds": 0})).await;
    let found: Vec<_> = found.iter().map(|error| error["pointer"].as_str()).collect();
    assert_eq!(found[..3], [Some("/rankers/1"), Some("/rankers/2"), Some("/duel_ttl_seconds")]);
    assert_eq!(server.get("/v1/experiments").await.json(200)["experiments"], json!([]));
}

async fn a_refused_batch_or_page_lists_few_errors(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let row = json!({
        "left": "x".repeat(10_000), "right": "b", "left_wins": 1, "right_wins": 0, "ties": 0,
    });
    let body = json!({"batch": 1, "results": vec![row; 150]});
    let found = errors(&server.post("/v1/experiments/search/batch/results", &body).await);
    assert_eq!(found.len(), ERRORS_MAX);
    let rankings: serde_json::Map<String, Value> =
        (0..20_000).map(|ranker| (format!("{ranker:05}"), json!([]))).collect();
    let body = json!({"rankings": rankings, "length": 10});
    let found = errors(&server.post("/v1/experiments/search/next-duel", &body).await);
    assert_eq!((found.len(), &found[0]["pointer"]), (20, &json!("/rankings/00000")));
}

async fn long_texts_are_cut(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let long = "x".repeat(1_000_000);
    let mut unknown_field = json!({"name": "other", "rankers": ["a", "b"]});
    unknown_field[&*long] = json!(1);
    for body in [
        unknown_field,
        json!({"name": "other", "rankers": [long, long]}),
        json!({"name": "other", "rankers": ["a", "b"], "event_weights": {(&*long): 0}}),
        json!({"name": "other", "rankers": ["a", "b"], "canary": ["a", long]}),
        json!({"name": "other", "rankers": ["a", "b"], "policy": {"kind": long}}),
    ] {
        let answer = server.post("/v1/experiments", &body).await;
        assert!(!errors(&answer).is_empty());
    }
    let body = json!({"duel_id": "AQ", "outcome": long});
    errors(&server.feedback("search", &body).await);
}

async fn unknown_events_name_few_of_the_known_ones(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = steady("search", &["a", "b"]);
    // With `click`, they are the 32 that an experiment can have.
    for event in 10..41 {
        body["event_weights"][format!("{event}{}", "-".repeat(98))] = json!(1);
    }
    server.create(&body).await;
    let duel = server.pair("search").await;
    let body = json!({
        "duel_id": duel["duel_id"], "left": ["l1", "l2"], "right": ["r1", "r2"], "length": 2,
    });
    let page = server.post("/v1/experiments/search/interleave", &body).await.json(200);
    let item = json!({"duel_id": page["duel_id"], "clicks": [{"position": 0, "event": "absent"}]});
    let body = json!({"feedback": vec![item; 100]});
    let receipts = server.feedback("search", &body).await.json(200);
    for receipt in receipts["results"].as_array().expect("results") {
        let detail = receipt["detail"].as_str().expect("a detail");
        assert_eq!(receipt["status"], "invalid");
        assert!(detail.contains("no event `absent`") && detail.ends_with(" and 27 more"));
        assert!(detail.len() < 1000, "{detail}");
    }
}
