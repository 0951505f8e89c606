//! Changing the policy of a running experiment: the log stays, and the new policy has learnt from
//! all of it.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Answer, assert_verifies, eventually, until};
use crate::support::service::Server;

on_both_databases! {
    a_new_policy_learns_from_the_existing_log
    every_replica_and_every_restart_uses_the_new_policy
}

on_sqlite! {
    an_invalid_policy_change_is_refused
}

async fn change(server: &Server, policy: Value) -> Answer {
    server.patch("search", &json!({"policy": policy})).await
}

/// Answer `duels` duels; the lower id wins three times in four.
async fn play(server: &Server, duels: usize) {
    for number in 0..duels {
        let duel = server.pair("search").await;
        let first = (duel["left"].as_str() < duel["right"].as_str()) == (number % 3 != 2);
        server.answer("search", &duel, if first { "left" } else { "right" }).await;
    }
}

/// The saved state, once the whole log is folded.
async fn state(server: &Server, position: u64) -> Vec<u8> {
    eventually("the state", async || {
        let loaded = server.service.experiment("search").await.expect("an experiment");
        let fold = loaded.fold().expect("a fold");
        (fold.position() >= position).then(|| fold.policy().save())
    })
    .await
}

async fn a_new_policy_learns_from_the_existing_log(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let body = json!({
        "name": "search", "rankers": ["a", "b", "c"], "seed": 5,
        "policy": {"kind": "pcomp", "horizon": 100_000, "batches": 1},
    });
    server.post("/v1/experiments", &body).await.json(201);
    play(&server, 30).await;
    let open = server.pair("search").await;
    let before = server.standings("search").await;

    let changed = change(&server, json!({"kind": "ccb"})).await;
    assert_eq!(changed.header("etag"), Some("\"2\""));
    let changed = changed.json(200);
    assert_eq!((&changed["policy"]["kind"], &changed["version"]), (&json!("ccb"), &json!(2)));
    let after = server.standings("search").await;
    assert_eq!((&after["wins"], &after["duels"]), (&before["wins"], &json!(30)), "the log is kept");
    assert_eq!(after["position"], 31, "the change is in the log");

    // A duel issued by the previous policy still counts, once.
    assert_eq!(server.answer("search", &open, "left").await, 32);
    assert_eq!(server.standings("search").await["duels"], 31);
    // The same change again is no change.
    assert_eq!(change(&server, json!({"kind": "ccb"})).await.json(200)["version"], 2);
    // The original creation request still finds the experiment.
    assert_eq!(server.post("/v1/experiments", &body).await.json(200)["policy"]["kind"], "ccb");
    server.get("/v1/experiments/search/batch").await.problem(ProblemKind::NotABatchPolicy);

    // A batch policy starts with its own first batch and accepts its results; so does the next
    // policy, whose first batch is another one than that which was posted.
    for (number, horizon) in [(1, 300), (2, 400)] {
        change(&server, json!({"kind": "pcomp", "horizon": horizon, "batches": 2})).await.json(200);
        let missing = server.missing_results("search").await;
        assert_eq!(missing["batch"], number, "{missing}");
        let posted = server.post("/v1/experiments/search/batch/results", &missing).await.json(200);
        assert_eq!(posted["status"], "recorded", "{posted}");
        assert_ne!(server.report("search", "batch").await["number"], number);
    }
    let audit_log = server.get("/v1/audit?experiment=search").await;
    assert!(audit_log.status != 200 || audit_log.text().contains("ccb"), "{}", audit_log.text());
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn every_replica_and_every_restart_uses_the_new_policy(database: TestDatabase) {
    let [server, second] = Server::two(&database).await;
    let body = json!({
        "name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}, "seed": 3,
    });
    server.create(&body).await;
    play(&server, 25).await;
    second.standings("search").await;
    change(&server, json!({"kind": "ccb"})).await.json(200);
    play(&server, 25).await;
    until("the new policy at the other replica", async || {
        let experiment = second.experiment("search").await;
        experiment["policy"]["kind"] == "ccb"
    })
    .await;
    let duel = second.pair("search").await;
    second.answer("search", &duel, "left").await;
    server.stop().await;
    second.stop().await;

    let third = Server::start(database.connect().await).await;
    let position = third.position("search").await;
    let state = async |server: &Server| state(server, position).await;
    third.same_after_restarts(&database, "search", state).await;
}

async fn an_invalid_policy_change_is_refused(database: TestDatabase) {
    let server = Server::running(
        &database,
        &json!({"name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}}),
    )
    .await;
    for (policy, pointer) in [
        (json!({"kind": "no-such"}), "/policy/kind"),
        (json!({"kind": "scomp2"}), "/policy/horizon"),
        (json!({"kind": "d-ts", "alpha": 0}), "/policy/alpha"),
    ] {
        change(&server, policy).await.problem_at(ProblemKind::InvalidRequest, pointer);
    }
    let both = json!({"policy": {"kind": "d-ts"}, "status": "paused"});
    server.refuses_change("search", &both, "/policy").await;
    let path = "/v1/experiments/search";
    assert_eq!(server.get(path).await.json(200)["version"], 1);

    play(&server, 2).await;
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    server.prune("search", 1).await;
    change(&server, json!({"kind": "d-ts"}))
        .await
        .problem_saying(ProblemKind::CannotReplay, "pruned");
    assert_eq!(server.send("DELETE", path, &[], Vec::new()).await.status, 204);
    change(&server, json!({"kind": "d-ts"})).await.problem(ProblemKind::ExperimentArchived);
}
