//! Feedback while another session of PostgreSQL holds the rows of some experiments.

use std::time::Duration;

use rankduel::http::{ProblemKind, ShellSettings};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::client::{Answer, steady, until};
use crate::support::service::{Server, Settings};
use crate::support::{Kind, fresh_database};

const WAITING: &str = "select count(*) from pg_stat_activity
     where datname = current_database() and application_name = 'rankduel'
       and wait_event_type = 'Lock'";

fn send(server: &Server, name: &'static str, duel: &Value) -> JoinHandle<Answer> {
    let (client, body) = (server.client(), json!({"duel_id": duel["duel_id"], "outcome": "left"}));
    tokio::spawn(async move { client.feedback(name, &body).await })
}

/// Formerly one transaction had the feedback of all experiments, and failed for all of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_experiment_does_not_fail_the_others() {
    let database = fresh_database(Kind::Postgres).await;
    // A commit waits for a lock for 5 s, and some requests here wait for three commits.
    let shell =
        ShellSettings { request_timeout: Duration::from_secs(60), ..ShellSettings::default() };
    let settings = Settings { shell, ..Settings::default() };
    let server = Server::with(database.store().await, settings).await;
    for name in ["first", "second", "healthy"] {
        server.create(&steady(name, &["a", "b"])).await;
    }
    let (one, two) = (server.pair("first").await, server.pair("first").await);
    let second = server.pair("second").await;
    let (healthy, later) = (server.pair("healthy").await, server.pair("healthy").await);

    let held = database
        .hold("begin; select 1 from experiment where name in ('first', 'second') for update")
        .await;
    let alone = send(&server, "first", &one);
    until("a commit that waits for the lock", async || database.count(WAITING).await > 0).await;
    // They wait for this commit, and would be the next one together.
    let together = [send(&server, "first", &two), send(&server, "second", &second)];
    let healthy = send(&server, "healthy", &healthy);
    alone.await.unwrap().problem(ProblemKind::Unavailable);
    assert_eq!(healthy.await.unwrap().json(200)["status"], "recorded");
    // From now on it does not even wait.
    assert_eq!(server.answer("healthy", &later, "left").await, 3);
    for answer in together {
        answer.await.unwrap().problem(ProblemKind::Unavailable);
    }
    drop(held);
    for (name, duel) in [("first", &one), ("first", &two), ("second", &second)] {
        let receipt = send(&server, name, duel).await.unwrap().json(200);
        assert_eq!(receipt["status"], "recorded", "{name}: {receipt}");
    }
    for (name, position) in [("first", 3), ("second", 2), ("healthy", 3)] {
        assert_eq!(server.position(name).await, position);
    }
    server.stop().await;
}
