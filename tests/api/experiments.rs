//! The life of an experiment: create, list, read, pause, conclude, reopen, archive.

use rankduel::http::ProblemKind;
use rankduel_engine::clock::rfc3339;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{JSON, assert_has, steady, with};
use crate::support::service::{START_MS, Server};

on_both_databases! {
    an_experiment_is_created_with_defaults
    a_repeated_creation_returns_the_same_experiment
    a_different_experiment_with_a_taken_name_is_refused
    the_list_is_sorted_by_name_and_paginated
    a_page_of_large_experiments_ends_early
    a_change_needs_the_current_version
    an_archived_experiment_is_read_only
}

on_sqlite! {
    invalid_page_parameters_are_refused
    a_paused_experiment_issues_no_duels_and_still_learns
    a_concluded_experiment_shows_its_winner
    a_concluded_experiment_can_be_reopened
    only_a_concluded_experiment_is_archived
    numbers_that_other_languages_write_are_read
}

const EXPERIMENTS: &str = "/v1/experiments";

fn search() -> Value {
    json!({
        "name": "search",
        "rankers": ["bm25", {"id": "neural", "description": "two towers"}, "control"],
        "policy": {"kind": "uniform"},
    })
}

async fn an_experiment_is_created_with_defaults(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({"name": "search", "rankers": ["bm25", {"id": "neural", "description": "two towers"}]});
    let answer = server.post(EXPERIMENTS, &body).await;
    let created = answer.json(201);
    assert_eq!(answer.header("location"), Some("/v1/experiments/search"));
    assert_eq!(answer.header("etag"), Some("\"1\""));
    assert_eq!(
        created["policy"],
        json!({"kind": "d-ts-verdict", "alpha": 0.51, "confidence": 0.95, "margin": 0.01})
    );
    let own = json!({"kind": "d-ts-verdict", "confidence": 0.99, "margin": 0.0});
    let body = json!({"name": "own", "rankers": ["a", "b"], "policy": own, "conclude_at": "never"});
    let policy = &server.post(EXPERIMENTS, &body).await.json(201)["policy"];
    assert_eq!((&policy["confidence"], &policy["margin"]), (&json!(0.99), &json!(0.0)));
    assert_eq!(created["conclude_at"], json!({"confidence": 0.95, "margin": 0.01}));
    assert_eq!(created["answer"]["state"], "empty");
    assert_eq!(created["answer"], server.verdict("search").await["answer"]);
    assert!(created["policy_assumes"].is_string());
    assert!(created["seed"].is_u64());
    let now = rfc3339(START_MS);
    for (field, value) in [
        ("name", json!("search")),
        ("status", json!("running")),
        ("winner", Value::Null),
        ("rankers", json!([{"id": "bm25"}, {"id": "neural", "description": "two towers"}])),
        ("ties", json!("skip")),
        ("duel_ttl_seconds", json!(3600)),
        ("version", json!(1)),
        ("created_at", json!(now)),
        ("updated_at", json!(now)),
        ("archived_at", Value::Null),
    ] {
        assert_eq!(created[field], value, "{field}");
    }
    let location = answer.header("location").expect("a location");
    let read = server.get(location).await;
    assert_eq!((read.json(200), read.header("etag")), (created, Some("\"1\"")));
    assert_eq!(server.position("search").await, 1);
}

async fn a_repeated_creation_returns_the_same_experiment(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let created = server.post(EXPERIMENTS, &search()).await.json(201);
    let again = server.post(EXPERIMENTS, &search()).await;
    assert_eq!(again.json(200), created, "the random seed is kept");
    assert_eq!(again.header("etag"), Some("\"1\""));

    // The same experiment with explicit defaults and the other form of a ranker.
    let mut spelled = search();
    spelled["rankers"][0] = json!({"id": "bm25"});
    spelled["ties"] = json!("skip");
    spelled["duel_ttl_seconds"] = json!(3600);
    spelled["answer_window_seconds"] = json!(3600);
    assert_eq!(server.post(EXPERIMENTS, &spelled).await.json(200), created);
    // Its own members, with the seed that the service has chosen, and `null` for what is unknown.
    for field in [
        "policy",
        "interleaving",
        "event_weights",
        "settle_after_seconds",
        "canary_share",
        "seed",
        "conclude_at",
    ] {
        spelled[field] = created[field].clone();
    }
    assert_eq!(server.post(EXPERIMENTS, &spelled).await.json(200), created);
    for field in ["conclude_at", "seed", "ties", "duel_ttl_seconds", "canary"] {
        spelled[field] = Value::Null;
    }
    assert_eq!(server.post(EXPERIMENTS, &spelled).await.json(200), created);
    spelled["conclude_at"] = json!("never");
    server.post(EXPERIMENTS, &spelled).await.problem(ProblemKind::ExperimentExists);

    // A repeated creation does not undo later changes.
    server.clock.advance_ms(5000);
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    let again = server.post(EXPERIMENTS, &search()).await;
    assert_eq!(again.json(200)["status"], "paused");
    assert_eq!(again.header("etag"), Some("\"2\""));

    // Nor does it after a restart.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(server.post(EXPERIMENTS, &search()).await.json(200), again.json(200));

    // A pruned log has no first entry: then the present spec counts.
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.prune("search", 1).await;
    assert_eq!(server.post(EXPERIMENTS, &search()).await.json(200)["status"], "concluded");
    server.patch("search", &json!({"owner": "search-team"})).await.json(200);
    server.post(EXPERIMENTS, &search()).await.problem(ProblemKind::ExperimentExists);
    let now = with(search(), json!({"owner": "search-team"}));
    server.post(EXPERIMENTS, &now).await.json(200);
}

async fn numbers_that_other_languages_write_are_read(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    // JavaScript changes a larger seed, and some languages write every number with a fraction.
    for drawn in 0..20 {
        let body = json!({"name": format!("drawn-{drawn}"), "rankers": ["a", "b"]});
        assert!(server.create(&body).await["seed"].as_u64().unwrap() < 1 << 53);
    }
    let largest = (1_u64 << 53) - 1;
    let body = json!({"name": "large", "rankers": ["a", "b"], "seed": largest});
    assert_eq!(server.post(EXPERIMENTS, &body).await.json(201)["seed"], largest);
    let marked = [&b"\xef\xbb\xbf"[..], body.to_string().as_bytes()].concat();
    server.send("POST", EXPERIMENTS, &[JSON], marked).await.json(200);
    let larger = json!({"name": "larger", "rankers": ["a", "b"], "seed": largest + 1});
    server.refuses(&larger, "/seed").await;
    let body = json!({"name": "1.0", "rankers": ["a.0", "\\\"2.0"], "duel_ttl_seconds": 60.0, "seed": 7.00});
    let created = server.create(&body).await;
    assert_eq!((&created["duel_ttl_seconds"], &created["seed"]), (&json!(60), &json!(7)));
    assert_eq!(created["rankers"][1]["id"], "\\\"2.0");
    let duel = server.next_duel("1.0").await["duel_id"].clone();
    let item = json!({"duel_id": duel, "left_clicks": 1.0, "right_clicks": 0.0});
    let many = server.feedback("1.0", &json!({"feedback": [item, item]})).await.json(200);
    assert_eq!(many["results"][0]["status"], "recorded", "{many}");
    assert_eq!(server.feedback("1.0", &item).await.json(200)["status"], "duplicate");
    for (field, wrong) in [("duel_ttl_seconds", json!(60.5)), ("seed", json!(1e300))] {
        let mut body = body.clone();
        body[field] = wrong;
        let pointer = format!("/{field}");
        server.post(EXPERIMENTS, &body).await.problem_at(ProblemKind::InvalidRequest, &pointer);
    }
}

async fn a_different_experiment_with_a_taken_name_is_refused(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let created = server.create(&search()).await;
    for (field, value) in [
        ("rankers", json!(["bm25", "neural", "control"])),
        ("rankers", json!(["bm25", "control", {"id": "neural", "description": "two towers"}])),
        ("rankers", json!(["bm25", {"id": "neural", "description": "two towers"}])),
        ("policy", json!({"kind": "scb"})),
        ("ties", json!("half")),
        ("duel_ttl_seconds", json!(60)),
        ("seed", json!(7)),
    ] {
        let mut other = search();
        other[field] = value;
        server
            .post(EXPERIMENTS, &other)
            .await
            .problem_saying(ProblemKind::ExperimentExists, "search");
    }
    assert_eq!(server.experiment("search").await, created);
}

/// All names of the list, read in pages of `limit` entries. Only the last page is short.
async fn names(server: &Server, limit: usize) -> Vec<Value> {
    let pages = server.list(limit).await;
    let (last, others) = pages.split_last().expect("a page");
    assert!(last.len() <= limit && others.iter().all(|page| page.len() == limit), "{pages:?}");
    pages.concat().iter().map(|one| one["name"].clone()).collect()
}

async fn the_list_is_sorted_by_name_and_paginated(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    assert_eq!(
        server.get(EXPERIMENTS).await.json(200),
        json!({"experiments": [], "next": null, "total": 0})
    );
    let mut expected = ["search", "a.b", "a-b", "a_b", "0", "ab", "zz", "search-2", "s"];
    for name in expected {
        server.create(&steady(name, &["a", "b"])).await;
    }
    server.create(&steady("gone", &["a", "b"])).await;
    server.patch("gone", &json!({"status": "concluded"})).await.json(200);
    let before = names(&server, 50).await;
    assert_eq!(server.send("DELETE", "/v1/experiments/gone", &[], Vec::new()).await.status, 204);

    expected.sort_unstable();
    for limit in [1, 2, 3, 8, 9, 10, 500] {
        assert_eq!(names(&server, limit).await, expected, "in pages of {limit}");
    }
    assert_eq!(
        before.len(),
        expected.len() + 1,
        "concluded experiments are listed until they are archived"
    );

    // The list shows each experiment as a read of it does.
    let page = server.get(EXPERIMENTS).await.json(200);
    for experiment in page["experiments"].as_array().expect("a page") {
        let path = format!("{EXPERIMENTS}/{}", experiment["name"].as_str().expect("a name"));
        assert_eq!(&server.get(&path).await.json(200), experiment);
    }

    // A cursor is a position in the order; changes of the list do not invalidate it.
    let page = server.get(&format!("{EXPERIMENTS}?limit=2")).await.json(200);
    server.create(&steady("00", &["a", "b"])).await;
    let next = page["next"].as_str().expect("a next page");
    let second = server.get(&format!("{EXPERIMENTS}?limit=1&cursor={next}")).await.json(200);
    assert_eq!(second["experiments"][0]["name"], expected[2]);
}

/// Each has some 400 KiB, so that three of them end a page.
async fn a_page_of_large_experiments_ends_early(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let rankers: Vec<Value> = (0..250)
        .map(|number| json!({"id": format!("r{number}"), "description": "d".repeat(800)}))
        .collect();
    for number in 0..8 {
        let body = json!({
            "name": format!("large-{number}"), "rankers": rankers, "policy": {"kind": "uniform"},
        });
        server.create(&body).await;
    }
    for name in ["small-1", "small-2"] {
        server.create(&json!({"name": name, "rankers": ["a", "b"]})).await;
    }
    let pages = server.list(500).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [6, 4]);
    let names = (0..8).map(|number| format!("large-{number}"));
    let names: Vec<Value> =
        names.map(Value::from).chain(["small-1", "small-2"].map(Value::from)).collect();
    assert_eq!(pages.concat().iter().map(|one| one["name"].clone()).collect::<Vec<_>>(), names);
    let few = server.get("/v1/experiments?limit=2").await.json(200);
    assert_eq!(few["experiments"].as_array().map(Vec::len), Some(2));
}

async fn invalid_page_parameters_are_refused(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (query, name) in [
        ("cursor=%21", "cursor"),
        ("cursor=a", "cursor"),
        ("cursor=_w", "cursor"), // the byte 0xff
        ("cursor=AA", "cursor"), // the byte 0
        ("cursor=search", "cursor"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=1e2", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=", "limit"),
        ("limit=ten", "limit"),
        ("page=2", "page"),
        ("limit=5&limit=6", ""), // twice: it is not known which one is wrong
    ] {
        let problem = server
            .get(&format!("{EXPERIMENTS}?{query}"))
            .await
            .problem(ProblemKind::InvalidRequest);
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["in"], &error["name"]),
            (&json!("query"), &json!(name)),
            "{query}: {problem}"
        );
    }
}

async fn a_change_needs_the_current_version(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let created = server.create(&search()).await;
    let path = "/v1/experiments/search";
    let patch = async |if_match: Option<&str>, body: Value| {
        let headers: Vec<_> =
            [JSON].into_iter().chain(if_match.map(|tag| ("if-match", tag))).collect();
        server.send("PATCH", path, &headers, body.to_string().into_bytes()).await
    };
    for change in [
        json!({"status": "paused"}),
        json!({"enlist": "d"}),
        json!({"owner": "the search team"}),
        json!({"exclude": {"units": ["u"], "reason": "a machine"}}),
    ] {
        patch(None, change.clone()).await.problem(ProblemKind::PreconditionRequired);
        patch(Some("\"7\""), change).await.problem(ProblemKind::PreconditionFailed);
    }
    for stale in ["\"2\"", "\"0\"", "\"18446744073709551615\""] {
        patch(Some(stale), json!({"status": "paused"}))
            .await
            .problem(ProblemKind::PreconditionFailed);
    }
    for no_tag in
        ["1", "\"\"", "w/\"1\"", "\"one\"", "\"1\", \"2\"", "\"-1\"", "\"99999999999999999999\""]
    {
        let problem = patch(Some(no_tag), json!({"status": "paused"}))
            .await
            .problem(ProblemKind::InvalidRequest);
        let error = &problem["errors"][0];
        assert_has(error, json!({"in": "header", "name": "if-match"}));
    }
    assert_eq!(server.get(path).await.json(200), created);
    assert_eq!(server.position("search").await, 1);

    server.clock.advance_ms(1500);
    let paused = patch(Some("\"1\""), json!({"status": "paused"})).await;
    assert_eq!(paused.header("etag"), Some("\"2\""));
    assert_eq!(paused.json(200)["version"], 2);
    assert_ne!(paused.json(200)["answer"]["headline"], created["answer"]["headline"]);
    assert_eq!(paused.json(200)["answer"], server.verdict("search").await["answer"]);
    assert_eq!(paused.json(200)["created_at"], created["created_at"]);
    assert_eq!(paused.json(200)["updated_at"], rfc3339(START_MS + 1500));
    assert_eq!(server.position("search").await, 2, "the change is in the log");
    // Setting the current status is no change.
    assert_eq!(patch(Some("\"2\""), json!({"status": "paused"})).await.json(200), paused.json(200));
    assert_eq!(server.position("search").await, 2);
    // A second change that is also based on version 1 is refused.
    patch(Some("\"1\""), json!({"status": "concluded"}))
        .await
        .problem(ProblemKind::PreconditionFailed);
    assert_eq!(patch(Some("*"), json!({"status": "running"})).await.json(200)["version"], 3);

    server
        .send(
            "PATCH",
            "/v1/experiments/none",
            &[JSON, ("if-match", "*")],
            br#"{"status":"paused"}"#.to_vec(),
        )
        .await
        .problem(ProblemKind::ExperimentNotFound);
}

async fn a_paused_experiment_issues_no_duels_and_still_learns(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let duel = server.pair("search").await;
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    let asked = server.send("POST", "/v1/experiments/search/next-duel", &[], Vec::new()).await;
    asked.problem(ProblemKind::ExperimentPaused);
    server.answer("search", &duel, "left").await;
    assert_eq!(server.standings("search").await["duels"], 1);
    server.patch("search", &json!({"status": "running"})).await.json(200);
    server.next_duel("search").await;
}

async fn a_concluded_experiment_shows_its_winner(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let (first, second) = (server.pair("search").await, server.pair("search").await);
    server.answer("search", &first, "left").await;

    // Without an explicit winner, the winner is the leader of the verdict.
    let verdict = server.verdict("search").await;
    let concluded = server.patch("search", &json!({"status": "concluded"})).await.json(200);
    let leader = &verdict["leader"];
    assert_eq!((&concluded["status"], &concluded["winner"]), (&json!("concluded"), leader));
    assert_eq!(*leader, first["left"], "the only ranker with a win");

    // An explicit winner prevails.
    server
        .refuses_change("search", &json!({"status": "concluded", "winner": "bm26"}), "/winner")
        .await;
    for winner in ["control", "bm25"] {
        let body = json!({"status": "concluded", "winner": winner});
        assert_eq!(server.patch("search", &body).await.json(200)["winner"], winner);
        for _ in 0..20 {
            let duel = server.next_duel("search").await;
            assert_eq!((&duel["left"], &duel["right"]), (&json!(winner), &json!(winner)));
            assert_eq!((&duel["self_duel"], &duel["batch"]), (&json!(true), &Value::Null));
        }
    }
    // Concluding again keeps the first winner.
    assert_eq!(
        server.patch("search", &json!({"status": "concluded"})).await.json(200)["winner"],
        "bm25"
    );

    // Duels in flight still count.
    server.answer("search", &second, "right").await;
    assert_eq!(server.standings("search").await["duels"], 2);
    // All this also holds after a restart.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(server.next_duel("search").await["left"], "bm25");
}

async fn a_concluded_experiment_can_be_reopened(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    for status in ["running", "paused"] {
        server
            .refuses_change("search", &json!({"status": status, "winner": "bm25"}), "/winner")
            .await;
    }
    server.patch("search", &json!({"status": "concluded", "winner": "bm25"})).await.json(200);
    let reopened = server.patch("search", &json!({"status": "running"})).await.json(200);
    assert_eq!((&reopened["status"], &reopened["winner"]), (&json!("running"), &Value::Null));
    let duel = server.pair("search").await;
    server.answer("search", &duel, "tie").await;
}

async fn only_a_concluded_experiment_is_archived(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let path = "/v1/experiments/search";
    let delete =
        async |headers: &[(&str, &str)]| server.send("DELETE", path, headers, Vec::new()).await;
    delete(&[]).await.problem(ProblemKind::NotConcluded);
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    delete(&[]).await.problem(ProblemKind::NotConcluded);
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    delete(&[("if-match", "\"2\"")]).await.problem(ProblemKind::PreconditionFailed);
    let before = server.position("search").await;
    let archived = delete(&[("if-match", "\"3\"")]).await;
    assert_eq!((archived.status, archived.bytes.len()), (204, 0));
    assert_eq!(delete(&[]).await.status, 204, "archiving is idempotent");
    assert_eq!(server.position("search").await, before + 1, "it is logged once");
    server
        .send("DELETE", "/v1/experiments/none", &[], Vec::new())
        .await
        .problem(ProblemKind::ExperimentNotFound);
}

async fn an_archived_experiment_is_read_only(database: TestDatabase) {
    let body = json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "pcomp", "horizon": 1000}});
    let server = Server::running(&database, &body).await;
    let (answered, open) = (server.pair("search").await, server.pair("search").await);
    server.answer("search", &answered, "left").await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.clock.advance_ms(60_000);
    assert_eq!(server.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await.status, 204);
    let standings = server.standings("search").await;

    for server in [&server, &Server::start(database.connect().await).await] {
        let feedback = json!({"duel_id": open["duel_id"], "outcome": "left"});
        let repeat = json!({"duel_id": answered["duel_id"], "outcome": "left"});
        let results = json!({"batch": 1, "results": []});
        for (method, path, body) in [
            ("PATCH", "/v1/experiments/search", json!({"status": "running"})),
            ("PATCH", "/v1/experiments/search", json!({"status": "concluded"})),
            ("POST", "/v1/experiments", body.clone()),
            ("POST", "/v1/experiments/search/next-duel", Value::Null),
            ("POST", "/v1/experiments/search/feedback", feedback.clone()),
            ("POST", "/v1/experiments/search/feedback", repeat),
            ("POST", "/v1/experiments/search/feedback", json!({"feedback": [feedback]})),
            ("POST", "/v1/experiments/search/batch/lease", json!({"count": 1})),
            ("POST", "/v1/experiments/search/batch/results", results),
        ] {
            let answer = server
                .send(method, path, &[JSON, ("if-match", "*")], body.to_string().into_bytes())
                .await;
            answer.problem(ProblemKind::ExperimentArchived);
        }
        let read = server.experiment("search").await;
        assert_eq!(read["archived_at"], rfc3339(START_MS + 60_000));
        assert_eq!(read["status"], "concluded");
        assert_eq!(server.standings("search").await, standings, "the log is unchanged");
        server.report("search", "regret").await;
        server.report("search", "batch").await;
        assert_eq!(server.get(EXPERIMENTS).await.json(200)["experiments"], json!([]));
    }
}
