//! A short `rankduel bench`: it succeeds and its report is complete. No time is asserted.

use std::process::Command;

use crate::support::server::{outcome, rankduel};
use crate::support::{Kind, TestDatabase};
use serde_json::Value;

const QUICK: [&str; 13] = [
    "bench",
    "--rounds",
    "1",
    "--seconds",
    "0.1",
    "--connections",
    "4",
    "--feedback-connections",
    "8",
    "--outcomes",
    "2500",
    "--log",
    "error",
];

/// The report of a bench that succeeds, written as JSON.
fn report_of(mut command: Command) -> Value {
    command.args(["--format", "json"]);
    let (code, report, log) = outcome(command);
    assert_eq!(code, Some(0), "{log}");
    serde_json::from_str(&report).expect("a report")
}

on_both_databases! {
    a_quick_bench_reports_every_side_and_every_goal
    the_policy_of_the_experiments_can_be_chosen
}

async fn a_quick_bench_reports_every_side_and_every_goal(database: TestDatabase) {
    let mut command = rankduel(&QUICK);
    command.args(["--database-url", &database.url]);
    let report = report_of(command);
    let sections = report["sections"].as_array().expect("sections");
    let names: Vec<_> =
        sections.iter().map(|section| section["name"].as_str().expect("a name")).collect();
    match database.kind {
        Kind::Sqlite => assert_eq!(names, ["duels", "feedback", "start"]),
        Kind::Postgres => assert_eq!(names, ["duels", "feedback", "start", "replicas"]),
    }
    for section in sections {
        for row in section["rows"].as_array().expect("rows") {
            let values = row["values"].as_object().expect("values");
            assert!(!values.is_empty(), "{row}");
            for (name, value) in values {
                let median = value["median"].as_f64().expect("a median");
                // Memory figures may be zero, and a short round may take less than a
                // processor tick.
                let may_be_none = name == "bytes"
                    || name.contains("processors of")
                    || name.contains("waiting for");
                assert!(median > 0.0 || may_be_none, "{name} of {row}");
            }
        }
        for goal in section["goals"].as_array().expect("goals") {
            assert!(goal["measured"].as_f64().expect("a figure").is_finite(), "{goal}");
            assert!(goal["met"].is_boolean(), "{goal}");
        }
    }
    if let Some(replicas) = sections.iter().find(|section| section["name"] == "replicas") {
        for name in ["processors of PostgreSQL", "waiting for locks", "waiting for the log on disk"]
        {
            assert!(replicas["rows"][0]["values"][name].is_object(), "{name} of {replicas}");
        }
    }
    let rows: usize =
        sections.iter().map(|section| section["rows"].as_array().expect("rows").len()).sum();
    assert_eq!(rows, if database.kind == Kind::Sqlite { 18 } else { 23 });
}

#[test]
fn a_quick_bench_of_stocks_counts_decisions() {
    let mut command = rankduel(&QUICK);
    command.arg("stock");
    let report = report_of(command);
    let rows = report["sections"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let decisions = row["values"]["decisions/s"]["median"].as_f64().expect("a median");
        assert!(decisions > 0.0, "{row}");
    }
}

async fn the_policy_of_the_experiments_can_be_chosen(database: TestDatabase) {
    let mut command = rankduel(&QUICK);
    command.args(["stock", "--policy", "d-ts-verdict"]);
    command.args(["--database-url", &database.url]);
    let report = report_of(command);
    let on = report["sections"][0]["on"].as_str().expect("what it was measured on");
    assert!(on.ends_with("; d-ts-verdict"), "{on}");
    let created = "SELECT COUNT(*) FROM experiment WHERE spec LIKE '%\"d-ts-verdict\"%'";
    assert_eq!(database.count(created).await, 2, "one experiment for each number of rankers");
}

#[test]
fn an_unknown_policy_is_refused() {
    let mut command = rankduel(&QUICK);
    command.args(["stock", "--policy", "guess"]);
    let (code, _, log) = outcome(command);
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("there is no policy `guess`"), "{log}");
}

#[test]
fn unsupported_measurements_are_refused() {
    let mut command = rankduel(&QUICK);
    command.arg("replicas");
    let (code, _, log) = outcome(command);
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("replicas share a PostgreSQL database"), "{log}");
}

#[test]
fn server_cpus_is_applied_or_the_bench_names_its_requirement() {
    let mut command = rankduel(&QUICK);
    command.args(["duels", "--format", "json", "--server-cpus", "0.5"]);
    let (code, report, log) = outcome(command);
    if code == Some(0) {
        let report: Value = serde_json::from_str(&report).expect("a report");
        let on = report["sections"][0]["on"].as_str().expect("what it was measured on");
        assert!(on.contains("0.5 of them for each server"), "{on}");
    } else {
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("--server-cpus needs a control group"), "{log}");
    }
}
