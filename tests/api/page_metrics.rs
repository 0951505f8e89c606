//! Metrics of a page: values of pages that show one ranker alone, claims, and the reaction to harm.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_verifies, eventually, until};
use crate::support::service::Server;

on_both_databases! {
    a_leader_that_earns_less_is_retired
}

on_sqlite! {
    values_count_on_the_pages_of_their_metric
}

const NAME: &str = "/v1/experiments/search";

fn experiment(metrics: &Value) -> Value {
    json!({
        "name": "search", "rankers": ["now", "next", "other"], "policy": {"kind": "uniform"},
        "seed": 3, "conclude_at": "never", "answer_window_seconds": 0, "control": "now",
        "alone": 0.5, "metrics": metrics, "value_window_seconds": 600,
    })
}

fn revenue() -> Value {
    json!({"name": "revenue", "of": "page", "better": "higher", "cap": 10, "difference": 1})
}

/// The duel of a unit, and its arm.
async fn duel(server: &Client, unit: usize) -> (Value, Option<String>) {
    let body = json!({"unit": format!("unit-{unit}")});
    let duel = server.post(&format!("{NAME}/next-duel"), &body).await.json(200);
    let arm = duel["alone"].as_str().map(str::to_owned);
    (duel, arm)
}

/// `next` leads from here on.
async fn lead(server: &Client) {
    for _ in 0..40 {
        let duel = server.pair("search").await;
        let won = if duel["left"] == "next" { "left" } else { "right" };
        let won = if duel["right"] == "next" || won == "left" { won } else { "none" };
        server.answer("search", &duel, won).await;
    }
}

async fn claim(server: &Client, claim: &str) -> Value {
    let claims = server.get(&format!("{NAME}/claims")).await.json(200);
    let claims = claims["claims"].as_array().expect("a list").clone();
    let is_it = |found: &&Value| found["claim"] == claim && found["ranker"] == "next";
    claims.iter().find(is_it).cloned().unwrap_or_default()
}

async fn a_leader_that_earns_less_is_retired(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment(&json!([revenue()]))).await;
    lead(&first).await;
    let position = async |server: &Client| {
        server.get(&format!("{NAME}/claims")).await.json(200)["position"].as_u64()
    };
    let head = position(&first).await;
    until("the same leader", async || position(&second).await >= head).await;
    let mut alone = Vec::new();
    for unit in 0..200 {
        let server = if unit % 2 == 0 { &first } else { &second };
        if let (duel, Some(arm)) = duel(server, unit).await {
            alone.push((duel, arm));
        }
    }
    // half an hour later or so, a purchase on each page of the control
    for server in [&first, &second] {
        server.clock.advance_ms(500_000);
    }
    for (duel, arm) in &alone {
        let values = match arm.as_str() {
            "control" => json!({"now": {"revenue": 20.0}}),
            _ => json!({"next": {"revenue": 0}}),
        };
        let body = json!({"duel_id": duel["duel_id"], "metrics": values});
        assert_eq!(second.feedback("search", &body).await.json(200)["status"], "recorded");
    }
    until("the pages in the log", async || {
        let log = "select detail from log where detail like '%\"values\",\"pages\"%'";
        let entries = database.texts(log.to_owned()).await;
        let entries = entries.iter().flatten();
        let entries = entries.map(|text| serde_json::from_str::<Value>(text).expect("an event"));
        let pages = entries.flat_map(|it| it["pages"].as_array().expect("pages").clone());
        let pages = pages.filter(|page| !page["alone"].is_null());
        pages.map(|page| page["duel"].to_string()).collect::<HashSet<_>>().len() >= alone.len()
    })
    .await;
    assert_eq!(claim(&first, "harm").await["state"], "open", "no window has ended");
    for server in [&first, &second] {
        server.clock.advance_ms(200_000);
    }
    for server in [&first, &second] {
        until("the retirement", async || {
            let found = server.get(NAME).await.json(200);
            found["rankers"][1]["retired"] == json!(true)
        })
        .await;
    }
    let harm = claim(&first, "harm").await;
    let metric = &harm["metric"];
    assert_eq!((&harm["state"], &harm["control"]), (&json!("decided"), &json!("now")), "{harm}");
    assert_eq!((&metric["of"], &metric["uneven"]), (&json!("pages"), &json!(false)), "{metric}");
    // a value above the cap counts as the cap
    let worse_by = metric["mean"].as_f64().expect("a mean");
    assert!((8.0..12.0).contains(&worse_by), "{worse_by}");
    assert_eq!(metric["pages"], alone.len(), "{metric}");
    let reasons = database
        .texts(r#"select detail from log where detail like '%"retire":%'"#.to_owned())
        .await;
    let [Some(reason)] = &reasons[..] else { panic!("{reasons:?}") };
    let said = "`revenue` of `next` is below that of `now` by more than 1: by ";
    assert!(reason.contains(said) && reason.contains("pages of one of them alone"), "{reason}");

    // one that reads the log anew finds the same
    let third = Server::start(database.connect().await).await;
    assert_eq!(claim(&third, "harm").await, harm);
    assert_verifies(&*database.connect().await, "search").await;
}

async fn values_count_on_the_pages_of_their_metric(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let latency = json!({"name": "latency", "cap": 1, "limit": 0.2, "on_harm": "tell"});
    server.create(&experiment(&json!([revenue(), latency]))).await;
    lead(&server).await;
    let both = json!({"revenue": 2, "latency": 0.1});
    let ignored = async |duel: &Value, ranker: &Value| {
        let values = json!({ranker.as_str().expect("a ranker"): both});
        let body = json!({"duel_id": duel["duel_id"], "outcome": "none", "metrics": values});
        let receipt = server.feedback("search", &body).await.json(200);
        let is_taken = ["recorded", "duplicate"].contains(&receipt["status"].as_str().unwrap());
        assert!(is_taken, "{receipt}");
        receipt["ignored"].clone()
    };
    let mut units = 0..;
    let alone = loop {
        if let (duel, Some(_)) = duel(&server, units.next().expect("a unit")).await {
            break duel;
        }
    };
    let found = ignored(&alone, &alone["left"]).await;
    assert_eq!(
        found[0]["pointer"],
        format!("/metrics/{}/latency", alone["left"].as_str().unwrap())
    );
    // also if there is nothing else
    let values = json!({alone["left"].as_str().unwrap(): {"latency": 0.1}});
    let body = json!({"duel_id": alone["duel_id"], "metrics": values});
    assert_eq!(server.feedback("search", &body).await.json(200)["status"], "ignored");
    let other = if alone["left"] == "now" { json!("next") } else { json!("now") };
    let found = ignored(&alone, &other).await;
    assert_eq!(found[0]["pointer"], format!("/metrics/{}", other.as_str().unwrap()), "{found}");

    let pair = server.pair("search").await;
    let found = ignored(&pair, &pair["left"]).await;
    assert_eq!(found[0]["pointer"], format!("/metrics/{}/revenue", pair["left"].as_str().unwrap()));

    // known when the page is made
    for page in 0..70 {
        let pair = server.pair("search").await;
        let [left, right] = ["left", "right"].map(|side| pair[side].as_str().expect("a ranker"));
        let mut values = json!({left: {"latency": 0.75}, right: {"latency": 0.75}});
        if page == 0 {
            values[left]["revenue"] = json!(1);
        }
        let body = json!({
            "duel_id": pair["duel_id"], "left": ["d1", "d2"], "right": ["d2", "d3"], "length": 2,
            "metrics": values,
        });
        let made = server.post(&format!("{NAME}/interleave"), &body).await.json(200);
        let pointer = format!("/metrics/{left}/revenue");
        let expected = if page == 0 { json!(pointer) } else { Value::Null };
        assert_eq!(made["ignored"][0]["pointer"], expected, "{made}");
    }
    let harm = || async {
        let claims = server.get(&format!("{NAME}/claims")).await.json(200);
        let is_it = |found: &&Value| found["claim"] == "harm" && found["state"] == "decided";
        claims["claims"].as_array().expect("a list").iter().find(is_it).cloned()
    };
    until("the pages in the log", async || {
        let log = "select detail from log where detail like '%0.75%'".to_owned();
        let values = database.texts(log).await;
        values.iter().flatten().map(|text| text.matches("0.75").count()).sum::<usize>() >= 2 * 70
    })
    .await;
    server.clock.advance_ms(700_000);
    eventually("the harm", async || harm().await).await;
    let found = harm().await.expect("a claim");
    assert_eq!(found["metric"]["name"], "latency", "{found}");
    // the pages before them have no value
    assert!(found["metric"]["missing_share"].as_f64() > Some(0.0), "{found}");
}
