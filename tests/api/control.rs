//! Claims against a control: the ranker that people see today.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has, assert_verifies, eventually, until, with};
use crate::support::service::Server;

on_both_databases! {
    the_winner_meets_the_control_and_then_the_experiment_concludes
    a_control_is_named_later_and_every_server_has_the_same_claims
}

on_sqlite! {
    without_waiting_for_the_control_the_verdict_concludes
    an_invalid_control_is_refused
}

fn search() -> Value {
    json!({
        "name": "search", "rankers": ["a", "b", "c"], "control": "c", "seed": 7,
        "answer_window_seconds": 0, "conclude_at": {"confidence": 0.9, "margin": 0.01},
    })
}

/// The claim of this name on a ranker.
fn claim(claims: &Value, name: &str, ranker: &str) -> Value {
    let all = claims["claims"].as_array().expect("a list");
    let found = all.iter().find(|claim| claim["claim"] == name && claim["ranker"] == ranker);
    found.unwrap_or_else(|| panic!("no {name} of {ranker}: {claims}")).clone()
}

/// Answer a duel: the first ranker in the alphabet wins, but `c` wins two of five against `a`.
/// Returns the two rankers, sorted.
async fn answer(server: &Client, duel: &Value, met: &mut u32) -> (String, String) {
    let [left, right] = ["left", "right"].map(|side| duel[side].as_str().expect("an id"));
    let (low, high) = if left < right { (left, right) } else { (right, left) };
    let mut winner = low;
    if (low, high) == ("a", "c") {
        *met += 1;
        winner = if *met % 5 < 3 { low } else { high };
    }
    let outcome = if winner == left { "left" } else { "right" };
    server.answer("search", duel, outcome).await;
    (low.to_owned(), high.to_owned())
}

async fn the_winner_meets_the_control_and_then_the_experiment_concludes(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let created = server.create(&search()).await;
    assert_eq!((&created["control"], &created["goal"]), (&json!("c"), &json!("best")));
    let before = server.report("search", "claims").await;
    assert_eq!(
        before["claims"].as_array().map(Vec::len),
        Some(8),
        "best, three of two rankers, and drift"
    );
    let errors = &before["errors"];
    for (name, error) in [("best", 0.1), ("better", 0.08), ("worse", 0.02), ("any", 0.25)] {
        let found = errors[name].as_f64().expect("a number");
        assert!((found - error).abs() < 1e-9, "{errors}");
    }
    let (mut met, mut verdict_at, mut after_it) = (0, None, 0);
    for page in 0..3000 {
        if server.experiment("search").await["status"] == "concluded" {
            break;
        }
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == true {
            continue;
        }
        let pair = answer(&server, &duel, &mut met).await;
        let now = server.report("search", "claims").await;
        if verdict_at.is_some() {
            assert_eq!(pair, ("a".to_owned(), "c".to_owned()), "the winner meets the control");
            after_it += 1;
        } else if now["claims"][0]["state"] == "decided" {
            assert_eq!(now["claims"][0]["ranker"], "a");
            verdict_at = Some(page);
        }
        if claim(&now, "better", "a")["state"] == "decided" {
            assert!(verdict_at.is_some(), "two of five take longer than the verdict");
            break;
        }
        let settled = server.verdict("search").await;
        assert_eq!(settled["control"]["settled"], false, "{}", settled["control"]);
    }
    assert!(after_it > 10, "{after_it}");
    server.concluded("search").await;
    let last = server.report("search", "claims").await;
    let better = claim(&last, "better", "a");
    let bound = better["bound"].as_f64().expect("a bound");
    assert!((0.51..0.6).contains(&bound), "{better}");
    assert!(better["decided_after_duels"].as_u64() > Some(10), "{better}");
    assert_eq!(claim(&last, "not_worse", "a")["state"], "decided");
    let verdict = server.verdict("search").await;
    let control = &verdict["control"];
    assert_eq!((&control["proven"], &control["ranker"]), (&json!("better"), &json!("a")));
    let sentence = control["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains(" is better than what you run now by at least "), "{sentence}");
    let page = server.get("/experiments/search").await.text().replace('\u{a0}', " ");
    assert!(page.contains("Better than today's?"), "{page}");
    assert!(page.contains(" is better than what you run now by at least "), "{page}");
    assert!(page.contains("Ship <code>a</code>: it beats <code>c</code>, which you run"), "{page}");
    let metrics = server.get("/metrics").await.text();
    for (name, value) in [("best", "a"), ("better", "a"), ("not_worse", "a")] {
        let line = format!(
            "rankduel_claim_decided{{experiment=\"search\",claim=\"{name}\",ranker=\"{value}\"}} 1"
        );
        assert!(metrics.contains(&line), "{line}");
    }
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn without_waiting_for_the_control_the_verdict_concludes(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut body = search();
    body["conclude_at"]["control"] = json!(false);
    server.create(&body).await;
    let mut met = 0;
    let experiment = eventually("the conclusion", async || {
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == false {
            answer(&server, &duel, &mut met).await;
        }
        let experiment = server.experiment("search").await;
        (experiment["status"] == "concluded").then_some(experiment)
    })
    .await;
    assert_eq!(
        (&experiment["winner"], &experiment["conclude_at"]["control"]),
        (&json!("a"), &json!(false))
    );
    assert_ne!(claim(&server.report("search", "claims").await, "better", "a")["state"], "decided");
}

async fn a_control_is_named_later_and_every_server_has_the_same_claims(database: TestDatabase) {
    let [server, second] = Server::two(&database).await;
    server.create(&with(search(), json!({"conclude_at": "never", "control": null}))).await;
    let without = server.report("search", "claims").await;
    assert_eq!((&without["control"], &without["errors"]["better"]), (&Value::Null, &json!(0.0)));
    assert_eq!(without["claims"].as_array().map(Vec::len), Some(2));
    let mut met = 0;
    for _ in 0..30 {
        let duel = server.pair("search").await;
        answer(&server, &duel, &mut met).await;
    }
    let named = server.patch("search", &json!({"control": "b"})).await.json(200);
    assert_eq!((&named["control"], &named["version"]), (&json!("b"), &json!(2)));
    let again = server.patch("search", &json!({"control": "b"})).await.json(200);
    assert_eq!(again["version"], 2, "it is the control already");
    let fresh = server.report("search", "claims").await;
    assert_eq!(fresh["control"], "b");
    assert_eq!(claim(&fresh, "better", "a")["win_rate"], Value::Null, "from then on: {fresh}");
    for number in 0..60 {
        let server = if number % 2 == 0 { &server } else { &second };
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == false {
            answer(server, &duel, &mut met).await;
        }
    }
    server.patch("search", &json!({"enlist": "d"})).await.json(200);
    server.patch("search", &json!({"control": "c"})).await.json(200);
    for _ in 0..40 {
        let duel = second.next_duel("search").await;
        if duel["self_duel"] == false {
            answer(&second, &duel, &mut met).await;
        }
    }
    let claims = async |server: &Server| server.report("search", "claims").await["claims"].clone();
    let there = claims(&second).await;
    second.stop().await;
    until("the log", async || claims(&server).await == there).await;
    assert_eq!(server.report("search", "claims").await["control"], "c");
    assert_eq!(there.as_array().map(Vec::len), Some(11));
    let server = server.same_after_restarts(&database, "search", claims).await;

    server.patch("search", &json!({"retire": "c"})).await.json(200);
    let ended = server.report("search", "claims").await;
    assert_eq!(
        (&ended["control"], ended["claims"].as_array().map(Vec::len)),
        (&Value::Null, Some(2))
    );
}

async fn an_invalid_control_is_refused(database: TestDatabase) {
    let body = with(search(), json!({"rankers": ["a", "b", "c", "d"], "goal": "improve"}));
    let server = Server::running(&database, &body).await;
    server.patch("search", &json!({"retire": "d"})).await.json(200);
    for (change, kind, pointer) in [
        (json!({"control": "e"}), ProblemKind::InvalidRequest, "/control"),
        (json!({"control": "d"}), ProblemKind::InvalidRequest, "/control"),
    ] {
        server.patch("search", &change).await.problem_at(kind, pointer);
    }
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.refuses_change("search", &json!({"control": "a"}), "/control").await;
    let experiment = server.experiment("search").await;
    // nothing half done
    assert_has(&experiment, json!({"control": "c", "version": 3}));
}
