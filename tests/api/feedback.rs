//! Feedback: outcomes and clicks.

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{self, Import};
use serde_json::{Value, json};

use crate::support::client::{Answer, JSON, steady, with};
use crate::support::service::{START_MS, Server};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    an_answer_counts_once
    duels_of_another_database_are_refused
    every_item_of_a_list_gets_its_own_receipt
}

on_sqlite! {
    outcomes_and_clicks_count_for_the_shown_rankers
    a_late_answer_does_not_count
    a_repeat_after_the_expiry_is_a_duplicate
    ids_that_are_not_duels_of_the_experiment_are_refused
    repeated_fields_are_refused
    a_list_has_one_to_a_thousand_items
}

const RANKERS: [&str; 2] = ["a", "b"];

/// Post feedback about a duel: `answer` with the duel's id added.
async fn post(server: &Server, duel: &Value, answer: &Value) -> Answer {
    let mut body = answer.clone();
    body["duel_id"] = duel["duel_id"].clone();
    server.feedback("search", &body).await
}

async fn outcomes_and_clicks_count_for_the_shown_rankers(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    let mut wins = [[0u64; 2]; 2];
    let mut shown = [0u64; 4];
    // 0 left, 1 right, 2 tie, 3 none
    for (position, (answer, outcome)) in (2..).zip([
        (json!({"outcome": "left"}), 0),
        (json!({"outcome": "right"}), 1),
        (json!({"outcome": "tie"}), 2),
        (json!({"outcome": "none"}), 3),
        (json!({"left_clicks": 3, "right_clicks": 1}), 0),
        (json!({"left_clicks": 0, "right_clicks": 1}), 1),
        (json!({"left_clicks": 2, "right_clicks": 2}), 2),
        (json!({"left_clicks": 0, "right_clicks": 0}), 3),
        (json!({"left_clicks": 4_294_967_295u32, "right_clicks": 4_294_967_294u32}), 0),
        (json!({"outcome": "left"}), 0),
        (json!({"outcome": "left"}), 0),
    ]) {
        let duel = server.next_duel("search").await;
        let receipt = post(&server, &duel, &answer).await.json(200);
        assert_eq!(receipt, json!({"status": "recorded", "position": position}), "{answer}");
        let [left, right] = ["left", "right"].map(|side| usize::from(duel[side] == "b"));
        match outcome {
            0 => wins[left][right] += 1,
            1 => wins[right][left] += 1,
            _ => {}
        }
        shown[outcome] += 1;
        let standings = server.standings("search").await;
        let [left, right, tie, none] = shown;
        assert_eq!(
            standings["outcomes"],
            json!({"left": left, "right": right, "tie": tie, "none": none})
        );
        assert_eq!(standings["wins"], json!(wins), "{answer}");
        assert_eq!(standings["ties"], json!([[0, tie], [tie, 0]]));
        assert_eq!(standings["rankers"][0]["no_signal"], none);
        assert_eq!(standings["position"], position);
    }
}

async fn an_answer_counts_once(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    let duel = server.next_duel("search").await;
    let position = server.answer("search", &duel, "left").await;
    let standings = server.standings("search").await;
    for same in [json!({"outcome": "left"}), json!({"left_clicks": 5, "right_clicks": 2})] {
        let receipt = post(&server, &duel, &same).await.json(200);
        assert_eq!(receipt, json!({"status": "duplicate", "position": position}));
    }
    for other in ["right", "tie", "none"] {
        let problem = post(&server, &duel, &json!({"outcome": other})).await;
        problem.problem(ProblemKind::FeedbackConflict);
    }
    assert_eq!(server.standings("search").await, standings);

    // The same holds for a server that has not seen the first answer.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    let receipt = post(&server, &duel, &json!({"outcome": "left"})).await.json(200);
    assert_eq!(receipt, json!({"status": "duplicate", "position": position}));
    post(&server, &duel, &json!({"outcome": "right"})).await.problem(ProblemKind::FeedbackConflict);
    assert_eq!(server.standings("search").await, standings);
}

async fn a_late_answer_does_not_count(database: TestDatabase) {
    let body = with(steady("search", &RANKERS), json!({"duel_ttl_seconds": 1}));
    let server = Server::running(&database, &body).await;
    let (in_time, late) = (server.next_duel("search").await, server.next_duel("search").await);
    server.clock.advance_ms(1000);
    server.answer("search", &in_time, "left").await;
    server.clock.advance_ms(1);
    let standings = server.standings("search").await;
    let problem =
        post(&server, &late, &json!({"outcome": "left"})).await.problem(ProblemKind::DuelExpired);
    let expired_at = rankduel_engine::clock::rfc3339(START_MS + 1000);
    assert!(
        problem["detail"].as_str().is_some_and(|detail| detail.contains(&expired_at)),
        "{problem}"
    );
    let many = json!({"feedback": [{"duel_id": late["duel_id"], "outcome": "left"}]});
    let receipts = server.feedback("search", &many).await.json(200);
    assert_eq!(receipts["results"][0]["status"], "expired");
    assert_eq!(server.standings("search").await, standings);
}

async fn a_repeat_after_the_expiry_is_a_duplicate(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    let duel = server.next_duel("search").await;
    let position = server.answer("search", &duel, "tie").await;
    server.clock.advance_ms(90 * 24 * 3600 * 1000);
    let receipt = post(&server, &duel, &json!({"outcome": "tie"})).await.json(200);
    assert_eq!(receipt, json!({"status": "duplicate", "position": position}));
    post(&server, &duel, &json!({"outcome": "left"})).await.problem(ProblemKind::FeedbackConflict);
    assert_eq!(server.position("search").await, position);
}

async fn ids_that_are_not_duels_of_the_experiment_are_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    server.create(&steady("other", &RANKERS)).await;
    let elsewhere_database = fresh_database(Kind::Sqlite).await;
    let elsewhere = Server::start(elsewhere_database.store().await).await;
    elsewhere.create(&steady("search", &RANKERS)).await;

    let good = server.next_duel("search").await;
    server.answer("search", &good, "left").await;
    let id = server.next_duel("search").await["duel_id"].as_str().expect("an id").to_owned();
    let mut bad = vec![
        server.next_duel("other").await["duel_id"].as_str().expect("an id").to_owned(),
        elsewhere.next_duel("search").await["duel_id"].as_str().expect("an id").to_owned(),
        String::new(),
        "x".into(),
        "=".repeat(40),
        format!("{id}A"),
        format!("{id}="),
        format!(" {id}"),
        id.replace(['-', '_'], "+").to_lowercase(),
        "A".repeat(100_000),
        "ключ\u{0}🔑".into(),
        "' or 1=1; --".into(),
    ];
    bad.extend((0..id.len()).step_by(11).map(|length| id[..length].to_owned()));

    let standings = server.standings("search").await;
    let many: Vec<_> = bad.iter().map(|bad| json!({"duel_id": bad, "outcome": "left"})).collect();
    for one in &many {
        let answer = server.feedback("search", one).await;
        answer.problem_at(ProblemKind::InvalidDuel, "/duel_id");
    }
    let receipts = server.feedback("search", &json!({"feedback": many})).await.json(200);
    let receipts = receipts["results"].as_array().expect("results");
    assert_eq!(receipts.len(), bad.len());
    for receipt in receipts {
        assert_eq!(receipt["status"], "invalid");
        assert!(receipt["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{receipt}");
        assert!(receipt.get("position").is_none());
    }
    assert_eq!(server.standings("search").await, standings);
    // The unmodified id is still valid.
    server.answer("search", &json!({"duel_id": id}), "left").await;
}

/// Two databases number their experiments alike. Their signing keys tell them apart, also after an
/// import, which takes no keys along.
async fn duels_of_another_database_are_refused(database: TestDatabase) {
    let (here, elsewhere) = (database, fresh_database(Kind::Sqlite).await);
    let (server, other) =
        (Server::start(here.store().await).await, Server::start(elsewhere.store().await).await);
    let mut foreign = Vec::new();
    for server in [&server, &other] {
        server.create(&steady("search", &RANKERS)).await;
    }
    for _ in 0..2 {
        let duel = other.pair("search").await;
        let lists = json!({"duel_id": duel["duel_id"], "left": ["l"], "right": ["r"], "length": 2});
        let page = other.post("/v1/experiments/search/interleave", &lists).await.json(200);
        foreign.extend([duel, page]);
    }
    other.answer("search", &foreign[0], "left").await;
    let mut export = Vec::new();
    let (from, to) = (elsewhere.connect().await, here.connect().await);
    transfer::export(&*from, "search", &mut export).await.expect("an export");
    let imported = transfer::import(&*to, &mut &export[..], Some("imported"), None).await;
    assert!(matches!(imported.expect("an import"), Import::New { entries: 2, .. }));
    for name in ["search", "imported"] {
        let before = server.position(name).await;
        let feedback = format!("/v1/experiments/{name}/feedback");
        for duel in &foreign {
            let outcome = json!({"duel_id": duel["duel_id"], "outcome": "left"});
            let click = json!({"duel_id": duel["duel_id"], "clicks": [0], "final": false});
            let lists =
                json!({"duel_id": duel["duel_id"], "left": ["l"], "right": ["r"], "length": 2});
            for (path, body) in [
                (&feedback, &outcome),
                (&feedback, &click),
                (&format!("/v1/experiments/{name}/interleave"), &lists),
            ] {
                server.post(path, body).await.problem(ProblemKind::InvalidDuel);
            }
            let event = json!({"action_name": "click", "query_id": duel["duel_id"],
                "event_attributes": {"position": {"ordinal": 1}}});
            let path = format!("/v1/experiments/{name}/feedback/ubi");
            let receipts = server.post(&path, &json!({"events": [event]})).await.json(200);
            assert_eq!(receipts["results"][0]["status"], "invalid");
        }
        assert_eq!(server.position(name).await, before);
    }
}

async fn every_item_of_a_list_gets_its_own_receipt(database: TestDatabase) {
    let body = with(steady("search", &RANKERS), json!({"duel_ttl_seconds": 10}));
    let server = Server::running(&database, &body).await;
    let late = server.next_duel("search").await["duel_id"].clone();
    let early = server.next_duel("search").await;
    let first = server.answer("search", &early, "left").await;
    server.clock.advance_ms(10_001);
    let mut fresh = Vec::new();
    for _ in 0..3 {
        fresh.push(server.next_duel("search").await["duel_id"].clone());
    }
    let early = &early["duel_id"];
    let items = [
        (json!({"duel_id": fresh[0], "outcome": "left"}), "recorded", Some(first + 1)),
        (json!({"duel_id": early, "outcome": "left"}), "duplicate", Some(first)),
        (json!({"duel_id": early, "outcome": "right"}), "conflict", Some(first)),
        (json!({"duel_id": late, "outcome": "left"}), "expired", None),
        (json!({"duel_id": "forged", "outcome": "left"}), "invalid", None),
        (json!({"duel_id": fresh[1], "outcome": "upper"}), "invalid", None),
        (json!({"duel_id": fresh[1]}), "invalid", None),
        (
            json!({"duel_id": fresh[1], "outcome": "left", "left_clicks": 1, "right_clicks": 0}),
            "invalid",
            None,
        ),
        (json!({"duel_id": fresh[1], "left_clicks": 1}), "invalid", None),
        (json!({"duel_id": fresh[1], "outcome": "left", "rating": 5}), "invalid", None),
        (json!("left"), "invalid", None),
        (json!(null), "invalid", None),
        (json!([fresh[1], "left", null, null]), "invalid", None),
        (
            json!({"duel_id": fresh[1], "left_clicks": 0, "right_clicks": 0}),
            "recorded",
            Some(first + 2),
        ),
        // The same duel twice in one request.
        (json!({"duel_id": fresh[1], "outcome": "none"}), "duplicate", Some(first + 2)),
        (json!({"duel_id": fresh[2], "outcome": "tie"}), "recorded", Some(first + 3)),
        (json!({"duel_id": fresh[2], "outcome": "left"}), "conflict", Some(first + 3)),
    ];
    let many: Vec<_> = items.iter().map(|(item, ..)| item).collect();
    let receipts = server.feedback("search", &json!({"feedback": many})).await.json(200);
    let receipts = receipts["results"].as_array().expect("results");
    assert_eq!(receipts.len(), items.len());
    for (receipt, (item, status, position)) in receipts.iter().zip(&items) {
        assert_eq!(
            (&receipt["status"], receipt["position"].as_u64()),
            (&json!(status), *position),
            "{item}"
        );
        let wants_detail = ["conflict", "expired", "invalid"].contains(status);
        assert_eq!(receipt["detail"].is_string(), wants_detail, "{item}: {receipt}");
    }
    assert_eq!(server.position("search").await, first + 3);
    // Sent again, every item is a repeat.
    let again = server.feedback("search", &json!({"feedback": many})).await.json(200);
    for (receipt, (item, status, position)) in
        again["results"].as_array().expect("results").iter().zip(&items)
    {
        let status = if *status == "recorded" { "duplicate" } else { status };
        assert_eq!(
            (&receipt["status"], receipt["position"].as_u64()),
            (&json!(status), *position),
            "{item}"
        );
    }
    assert_eq!(server.position("search").await, first + 3);
}

/// A repeated field is refused everywhere: the server does not choose one of two values.
async fn repeated_fields_are_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    let duel = server.pair("search").await["duel_id"].clone();
    let path = "/v1/experiments/search/feedback";
    let send = async |path: &str, body: String| {
        server.send("POST", path, &[JSON], body.into_bytes()).await
    };
    for (body, pointer) in [
        (format!(r#"{{"duel_id":{duel},"outcome":"left","outcome":"right"}}"#), ""),
        (format!(r#"{{"duel_id":{duel},"outcome":"left","outcome":"left"}}"#), ""),
        (format!(r#"{{"duel_id":{duel},"duel_id":{duel},"outcome":"left"}}"#), ""),
        (format!(r#"{{"duel_id":{duel},"clicks":[{{"position":0,"position":1}}]}}"#), "/clicks/0"),
        (format!(r#"{{"feedback":[],"feedback":[{{"duel_id":{duel},"outcome":"left"}}]}}"#), ""),
    ] {
        let problem = send(path, body.clone()).await.problem(ProblemKind::InvalidRequest);
        let error = &problem["errors"][0];
        assert_eq!(error["pointer"], pointer, "{body}: {problem}");
        assert!(error["detail"].as_str().is_some_and(|text| text.contains("duplicate field")));
    }
    let items = [
        r#""outcome":"left","outcome":"right""#,
        r#""clicks":[0],"clicks":[1]"#,
        r#""clicks":[{"position":0,"event":"click","event":"buy"}]"#,
        r#""outcome":"tie""#,
    ];
    let items: Vec<_> =
        items.iter().map(|item| format!(r#"{{"duel_id":{duel},{item}}}"#)).collect();
    let body = format!(r#"{{"feedback":[{}]}}"#, items.join(","));
    let receipts = send(path, body).await.json(200);
    for receipt in &receipts["results"].as_array().expect("results")[..3] {
        assert_eq!(receipt["status"], "invalid", "{receipts}");
        let detail = receipt["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("duplicate field") && !detail.contains("line"), "{detail}");
    }
    assert_eq!(receipts["results"][3]["status"], "recorded", "{receipts}");
    let event = r#"{"events":[{"action_name":"click","action_name":"buy"}]}"#.to_owned();
    let receipts = send(&format!("{path}/ubi"), event).await.json(200);
    assert_eq!(receipts["results"][0]["status"], "invalid", "{receipts}");
    let duels = r#"{"events":[{"action_name":"click"}],"duels":{"q":"a","q":"b"}}"#.to_owned();
    send(&format!("{path}/ubi"), duels).await.problem_at(ProblemKind::InvalidRequest, "/duels");
    let rankings = r#"{"rankings":{"a":["1"],"b":[],"a":["2"]},"length":1}"#.to_owned();
    let next_duel = "/v1/experiments/search/next-duel";
    send(next_duel, rankings).await.problem_at(ProblemKind::InvalidRequest, "/rankings");
    assert_eq!(server.position("search").await, 2);
}

async fn a_list_has_one_to_a_thousand_items(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &RANKERS)).await;
    let leased =
        server.post("/v1/experiments/search/batch/lease", &json!({"count": 1000})).await.json(200);
    let duels = leased["duels"].as_array().expect("duels");
    let item = |duel: &Value| json!({"duel_id": duel["duel_id"], "outcome": "right"});
    let mut many: Vec<_> = duels.iter().map(item).collect();
    assert_eq!(many.len(), 1000);
    many.push(item(&server.next_duel("search").await));
    for wrong in [json!([]), json!(many)] {
        let answer = server.feedback("search", &json!({"feedback": wrong})).await;
        answer.problem_at(ProblemKind::InvalidRequest, "/feedback");
    }
    assert_eq!(server.position("search").await, 1);
    let extra = many.pop();
    let receipts = server.feedback("search", &json!({"feedback": many})).await.json(200);
    for (position, receipt) in (2..).zip(receipts["results"].as_array().expect("results")) {
        assert_eq!(receipt, &json!({"status": "recorded", "position": position}));
    }
    let one = server.feedback("search", &json!({"feedback": [extra]})).await.json(200);
    assert_eq!(one, json!({"results": [{"status": "recorded", "position": 1002}]}));
    assert_eq!(server.standings("search").await["duels"], 1001);
}
