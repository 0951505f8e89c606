//! The files for analysts: a table with one row for each answered page, whichever way the feedback
//! came, the results by segment, and a preference matrix.

use dueling_bandits::preference::PreferenceMatrix;
use serde_json::{Value, json};

use super::{filled, run, succeed};
use crate::support::TestDatabase;
use crate::support::client::{steady, until, with};
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_table_has_a_row_for_each_answered_page
    the_table_has_the_probability_of_a_pair
    a_table_of_segments_is_of_the_winner_or_the_leader
    a_pruned_log_has_no_rows_of_its_pruned_pages
    the_matrix_of_an_experiment_can_be_simulated
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
        assert_eq!((&row["alone"], &row["propensity"]), (&Value::Null, &Value::Null), "{row}");
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

async fn the_table_has_the_probability_of_a_pair(database: TestDatabase) {
    let body = json!({
        "name": "search", "rankers": ["a", "b", "c", "twin"], "canary": ["a", "twin"],
        "canary_share": 0.1, "control": "c", "alone": 0.4, "policy": {"kind": "uniform"},
        "seed": 5, "conclude_at": "never", "answer_window_seconds": 0, "watch": 0.0,
    });
    let server = Server::running(&database, &body).await;
    let ask = async |body: Value| {
        let duel = server.post(&format!("{PATH}/next-duel"), &body).await.json(200);
        server.answer("search", &duel, "none").await;
    };
    for unit in 0..40 {
        ask(json!({"unit": format!("unit-{unit}")})).await;
        ask(json!({})).await;
    }
    let concluded = json!({"status": "concluded", "winner": "b"});
    server.patch("search", &concluded).await.json(200);
    ask(json!({})).await;
    let lines = succeed(&database, &["pages", "search", "--format", "jsonl"]);
    let (mut alone, mut canary) = (0, 0);
    let rows: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (nth, row) in rows.iter().enumerate() {
        let is_alone = row["alone"].is_string();
        let own = if row["unit"].is_string() { 0.6 } else { 1.0 };
        let expected = match (row["left"] == row["right"], nth == rows.len() - 1) {
            (true, true) => 1.0,
            (true, false) if is_alone => 0.2,
            (true, false) => own * 0.9 / 9.0,
            (false, _) if row["left"] == "twin" || row["right"] == "twin" => own * 0.1,
            (false, _) => own * 0.9 * 2.0 / 9.0,
        };
        alone += u32::from(is_alone);
        canary += u32::from(row["left"] == "twin" || row["right"] == "twin");
        let found = row["propensity"].as_f64().expect("a probability");
        assert!((found - expected).abs() < 1e-12, "{expected}: {row}");
    }
    assert!(alone > 5 && canary > 0 && rows.len() == 81, "{alone} {canary} {}", rows.len());
}

async fn a_table_of_segments_is_of_the_winner_or_the_leader(database: TestDatabase) {
    let body = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 60}));
    let server = Server::with(database.store().await, Settings::quick()).await;
    server.create(&body).await;
    let duel = server.pair("search").await;
    server.wins("search", &duel, "b").await;
    let table = |arguments: &[&str]| run(&database, &[&["segments", "search"], arguments].concat());
    let header = "segment,ranker,opponent,duels,wins,losses,ties,win_rate,low,high";
    let (code, printed, said) = table(&[]);
    assert_eq!((code, printed.trim_end()), (Some(0), header), "other answers may come: {said}");
    assert!(said.contains("answers that do not count yet: 1"), "{said}");
    server.clock.advance_ms(120_000);
    until("the answer to count", async || {
        server.verdict("search").await["rests_on"]["answers"] == 1
    })
    .await;
    let row = |arguments: &[&str]| table(arguments).1.lines().nth(1).expect("a row").to_owned();
    assert!(row(&[]).starts_with(",b,a,1,1,0,0,1"), "the leader: {}", row(&[]));
    assert!(row(&["--ranker", "a"]).starts_with(",a,b,1,0,1,0,0"), "{}", row(&["--ranker", "a"]));
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    assert!(row(&[]).starts_with(",a,b,"), "the winner: {}", row(&[]));
    let (code, _, error) = table(&["--ranker", "c"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("`search` has no ranker `c`; its rankers: a, b"), "{error}");
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

async fn the_matrix_of_an_experiment_can_be_simulated(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["bm25", "neural, v2"])).await;
    // `bm25` wins two of three duels
    for number in 0..3 {
        let duel = server.pair("search").await;
        let side = if (duel["left"] == "bm25") == (number < 2) { "left" } else { "right" };
        server.answer("search", &duel, side).await;
    }
    let matrix = succeed(&database, &["matrix", "search"]);
    let lines: Vec<&str> = matrix.lines().collect();
    assert_eq!(lines[0], "# search: 3 answered duels; an entry is (wins + 1) / (duels + 2)");
    assert_eq!(lines[1], ",bm25,\"neural, v2\"");
    assert_eq!(lines[2], "bm25,0.5,0.6");
    assert_eq!(lines[3], "\"neural, v2\",0.4,0.5");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("matrix.csv");
    let path = file.to_str().expect("a path");
    succeed(&database, &["matrix", "search", "--out", path]);
    let read = PreferenceMatrix::load(path).expect("a matrix that the lab reads");
    assert_eq!((read.rankers(), read.win_probability(0, 1)), (2, 0.6));
}
