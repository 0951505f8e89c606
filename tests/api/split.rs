//! A segment that becomes an experiment of its own.

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{Import, export, import};
use serde_json::{Value, json};

use crate::support::client::{
    Client, JSON, assert_has, assert_verifies, eventually, steady, until, with,
};
use crate::support::service::{Server, Settings};
use crate::support::{TestDatabase, fresh_database_beside};

on_both_databases! {
    a_segment_is_an_experiment_of_its_own_at_every_server
}

on_sqlite! {
    callers_send_every_request_to_the_whole
    a_split_that_is_not_possible_changes_nothing
    an_experiment_in_use_stays
    values_of_those_who_saw_the_whole_do_not_count
}

const WINDOW_MS: i64 = 600_000;

fn search() -> Value {
    with(
        steady("search", &["a", "b"]),
        json!({"answer_window_seconds": WINDOW_MS / 1000, "segments": ["mobile", "desktop"], "control": "b"}),
    )
}

/// A duel of `search`, as a caller requests it.
async fn duel(server: &Client, unit: &str, segment: &str) -> Value {
    let body = json!({"unit": unit, "segment": segment});
    server.post("/v1/experiments/search/next-duel", &body).await.json(200)
}

async fn a_wins(server: &Client, duel: &Value) {
    server.wins("search", duel, "a").await;
}

/// A page of `search` that `a` wins. Returns the experiment that made it.
async fn page(server: &Client, unit: &str, segment: &str) -> String {
    let duel = duel(server, unit, segment).await;
    a_wins(server, &duel).await;
    duel["experiment"].as_str().expect("a name").to_owned()
}

async fn read(server: &Client, path: &str) -> Value {
    server.experiment(path).await
}

/// The verdict's own statements, the same at every server.
async fn found(server: &Client, name: &str) -> [Value; 5] {
    let verdict = read(server, &format!("{name}/verdict")).await;
    ["state", "winners", "decided_after_duels", "evidence_needed", "rests_on"]
        .map(|member| verdict[member].clone())
}

async fn split(server: &Client, body: Value) -> Value {
    server.patch("search", &json!({"split": body})).await.json(200)
}

async fn advance(servers: &[&Server], ms: i64) {
    servers.iter().for_each(|server| server.clock.advance_ms(ms));
}

async fn counted(server: &Client, name: &str, answers: u64) -> Value {
    eventually("the answers to count", async || {
        let verdict = read(server, &format!("{name}/verdict")).await;
        let rests_on = &verdict["rests_on"];
        let has = (&rests_on["waiting"], &rests_on["answers"]);
        (has == (&json!(0), &json!(answers))).then(|| verdict.clone())
    })
    .await
}

async fn a_segment_is_an_experiment_of_its_own_at_every_server(database: TestDatabase) {
    let first = Server::with(database.store().await, Settings::quick()).await;
    let second = Server::with(database.connect().await, Settings::quick()).await;
    let both = [&first, &second];
    let created = first.create(&search()).await;
    for number in 0..40 {
        let segment = if number < 30 { "mobile" } else { "desktop" };
        page(both[number % 2], &format!("u-{number}"), segment).await;
    }
    advance(&both, WINDOW_MS + 20_000).await;
    let before = counted(&first, "search", 40).await;
    assert_eq!((&before["state"], &before["winners"]), (&json!("decided"), &json!(["a"])));
    // these units see the whole before the split: one has answered, one answers afterwards
    page(&second, "waits", "mobile").await;
    let open = duel(&second, "late", "mobile").await;

    let after = split(&first, json!({"segment": "mobile"})).await;
    let splits = json!([{"segment": "mobile", "experiment": "search.mobile"}]);
    assert_has(&after, json!({"splits": splits, "version": 2}));
    let again = split(&second, json!({"segment": "mobile"})).await;
    assert_eq!((&again["splits"], &again["version"]), (&splits, &json!(2)), "it is one already");
    let own = read(&second, "search.mobile").await;
    assert_eq!(own["split_from"], json!({"experiment": "search", "segment": "mobile"}));
    for member in ["rankers", "control", "seed", "answer_window_seconds", "policy", "conclude_at"] {
        assert_eq!(own[member], created[member], "{member}");
    }
    assert_eq!(own["segments"], json!([]));

    // what is claimed about the whole starts again with another part of the error
    let restarted = read(&first, "search/verdict").await;
    assert_eq!((&restarted["state"], &restarted["winners"]), (&json!("open"), &json!([])));
    assert!(restarted["evidence_needed"].as_f64() > before["evidence_needed"].as_f64());
    let claims = read(&first, "search/claims").await;
    let all = claims["claims"].as_array().expect("a list");
    let hurt: Vec<_> = all.iter().filter(|claim| claim["claim"] == "hurt").collect();
    assert_eq!(hurt.len(), 1, "{claims}");
    assert_eq!(hurt[0]["segment"], "desktop");

    for server in both {
        let made_by = async || {
            let made = duel(server, "somebody", "mobile").await;
            (made["experiment"] == "search.mobile").then_some(())
        };
        eventually("the split at this server", made_by).await;
        assert_eq!(duel(server, "somebody", "desktop").await["experiment"], "search");
        assert_eq!(server.next_duel("search").await["experiment"], "search");
    }
    // an answer to a duel of the whole stays there, and does not count
    a_wins(&first, &open).await;
    assert_eq!(read(&first, "search/verdict").await["rests_on"]["left_out_late"], 1);
    // duels of the second in which the split came are of neither side
    advance(&both, 5_000).await;
    let known = ["u-0", "u-1", "u-29", "waits", "late"];
    for unit in known {
        assert_eq!(page(&first, unit, "mobile").await, "search.mobile");
    }
    for number in 0..30 {
        page(both[number % 2], &format!("n-{number}"), "mobile").await;
        page(both[number % 2], &format!("d-{number}"), "desktop").await;
    }
    let waiting = read(&first, "search.mobile/verdict").await;
    assert_eq!(waiting["rests_on"]["answers"], 0, "{waiting}");

    advance(&both, WINDOW_MS + 20_000).await;
    for server in both {
        let mobile = counted(server, "search.mobile", 30).await;
        assert_eq!(mobile["rests_on"]["left_out_repeated_unit"], known.len());
        assert_eq!((&mobile["state"], &mobile["winners"]), (&json!("decided"), &json!(["a"])));
        assert_eq!(mobile["evidence_needed"], before["evidence_needed"], "its own error");
        let rest = counted(server, "search", 30).await;
        assert_eq!(rest["state"], "decided", "{rest}");
    }
    let names = ["search", "search.mobile"];
    let mut here = Vec::new();
    for name in names {
        here.push(found(&first, name).await);
        assert_eq!(here.last(), Some(&found(&second, name).await));
    }
    let mut snapshots = Vec::new();
    for name in names {
        let loaded = second.service.experiment(name).await.expect("an experiment");
        snapshots.push(loaded.snapshot(0).expect("a state"));
    }
    first.stop().await;
    second.stop().await;

    // folded from the log, then from snapshots, then as a copy in a database of the other kind
    let store = database.connect().await;
    let other = fresh_database_beside(&database).await;
    let copies = other.store().await;
    let rebuilt = Server::start(database.connect().await).await;
    for (name, here) in names.into_iter().zip(&here) {
        assert_eq!(found(&rebuilt, name).await, *here);
        let mut file = Vec::new();
        export(&*store, name, &mut file).await.expect("a file");
        let imported = import(&*copies, &mut &file[..], None, None).await.expect("an import");
        assert!(matches!(imported, Import::New { .. }));
    }
    rebuilt.stop().await;
    for (snapshot, name) in snapshots.iter().zip(names) {
        store.save_snapshot(snapshot).await.expect("it is kept");
        for store in [&store, &copies] {
            assert_verifies(&**store, name).await;
        }
    }
    for store in [store, copies] {
        let server = Server::start(store).await;
        for (name, here) in names.into_iter().zip(&here) {
            assert_eq!(found(&server, name).await, *here);
        }
        assert_eq!(duel(&server, "u-0", "mobile").await["experiment"], "search.mobile");
        server.stop().await;
    }
}

async fn callers_send_every_request_to_the_whole(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    let before = duel(&server, "u-1", "mobile").await;
    split(&server, json!({"segment": "mobile", "experiment": "phones"})).await;
    // the page of a duel, and its clicks
    let rankings = json!({"a": ["x", "y"], "b": ["y", "z"]});
    let made = server
        .post(
            "/v1/experiments/search/next-duel",
            &json!({"rankings": rankings, "length": 2, "unit": "u-2", "segment": "mobile"}),
        )
        .await
        .json(200);
    assert_eq!(made["experiment"], "phones");
    let duel_id = duel(&server, "u-3", "mobile").await["duel_id"].clone();
    let body = json!({"duel_id": duel_id, "left": ["x", "y"], "right": ["y", "z"], "length": 2});
    let interleaved = server.post("/v1/experiments/search/interleave", &body).await.json(200);
    let rest = duel(&server, "u-4", "desktop").await;
    let feedback = json!({"feedback": [
        {"duel_id": rest["duel_id"], "outcome": "left"},
        {"duel_id": interleaved["duel_id"], "clicks": [0]},
        {"duel_id": before["duel_id"], "outcome": "left"},
        {"duel_id": made["duel_id"], "clicks": ["y"]},
        {"duel_id": "nothing", "outcome": "left"},
    ]});
    let results = server.feedback("search", &feedback).await.json(200)["results"].clone();
    let statuses: Vec<_> = (0..5).map(|item| results[item]["status"].clone()).collect();
    assert_eq!(statuses, ["recorded", "recorded", "recorded", "recorded", "invalid"]);
    let duels = async |name: &str| {
        let verdict = read(&server, &format!("{name}/verdict")).await;
        verdict["duels"].clone()
    };
    assert_eq!([duels("search").await, duels("phones").await], [2, 2]);
    let again = server.feedback("search", &feedback).await.json(200)["results"].clone();
    assert_eq!(again[1]["status"], "duplicate");
    // the experiment of the segment takes no duels of the whole, and no other experiment its own
    let body = json!({"duel_id": rest["duel_id"], "outcome": "left"});
    server.feedback("phones", &body).await.problem(ProblemKind::InvalidDuel);
    let other = with(search(), json!({"name": "other"}));
    server.create(&other).await;
    let body = json!({"duel_id": made["duel_id"], "clicks": ["y"]});
    server.feedback("other", &body).await.problem(ProblemKind::InvalidDuel);

    let page = server.get("/experiments/search").await.text();
    assert!(
        page.contains(r#"is an experiment of its own: <a href="/experiments/phones">"#),
        "{page}"
    );
    let page = server.get("/experiments/phones").await.text();
    assert!(page.contains(r#"of <a href="/experiments/search">search</a>"#), "{page}");
    let page = server.get("/experiments/search/manage").await.text();
    assert!(page.contains(r#"href="/experiments/search/manage/split""#), "{page}");
    let form = server.get("/experiments/search/manage/split").await.text();
    assert!(form.contains(r#"value="desktop""#), "the other one: {form}");
    let audit = server.get("/v1/audit").await.text();
    assert!(audit.contains(r#""split":{"experiment":"phones","segment":"mobile"}"#), "{audit}");
}

async fn a_split_that_is_not_possible_changes_nothing(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    server.create(&steady("taken", &["a", "b"])).await;
    for (name, segments, window) in [("none", json!([]), 60), ("fast", json!(["mobile"]), 0)] {
        let body = with(
            search(),
            json!({"name": name, "segments": segments, "answer_window_seconds": window}),
        );
        server.create(&body).await;
        server
            .refuses_change(name, &json!({"split": {"segment": "mobile"}}), "/split/segment")
            .await;
    }
    for (body, pointer) in [
        (json!({"segment": "tablet"}), "/split/segment"),
        (json!({"segment": ""}), "/split/segment"),
        (json!({}), "/split"),
        (json!({"segment": "mobile", "name": "x"}), "/split/name"),
        (json!({"segment": "mobile", "experiment": "No Name"}), "/split/experiment"),
        (json!({"segment": "mobile", "experiment": ""}), "/split/experiment"),
    ] {
        server.refuses_change("search", &json!({"split": body}), pointer).await;
    }
    let both = json!({"split": {"segment": "mobile"}, "status": "paused"});
    server.refuses_change("search", &both, "/split").await;
    let taken = json!({"split": {"segment": "mobile", "experiment": "taken"}});
    server.patch("search", &taken).await.problem_saying(ProblemKind::ExperimentExists, "`taken`");
    server.refuses_change("missing", &both, "/split").await;
    let alone = json!({"split": {"segment": "mobile"}});
    server.patch("missing", &alone).await.problem(ProblemKind::ExperimentNotFound);
    let body = alone.to_string().into_bytes();
    let stale = [JSON, ("if-match", "\"7\"")];
    let path = "/v1/experiments/search";
    server.send("PATCH", path, &stale, body).await.problem(ProblemKind::PreconditionFailed);
    let experiment = read(&server, "search").await;
    assert_eq!((&experiment["version"], &experiment["splits"]), (&json!(1), &Value::Null));
    assert_eq!(duel(&server, "u-1", "mobile").await["experiment"], "search");

    split(&server, json!({"segment": "mobile"})).await;
    let other = json!({"split": {"segment": "mobile", "experiment": "phones"}});
    server.refuses_change("search", &other, "/split/experiment").await;
    server.get("/v1/experiments/phones").await.problem(ProblemKind::ExperimentNotFound);
    // the experiment of a segment has none
    server.refuses_change("search.mobile", &alone, "/split/segment").await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server
        .refuses_change("search", &json!({"split": {"segment": "desktop"}}), "/split/segment")
        .await;
}

async fn an_experiment_in_use_stays(database: TestDatabase) {
    let server = Server::running(&database, &search()).await;
    split(&server, json!({"segment": "mobile"})).await;
    let page = server.get("/experiments/search.mobile").await.text();
    assert!(page.contains("POST /v1/experiments/search/next-duel"), "callers do not change");
    let conclude = json!({"status": "concluded", "winner": "b"});
    server.patch("search.mobile", &conclude).await.json(200);
    let shown = duel(&server, "u-1", "mobile").await;
    assert_eq!((&shown["left"], &shown["self_duel"]), (&json!("b"), &json!(true)));
    assert_eq!(duel(&server, "u-2", "desktop").await["self_duel"], false);
    let archive = async |name: &str| {
        server.send("DELETE", &format!("/v1/experiments/{name}"), &[], Vec::new()).await
    };
    archive("search.mobile").await.problem(ProblemKind::ExperimentInUse);
    // pausing the whole does not pause its segment
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    assert_eq!(duel(&server, "u-1", "mobile").await["experiment"], "search.mobile");
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert_eq!(archive("search").await.status, 204);
    let refused =
        server.post("/v1/experiments/search/next-duel", &json!({"segment": "mobile"})).await;
    refused.problem(ProblemKind::ExperimentArchived);
    assert_eq!(archive("search.mobile").await.status, 204);
}

async fn values_of_those_who_saw_the_whole_do_not_count(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let mut body = search();
    body["metrics"] = json!([{"name": "failed", "cap": 1, "limit": 0.5, "on_harm": "tell"}]);
    body["value_window_seconds"] = json!(60);
    server.create(&body).await;
    let seen = duel(&server, "seen", "mobile").await;
    assert_eq!(seen["experiment"], "search");
    split(&server, json!({"segment": "mobile"})).await;
    for unit in ["seen", "new", "newer"] {
        let duel = duel(&server, unit, "mobile").await;
        assert_eq!(duel["experiment"], "search.mobile");
        let values = json!({"a": {"failed": 0.25}, "b": {"failed": 0.25}});
        let body = json!({"duel_id": duel["duel_id"], "outcome": "left", "metrics": values});
        server.feedback("search", &body).await.json(200);
    }
    // a page that reaches the log after its window has no values
    until("the values in the log", async || {
        let values = "select detail from log where detail like '%0.25%'".to_owned();
        let values = database.texts(values).await;
        values.iter().flatten().map(|text| text.matches("0.25").count()).sum::<usize>() == 2 * 3
    })
    .await;
    // the values are complete long before it is known whom the whole knows
    advance(&[&server], 100_000).await;
    server.get("/readyz").await;
    advance(&[&server], 2 * WINDOW_MS).await;
    eventually("the values to count", async || {
        let claims = read(&server, "search.mobile/claims").await;
        let harm = claims["claims"].as_array().expect("a list").iter();
        let mut harm = harm.filter(|claim| claim["claim"] == "harm");
        harm.all(|claim| claim["metric"]["pages"] == 2).then_some(())
    })
    .await;
}
