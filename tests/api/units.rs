//! Which answers the verdict counts: one of each unit, and only those of complete cohorts.

use std::time::Duration;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::client::{Client, assert_has, eventually, steady, until, with};
use crate::support::service::{Server, Settings};
use crate::support::{Kind, TestDatabase};

on_both_databases! {
    a_unit_counts_once
    two_servers_count_the_same_cohorts
    a_late_answer_teaches_the_policy_only
    a_clock_that_was_ahead_makes_no_later_answer_late
    a_clock_that_was_ahead_is_told_before_an_answer_counts
}

on_sqlite! {
    a_machine_is_named
    the_unit_of_the_duel_stands
    a_client_id_is_a_unit
    an_answer_counts_once_no_other_can_come
    a_server_that_is_alone_knows_when_all_have_answered
    a_forecast_expects_the_answers_that_wait_to_count
    an_invalid_unit_or_window_is_refused
    an_invalid_segment_is_refused
}

async fn counted(server: &Client, name: &str) -> (u64, u64) {
    let rests_on = server.verdict(name).await["rests_on"].clone();
    let number = |field: &str| rests_on[field].as_u64().expect("a number");
    (number("answers"), number("waiting"))
}

/// A duel between two rankers that is shown to `unit`.
async fn duel_for(server: &Client, name: &str, unit: Option<&str>) -> Value {
    let body = unit.map_or_else(|| json!({}), |unit| json!({"unit": unit}));
    server.post(&format!("/v1/experiments/{name}/next-duel"), &body).await.json(200)
}

/// Answer a duel: `a` wins.
async fn a_wins(server: &Client, name: &str, duel: &Value, unit: Option<&str>) {
    let outcome = if duel["left"] == "a" { "left" } else { "right" };
    let mut body = json!({"duel_id": duel["duel_id"], "outcome": outcome});
    if let Some(unit) = unit {
        body["unit"] = json!(unit);
    }
    let answer = server.feedback(name, &body).await.json(200);
    assert_eq!(answer["status"], "recorded", "{answer}");
}

async fn a_unit_counts_once(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for name in ["one", "many", "nobody"] {
        server.create(&steady(name, &["a", "b"])).await;
        for number in 0..40 {
            let unit = match name {
                "one" => Some("u-1".to_owned()),
                "many" => Some(format!("u-{number}")),
                _ => None,
            };
            let duel = duel_for(&server, name, unit.as_deref()).await;
            a_wins(&server, name, &duel, None).await;
        }
    }
    let one = server.verdict("one").await;
    assert_eq!((&one["state"], &one["duels"]), (&json!("open"), &json!(40)), "{one}");
    assert_eq!(one["rests_on"]["answers"], 1);
    assert_eq!(one["rests_on"]["left_out_repeated_unit"], 39);
    let many = server.verdict("many").await;
    assert_eq!(many["state"], "decided", "{many}");
    // what is said without a model rests on the same answers
    for (name, unsettled) in [("one", 1), ("many", 0)] {
        let regret = server.report(name, "regret").await;
        assert_eq!(regret["bounds"]["unsettled_pairs"], unsettled, "{name}: {regret}");
    }
    assert_has(&many["rests_on"], json!({"answers": 40, "units": 40}));
    for number in 0..20 {
        let duel = duel_for(&server, "many", Some(&format!("silent-{number}"))).await;
        server.answer("many", &duel, "none").await;
    }
    let with_silent = &server.verdict("many").await["rests_on"];
    assert_eq!((&with_silent["answers"], &with_silent["with_unit"]), (&json!(60), &json!(1.0)));
    let nobody = server.verdict("nobody").await;
    assert_eq!(
        (&nobody["state"], &nobody["rests_on"]["with_unit"]),
        (&json!("decided"), &json!(0.0))
    );
    let assumptions = nobody["rests_on"]["assumptions"].to_string();
    assert!(assumptions.contains("Answers without a unit"), "{assumptions}");
    let standings = server.standings("one").await;
    assert_eq!(standings["duels"], 40, "the policy learns from all");
}

async fn a_machine_is_named(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for number in 0..60 {
        let duel = duel_for(&server, "search", Some("clicks-the-first")).await;
        server.answer("search", &duel, "left").await;
        let duel = duel_for(&server, "search", Some("likes-a")).await;
        a_wins(&server, "search", &duel, None).await;
        let duel = duel_for(&server, "search", Some(&format!("u-{number}"))).await;
        a_wins(&server, "search", &duel, None).await;
    }
    let verdict = server.verdict("search").await;
    let heaviest = verdict["rests_on"]["heaviest_units"].as_array().expect("a list").clone();
    assert_eq!(heaviest.len(), 10);
    let of = |machine: bool| -> Vec<u64> {
        let units = heaviest.iter().filter(|unit| unit["is_machine"] == machine);
        units.map(|unit| unit["answers"].as_u64().expect("a number")).collect()
    };
    assert_eq!(of(true), [60], "{heaviest:?}");
    assert_eq!(of(false)[0], 60, "who always prefers `a` can be a person");
    let effect = &verdict["effects"][0];
    let duels = effect["wins"].as_f64().zip(effect["losses"].as_f64()).map(|(w, l)| w + l);
    assert_eq!(duels, Some(62.0), "the effect counts one duel of each unit: {effect}");
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains("is a machine"), "{page}");
    // 61 or 62 answers count, and `a` won all but one of them at most
    let stands = verdict["rests_on"]["holds_unless_lost"].as_f64().expect("a share");
    assert!((0.25..=0.5).contains(&stands), "{stands}");
    assert!(page.contains("It holds unless more than"), "{page}");
}

async fn the_unit_of_the_duel_stands(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for number in 0..3 {
        let duel = duel_for(&server, "search", Some("shown-to")).await;
        a_wins(&server, "search", &duel, Some(&format!("answered-by-{number}"))).await;
    }
    assert_eq!(counted(&server, "search").await, (1, 0));
    for number in 0..3 {
        let duel = server.pair("search").await;
        a_wins(&server, "search", &duel, Some(&format!("u-{number}"))).await;
        // a repeat need not name the unit
        let outcome = if duel["left"] == "a" { "left" } else { "right" };
        let repeat = json!({"duel_id": duel["duel_id"], "outcome": outcome});
        assert_eq!(server.feedback("search", &repeat).await.json(200)["status"], "duplicate");
    }
    assert_eq!(counted(&server, "search").await, (4, 0));
    // another server folds the same from the log
    let second = Server::start(database.connect().await).await;
    let (first, second) = (server.verdict("search").await, second.verdict("search").await);
    assert_eq!(first["rests_on"], second["rests_on"]);
}

async fn a_client_id_is_a_unit(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let documents = |ranker: &str| (0..10).map(|n| format!("{ranker}{n}")).collect::<Vec<_>>();
    for client in [json!(42), json!("42"), json!("c-2")] {
        let body = json!({
            "rankings": {"a": documents("a"), "b": documents("b")},
            "length": 10,
        });
        let path = "/v1/experiments/search/next-duel";
        let page = server.post(path, &body).await.json(200);
        let event = json!({
            "action_name": "click",
            "query_id": page["duel_id"],
            "client_id": client,
            "event_attributes": {"object": {"object_id": page["slots"][0]["document"]}},
        });
        let path = "/v1/experiments/search/feedback/ubi";
        server.post(path, &json!({"events": [event]})).await.json(200);
    }
    server.clock.advance_ms(1_801_000);
    until("the clicks to be settled", async || counted(&server, "search").await == (2, 0)).await;
}

async fn an_answer_counts_once_no_other_can_come(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let body = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 600}));
    assert_eq!(server.create(&body).await["answer_window_seconds"], 600);
    // somebody may still answer
    let open = server.pair("search").await;
    for _ in 0..40 {
        let duel = server.pair("search").await;
        a_wins(&server, "search", &duel, None).await;
    }
    assert_eq!(counted(&server, "search").await, (0, 40));
    assert_eq!(server.verdict("search").await["state"], "open");
    server.clock.advance_ms(590_000);
    a_wins(&server, "search", &open, None).await;
    assert_eq!(counted(&server, "search").await, (0, 41));
    server.clock.advance_ms(20_000);
    until("the answers to be complete", async || counted(&server, "search").await == (41, 0)).await;
    let decided = server.verdict("search").await;
    assert_eq!(decided["state"], "decided");
    let until = decided["rests_on"]["complete_until"].as_str().expect("a time");
    assert!(("2026-09-21T14:13:20".."2026-09-21T14:23:30").contains(&until), "{until}");
}

/// Answers were counted up to a time that is not reached yet: later ones wait for it.
async fn a_clock_that_was_ahead_makes_no_later_answer_late(database: TestDatabase) {
    const JUMP_MS: i64 = 7_200_000;
    let server = Server::with(database.store().await, Settings::quick()).await;
    let alarms = async |server: &Client| {
        let traffic = server.report("search", "traffic").await;
        let kinds = traffic["alarms"].as_array().expect("a list").iter();
        kinds.map(|alarm| alarm["kind"].clone()).collect::<Vec<_>>()
    };
    let window = json!({"answer_window_seconds": 60});
    server.create(&with(steady("search", &["a", "b"]), window)).await;
    for jump_ms in [JUMP_MS, 100_000] {
        let duel = server.pair("search").await;
        a_wins(&server, "search", &duel, None).await;
        server.clock.advance_ms(jump_ms);
    }
    until("both answers to count", async || counted(&server, "search").await == (2, 0)).await;
    assert!(alarms(&server).await.is_empty());
    server.clock.advance_ms(-JUMP_MS - 100_000);
    // this server, and one that knows only the log
    let second = Server::with(database.connect().await, Settings::quick()).await;
    for (waiting, server) in [(1, &server), (2, &second)] {
        let duel = server.pair("search").await;
        a_wins(server, "search", &duel, None).await;
        assert_eq!(counted(server, "search").await, (2, waiting));
        assert_eq!(alarms(server).await, [json!("clock-ahead")]);
    }
    server.clock.advance_ms(JUMP_MS + 200_000);
    until("all answers to count", async || counted(&server, "search").await == (4, 0)).await;
    assert!(alarms(&server).await.is_empty());
}

async fn a_clock_that_was_ahead_is_told_before_an_answer_counts(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    server
        .create(&with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 3600})))
        .await;
    let kinds = async |server: &Client| {
        let traffic = server.report("search", "traffic").await;
        traffic["alarms"].as_array().expect("a list").to_vec()
    };
    server.clock.advance_ms(7_200_000);
    for _ in 0..10 {
        let duel = server.pair("search").await;
        a_wins(&server, "search", &duel, None).await;
    }
    assert!(kinds(&server).await.is_empty());
    server.clock.advance_ms(-7_200_000);
    let second = Server::with(database.connect().await, Settings::quick()).await;
    for server in [&server, &second] {
        let alarms = kinds(server).await;
        let detail = alarms[0]["detail"].as_str().expect("a text");
        assert_eq!((alarms.len(), &alarms[0]["kind"]), (1, &json!("clock-ahead")), "{alarms:?}");
        assert!(detail.contains("120 minutes after the time now"), "{detail}");
    }
    // an answer with the right time does not end it: those before still wait
    let duel = server.pair("search").await;
    a_wins(&server, "search", &duel, None).await;
    let alarms = kinds(&server).await;
    assert_eq!((alarms.len(), &alarms[0]["kind"]), (1, &json!("clock-ahead")), "{alarms:?}");
}

async fn a_server_that_is_alone_knows_when_all_have_answered(database: TestDatabase) {
    let kind = database.kind;
    let server = Server::with(database.store().await, Settings::quick()).await;
    let body = with(
        steady("search", &["a", "b"]),
        json!({"policy": {"kind": "uniform"}, "answer_window_seconds": 600}),
    );
    server.create(&body).await;
    for _ in 0..40 {
        let duel = server.pair("search").await;
        a_wins(&server, "search", &duel, None).await;
    }
    server.clock.advance_ms(30_000);
    match kind {
        Kind::Sqlite => {
            until("the answers to be complete", async || {
                counted(&server, "search").await == (40, 0)
            })
            .await;
        }
        Kind::Postgres => {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let waiting = counted(&server, "search").await;
            assert_eq!(waiting, (0, 40), "another server may have issued duels");
        }
    }
}

async fn a_forecast_expects_the_answers_that_wait_to_count(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 3600}));
    let server = Server::running(&database, &body).await;
    let unanswered = server.next_duel("search").await;
    for _ in 0..100 {
        let duel = duel_for(&server, "search", None).await;
        a_wins(&server, "search", &duel, None).await;
    }
    let open = server.verdict("search").await;
    assert_eq!((&open["state"], &open["rests_on"]["waiting"]), (&json!("open"), &json!(100)));
    assert_eq!(open["duels_to_go"], json!({"estimate": 0, "low": 0, "high": 0}), "{open}");
    let sentence = open["sentence"].as_str().expect("a sentence");
    assert!(sentence.ends_with("it comes when they count."), "{sentence}");
    drop(unanswered);
}

async fn two_servers_count_the_same_cohorts(database: TestDatabase) {
    let first = Server::with(database.store().await, Settings::quick()).await;
    let second = Server::with(database.connect().await, Settings::quick()).await;
    first.create(&with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 600}))).await;
    // a duel that is never answered: neither server may take the others for complete early
    first.pair("search").await;
    second.pair("search").await;
    for number in 0..60 {
        let server = if number % 2 == 0 { &first } else { &second };
        let unit = format!("u-{}", number / 2);
        let duel = duel_for(server, "search", Some(&unit)).await;
        a_wins(server, "search", &duel, None).await;
        for server in [&first, &second] {
            server.clock.advance_ms(1_000);
        }
    }
    for server in [&first, &second] {
        server.clock.advance_ms(620_000);
    }
    for server in [&first, &second] {
        until("the answers to be complete", async || counted(server, "search").await == (30, 0))
            .await;
    }
    let read = async |server: &Server| {
        let verdict = server.verdict("search").await;
        (verdict["position"].clone(), verdict["rests_on"].clone(), verdict["winners"].clone())
    };
    let (one, other) = eventually("the servers to be level", async || {
        let (one, other) = (read(&first).await, read(&second).await);
        (one.0 == other.0).then_some((one, other))
    })
    .await;
    assert_eq!(one, other);
    assert_eq!(one.1["left_out_repeated_unit"], 30);
}

async fn a_late_answer_teaches_the_policy_only(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    server.create(&with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 60}))).await;
    let late = duel_for(&server, "search", Some("comes-back")).await;
    let duel = server.pair("search").await;
    a_wins(&server, "search", &duel, None).await;
    server.clock.advance_ms(120_000);
    until("the answer to be complete", async || counted(&server, "search").await == (1, 0)).await;
    a_wins(&server, "search", &late, None).await;
    let verdict = server.verdict("search").await;
    assert_eq!((&verdict["rests_on"]["answers"], &verdict["duels"]), (&json!(1), &json!(2)));
    assert_eq!(verdict["rests_on"]["left_out_late"], 1);
    // its unit has taught the policy, so no answer of it counts any more
    let again = duel_for(&server, "search", Some("comes-back")).await;
    a_wins(&server, "search", &again, None).await;
    assert_eq!(server.verdict("search").await["rests_on"]["left_out_repeated_unit"], 1);
}

async fn an_invalid_unit_or_window_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let path = "/v1/experiments/search/next-duel";
    for long in ["u".repeat(257), "ü".repeat(129)] {
        let refused = server.post(path, &json!({"unit": long})).await;
        refused.problem_at(ProblemKind::InvalidRequest, "/unit");
        let duel = server.pair("search").await;
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "unit": long});
        server.feedback("search", &body).await.problem_at(ProblemKind::InvalidRequest, "/unit");
    }
    // An empty id is as none: two answers with it are not those of one unit.
    for _ in 0..2 {
        server.post(path, &json!({"unit": ""})).await.json(200);
        let duel = server.pair("search").await;
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "unit": ""});
        server.feedback("search", &body).await.json(200);
    }
    assert_eq!(counted(&server, "search").await, (2, 0));
    let body = with(steady("other", &["a", "b"]), json!({"answer_window_seconds": 10}));
    assert_eq!(server.create(&body).await["settle_after_seconds"], 10);
}

async fn an_invalid_segment_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let path = |action: &str| format!("/v1/experiments/search/{action}");
    for segment in [json!(""), json!("s".repeat(33)), json!("line\nbreak"), json!(7)] {
        let refused = |answer: crate::support::client::Answer| {
            answer.problem_at(ProblemKind::InvalidRequest, "/segment");
        };
        refused(server.post(&path("next-duel"), &json!({"segment": segment})).await);
        let duel = server.pair("search").await;
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "segment": segment});
        refused(server.feedback("search", &body).await);
        let body = json!({"duel_id": duel["duel_id"], "left": ["d1"], "right": ["d2"],
            "length": 2, "segment": segment});
        refused(server.post(&path("interleave"), &body).await);
    }
    server
        .post(&path("next-duel"), &json!({"count": 2, "segment": "mobile"}))
        .await
        .problem_at(ProblemKind::InvalidRequest, "/count");
    // of two answers that differ in the segment only, the second is a repeat
    let duel = server.pair("search").await;
    for (segment, status) in [("mobile", "recorded"), ("desktop", "duplicate")] {
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "segment": segment});
        assert_eq!(server.feedback("search", &body).await.json(200)["status"], status);
    }
}
