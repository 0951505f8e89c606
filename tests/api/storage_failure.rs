//! Responses while the database fails, and the state of the log afterwards.

use std::sync::Arc;
use std::time::Duration;

use rankduel::http::ProblemKind;
use rankduel::http::ShellSettings;
use rankduel::service::ServiceSettings;
use rankduel_store::Store;
use rankduel_store::events::{ControlEvent, Event};
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::client::{Answer, Client, JSON, eventually, until};
use crate::support::failing_store::{FailingStore, LATE, Mode};
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_failure_before_the_commit_leaves_nothing_half_done
    a_write_that_fails_after_its_commit_counts_once
    requests_to_a_hanging_database_time_out
    loading_an_experiment_may_outlast_a_request
    reads_are_served_from_memory
    commits_without_a_response_are_folded_soon
    self_duels_survive_failures
    self_duels_survive_a_failure_just_before_the_end
    a_full_queue_refuses_feedback
}

struct Setup {
    store: Arc<FailingStore>,
    server: Server,
}

/// A server whose database can be made to fail, with an experiment `search` of one long batch, an
/// experiment `batches` of short batches, and a concluded experiment `old`.
async fn setup(database: &TestDatabase, settings: Settings) -> Setup {
    let store = FailingStore::new(database.store().await);
    let server = Server::with(store.clone(), settings).await;
    for name in ["search", "old"] {
        server.create(&steady(name, &["a", "b"])).await;
    }
    server.create(&new_experiment("batches")).await;
    server.patch("old", &json!({"status": "concluded"})).await.json(200);
    Setup { store, server }
}

fn new_experiment(name: &str) -> Value {
    json!({"name": name, "rankers": ["a", "b"], "policy": {"kind": "pcomp", "horizon": 1000, "batches": 3}})
}

fn results() -> Value {
    let row = json!({"left": "a", "right": "b", "left_wins": 7, "right_wins": 3, "ties": 0});
    json!({"batch": 1, "results": [row]})
}

/// Every request that writes, except feedback: method, path, body, and the statuses of its first
/// success and of its repeat.
fn writes() -> Vec<(&'static str, &'static str, Value, u16, u16)> {
    vec![
        ("POST", "/v1/experiments", new_experiment("new"), 201, 200),
        ("PATCH", "/v1/experiments/search", json!({"status": "paused"}), 200, 200),
        ("DELETE", "/v1/experiments/old", Value::Null, 204, 204),
        ("POST", "/v1/experiments/batches/batch/results", results(), 200, 200),
    ]
}

async fn write(client: &Client, method: &str, path: &str, body: &Value) -> Answer {
    client.send(method, path, &[JSON, ("if-match", "*")], body.to_string().into_bytes()).await
}

/// Feedback about these duels in one request.
fn many(duels: &[Value]) -> Value {
    let items: Vec<_> =
        duels.iter().map(|duel| json!({"duel_id": duel["duel_id"], "outcome": "left"})).collect();
    json!({"feedback": items})
}

/// The status of each item.
fn statuses(answer: &Answer) -> Vec<String> {
    let receipts = answer.json(200);
    let results = receipts["results"].as_array().expect("results");
    results.iter().map(|receipt| receipt["status"].as_str().expect("a status").to_owned()).collect()
}

async fn duels(server: &Server, count: usize) -> Vec<Value> {
    let mut duels = Vec::new();
    for _ in 0..count {
        duels.push(server.pair("search").await);
    }
    duels
}

async fn a_failure_before_the_commit_leaves_nothing_half_done(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    let duels = duels(&server, 3).await;
    let one = json!({"duel_id": duels[0]["duel_id"], "outcome": "left"});
    let log = async || database.count("select count(*) from log").await;
    let before = log().await;

    store.set(Mode::FailsBefore);
    for (method, path, body, ..) in writes() {
        write(&server, method, path, &body).await.problem(ProblemKind::Unavailable);
    }
    server.feedback("search", &one).await.problem(ProblemKind::Unavailable);
    server.feedback("search", &many(&duels)).await.problem(ProblemKind::Unavailable);
    // Checks that need no database are made all the same.
    let forged = json!({"duel_id": "forged", "outcome": "left"});
    server.feedback("search", &forged).await.problem(ProblemKind::InvalidDuel);
    store.set(Mode::Fine);

    assert_eq!(log().await, before);
    assert_eq!(server.position("search").await, 1);
    server.get("/v1/experiments/new").await.problem(ProblemKind::ExperimentNotFound);
    assert_eq!(server.experiment("search").await["version"], 1);
    assert_eq!(server.experiment("old").await["archived_at"], Value::Null);

    let recorded = json!({"status": "recorded", "position": 2});
    assert_eq!(server.feedback("search", &one).await.json(200), recorded);
    let rest = server.feedback("search", &many(&duels)).await;
    assert_eq!(statuses(&rest), ["duplicate", "recorded", "recorded"]);
    for (method, path, body, first, repeat) in writes() {
        assert_eq!(write(&server, method, path, &body).await.status, first, "{method} {path}");
        assert_eq!(write(&server, method, path, &body).await.status, repeat, "{method} {path}");
    }
    // 3 outcomes, a creation, 2 changes, 1 batch.
    assert_eq!(log().await, before + 7);
}

async fn a_write_that_fails_after_its_commit_counts_once(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    let mut duels = duels(&server, 4).await;
    let last = duels.pop().expect("four");
    let log = async || database.count("select count(*) from log").await;
    let before = log().await;

    for _ in 0..2 {
        store.set(Mode::FailsAfter);
        server.feedback("search", &many(&duels)).await.problem(ProblemKind::Unavailable);
        store.set(Mode::Fine);
    }
    // Sending the feedback again shows that it was committed.
    let answer = server.feedback("search", &many(&duels)).await;
    assert_eq!(statuses(&answer), ["duplicate"; 3]);
    assert_eq!(server.answer("search", &last, "right").await, 5, "the log has no gap");
    assert_eq!(server.standings("search").await["duels"], 4);
    let wrong = json!({"duel_id": duels[0]["duel_id"], "outcome": "right"});
    server.feedback("search", &wrong).await.problem(ProblemKind::FeedbackConflict);
    assert_eq!(log().await, before + 4);

    for (method, path, body, _, repeat) in writes() {
        store.set(Mode::FailsAfter);
        write(&server, method, path, &body).await.problem(ProblemKind::Unavailable);
        store.set(Mode::Fine);
        let again = write(&server, method, path, &body).await;
        assert_eq!(again.status, repeat, "{method} {path}: {}", again.text());
        if path.ends_with("results") {
            assert_eq!(again.json(200), json!({"status": "duplicate", "batch": 1, "position": 2}));
        }
    }
    assert_eq!(server.experiment("search").await["version"], 2);
    // 4 outcomes, and one entry for each write.
    assert_eq!(log().await, before + 8);

    // A new server, which has seen none of this, agrees.
    server.stop().await;
    let server = Server::start(database.connect().await).await;
    assert_eq!(server.standings("search").await["duels"], 4);
    assert_eq!(server.standings("batches").await["wins"], json!([[0, 7], [3, 0]]));
}

async fn requests_to_a_hanging_database_time_out(database: TestDatabase) {
    let settings = Settings {
        service: ServiceSettings {
            commit_within: Duration::from_millis(500),
            ..ServiceSettings::default()
        },
        shell: ShellSettings {
            request_timeout: Duration::from_secs(4),
            ..ShellSettings::default()
        },
    };
    let Setup { store, server } = setup(&database, settings).await;
    let duels = duels(&server, 2).await;
    let one = json!({"duel_id": duels[0]["duel_id"], "outcome": "left"});
    store.set(Mode::Hangs);
    let mut waiting = tokio::task::JoinSet::new();
    for (method, path, body, ..) in writes() {
        let client = server.client();
        waiting.spawn(async move { (path, write(&client, method, path, &body).await) });
    }
    while let Some(answered) = waiting.join_next().await {
        let (path, answer) = answered.expect("an answer");
        // The writer has a timeout of its own; the rest ends at the timeout of requests.
        let kind =
            if path.ends_with("results") { ProblemKind::Unavailable } else { ProblemKind::Timeout };
        answer.problem(kind);
    }
    server.feedback("search", &one).await.problem(ProblemKind::Unavailable);
    server.feedback("search", &many(&duels)).await.problem(ProblemKind::Unavailable);
    server.next_duel("search").await;
    store.set(Mode::Fine);

    assert_eq!(server.position("search").await, 1);
    assert_eq!(statuses(&server.feedback("search", &many(&duels)).await), ["recorded"; 2]);
    for (method, path, body, first, _) in writes() {
        assert_eq!(write(&server, method, path, &body).await.status, first, "{method} {path}");
    }
    assert_eq!(server.standings("batches").await["duels"], 10);
}

async fn loading_an_experiment_may_outlast_a_request(database: TestDatabase) {
    let first = Server::running(&database, &steady("search", &["a", "b"])).await;
    let duel = first.pair("search").await;
    first.answer("search", &duel, "left").await;
    first.stop().await;

    let store = FailingStore::new(database.connect().await);
    // Loading takes three database calls: the record, the snapshot and the log.
    let request_timeout = LATE * 5 / 2;
    let shell = ShellSettings { request_timeout, ..ShellSettings::default() };
    let server = Server::with(store.clone(), Settings { shell, ..Settings::default() }).await;
    store.set(Mode::Late);
    let path = "/v1/experiments/search/standings";
    server.get(path).await.problem(ProblemKind::Timeout);
    let standings = eventually("the standings", async || {
        let answer = server.get(path).await;
        (answer.status == 200).then(|| answer.json(200))
    })
    .await;
    assert_eq!(standings["duels"], 1);
}

async fn reads_are_served_from_memory(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    let duel = server.pair("search").await;
    server.answer("search", &duel, "left").await;
    let paths =
        ["", "/standings", "/regret", "/batch"].map(|path| format!("/v1/experiments/search{path}"));
    let mut before = Vec::new();
    for path in &paths {
        before.push(server.get(path).await.json(200));
    }
    store.set(Mode::FailsBefore);
    for (path, before) in paths.iter().zip(&before) {
        assert_eq!(&server.get(path).await.json(200), before, "{path}");
    }
    for _ in 0..20 {
        assert_eq!(server.next_duel("search").await["batch"], 1);
    }
    let leased =
        server.post("/v1/experiments/search/batch/lease", &json!({"count": 5})).await.json(200);
    assert_eq!(leased["duels"].as_array().map(Vec::len), Some(5));
    assert_eq!(server.next_duel("old").await["self_duel"], true);
    // Experiments that are not in memory cannot be served.
    for path in ["/v1/experiments", "/v1/experiments/unknown", "/v1/experiments/unknown/standings"]
    {
        server.get(path).await.problem(ProblemKind::Unavailable);
    }
    store.set(Mode::Fine);
    server.get("/v1/experiments/unknown").await.problem(ProblemKind::ExperimentNotFound);
    // A duel that was issued meanwhile counts.
    server.answer("search", &leased["duels"][0], "left").await;
}

async fn commits_without_a_response_are_folded_soon(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    let duels = duels(&server, 3).await;
    store.set(Mode::FailsAfter);
    server.feedback("search", &many(&duels)).await.problem(ProblemKind::Unavailable);
    store.set(Mode::Fine);
    until("three outcomes without a repeat", async || server.position("search").await == 4).await;
}

/// The total of self-duels in an experiment's log.
async fn logged_self_duels(store: &dyn Store, name: &str) -> u64 {
    let record = store.experiment(name).await.expect("a store").expect("an experiment");
    let log = store.read(record.id, 0, 10_000).await.expect("its log");
    let counts = log.iter().filter_map(|entry| match &entry.event {
        Event::Control(ControlEvent::SelfDuels { counts, .. }) => {
            Some(counts.iter().map(|(_, count)| count).sum::<u64>())
        }
        _ => None,
    });
    counts.sum()
}

/// Request duels until `count` self-duels have been issued.
async fn show_self_duels(server: &Server, count: u64) {
    let mut shown = 0;
    while shown < count {
        shown += u64::from(server.next_duel("alone").await["self_duel"] == true);
    }
}

async fn self_duels_survive_failures(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    server
        .create(&json!({"name": "alone", "rankers": ["a", "b"], "policy": {"kind": "uniform"}}))
        .await;
    let mut expected = 0;
    for mode in [Mode::FailsBefore, Mode::FailsAfter, Mode::FailsAfter] {
        store.set(mode);
        show_self_duels(&server, 10).await;
        expected += 10;
        let tried = store.appends();
        until("an attempt to write them", async || store.appends() > tried).await;
    }
    store.set(Mode::Fine);
    until("all self-duels", async || server.standings("alone").await["self_duels"] == expected)
        .await;
    assert_eq!(logged_self_duels(&*store, "alone").await, expected);
}

async fn self_duels_survive_a_failure_just_before_the_end(database: TestDatabase) {
    let Setup { store, server } = setup(&database, Settings::default()).await;
    server
        .create(&json!({"name": "alone", "rankers": ["a", "b"], "policy": {"kind": "uniform"}}))
        .await;
    show_self_duels(&server, 10).await;
    store.set(Mode::FailsBefore);
    let tried = store.appends();
    until("an attempt to write them", async || store.appends() > tried).await;
    show_self_duels(&server, 5).await;
    store.set(Mode::Fine);
    server.stop().await;
    let store = database.connect().await;
    let logged = logged_self_duels(&*store, "alone").await;
    assert_eq!(logged, 15, "those of the failed attempt, and the later ones");
}

async fn a_full_queue_refuses_feedback(database: TestDatabase) {
    let settings = Settings {
        service: ServiceSettings { queue_events_max: 3, ..ServiceSettings::default() },
        ..Settings::default()
    };
    let Setup { server, .. } = setup(&database, settings).await;
    let duels = duels(&server, 4).await;
    server.feedback("search", &many(&duels)).await.problem(ProblemKind::Overloaded);
    assert_eq!(server.position("search").await, 1);
    assert_eq!(statuses(&server.feedback("search", &many(&duels[..3])).await), ["recorded"; 3]);
    assert_eq!(
        statuses(&server.feedback("search", &many(&duels[1..])).await),
        ["duplicate", "duplicate", "recorded"]
    );
}
