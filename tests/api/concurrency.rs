//! Concurrent callers, and several servers on one database.

use std::collections::BTreeMap;
use std::sync::Arc;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::TestDatabase;
use crate::support::client::{Answer, JSON, eventually, steady, until};
use crate::support::service::Server;

on_both_databases! {
    one_of_several_conflicting_answers_counts
    an_experiment_is_created_once
    one_of_several_changes_to_a_version_succeeds
    a_change_at_one_server_applies_at_the_other
    two_servers_count_an_answer_once
    a_change_loses_no_request
}

/// The responses to these calls, sent concurrently.
async fn all(
    calls: impl Iterator<Item = impl Future<Output = Answer> + Send + 'static>,
) -> Vec<Answer> {
    let calls: Vec<_> = calls.collect();
    let barrier = Arc::new(tokio::sync::Barrier::new(calls.len()));
    let mut running = JoinSet::new();
    for call in calls {
        let barrier = Arc::clone(&barrier);
        running.spawn(async move {
            barrier.wait().await;
            call.await
        });
    }
    running.join_all().await
}

fn by_status(answers: &[Answer]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.status).or_insert(0) += 1;
    }
    counts
}

async fn one_of_several_conflicting_answers_counts(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let duel = server.pair("search").await;
    let answers = all((0..64).map(|caller| {
        let outcome = ["left", "right", "tie", "none"][caller % 4];
        let body = json!({"duel_id": duel["duel_id"], "outcome": outcome});
        let client = server.client();
        async move { client.feedback("search", &body).await }
    }))
    .await;
    // One in four sent the answer that counts, and one of those came first.
    assert_eq!(by_status(&answers), BTreeMap::from([(200, 16), (409, 48)]));
    let mut recorded = 0;
    for answer in &answers {
        if answer.status == 200 {
            recorded += u32::from(answer.json(200)["status"] == "recorded");
        } else {
            answer.problem(ProblemKind::FeedbackConflict);
        }
    }
    assert_eq!(recorded, 1);
    assert_eq!(server.position("search").await, 2);
}

async fn an_experiment_is_created_once(database: TestDatabase) {
    let servers = Server::two(&database).await;
    let body = |rankers: &[&str]| json!({"name": "search", "rankers": rankers, "policy": {"kind": "uniform"}});
    let answers = all((0..32).map(|caller| {
        let client = servers[caller % 2].client();
        let body = body(if caller < 24 { &["a", "b"] } else { &["b", "a"] });
        async move { client.post("/v1/experiments", &body).await }
    }))
    .await;
    let counts = by_status(&answers);
    assert_eq!(counts[&201], 1, "{counts:?}");
    assert!([(23, 8), (7, 24)].contains(&(counts[&200], counts[&409])), "{counts:?}");
    // All successful callers received the same experiment, including its random seed.
    let mut created = answers
        .iter()
        .filter(|answer| answer.status < 300)
        .map(|answer| answer.json(answer.status));
    let first = created.next().expect("at least one");
    assert!(created.all(|other| other == first));
}

async fn one_of_several_changes_to_a_version_succeeds(database: TestDatabase) {
    let servers = Server::two(&database).await;
    servers[0].create(&steady("search", &["a", "b"])).await;
    let answers = all((0..16).map(|caller| {
        let client = servers[caller % 2].client();
        async move {
            let body = json!({"status": (["paused", "concluded"][caller / 2 % 2])})
                .to_string()
                .into_bytes();
            client
                .send("PATCH", "/v1/experiments/search", &[JSON, ("if-match", "\"1\"")], body)
                .await
        }
    }))
    .await;
    assert_eq!(by_status(&answers), BTreeMap::from([(200, 1), (412, 15)]));

    // With `*`, all changes are made, one after the other.
    let answers = all((0..16).map(|caller| {
        let client = servers[caller % 2].client();
        async move {
            client
                .patch("search", &json!({"status": (["paused", "running"][caller / 2 % 2])}))
                .await
        }
    }))
    .await;
    assert_eq!(by_status(&answers), BTreeMap::from([(200, 16)]));
    let versions = eventually("the same version at both servers", async || {
        let one = servers[0].experiment("search").await;
        let other = servers[1].experiment("search").await;
        (one == other).then(|| one["version"].as_u64().expect("a version"))
    })
    .await;
    assert_eq!(
        database.count("select count(*) from log").await as u64,
        versions,
        "each change is in the log"
    );
}

/// Wait until both servers have this position; then their standings must agree.
async fn converge(servers: [&Server; 2], position: u64) -> Value {
    for server in servers {
        until("the whole log", async || server.position("search").await >= position).await;
    }
    let standings = servers[0].standings("search").await;
    assert_eq!(standings["position"], position);
    assert_eq!(standings, servers[1].standings("search").await);
    standings
}

async fn a_change_at_one_server_applies_at_the_other(database: TestDatabase) {
    let [one, other] = Server::two(&database).await;
    one.create(&steady("search", &["a", "b"])).await;
    let patch = async |server: &Server, tag: &str, status: &str| {
        let body = json!({"status": status}).to_string().into_bytes();
        server.send("PATCH", "/v1/experiments/search", &[JSON, ("if-match", tag)], body).await
    };
    // The other server has it in memory, at version 1.
    assert_eq!(other.experiment("search").await["version"], 1);
    for round in 0..10 {
        // The change is based on a fresh read, and sent to a server whose state may be stale.
        let (here, there) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let tag =
            here.get("/v1/experiments/search").await.header("etag").expect("a tag").to_owned();
        let paused = patch(here, &tag, "paused").await;
        paused.json(200);
        let running = patch(there, paused.header("etag").expect("a tag"), "running").await;
        running.json(200);
        patch(here, paused.header("etag").expect("a tag"), "concluded")
            .await
            .problem(ProblemKind::PreconditionFailed);
        // nothing changes; the answer of each server is its own for a moment
        let repeated = patch(here, "*", "running").await.json(200);
        for member in ["version", "status", "updated_at", "rankers"] {
            assert_eq!(repeated[member], running.json(200)[member], "{member}");
        }
    }
    assert_eq!(patch(&one, "*", "concluded").await.json(200)["version"], 22);
    until("the winner at the other server", async || {
        let duel = other.next_duel("search").await;
        duel["self_duel"] == true
    })
    .await;
    assert_eq!(one.send("DELETE", "/v1/experiments/search", &[], Vec::new()).await.status, 204);
    patch(&other, "*", "running").await.problem(ProblemKind::ExperimentArchived);
    eventually("the conclusion at the other server", async || {
        let answer = other.send("POST", "/v1/experiments/search/next-duel", &[], Vec::new()).await;
        (answer.status == 409).then(|| answer.problem(ProblemKind::ExperimentArchived))
    })
    .await;
}

async fn two_servers_count_an_answer_once(database: TestDatabase) {
    let servers = Server::two(&database).await;
    servers[0].create(&steady("search", &["a", "b"])).await;
    let mut bodies = Vec::new();
    for number in 0..40 {
        let duel = servers[number % 2].pair("search").await;
        bodies.push(json!({"duel_id": duel["duel_id"], "outcome": "left"}));
    }
    // Every answer goes to both servers concurrently, in different orders.
    let answers = all((0..80).map(|number| {
        let client = servers[number % 2].client();
        let nth = number / 2;
        let body = bodies[if number % 2 == 0 { nth } else { 39 - nth }].clone();
        async move { client.feedback("search", &body).await }
    }))
    .await;
    let mut positions: Vec<_> = answers
        .iter()
        .map(|answer| answer.json(200))
        .filter(|receipt| receipt["status"] == "recorded")
        .map(|receipt| receipt["position"].as_u64().expect("a position"))
        .collect();
    positions.sort_unstable();
    assert_eq!(positions, (2..=41).collect::<Vec<_>>());
    let standings = converge([&servers[0], &servers[1]], 41).await;
    assert_eq!(standings["outcomes"]["left"], 40);
}

/// Each change makes both servers load the experiment again, while they issue duels and count.
async fn a_change_loses_no_request(database: TestDatabase) {
    let servers = Server::two(&database).await;
    servers[0].create(&steady("search", &["a", "b"])).await;
    let mut callers = JoinSet::new();
    for caller in 0..4 {
        let client = servers[caller % 2].client();
        callers.spawn(async move {
            for _ in 0..50 {
                let duel = client.pair("search").await;
                client.answer("search", &duel, "left").await;
            }
        });
    }
    for number in 0..20 {
        let change = json!({"description": format!("change {number}")});
        servers[number % 2].patch("search", &change).await.json(200);
    }
    callers.join_all().await;
    let standings = converge([&servers[0], &servers[1]], 1 + 20 + 200).await;
    assert_eq!(standings["outcomes"]["left"], 200);
    assert_eq!(servers[1].experiment("search").await["version"], 21);
}
