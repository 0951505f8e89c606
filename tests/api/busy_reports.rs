//! While reports are slow, the last ones are sent, and monitoring does not wait for them.

use std::time::Duration;

use serde_json::json;

use crate::support::TestDatabase;
use crate::support::client::{eventually, steady, until};
use crate::support::service::{Server, Settings};

on_sqlite! {
    a_report_that_does_not_come_in_time_is_the_last_one_with_its_age
    a_verdict_is_the_last_one_also_after_its_answer_has_changed
    metrics_do_not_wait_for_reports
}

/// A server with an experiment of so many rankers that no report is ready within the shortest time
/// limit.
async fn hurried(database: &TestDatabase) -> Server {
    let mut settings = Settings::default();
    settings.service.reports_within = Duration::ZERO;
    let server = Server::with(database.store().await, settings).await;
    let rankers: Vec<String> = (0..200).map(|number| format!("ranker-{number}")).collect();
    let rankers: Vec<&str> = rankers.iter().map(String::as_str).collect();
    server.create(&steady("search", &rankers)).await;
    server
}

async fn a_report_that_does_not_come_in_time_is_the_last_one_with_its_age(database: TestDatabase) {
    let server = hurried(&database).await;
    for report in ["verdict", "standings", "regret", "winners"] {
        let path = format!("/v1/experiments/search/{report}");
        // Without an earlier one, callers wait.
        let first = server.get(&path).await;
        first.json(200);
        assert_eq!(first.header("age"), None, "{report}");
        let duel = server.pair("search").await;
        server.answer("search", &duel, "left").await;
        let last = server.get(&path).await;
        assert_eq!(last.json(200), first.json(200), "{report}");
        assert!(last.header("age").is_some_and(|age| age.parse::<u64>().is_ok()), "{report}");
        assert_eq!(last.header("etag"), first.header("etag"), "{report}");
        // It does not wait for the threads that compress, either.
        let gzip = [("accept-encoding", "gzip")];
        let plain = server.send("GET", &path, &gzip, vec![]).await;
        let is_last = plain.header("age").is_some();
        assert!(!is_last || plain.header("content-encoding").is_none(), "{report}");
        until("the new one", async || {
            let new = server.get(&path).await;
            new.header("age").is_none() && new.header("etag") != first.header("etag")
        })
        .await;
    }
}

async fn a_verdict_is_the_last_one_also_after_its_answer_has_changed(database: TestDatabase) {
    let server = hurried(&database).await;
    let path = "/v1/experiments/search/verdict";
    let first = server.get(path).await;
    server.patch("search", &json!({"status": "paused"})).await.json(200);
    let last = server.get(path).await;
    assert!(last.json(200) == first.json(200), "the last verdict");
    assert!(last.header("age").is_some());
    assert_eq!(last.header("etag"), first.header("etag"));
    until("the new one", async || {
        let new = server.get(path).await;
        new.header("age").is_none() && new.json(200)["answer"]["status"] == "paused"
    })
    .await;
}

async fn metrics_do_not_wait_for_reports(database: TestDatabase) {
    const EXPERIMENTS: usize = 8;
    let server = Server::start(database.store().await).await;
    let rankers: Vec<String> = (0..200).map(|number| format!("ranker-{number}")).collect();
    let names: Vec<_> = (0..EXPERIMENTS).map(|number| format!("many-{number}")).collect();
    for name in &names {
        server.create(&json!({"name": name, "rankers": rankers})).await;
    }
    // Each round asks for new reports, and for the metrics while these run.
    let running = "rankduel_http_requests_in_flight ";
    eventually("metrics while a report runs", async || {
        let mut reports = Vec::new();
        for name in &names {
            let duel = server.pair(name).await;
            server.answer(name, &duel, "left").await;
            let (client, path) = (server.client(), format!("/v1/experiments/{name}/regret"));
            reports.push(tokio::spawn(async move { client.get(&path).await.json(200) }));
        }
        let gzip = [("accept-encoding", "gzip")];
        let metrics = server.send("GET", "/metrics", &gzip, vec![]).await;
        assert_eq!(metrics.header("content-encoding"), None);
        let text = metrics.text();
        let position = "rankduel_experiment_log_position{experiment=\"many-0\"} ";
        assert!(text.contains(position), "{text}");
        let in_flight = text.lines().find_map(|line| line.strip_prefix(running)?.parse().ok());
        for report in reports {
            report.await.expect("a report");
        }
        // The metrics' own request is one of them.
        in_flight.filter(|requests: &u64| *requests > 1).map(drop)
    })
    .await;
}
