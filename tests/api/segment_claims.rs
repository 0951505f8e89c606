//! Claims about declared segments.

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has};
use crate::support::service::Server;

on_both_databases! {
    a_segment_that_the_winner_hurts_is_told_before_the_experiment_concludes
}

on_sqlite! {
    the_winner_meets_the_control_until_the_segments_are_settled
    claims_divide_one_error
}

fn search() -> Value {
    json!({
        "name": "search", "rankers": ["a", "b", "c"], "segments": ["mobile", "desktop"], "seed": 7,
        "answer_window_seconds": 0, "drift": "off",
        "conclude_at": {"confidence": 0.9, "margin": 0.01, "segments": true},
    })
}

async fn read(server: &Client, report: &str) -> Value {
    server.get(&format!("/v1/experiments/search/{report}")).await.json(200)
}

fn hurt(claims: &Value, segment: &str) -> Value {
    let all = claims["claims"].as_array().expect("a list");
    let found = all.iter().find(|it| it["claim"] == "hurt" && it["segment"] == segment);
    found.unwrap_or_else(|| panic!("no claim about {segment}: {claims}")).clone()
}

/// One page: the first ranker in the alphabet wins, and every fifth page is of the desktop, where
/// the last one wins. Returns the two rankers, sorted.
async fn page(server: &Client, number: u32) -> (String, String) {
    let is_desktop = number.is_multiple_of(5);
    let segment = match number {
        _ if is_desktop => "desktop",
        _ if number.is_multiple_of(7) => "television",
        _ => "mobile",
    };
    let duel = server
        .post("/v1/experiments/search/next-duel", &json!({"segment": segment}))
        .await
        .json(200);
    let [left, right] = ["left", "right"].map(|side| duel[side].as_str().expect("an id"));
    let (low, high) = if left < right { (left, right) } else { (right, left) };
    if low != high {
        let winner = if is_desktop { high } else { low };
        server.answer("search", &duel, if winner == left { "left" } else { "right" }).await;
    }
    (low.to_owned(), high.to_owned())
}

async fn a_segment_that_the_winner_hurts_is_told_before_the_experiment_concludes(
    database: TestDatabase,
) {
    let server = Server::start(database.store().await).await;
    let created = server.create(&search()).await;
    assert_eq!(created["segments"], json!(["mobile", "desktop"]));
    let before = read(&server, "claims").await;
    assert_eq!(before["claims"].as_array().map(Vec::len), Some(4), "best, two, and unhurt");
    for (name, error) in [("hurt", 0.08), ("unhurt", 0.02), ("drift", 0.0), ("any", 0.2)] {
        let found = before["errors"][name].as_f64().expect("a number");
        assert!((found - error).abs() < 1e-9, "{name}: {before}");
    }
    assert_eq!(hurt(&before, "mobile")["ranker"], Value::Null);
    let sentence = &read(&server, "verdict").await["segments"]["sentence"];
    assert_eq!(sentence, "Segments are judged once there is a winner.");
    let (mut number, mut verdict) = (0, false);
    while !verdict {
        page(&server, number).await;
        number += 1;
        verdict = read(&server, "verdict").await["state"] == "decided";
        assert!(number < 2000);
    }
    let early = read(&server, "verdict").await;
    let of = &early["segments"];
    assert_has(of, json!({"ranker": "a", "hurt": [], "unhurt": false}));
    let sentence = of["sentence"].as_str().expect("a sentence");
    let least = of["least_pages"].as_u64().expect("a number");
    let few = format!(
        "Segments of fewer than {least} pages since the result cannot be judged yet: `mobile`, \
         `desktop`. Pages of before are only shown."
    );
    assert_eq!(sentence, few);
    assert!((8..60).contains(&least), "{of}");
    for _ in 0..10 {
        let (low, high) = page(&server, number).await;
        number += 1;
        assert!(low == "a" && high != "a", "the winner meets a rival of a segment: {low}, {high}");
    }
    // another server goes on from the log
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    let concluded = async || {
        let experiment = server.experiment("search").await;
        experiment["status"] == "concluded"
    };
    let mut claims = read(&server, "claims").await;
    while hurt(&claims, "desktop")["state"] != "decided" {
        assert!(number < 4000 && !concluded().await, "{claims}");
        page(&server, number).await;
        number += 1;
        claims = read(&server, "claims").await;
    }
    let found = hurt(&claims, "desktop");
    assert_eq!((&found["ranker"], &found["win_rate"]), (&json!("a"), &json!(0.0)));
    assert!(found["bound"].as_f64() < Some(0.5), "{found}");
    for _ in 0..2000 {
        if concluded().await {
            break;
        }
        page(&server, number).await;
        number += 1;
    }
    server.concluded("search").await;
    let verdict = read(&server, "verdict").await;
    let of = &verdict["segments"];
    assert_eq!((&of["hurt"], &of["open"]), (&json!(["desktop"]), &json!([])));
    let sentence = of["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("In `desktop`, `a` is at least "), "{sentence}");
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains(" behind <code>"), "{page}");
    assert!(page.contains("Not in <bdi>desktop</bdi>"), "{page}");
    assert!(page.contains("but not in <code>desktop</code>."), "{page}");
    for line in [
        "rankduel_claim_decided{experiment=\"search\",claim=\"best\",ranker=\"a\"} 1",
        "rankduel_claim_decided{experiment=\"search\",claim=\"hurt\",ranker=\"a\",segment=\"desktop\"} 1",
        "rankduel_experiment_state{experiment=\"search\",state=\"segment\"} 1",
    ] {
        server.measures(line).await;
    }
    let here = read(&server, "claims").await;
    let server = server.restarted_from_snapshot(&database, "search").await;
    assert_eq!(read(&server, "claims").await["claims"], here["claims"], "from a snapshot");
}

async fn the_winner_meets_the_control_until_the_segments_are_settled(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = search();
    body["control"] = json!("b");
    body["watch"] = json!(0.5);
    body["drift"] = json!("tell");
    server.create(&body).await;
    let (mut number, mut met) = (0, Vec::new());
    while read(&server, "claims").await["claims"][0]["state"] != "decided" {
        page(&server, number).await;
        number += 1;
    }
    while server.experiment("search").await["status"] != "concluded" {
        met.push(page(&server, number).await);
        number += 1;
        assert!(number < 4000, "{}", read(&server, "claims").await);
    }
    let pair = |rival: &str| ("a".to_owned(), rival.to_owned());
    assert!(met.iter().filter(|met| **met != pair("a")).all(|met| *met == pair("b")), "{met:?}");
    let claims = read(&server, "claims").await;
    assert_eq!(
        (&hurt(&claims, "desktop")["state"], &hurt(&claims, "desktop")["control"]),
        (&json!("decided"), &json!("b"))
    );
    let last = &claims["claims"].as_array().expect("a list").last().expect("a claim");
    assert_eq!((&last["claim"], &last["state"]), (&json!("drift"), &json!("open")));
    let mut watched = Vec::new();
    for _ in 0..60 {
        watched.push(page(&server, number).await);
        number += 1;
    }
    assert!(watched.contains(&pair("b")) && !watched.contains(&pair("c")), "{watched:?}");
}

async fn claims_divide_one_error(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let with = |errors: Value| {
        let mut body = search();
        body["control"] = json!("b");
        body["errors"] = errors;
        body
    };
    let created = server.create(&with(json!({"best": 0.04, "segments": 0.05}))).await;
    assert_eq!(created["errors"], json!({"best": 0.04, "segments": 0.05}));
    assert_eq!(created["policy"]["confidence"], 0.96);
    let claims = read(&server, "claims").await;
    for (name, error) in
        [("best", 0.04), ("better", 0.004), ("worse", 0.001), ("hurt", 0.04), ("unhurt", 0.01)]
    {
        let found = claims["errors"][name].as_f64().expect("a number");
        assert!((found - error).abs() < 1e-9, "{name}: {claims}");
    }
    let verdict = read(&server, "verdict").await;
    assert_eq!(
        (&verdict["confidence"], &verdict["conclude_at"]["confidence"]),
        (&json!(0.96), &json!(0.9))
    );
    let again =
        server.post("/v1/experiments", &with(json!({"best": 0.04, "segments": 0.05}))).await;
    again.json(200);
    server.patch("search", &json!({"conclude_at": {"max_duels": 9}})).await.json(200);
}
