//! `rankduel bench` in a quick form: that it ends well and that its report has the numbers. No time is asserted.

#[macro_use]
#[path = "support/mod.rs"]
mod support;

use serde_json::Value;
use support::server::{outcome, rankduel};
use support::{Kind, TestDatabase};

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

on_both_databases! { a_quick_bench_reports_every_side_and_every_goal }

async fn a_quick_bench_reports_every_side_and_every_goal(database: TestDatabase) {
    let mut command = rankduel(&QUICK);
    command.args(["--format", "json", "--database-url", &database.url]);
    let (code, report, log) = outcome(command);
    assert_eq!(code, Some(0), "{log}");
    let report: Value = serde_json::from_str(&report).expect("a report");
    let sections = report["sections"].as_array().expect("sections");
    let names: Vec<_> = sections.iter().map(|section| section["name"].as_str().expect("a name")).collect();
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
                // what takes memory may take none, and a short round may take less than a tick of the processor
                assert!(median > 0.0 || name == "bytes", "{name} of {row}");
            }
        }
        for goal in section["goals"].as_array().expect("goals") {
            assert!(goal["measured"].as_f64().expect("a figure").is_finite(), "{goal}");
            assert!(goal["met"].is_boolean(), "{goal}");
        }
    }
    let rows: usize = sections.iter().map(|section| section["rows"].as_array().expect("rows").len()).sum();
    assert_eq!(rows, if database.kind == Kind::Sqlite { 18 } else { 20 });
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let mut command = rankduel(&QUICK);
    command.arg("replicas");
    let (code, _, log) = outcome(command);
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("replicas share a PostgreSQL database"), "{log}");
}
