//! Settings that can change while an experiment runs: its texts, the limits at which it concludes,
//! and the answer window of further duels.

use std::time::Duration;

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{export, import};
use rankduel_engine::clock::Clock as _;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{
    Client, assert_has, assert_verifies, eventually, settings_of, steady, until, with,
};
use crate::support::service::{START_MS, Server, Settings};

on_both_databases! {
    members_of_one_request_change_together
    a_duel_keeps_the_window_at_its_issue
    texts_and_limits_change_while_it_runs
}

on_sqlite! {
    what_cannot_change_is_refused
}

async fn answered(server: &Client, duels: usize) {
    for _ in 0..duels {
        let duel = server.pair("search").await;
        server.answer("search", &duel, "left").await;
    }
}

/// Wait until so many answers count and wait.
async fn counted(server: &Client, answers: u64, waiting: u64) -> Value {
    eventually("the answers to count", async || {
        let verdict = server.verdict("search").await;
        let rests_on = &verdict["rests_on"];
        (rests_on["answers"] == answers && rests_on["waiting"] == waiting).then_some(verdict)
    })
    .await
}

/// The time as the API writes it, after so many seconds since the start of the clock, at
/// 14:13:20.
fn after(seconds: i64) -> String {
    let at = 14 * 3600 + 13 * 60 + 20 + seconds;
    format!("2026-09-21T{:02}:{:02}:{:02}.000Z", at / 3600, at / 60 % 60, at % 60)
}

async fn a_duel_keeps_the_window_at_its_issue(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let other = Server::with(database.connect().await, Settings::quick()).await;
    let mut body = steady("search", &["a", "b"]);
    // cohorts of a second
    body["answer_window_seconds"] = json!(512);
    server.create(&body).await;
    assert_eq!(server.verdict("search").await["waiting"], Value::Null);
    // nobody answers this one, so the others wait
    server.pair("search").await;
    answered(&server, 3).await;
    let waits = server.verdict("search").await;
    // the cohort of a second, the window, and the slack of five seconds
    assert_eq!(waits["waiting"], json!({"answers": 3, "next_count_at": after(1 + 512 + 5)}));

    let changed = server.patch("search", &json!({"answer_window_seconds": 60})).await.json(200);
    assert_eq!(changed["answer_window_seconds"], 60);
    assert_eq!(changed["settle_after_seconds"], 60);
    let advance = |ms| [&server, &other].map(|server| server.clock.advance_ms(ms));
    advance(2_000);
    // at the other server: it learns of the change from the log
    until("the change", async || {
        let seen = other.experiment("search").await;
        seen["answer_window_seconds"] == 60
    })
    .await;
    other.pair("search").await;
    answered(&other, 4).await;
    // the window of the later duels is over, that of the earlier ones is not
    advance(100_000);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(counted(&server, 0, 7).await["waiting"]["next_count_at"], after(518));
    advance(420_000);
    let all = counted(&server, 7, 0).await;
    assert_eq!(
        (&all["waiting"], &all["rests_on"]["answer_window_seconds"]),
        (&Value::Null, &json!(60))
    );
    counted(&other, 7, 0).await;
    // from here on the window is the short one
    let now = (server.clock.now_ms() - START_MS) / 1000;
    server.pair("search").await;
    answered(&server, 2).await;
    assert_eq!(
        server.verdict("search").await["waiting"],
        json!({"answers": 2, "next_count_at": after(now + 66)})
    );
    advance(67_000);
    counted(&other, 9, 0).await;
    other.stop().await;
    server.stop().await;

    // another process folds the same, and finds nothing wrong
    let again = Server::with(database.connect().await, Settings::quick()).await;
    counted(&again, 9, 0).await;
}

async fn texts_and_limits_change_while_it_runs(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let mut body = with(
        steady("search", &["a", "b", "c"]),
        json!({"description": "Do synonyms help?", "owner": null, "conclude_at": {"max_days": 9, "min_days": 0}}),
    );
    let made = server.create(&body).await;
    assert_eq!((&made["description"], &made["owner"]), (&json!("Do synonyms help?"), &json!("")));
    answered(&server, 3).await;
    let change = json!({
        "owner": "search-team", "description": "",
        "conclude_at": {"max_duels": 1000, "max_days": null, "confidence": 0.95},
    });
    let changed = server.patch("search", &change).await.json(200);
    assert_eq!((&changed["description"], &changed["owner"]), (&json!(""), &json!("search-team")));
    let at = json!({"confidence": 0.95, "margin": 0.01, "max_duels": 1000, "min_days": 0.0});
    assert_has(&changed, json!({"conclude_at": at, "version": 2}));
    let listed = server.get("/v1/experiments").await.json(200);
    assert_eq!(listed["experiments"][0]["owner"], "search-team");
    // the same again changes nothing, and the request that created it still repeats
    assert_eq!(server.patch("search", &change).await.json(200)["version"], 2);
    body["answer_window_seconds"] = json!(0);
    server.post("/v1/experiments", &body).await.json(200);
    let audit = server.get("/v1/audit?experiment=search").await.json(200);
    let entry = &audit["entries"][0];
    assert_eq!(entry["before"]["conclude_at"]["max_days"], 9.0, "{entry}");
    assert_eq!(entry["after"]["owner"], "search-team");
    assert!(entry["after"].get("answer_window_seconds").is_none(), "{entry}");

    // a limit that is reached concludes; without one it runs on
    let never = server.patch("search", &json!({"conclude_at": "never"})).await.json(200);
    assert_eq!(never["conclude_at"], "never");
    server.patch("search", &json!({"conclude_at": {"max_duels": 3}})).await.json(200);
    server.concluded("search").await;
}

async fn members_of_one_request_change_together(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let parts = json!({
        "policy": {"kind": "uniform"}, "control": "c", "coverage": 0.9, "alone": 0.1,
        "segments": ["mobile"], "canary": ["a", "twin"], "canary_share": 0.1,
        "metrics": [{"name": "latency", "cap": 1, "limit": 0.2, "on_harm": "tell"}],
    });
    server.create(&with(steady("search", &["a", "b", "c", "twin"]), parts)).await;
    let wrong = json!({"owner": "search-team", "enlist": "d", "retire": "nobody"});
    server.refuses_change("search", &wrong, "/retire").await;
    let many = json!({
        "owner": "search-team", "enlist": "d", "retire": "c", "control": "a", "status": "paused",
        "interleaving": {"kind": "balanced"}, "exclude": {"units": ["u"], "reason": "a machine"},
    });
    let changed = server.patch("search", &many).await.json(200);
    let rankers = json!([
        {"id": "a"}, {"id": "b"}, {"id": "c", "retired": true}, {"id": "twin"}, {"id": "d"},
    ]);
    assert_has(
        &changed,
        json!({
            "version": 2, "owner": "search-team", "rankers": rankers, "control": "a",
            "status": "paused", "interleaving_version": 2,
            "exclusions": [{"units": 1, "reason": "a machine"}],
        }),
    );
    assert_eq!(server.position("search").await, 2, "one entry");
    let audit = server.get("/v1/audit?experiment=search").await.json(200);
    let [before, after] = ["before", "after"].map(|side| &audit["entries"][0][side]);
    assert_has(before, json!({"status": "running", "control": "c", "enlist": null}));
    assert_has(after, json!({"status": "paused", "control": "a", "enlist": {"id": "d"}}));

    server.patch("search", &json!({"status": "running"})).await.json(200);
    for unit in 0..20 {
        let page = json!({"unit": format!("u-{unit}"), "segment": "mobile"});
        let duel = server.post("/v1/experiments/search/next-duel", &page).await.json(200);
        if duel["duel_id"] != "" {
            server.answer("search", &duel, "left").await;
        }
    }
    let end = json!({"status": "concluded", "retire": "b"});
    let ended = server.patch("search", &with(end.clone(), json!({"winner": "d"}))).await.json(200);
    assert_has(&ended, json!({"version": 4, "status": "concluded", "winner": "d"}));
    assert_eq!(ended["rankers"][1]["retired"], true);
    // it stays concluded, so its rankers stay; what is so already is no change
    assert_eq!(server.patch("search", &end).await.json(200)["version"], 4);
    for change in [json!({"retire": "d"}), json!({"status": "concluded", "retire": "d"})] {
        server.patch("search", &change).await.problem(ProblemKind::RankersFixed);
    }
    server
        .refuses_change("search", &json!({"status": "concluded", "winner": "b"}), "/winner")
        .await;

    // a copy of all that is the same
    server.stop().await;
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
    let mut file = Vec::new();
    export(&*store, "search", &mut file).await.expect("an export");
    import(&*store, &mut &*file, Some("copy"), None).await.expect("an import");
    assert_verifies(&*store, "copy").await;
    let server = Server::with(store, Settings::quick()).await;
    let copy = with(server.experiment("copy").await, json!({"name": "search"}));
    assert_eq!(settings_of(copy), settings_of(server.experiment("search").await));
}

async fn what_cannot_change_is_refused(database: TestDatabase) {
    let body = with(
        steady("search", &["a", "b"]),
        json!({"answer_window_seconds": 600, "conclude_at": {"confidence": 0.9, "margin": 0.02}}),
    );
    let server = Server::running(&database, &body).await;
    let mut at_once = body.clone();
    (at_once["name"], at_once["answer_window_seconds"]) = (json!("at-once"), json!(0));
    server.create(&at_once).await;
    for (change, pointer) in [
        (json!({"conclude_at": {"confidence": 0.95}}), "/conclude_at/confidence"),
        (json!({"conclude_at": {"margin": 0.01}}), "/conclude_at/margin"),
        // its target would be that of the default
        (json!({"conclude_at": "never"}), "/conclude_at"),
        (json!({"conclude_at": {"max_duels": 0}}), "/conclude_at/max_duels"),
        (json!({"conclude_at": {"max_days": 1, "min_days": 2}}), "/conclude_at/min_days"),
        (json!({"conclude_at": "sometimes"}), "/conclude_at"),
        (json!({"answer_window_seconds": 0}), "/answer_window_seconds"),
        (json!({"answer_window_seconds": 3601}), "/answer_window_seconds"),
        (json!({"answer_window_seconds": -1}), "/answer_window_seconds"),
        (json!({"description": "x".repeat(1001)}), "/description"),
        (json!({"description": "two\nlines"}), "/description"),
        (json!({"owner": "x".repeat(201)}), "/owner"),
        (json!({"owner": "a\u{1b}[31m"}), "/owner"),
        (json!({"owner": "a", "control": "c"}), "/control"),
        (json!({"archived": true}), "/archived"),
        (json!({"status": "paused", "reason": "harm"}), "/reason"),
        (json!({"owner": "a", "control": null}), "/control"),
        (json!({}), ""),
    ] {
        server.refuses_change("search", &change, pointer).await;
    }
    server
        .refuses_change("at-once", &json!({"answer_window_seconds": 60}), "/answer_window_seconds")
        .await;
    for name in ["search", "at-once"] {
        let experiment = server.experiment(name).await;
        assert_eq!(experiment["version"], 1, "{experiment}");
    }
}
