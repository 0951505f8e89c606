//! An experiment that this version cannot read is refused; all others are served.

use rankduel::http::ProblemKind;
use serde_json::json;

use super::serve;
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, steady, until};

on_both_databases! {
    a_spec_of_a_newer_version_is_refused
    an_event_of_a_newer_version_is_refused
}

/// Every request for the experiment is refused for this reason, and another experiment is served.
async fn assert_only_this_one_is_refused(client: &Client, name: &str, reason: &str) {
    let path = format!("/v1/experiments/{name}");
    let answers = [
        client.get(&path).await,
        client.get(&format!("{path}/standings")).await,
        client.send("POST", &format!("{path}/next-duel"), &[], Vec::new()).await,
        client.feedback(name, &json!({"duel_id": "AQ", "outcome": "left"})).await,
        client.patch(name, &json!({"status": "paused"})).await,
    ];
    for answer in answers {
        let problem = answer.problem(ProblemKind::ExperimentUnreadable);
        assert!(answer.header("retry-after").is_some());
        assert!(problem["detail"].as_str().expect("a detail").contains(reason), "{problem}");
    }
    let duel = client.next_duel("other").await;
    client.answer("other", &duel, "left").await;
    assert_eq!(client.get("/readyz").await.status, 200);
    assert_eq!(client.get("/livez").await.status, 200);
}

/// The metric of unreadable experiments.
async fn unreadable(client: &Client) -> String {
    let metrics = client.get("/metrics").await.text();
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("rankduel_experiments_unreadable "));
    line.expect("the metric").to_owned()
}

fn times(log: &str, what: &str) -> usize {
    log.matches(what).count()
}

async fn a_spec_of_a_newer_version_is_refused(database: TestDatabase) {
    let (process, client) = serve(&database, &["--poll-milliseconds", "20", "--log", "warn"]);
    for name in ["newer", "other"] {
        client.create(&steady(name, &["a", "b"])).await;
    }
    process.signal("TERM");
    process.wait();
    database
        .execute(
            "update experiment set spec = replace(spec, 'pcomp', 'pcomp-of-tomorrow') where name = 'newer'",
        )
        .await;
    let (process, client) = serve(&database, &["--poll-milliseconds", "20", "--log", "warn"]);
    assert_only_this_one_is_refused(&client, "newer", "pcomp-of-tomorrow").await;
    assert_only_this_one_is_refused(&client, "newer", "newer version").await;
    let page = client.get("/v1/experiments").await.json(200);
    assert_eq!(page["experiments"].as_array().expect("a list").len(), 1);
    assert_eq!(
        (&page["experiments"][0]["name"], &page["unreadable"]),
        (&json!("other"), &json!(["newer"]))
    );
    let log = process.stop();
    assert_eq!(times(&log, "cannot be served here"), 1, "logged once: {log}");
}

async fn an_event_of_a_newer_version_is_refused(database: TestDatabase) {
    let (process, client) = serve(&database, &["--poll-milliseconds", "20", "--log", "warn"]);
    for name in ["newer", "other"] {
        client.create(&steady(name, &["a", "b"])).await;
        let duel = client.next_duel(name).await;
        assert_eq!(client.answer(name, &duel, "left").await, 2);
    }
    // A newer replica appends an unknown event while this one has the experiment in memory.
    database
        .execute(
            "insert into log (experiment_id, position, nonce, recorded_at_ms, kind, detail)
             select (select id from experiment where name = 'newer'), 3, nonce, recorded_at_ms, 1,
                    '{\"kind\": \"enlisted\", \"ranker\": \"c\"}'
             from log where position = 2
                 and experiment_id = (select id from experiment where name = 'other');
             update experiment set head = 3 where name = 'newer';",
        )
        .await;
    until("the refusal", async || {
        let answer = client.get("/v1/experiments/newer/standings").await;
        answer.status == 503
    })
    .await;
    assert_only_this_one_is_refused(&client, "newer", "enlisted").await;
    assert_eq!(unreadable(&client).await, "1");
    // Without the entry, as if this server were upgraded, the experiment is available again.
    database.execute("delete from log where position = 3 and kind = 1").await;
    database.execute("update experiment set head = 2 where name = 'newer'").await;
    eventually("another attempt", async || {
        let answer = client.get("/v1/experiments/newer/standings").await;
        (answer.status == 200).then(|| assert_eq!(answer.json(200)["position"], 2))
    })
    .await;
    assert_eq!(unreadable(&client).await, "0");
    let log = process.stop();
    assert_eq!(times(&log, "cannot be served here"), 1, "logged once: {log}");
}
