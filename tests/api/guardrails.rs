//! Metrics of rankers with limits: values, claims, and the reaction to harm.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, until};
use crate::support::service::Server;

on_both_databases! {
    a_slow_ranker_is_retired_once
    a_failing_control_pauses_the_experiment
    silence_raises_its_own_alarm_and_does_nothing_else
}

on_sqlite! {
    a_winner_that_does_harm_is_not_to_be_shipped
    harm_offers_to_retire_the_ranker_that_does_it
    a_wrong_value_spoils_nothing_beside_it
    the_control_stays_while_a_metric_compares_with_it
}

const NAME: &str = "/v1/experiments/search";

fn experiment(rankers: &[&str], metrics: &Value) -> Value {
    json!({
        "name": "search", "rankers": rankers, "policy": {"kind": "uniform"}, "seed": 3,
        "conclude_at": "never", "answer_window_seconds": 0, "control": "now", "metrics": metrics,
    })
}

/// Issue pages, and send the value of each ranker on it, without any click.
async fn pages(server: &Client, count: usize, value: impl Fn(&str) -> Option<Value>) {
    for _ in 0..count {
        let duel = server.pair("search").await;
        let mut metrics = json!({});
        for side in ["left", "right"] {
            let ranker = duel[side].as_str().expect("a ranker");
            if let Some(value) = value(ranker) {
                metrics[ranker] = value;
            }
        }
        let body = json!({"duel_id": duel["duel_id"], "metrics": metrics});
        let receipt = server.feedback("search", &body).await.json(200);
        assert_eq!((&receipt["status"], &receipt["ignored"]), (&json!("recorded"), &Value::Null));
        // the same again counts once
        assert_eq!(server.feedback("search", &body).await.json(200)["status"], "duplicate");
    }
}

async fn claims(server: &Client) -> Vec<Value> {
    let claims = server.get(&format!("{NAME}/claims")).await.json(200);
    claims["claims"].as_array().expect("a list").clone()
}

async fn decided(server: &Client, claim: &str) -> Vec<Value> {
    let is_it = |found: &Value| found["claim"] == claim && found["state"] == "decided";
    claims(server).await.into_iter().filter(is_it).map(|found| found["ranker"].clone()).collect()
}

/// The windows of all pages end.
fn pass(servers: &[&Server], seconds: i64) {
    for server in servers {
        server.clock.advance_ms(1000 * seconds);
    }
}

async fn a_slow_ranker_is_retired_once(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    let metrics = json!([
        {"name": "latency_ms", "cap": 1000, "limit": 400},
        {"name": "failed", "cap": 1, "difference": 0.1, "on_harm": "tell"},
    ]);
    first.create(&experiment(&["now", "fast", "slow"], &metrics)).await;
    let value = |ranker: &str| {
        let latency = if ranker == "slow" { 700 } else { 20 };
        Some(json!({"latency_ms": latency, "failed": 0}))
    };
    pages(&first, 60, value).await;
    pages(&second, 60, value).await;
    assert!(decided(&first, "harm").await.is_empty(), "no window has ended");
    pass(&[&first, &second], 70);
    for server in [&first, &second] {
        until("the retirement", async || {
            let found = server.get(NAME).await.json(200);
            found["rankers"][2]["retired"] == json!(true)
        })
        .await;
        assert_eq!(decided(server, "harm").await, [json!("slow")]);
        let safe = decided(server, "safe").await;
        assert!(safe.contains(&json!("fast")) && safe.contains(&json!("now")), "{safe:?}");
        let errors = &server.get(&format!("{NAME}/claims")).await.json(200)["errors"];
        assert_eq!((&errors["harm"], &errors["safe"]), (&json!(0.05), &json!(0.05)));
    }
    // once, with its evidence
    let reasons = database
        .texts(r#"select detail from log where detail like '%"retire":%'"#.to_owned())
        .await;
    let [Some(reason)] = &reasons[..] else { panic!("{reasons:?}") };
    assert!(reason.contains("`latency_ms` of `slow` is above 400: "), "{reason}");
    let harm = claims(&first).await;
    let harm = harm.iter().find(|claim| claim["claim"] == "harm" && claim["ranker"] == "slow");
    let metric = &harm.expect("it stays listed")["metric"];
    assert_eq!((&metric["name"], &metric["of"]), (&json!("latency_ms"), &json!("value")));
    let of_metrics = claims(&first).await.into_iter().filter(|claim| claim["metric"].is_object());
    for claim in of_metrics {
        let bound = claim["metric"]["bound"].as_f64();
        let limit = claim["metric"]["limit"].as_f64().expect("a limit");
        match (&claim["claim"], claim["state"] == "decided") {
            (kind, true) if kind == "harm" => assert!(bound >= Some(limit), "{claim}"),
            (kind, false) if kind == "harm" => {
                assert!(bound.is_none_or(|bound| bound < limit), "{claim}");
            }
            (_, true) => assert!(bound.is_some_and(|bound| bound <= limit), "{claim}"),
            (_, false) => assert!(bound.is_none_or(|bound| bound > limit), "{claim}"),
        }
    }
    let metrics = first.get("/metrics").await.text();
    assert!(
        metrics.contains(
            r#"claim_decided{experiment="search",claim="harm",ranker="slow",metric="latency_ms"} 1"#
        ),
        "{metrics}"
    );

    // one that reads the log anew finds the same
    let third = Server::start(database.connect().await).await;
    assert_eq!(claims(&third).await, claims(&first).await);
    let page = async || third.get("/experiments/search").await.text();
    let running = page().await;
    assert!(running.contains("Is it safe?"), "{running}");
    assert!(running.contains("</svg>does harm<br>"), "{running}");
    assert!(running.contains("</svg>still open<br>"), "{running}");
    assert!(running.contains("allowed: at most 400</span>"), "{running}");
    third.patch("search", &json!({"status": "concluded"})).await.json(200);
    let ended = page().await;
    assert!(!ended.contains("still open") && ended.contains("</svg>not proven<br>"), "{ended}");
}

async fn a_winner_that_does_harm_is_not_to_be_shipped(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let metrics = json!([{"name": "failed", "cap": 1, "limit": 0.2, "on_harm": "tell"}]);
    server.create(&experiment(&["now", "next"], &metrics)).await;
    play_harm(&server, 120).await;
    until("the harm", async || decided(&server, "harm").await == [json!("next")]).await;
    let verdict = server.get(&format!("{NAME}/verdict")).await.json(200);
    assert_eq!(verdict["winners"], json!(["next"]), "{verdict}");
    let page = server.get("/experiments/search").await.text();
    let headline = "<code>next</code> wins, but it breaks the limit on <code>failed</code>.";
    assert!(page.contains(headline) && !page.contains("Ship "), "{page}");
    assert!(page.contains("<span>No, it does harm</span>"), "{page}");
    // without it there would be nobody to compare with
    assert!(!page.contains("/manage/retire"), "{page}");
}

/// The button of the headline retires the ranker that the headline names, not the first one.
async fn harm_offers_to_retire_the_ranker_that_does_it(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let metrics = json!([{"name": "failed", "cap": 1, "limit": 0.2, "on_harm": "tell"}]);
    server.create(&experiment(&["now", "next", "old"], &metrics)).await;
    play_harm(&server, 240).await;
    until("the harm", async || decided(&server, "harm").await == [json!("next")]).await;
    let page = server.get("/experiments/search").await.text();
    let link = "/experiments/search/manage/retire?ranker=next";
    assert!(page.contains(link), "{page}");
    let question = server.get(link).await.text();
    assert!(question.contains("Ranker <code>next</code>"), "{question}");
    assert!(!question.contains("It is the control"), "{question}");
    let question = server.get("/experiments/search/manage/retire?ranker=now").await.text();
    assert!(question.contains("It is the control: people see it today"), "{question}");
}

/// Duels that `next` wins, and whose pages of `next` all fail; their windows end.
async fn play_harm(server: &Server, duels: usize) {
    for _ in 0..duels {
        let duel = server.pair("search").await;
        let [left, right] = ["left", "right"].map(|side| duel[side].as_str().expect("an id"));
        let outcome = if left == "next" { "left" } else { "right" };
        let failed = |ranker: &str| json!({"failed": u8::from(ranker == "next")});
        let values = json!({left: failed(left), right: failed(right)});
        let body = json!({"duel_id": duel["duel_id"], "outcome": outcome, "metrics": values});
        server.feedback("search", &body).await.json(200);
    }
    pass(&[server], 70);
}

async fn a_failing_control_pauses_the_experiment(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    let metrics = json!([{"name": "failed", "cap": 1, "limit": 0.2}]);
    first.create(&experiment(&["now", "next"], &metrics)).await;
    pages(&first, 60, |ranker| Some(json!({"failed": u8::from(ranker == "now")}))).await;
    second.get(NAME).await.json(200);
    // the issued pages are in the log before the windows end
    until("the pages", async || {
        let log = "select detail from log where detail like '%\"values\",\"pages\"%'";
        let pages = database.texts(log.to_owned()).await;
        let listed = pages.iter().flatten().map(|text| text.matches("\"duel\"").count());
        listed.sum::<usize>() >= 120
    })
    .await;
    pass(&[&first, &second], 70);
    let paused = async |server: &Client| server.get(NAME).await.json(200)["status"] == "paused";
    for server in [&first, &second] {
        eventually("the pause", async || paused(server).await.then_some(())).await;
    }
    let answer = &first.verdict("search").await["answer"];
    let headline = "`now` breaks the limit on `failed`. The experiment is paused.";
    assert_eq!((&answer["state"], &answer["headline"]), (&json!("harm"), &json!(headline)));

    // somebody who sets it running again knows about it
    first.patch("search", &json!({"status": "running"})).await.json(200);
    let pauses =
        || database.texts("select detail from log where detail like '%paused%'".to_owned());
    pages(&first, 3, |_| Some(json!({"failed": 0}))).await;
    pass(&[&first, &second], 70);
    eventually("more pages", async || {
        let claims = claims(&first).await;
        let count = |claim: &Value| claim["metric"]["pages"].as_u64() >= Some(63);
        claims.iter().any(count).then_some(())
    })
    .await;
    assert_eq!((pauses().await.len(), paused(&first).await), (1, false));
}

/// One ranker sends nothing, and another one text in place of numbers.
async fn silence_raises_its_own_alarm_and_does_nothing_else(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let metrics = json!([
        {"name": "latency_ms", "cap": 1000, "limit": 400},
        {"name": "failed", "cap": 1, "difference": 0.2, "on_harm": "pause"},
    ]);
    server.create(&experiment(&["now", "silent", "text"], &metrics)).await;
    for _ in 0..200 {
        let duel = server.pair("search").await;
        let mut values = json!({});
        for side in ["left", "right"].map(|side| duel[side].as_str().expect("a ranker")) {
            match side {
                "now" => values[side] = json!({"latency_ms": 20, "failed": 0}),
                "text" => values[side] = json!({"latency_ms": "20", "failed": "0"}),
                _ => {}
            }
        }
        let body = json!({"duel_id": duel["duel_id"], "outcome": "none", "metrics": values});
        server.feedback("search", &body).await.json(200);
    }
    pass(&[&server], 70);
    until("the claim", async || decided(&server, "safe").await.contains(&json!("now"))).await;
    assert!(decided(&server, "harm").await.is_empty());
    assert!(decided(&server, "safe").await.iter().all(|ranker| ranker == "now"));
    let missing: Vec<_> = claims(&server)
        .await
        .into_iter()
        .filter(|it| it["ranker"] != "now" && !it["metric"].is_null())
        .collect();
    assert_eq!(missing.len(), 8, "two rankers, two limits, harm and safe");
    for claim in missing {
        let metric = &claim["metric"];
        assert_eq!(
            (&metric["missing_share"], &metric["mean"]),
            (&json!(1.0), &Value::Null),
            "{claim}"
        );
        assert_eq!(metric["too_many_missing"], true, "{claim}");
    }
    let found = server.get(NAME).await.json(200);
    assert_eq!(
        (&found["status"], &found["rankers"][1]["retired"]),
        (&json!("running"), &Value::Null)
    );
    let traffic = server.get(&format!("{NAME}/traffic")).await.json(200);
    let alarms = traffic["alarms"].as_array().expect("a list");
    let kinds: Vec<_> =
        alarms.iter().map(|alarm| alarm["kind"].as_str().expect("a kind")).collect();
    assert!(kinds.contains(&"values-missing"), "{kinds:?}");
    assert_eq!(server.verdict("search").await["answer"]["state"], "alarm");
    let page = server.get("/experiments/search").await.text();
    assert!(
        page.contains("</svg>values are missing<br>") && page.contains("100 % without a value"),
        "{page}"
    );
}

async fn a_wrong_value_spoils_nothing_beside_it(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let metrics = json!([{"name": "latency_ms", "cap": 1000, "limit": 400}]);
    server.create(&experiment(&["now", "next"], &metrics)).await;
    let ignored = async |values: Value| {
        let duel = server.pair("search").await;
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "metrics": values});
        let receipt = server.feedback("search", &body).await.json(200);
        assert_eq!(receipt["status"], "recorded");
        receipt["ignored"][0]["pointer"].clone()
    };
    for (values, pointer) in [
        (json!({"now": {"latency_ms": 3}, "next": {"latency_ms": 4}}), Value::Null),
        (json!({"now": {"latency": 3}}), json!("/metrics/now/latency")),
        (json!({"now": {"latency_ms": -1}}), json!("/metrics/now/latency_ms")),
        (json!({"now": {"latency_ms": "fast"}}), json!("/metrics/now/latency_ms")),
        (json!({"now": 3}), json!("/metrics/now")),
        (json!({"later": {"latency_ms": 3}}), json!("/metrics/later")),
        (json!([3]), json!("/metrics")),
    ] {
        assert_eq!(ignored(values).await, pointer);
    }
    // alone, there is nothing else to record
    let duel = server.pair("search").await;
    let body = |values: Value| json!({"duel_id": duel["duel_id"], "metrics": values});
    let unknown = server.feedback("search", &body(json!({"now": {"latency": 3}}))).await;
    unknown.problem_at(ProblemKind::InvalidRequest, "/metrics/now/latency");
    pass(&[&server], 61);
    let late = server.feedback("search", &body(json!({"now": {"latency_ms": 3}}))).await.json(200);
    assert_eq!(late["status"], "late");
    // on a page that counts for no metric they are no mistake
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let alone = server.next_duel("search").await;
    assert_eq!(alone["self_duel"], true);
    let body = json!({"duel_id": alone["duel_id"], "metrics": {"now": {"latency_ms": 3}}});
    let receipt = server.feedback("search", &body).await.json(200);
    let ignored = (&receipt["status"], &receipt["ignored"][0]["pointer"]);
    assert_eq!(ignored, (&json!("ignored"), &json!("/metrics")), "{receipt}");
}

async fn the_control_stays_while_a_metric_compares_with_it(database: TestDatabase) {
    let server = Server::running(
        &database,
        &experiment(
            &["now", "next", "other"],
            &json!([{"name": "latency_ms", "cap": 1000, "difference": 20}]),
        ),
    )
    .await;
    let retire = async || server.patch("search", &json!({"retire": "now"})).await;
    let problem = retire().await.problem(ProblemKind::RankersFixed);
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.contains("`difference`") && detail.contains("name another control"), "{detail}");
    server.patch("search", &json!({"control": "other"})).await.json(200);
    retire().await.json(200);
}
