//! `POST /v1/plan`: its numbers, and bad input.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::until;
use crate::support::service::Server;

on_sqlite! {
    a_plan_has_days_and_their_cost
    a_plan_that_takes_too_long_says_what_to_change
    every_wrong_field_is_named_with_its_range
    a_wrong_plan_does_not_wait_for_others
}

fn request(more: Value) -> Value {
    let mut body = json!({"rankers": 3, "difference": 0.15, "pages_per_day": 100});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    body
}

async fn a_plan_has_days_and_their_cost(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let plan = async |more: Value| server.post("/v1/plan", &request(more)).await.json(200);
    let number = |value: &Value| value.as_f64().expect("a number");
    let half = plan(json!({"answered": 0.5})).await;
    let pages = number(&half["pages"]["median"]);
    assert!((50.0..5000.0).contains(&pages), "{half}");
    assert!(number(&half["pages"]["high"]) > pages);
    let days = number(&half["days"]["median"]);
    assert!((days - pages / 100.0).abs() <= 0.06 * days, "{half}");
    assert!((0.0..pages).contains(&number(&half["regret_pages"])));
    let sentence = half["sentence"].as_str().expect("a text");
    assert!(sentence.starts_with("Half of such experiments have a verdict within"), "{sentence}");

    // larger differences take less time
    let curve = half["curve"].as_array().expect("a list");
    assert!(curve.len() >= 3, "{half}");
    for pair in curve.windows(2) {
        assert!(number(&pair[0]["difference"]) < number(&pair[1]["difference"]));
    }
    let of = |at: usize| number(&curve[at]["days"]["median"]);
    assert!(of(0) > 2.0 * of(curve.len() - 1), "{half}");

    // the same simulations with half of the answers take twice the pages
    let quarter = plan(json!({"answered": 0.5, "repeats": 0.5})).await;
    let ratio = number(&quarter["pages"]["median"]) / pages;
    assert!((1.8..2.2).contains(&ratio), "{ratio}");
    // less time shows larger differences only
    let smallest = |report: &Value| number(&report["smallest_difference"]);
    let hurried = plan(json!({"answered": 0.5, "days": 1})).await;
    assert!(smallest(&hurried) > 2.0 * smallest(&half), "{hurried}");
    // more confidence takes longer
    let certain = plan(json!({"answered": 0.5, "confidence": 0.9999})).await;
    assert!(number(&certain["pages"]["median"]) > 1.2 * pages, "{certain}");
}

async fn a_plan_that_takes_too_long_says_what_to_change(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({"rankers": 100, "difference": 0.0001, "margin": 0, "pages_per_day": 10});
    let report = server.post("/v1/plan", &body).await.json(200);
    for empty in ["pages", "days", "regret_pages", "smallest_difference"] {
        assert_eq!(report[empty], Value::Null, "{report}");
    }
    let sentence = report["sentence"].as_str().expect("a text");
    assert!(sentence.starts_with("More than ") && sentence.contains("Raise the"), "{sentence}");
}

async fn every_wrong_field_is_named_with_its_range(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (field, value, range) in [
        ("rankers", json!(1), "2 to 100"),
        ("rankers", json!(101), "2 to 100"),
        ("difference", json!(0), "0.0001 to 0.45"),
        ("difference", json!(0.46), "0.0001 to 0.45"),
        ("pages_per_day", json!(0), "1 to 1,000,000,000"),
        ("answered", json!(5e-324), "0.001 to 1"),
        ("answered", json!(30), "0.001 to 1"),
        ("repeats", json!(1), "0 to 0.99"),
        ("confidence", json!(1), "0.5 to 0.9999"),
        ("margin", json!(-0.1), "0 to 0.2"),
        ("days", json!(0), "0.01 to 3650"),
    ] {
        let answer = server.post("/v1/plan", &request(json!({field: value}))).await;
        let problem = answer.problem_at(ProblemKind::InvalidRequest, &format!("/{field}"));
        let detail = problem["errors"][0]["detail"].as_str().expect("a detail");
        assert!(detail.contains(&format!("`{field}` is ")) && detail.contains(range), "{detail}");
    }
    for (body, pointer) in [
        (request(json!({"rankers": "three"})), "/rankers"),
        (request(json!({"goal": "soon"})), "/goal"),
    ] {
        let answer = server.post("/v1/plan", &body).await;
        answer.problem_at(ProblemKind::InvalidRequest, pointer);
    }
}

/// With twice as many plans as threads for reports, the next one waits for seconds.
async fn a_wrong_plan_does_not_wait_for_others(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let long = json!({"rankers": 100, "difference": 0.0001, "margin": 0, "pages_per_day": 10});
    let cores = std::thread::available_parallelism().expect("processors").get();
    let plans: Vec<_> = (0..=cores)
        .map(|_| {
            let (client, body) = (server.client(), long.clone());
            tokio::spawn(async move { client.post("/v1/plan", &body).await })
        })
        .collect();
    until("all plans run or wait", async || {
        let text = server.get("/metrics").await.text();
        let in_flight = text
            .lines()
            .find_map(|line| line.strip_prefix("rankduel_http_requests_in_flight ")?.parse().ok());
        // the request for the metrics is one, too
        in_flight.is_some_and(|requests: usize| requests > plans.len())
    })
    .await;
    let answer = server.post("/v1/plan", &request(json!({"days": 0}))).await;
    answer.problem_at(ProblemKind::InvalidRequest, "/days");
    assert!(plans.iter().all(|plan| !plan.is_finished()), "it waited for another plan");
}
