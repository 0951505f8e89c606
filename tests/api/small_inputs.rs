//! Small inputs that people send: each is understood, or refused with what was read.

use rankduel::http::ProblemKind;
use rankduel::service::transfer;
use serde_json::{Value, json};

use crate::support::client::{JSON, steady, until, with};
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    a_change_keeps_what_this_server_has_counted
    a_value_that_is_no_number_costs_nothing_beside_it
    a_corrected_value_is_said_to_be_ignored
    a_clone_with_the_seed_of_its_original_has_its_own_arms
}

on_sqlite! {
    a_duel_of_another_experiment_is_sent_to_its_own
    percent_is_explained_where_a_share_is_due
    an_experiment_is_not_made_of_read_only_members
    an_unknown_change_is_refused_with_those_there_are
    a_label_has_nothing_that_people_cannot_see
    a_repeated_member_is_refused_wherever_it_stands
    an_integer_with_an_exponent_is_one
    without_a_winner_nothing_is_said_of_the_leader
}

/// The traffic of this server.
async fn counted(server: &Server) -> Value {
    server.report("search", "traffic").await
}

async fn a_change_keeps_what_this_server_has_counted(database: TestDatabase) {
    let [server, other] = Server::two(&database).await;
    let body = json!({
        "name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}, "seed": 5,
        "conclude_at": "never", "answer_window_seconds": 600,
    });
    server.create(&body).await;
    let mut duels = Vec::new();
    for _ in 0..60 {
        duels.push(server.pair("search").await);
    }
    for duel in &duels[..20] {
        server.answer("search", duel, "left").await;
        let wrong = json!({"duel_id": "wrong", "outcome": "left"});
        server.feedback("search", &wrong).await.problem(ProblemKind::InvalidDuel);
    }
    let before = counted(&server).await;
    let has_alarm = |traffic: &Value| {
        let alarms = traffic["alarms"].as_array().expect("a list");
        alarms.iter().any(|alarm| alarm["kind"] == "invalid-feedback")
    };
    assert!(!has_alarm(&before), "{before}");
    // of each server, and of each kind of change
    for (by, change) in [
        (&server, json!({"description": "another"})),
        (&other, json!({"owner": "somebody"})),
        (&server, json!({"enlist": "d"})),
        (&server, json!({"answer_window_seconds": 60})),
        (&server, json!({"exclude": {"units": ["bot"], "reason": "a bot"}})),
    ] {
        by.patch("search", &change).await.json(200);
        until("the server has the change", async || {
            server.experiment("search").await["version"] == by.experiment("search").await["version"]
        })
        .await;
        assert_eq!(counted(&server).await, before, "{change}");
    }
    // each answer counts once, also those that were folded anew
    for duel in &duels[20..30] {
        server.answer("search", duel, "left").await;
    }
    let after = counted(&server).await;
    assert_eq!(after["in_flight"], 30, "{after}");
    assert_eq!(after["delay"]["answers"], 30, "{after}");
    for _ in 0..30 {
        let wrong = json!({"duel_id": "wrong", "outcome": "left"});
        server.feedback("search", &wrong).await.problem(ProblemKind::InvalidDuel);
    }
    assert!(has_alarm(&counted(&server).await));
    server.patch("search", &json!({"description": "a third"})).await.json(200);
    assert!(has_alarm(&counted(&server).await), "the alarm outlives a change");
}

async fn a_duel_of_another_experiment_is_sent_to_its_own(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    server.create(&steady("other", &["a", "b"])).await;
    let duel = server.pair("other").await;
    let page = json!({"duel_id": duel["duel_id"], "left": ["l"], "right": ["r"], "length": 2});
    let outcome = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    for (operation, body) in [("interleave", &page), ("feedback", &outcome)] {
        let path = format!("/v1/experiments/search/{operation}");
        let answer = server.post(&path, body).await;
        answer.problem_saying(ProblemKind::InvalidDuel, "belongs to experiment `other`");
    }
    let empty = json!({"duel_id": "", "left": ["l"], "right": ["r"], "length": 2});
    let answer = server.post("/v1/experiments/search/interleave", &empty).await;
    answer.problem_saying(ProblemKind::InvalidDuel, "`duel_id` is empty");
}

async fn percent_is_explained_where_a_share_is_due(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body =
        |more: Value| with(json!({"name": "new", "rankers": ["a", "b"], "control": "a"}), more);
    for (more, pointer, hint) in [
        (json!({"errors": {"best": 5}}), "/errors/best", "0.05 is 5 %"),
        (json!({"conclude_at": {"confidence": 95}}), "/conclude_at/confidence", "0.95 is 95 %"),
        (json!({"conclude_at": {"margin": 1.5}}), "/conclude_at/margin", "0.015 is 1.5 %"),
        (json!({"coverage": 10}), "/coverage", "0.1 is 10 %"),
        (json!({"alone": 30}), "/alone", "0.3 is 30 %"),
        (json!({"watch": 2}), "/watch", "0.02 is 2 %"),
        (json!({"canary": ["a", "b"], "canary_share": 7}), "/canary_share", "0.07 is 7 %"),
    ] {
        let problem = server.refuses(&body(more), pointer).await;
        let detail = problem.to_string();
        assert!(detail.contains(hint) && !detail.contains("-4"), "{detail}");
    }
    let body = json!({"rankers": 3, "difference": 4, "pages_per_day": 100, "answered": 30});
    let plan = server.post("/v1/plan", &body).await.problem(ProblemKind::InvalidRequest);
    assert!(plan.to_string().contains("0.04 is 4 %"), "{plan}");
    assert!(plan.to_string().contains("0.3 is 30 %"), "{plan}");
    // a division that no confidence allows has no advice that is refused
    let errors = json!({"errors": {"best": 0.4, "control": 0.4}});
    let problem = server
        .refuses(&with(json!({"name": "new", "rankers": ["a", "b"]}), errors), "/errors")
        .await;
    assert!(!problem.to_string().contains("set `confidence`"), "{problem}");
}

fn measured() -> Value {
    let metrics = json!([{"name": "latency_ms", "cap": 1000, "limit": 400}]);
    with(steady("search", &["a", "b"]), json!({"metrics": metrics}))
}

async fn a_value_that_is_no_number_costs_nothing_beside_it(database: TestDatabase) {
    let server = Server::running(&database, &measured()).await;
    for value in ["1e400", "-1e400", "1e999999999", "\"\\ud800\"", "null", "[1e400]"] {
        let duel = server.pair("search").await;
        let (id, left) = (&duel["duel_id"], duel["left"].as_str().expect("an id"));
        let right = duel["right"].as_str().expect("an id");
        let metrics =
            format!(r#"{{"{left}": {{"latency_ms": {value}}}, "{right}": {{"latency_ms": 7}}}}"#);
        let item = format!(r#"{{"duel_id": {id}, "outcome": "left", "metrics": {metrics}}}"#);
        let path = "/v1/experiments/search/feedback";
        let receipt = server.send("POST", path, &[JSON], item.clone().into_bytes()).await.json(200);
        assert_eq!(receipt["status"], "recorded", "{value}: {receipt}");
        let pointer = format!("/metrics/{left}/latency_ms");
        assert_eq!(receipt["ignored"][0]["pointer"], pointer, "{receipt}");
        assert_eq!(receipt["ignored"][1], Value::Null, "{receipt}");
        let many = format!(r#"{{"feedback": [{item}]}}"#);
        let receipts = server.send("POST", path, &[JSON], many.into_bytes()).await.json(200);
        assert_eq!(receipts["results"][0]["status"], "duplicate", "{receipts}");
        // nor does it cost a page
        let duel = server.pair("search").await;
        let (id, left) = (&duel["duel_id"], duel["left"].as_str().expect("an id"));
        let body = format!(
            r#"{{"duel_id": {id}, "left": ["l"], "right": ["r"], "length": 2,
                "metrics": {{"{left}": {{"latency_ms": {value}}}}}}}"#
        );
        let path = "/v1/experiments/search/interleave";
        let page = server.send("POST", path, &[JSON], body.into_bytes()).await.json(200);
        assert_eq!(page["ignored"][0]["pointer"], format!("/metrics/{left}/latency_ms"), "{page}");
        // nor what stands beside a click
        let click = format!(
            r#"{{"events": [{{"action_name": "click", "query_id": {},
                "event_attributes": {{"price": {value}, "position": {{"ordinal": 1}}}}}}]}}"#,
            page["duel_id"]
        );
        let path = "/v1/experiments/search/feedback/ubi";
        let receipts = server.send("POST", path, &[JSON], click.into_bytes()).await.json(200);
        assert_eq!(receipts["results"][0]["status"], "recorded", "{value}: {receipts}");
    }
}

async fn a_corrected_value_is_said_to_be_ignored(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&measured()).await;
    let duel = first.pair("search").await;
    let left = duel["left"].as_str().expect("an id");
    let of =
        |value: f64| json!({"duel_id": duel["duel_id"], "metrics": {left: {"latency_ms": value}}});
    assert_eq!(first.feedback("search", &of(10.0)).await.json(200)["status"], "recorded");
    for server in [&first, &second] {
        let receipt = server.feedback("search", &of(20.0)).await.json(200);
        assert_eq!(receipt["status"], "ignored", "{receipt}");
        let ignored = &receipt["ignored"][0];
        assert_eq!(ignored["pointer"], format!("/metrics/{left}/latency_ms"), "{receipt}");
        assert_eq!(ignored["detail"], "another value came before; the first one counts");
        // the outcome beside it counts
        let mut both = of(30.0);
        both["outcome"] = json!("left");
        let receipt = server.feedback("search", &both).await.json(200);
        assert!(["recorded", "duplicate"].contains(&receipt["status"].as_str().expect("a text")));
        assert_eq!(receipt["ignored"][0]["detail"], ignored["detail"], "{receipt}");
    }
}

async fn a_clone_with_the_seed_of_its_original_has_its_own_arms(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let of = |name: &str| {
        json!({
            "name": name, "rankers": ["a", "b", "c"], "control": "a", "alone": 0.5, "coverage": 0.5,
            "seed": 7,
        })
    };
    let arms = async |name: &str| {
        let mut found = Vec::new();
        for unit in 0..100 {
            let path = format!("/v1/experiments/{name}/next-duel");
            let duel = server.post(&path, &json!({"unit": format!("u-{unit}")})).await.json(200);
            found.push((duel["enrolled"].clone(), duel["alone"].clone()));
        }
        found
    };
    server.create(&of("original")).await;
    server.clock.advance_ms(5);
    server.create(&of("clone")).await;
    let (original, clone) = (arms("original").await, arms("clone").await);
    let same = original.iter().zip(&clone).filter(|(one, other)| one == other).count();
    assert!((15..75).contains(&same), "{same} of 100 units are where they are in the original");

    // an import goes on with the units of its original, which is said where both are
    let mut export = Vec::new();
    let store = database.connect().await;
    transfer::export(&*store, "original", &mut export).await.expect("an export");
    let beside = async |to: &TestDatabase, name: &str| {
        let to = to.connect().await;
        transfer::import(&*to, &mut &export[..], Some(name), None).await.expect("an import")
    };
    let is_beside = |imported: transfer::Import| match imported {
        transfer::Import::New { beside, .. } => beside,
        transfer::Import::Same => panic!("it is new"),
    };
    let copy = beside(&database, "copy").await;
    assert_eq!(is_beside(copy).as_deref(), Some("original"));
    assert_eq!(arms("copy").await, original);
    let elsewhere = fresh_database(Kind::Sqlite).await;
    drop(elsewhere.store().await);
    assert_eq!(is_beside(beside(&elsewhere, "copy").await), None);
}

async fn an_experiment_is_not_made_of_read_only_members(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let experiment = json!({
        "name": "search", "rankers": ["a", "b", {"id": "c", "description": "the third"}],
        "control": "a", "segments": ["phone"], "coverage": 0.5, "alone": 0.1,
        "metrics": [{"name": "latency_ms", "cap": 1000, "limit": 400}],
    });
    server.create(&experiment).await;
    server.patch("search", &json!({"retire": "b"})).await.json(200);
    let exclude = json!({"exclude": {"units": ["bot"], "reason": "a bot"}});
    server.patch("search", &exclude).await.json(200);
    let mut whole = server.experiment("search").await;
    whole["name"] = json!("clone");
    let problem = server.post("/v1/experiments", &whole).await.problem(ProblemKind::InvalidRequest);
    let errors = problem["errors"].as_array().expect("a list");
    let pointers: Vec<_> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
    assert!(pointers.contains(&"/rankers/1/retired"), "{pointers:?}");
    assert!(problem["detail"].as_str().is_some_and(|it| it.contains("`winner`")), "{problem}");
    // without them it is a body
    for pointer in pointers {
        let (parent, member) = pointer.rsplit_once('/').expect("a pointer");
        let parent = whole.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        parent.remove(member).expect("it was there");
    }
    let made = server.create(&whole).await;
    for member in ["rankers", "policy", "seed", "segments", "metrics", "coverage", "conclude_at"] {
        let of = |it: &Value| (member != "rankers").then(|| it[member].clone());
        assert_eq!(of(&made), of(&whole), "{member}");
    }
}

async fn an_unknown_change_is_refused_with_those_there_are(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for (change, pointer) in [
        (json!({"discription": "x"}), "/discription"),
        (json!({"archived": true}), "/archived"),
        (json!({"reason": "x"}), "/reason"),
    ] {
        let problem = server.refuses_change("search", &change, pointer).await;
        let detail = problem["detail"].as_str().expect("a text");
        let (_, expected) = detail.split_once("expected").expect("what is expected");
        assert!(expected.contains("`coverage`"), "{problem}");
        assert!(!expected.contains("`archived`") && !expected.contains("`reason`"), "{problem}");
    }
}

async fn a_label_has_nothing_that_people_cannot_see(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = |more: Value| with(json!({"name": "new", "rankers": ["a", "b"]}), more);
    for (mark, part) in [
        ("\u{feff}", "U+FEFF"),
        ("\u{200b}", "U+200B"),
        ("\u{200d}", "U+200D"),
        ("\u{2060}", "U+2060"),
        ("\u{ad}", "U+00AD"),
        ("\u{a0}", "U+00A0"),
        ("\u{3000}", "U+3000"),
        ("\t", "U+0009"),
        (" ", "ends with a blank"),
    ] {
        let text = format!("abc{mark}");
        for (more, pointer) in [
            (json!({"rankers": ["x", text]}), "/rankers/1"),
            (json!({"name": text}), "/name"),
            (json!({"owner": text}), "/owner"),
            (json!({"segments": [text]}), "/segments/0"),
            (json!({"metrics": [{"name": text, "cap": 1, "limit": 0.5}]}), "/metrics/0/name"),
            (json!({"event_weights": {text.clone(): 2}}), &*format!("/event_weights/{text}")),
        ] {
            let problem = server.refuses(&body(more), pointer).await.to_string();
            assert!(problem.contains(part), "{pointer} {mark:?}: {problem}");
        }
    }
    // two that look the same
    for (one, other) in [("café", "cafe\u{301}"), ("bm25", "bm25\u{200e}"), ("abc", "\u{202d}abc")]
    {
        let problem = server.refuses(&body(json!({"rankers": [one, other]})), "/rankers/1").await;
        assert!(problem.to_string().contains("looks the same as the one at index 0"), "{problem}");
    }
    server.create(&body(json!({"rankers": ["größe ü", "検索", "\u{202e}abc"]}))).await;
    let alike =
        server.refuses_change("new", &json!({"enlist": "検索\u{200f}"}), "/enlist/id").await;
    assert!(alike.to_string().contains("looks the same as another one"), "{alike}");
    let duel = json!({"segment": "phone\u{200b}"});
    let answer = server.post("/v1/experiments/new/next-duel", &duel).await;
    let problem = answer.problem_at(ProblemKind::InvalidRequest, "/segment");
    assert!(problem.to_string().contains("U+200B"), "{problem}");
    let enlist = json!({"enlist": "d\u{feff}"});
    let problem = server.refuses_change("new", &enlist, "/enlist").await;
    assert!(problem.to_string().contains("U+FEFF"), "{problem}");
}

async fn a_repeated_member_is_refused_wherever_it_stands(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let send = async |method: &str, path: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("if-match", "*")];
        server.send(method, path, &headers, body.as_bytes().to_vec()).await
    };
    for (member, pointer) in [
        (r#""policy": {"kind": "d-ts", "alpha": 0.6, "alpha": 0.7}"#, "/policy"),
        (r#""interleaving": {"kind": "team-draft", "kind": "balanced"}"#, "/interleaving"),
        (r#""event_weights": {"click": 1, "click": 2}"#, "/event_weights"),
    ] {
        let body = format!(r#"{{"name": "new", "rankers": ["a", "b"], {member}}}"#);
        let answer = send("POST", "/v1/experiments", &body).await;
        let problem = answer.problem_at(ProblemKind::InvalidRequest, pointer).to_string();
        assert!(problem.contains("duplicate field"), "{problem}");
    }
    server
        .create(&with(
            steady("new", &["a", "b"]),
            json!({"metrics": [{"name": "latency", "cap": 100, "limit": 50}]}),
        ))
        .await;
    let change = r#"{"interleaving": {"kind": "team-draft", "kind": "balanced"}}"#;
    let answer = send("PATCH", "/v1/experiments/new", change).await;
    answer.problem_at(ProblemKind::InvalidRequest, "/interleaving");
    let duel = server.pair("new").await;
    let body = format!(
        r#"{{"duel_id": {}, "outcome": "left", "metrics": {{"a": {{"latency": 1, "latency": 2}}}}}}"#,
        duel["duel_id"]
    );
    let receipt = send("POST", "/v1/experiments/new/feedback", &body).await.json(200);
    assert_eq!(receipt["status"], "recorded", "{receipt}");
    assert_eq!(receipt["ignored"][0]["pointer"], "/metrics/a", "{receipt}");
}

async fn an_integer_with_an_exponent_is_one(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let headers = [("content-type", "application/json")];
    let body = br#"{"name": "e", "rankers": ["a1e3", "b"], "conclude_at": {"max_duels": 1e5, "margin": 2e-2}}"#;
    let created = server.send("POST", "/v1/experiments", &headers, body.to_vec()).await.json(201);
    assert_eq!(created["conclude_at"]["max_duels"], 100_000, "{created}");
    assert_eq!(created["conclude_at"]["margin"], 0.02, "{created}");
    assert_eq!(created["rankers"][0]["id"], "a1e3", "{created}");
    let path = "/v1/experiments/e/next-duel";
    let duel = server.send("POST", path, &headers, br#"{"count": 2.0e0}"#.to_vec()).await;
    assert_eq!(duel.json(200)["duels"].as_array().map(Vec::len), Some(2));
    let half = server.send("POST", path, &headers, br#"{"count": 25e-1}"#.to_vec()).await;
    half.problem_at(ProblemKind::InvalidRequest, "/count");
}

async fn without_a_winner_nothing_is_said_of_the_leader(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for outcome in ["none", "tie"] {
        for _ in 0..10 {
            server.answer("search", &server.pair("search").await, outcome).await;
        }
        let page = server.get("/experiments/search").await.text();
        assert!(!page.contains("showed another ranking"), "{page}");
    }
}
