//! The table for analysts, with one row for each answered page, whichever way the feedback came.

use serde_json::{Value, json};

use super::{filled, run, succeed};
use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::service::Server;

on_both_databases! {
    a_table_has_a_row_for_each_answered_page
    a_pruned_log_has_no_rows_of_its_pruned_pages
    tables_for_spreadsheets_have_no_formulas
}

const PATH: &str = "/v1/experiments/search";

async fn a_table_has_a_row_for_each_answered_page(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a,b", "c"])).await;
    server.create(&steady("empty", &["a", "b"])).await;
    let mut expected = Vec::new();
    for (outcome, unit, segment) in [
        ("left", Some("u-1"), None),
        ("right", Some("u-2"), Some("mobile")),
        ("tie", None, Some("a, \"b\"")),
        ("none", Some("u-1"), None),
    ] {
        let duel = server.pair("search").await;
        let mut body = json!({"duel_id": duel["duel_id"], "outcome": outcome});
        if let Some(unit) = unit {
            body["unit"] = unit.into();
        }
        if let Some(segment) = segment {
            body["segment"] = segment.into();
        }
        assert_eq!(server.feedback("search", &body).await.json(200)["status"], "recorded");
        let winner = duel.get(outcome).cloned().unwrap_or(Value::Null);
        expected.push(json!({"left": duel["left"], "right": duel["right"], "outcome": outcome,
            "winner": winner, "unit": unit.is_some(), "segment": segment}));
    }
    // Clicks in two pieces become one outcome, with the piece that settles the duel.
    let documents = |name: &str| (0..5).map(|n| format!("{name}{n}")).collect::<Vec<_>>();
    let body = json!({"rankings": {"a,b": documents("first-"), "c": documents("second-")}, "length": 8,
            "segment": "desktop"});
    let page = loop {
        let page = server.post(&format!("{PATH}/next-duel"), &body).await.json(200);
        if page["left"] != page["right"] {
            break page;
        }
    };
    for (click, last) in [("first-0", false), ("first-1", true)] {
        let body = json!({"duel_id": page["duel_id"], "clicks": [click], "final": last,
            "segment": "the duel has one"});
        server.feedback("search", &body).await.json(200);
    }
    let side = if page["left"] == "a,b" { "left" } else { "right" };
    expected.push(json!({"left": page["left"], "right": page["right"], "outcome": side,
        "winner": "a,b", "unit": false, "segment": "desktop"}));

    let lines = succeed(&database, &["pages", "search", "--format", "jsonl"]);
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = rows[2]["position"].to_string();
    let later = succeed(&database, &["pages", "search", "--format", "jsonl", "--after", &last]);
    let later: Vec<&str> = later.lines().collect();
    assert_eq!(later, lines.lines().skip(3).collect::<Vec<_>>(), "the rows after a position");
    let seen: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({"left": row["left"], "right": row["right"], "outcome": row["outcome"],
                "winner": row["winner"], "unit": row["unit"].is_string(),
                "segment": row["segment"]})
        })
        .collect();
    assert_eq!(seen, expected);
    assert_eq!(rows[0]["unit"], rows[3]["unit"], "one unit has one hash");
    assert_ne!(rows[0]["unit"], rows[1]["unit"]);
    for row in &rows {
        let text = |field: &str| row[field].as_str().expect(field).to_string();
        assert_eq!(text("duel").len(), 32, "{row}");
        // the server's clock stands still
        for field in ["issued_at", "answered_at"] {
            assert_eq!(text(field), "2026-09-21T14:13:20.000Z", "{row}");
        }
        assert_eq!(row["excluded"], false, "{row}");
        assert_eq!(row["alone"], Value::Null, "{row}");
    }

    // The same as CSV, where the id of a ranker with a comma is quoted.
    let table = succeed(&database, &["pages", "search"]);
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().expect("a header").clone();
    for (record, row) in reader.records().map(|record| record.expect("a record")).zip(&rows) {
        for (name, field) in header.iter().zip(&record) {
            let value = match &row[name] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            assert_eq!(field, value, "{name} of {row}");
        }
    }
    assert_eq!(table.lines().count(), 1 + rows.len());
    assert!(table.contains("\"a,b\""), "{table}");

    // Excluded units keep their rows, marked.
    let exclude = json!({"exclude": {"units": ["u-1"], "reason": "a crawler"}});
    server.patch("search", &exclude).await.json(200);
    let lines = succeed(&database, &["pages", "search", "--format", "jsonl"]);
    let row = |line: &str| serde_json::from_str::<Value>(line).expect("JSON");
    let excluded: Vec<bool> = lines.lines().map(|line| row(line)["excluded"] == true).collect();
    assert_eq!(excluded, [true, false, false, true, false]);

    assert_eq!(succeed(&database, &["pages", "empty"]).lines().count(), 1, "the header alone");
    let (code, _, error) = run(&database, &["pages", "serch"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("there is no experiment `serch`"), "{error}");
}

async fn a_pruned_log_has_no_rows_of_its_pruned_pages(database: TestDatabase) {
    filled(&database).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pages.csv");
    let path = file.to_str().expect("a path");
    succeed(&database, &["pages", "search", "--out", path]);
    let written = std::fs::read_to_string(&file).expect("the file");
    assert_eq!(written.lines().count(), 61, "60 duels were answered one by one");
    let (code, _, error) = run(&database, &["pages", "search", "--out", path]);
    assert_eq!(code, Some(1), "an existing file is not overwritten: {error}");

    succeed(&database, &["prune", "search", "--yes"]);
    assert_eq!(succeed(&database, &["pages", "search"]).lines().count(), 1);
    assert_eq!(succeed(&database, &["pages", "young"]).lines().count(), 2);
}

/// A spreadsheet calculates a cell that starts as a formula, and callers choose these texts.
async fn tables_for_spreadsheets_have_no_formulas(database: TestDatabase) {
    const FORMULA: &str = "=HYPERLINK(\"http://evil.example\")";
    let server = Server::running(&database, &steady("search", &[FORMULA, "-1"])).await;
    let duel = server.pair("search").await;
    let side = if duel["left"] == FORMULA { "left" } else { "right" };
    let body = json!({"duel_id": duel["duel_id"], "outcome": side, "segment": "@SUM(A1:A9)"});
    server.feedback("search", &body).await.json(200);
    let row = succeed(&database, &["pages", "search", "--format", "jsonl"]);
    let row: Value = serde_json::from_str(&row).expect("JSON");
    let expected = (&json!("@SUM(A1:A9)"), &json!(FORMULA));
    assert_eq!((&row["segment"], &row["winner"]), expected, "programs need the text itself");
    let table = succeed(&database, &["pages", "search"]);
    let quoted = FORMULA.replace('"', "\"\"");
    assert!(table.contains(&format!("\"'{quoted}\"")), "{table}");
    assert!(table.contains("'@SUM(A1:A9)"), "{table}");
    assert!(table.contains(",-1,"), "a number stays: {table}");
    let is_formula =
        |cell: &str| cell.trim_start_matches('"').starts_with(['=', '+', '@', '\t', '\r']);
    assert!(!table.split([',', '\n']).any(is_formula), "{table}");
}
