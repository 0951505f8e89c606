//! The results of a ranker by segment, in the API and on their page.

use rankduel::http::ProblemKind;
use rankduel::service::transfer::{TableFormat, write_pages, write_segments};
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has, eventually, steady, with};
use crate::support::service::Server;

on_sqlite! {
    results_are_split_by_segment
    the_report_equals_the_table_of_the_command
    tables_for_spreadsheets_have_no_formulas
    only_answers_of_complete_cohorts_count
    an_experiment_without_segments_has_one_row
    an_invalid_request_is_refused
}

const PATH: &str = "/v1/experiments/search/segments";

/// Request a duel of the pair in this segment, for this unit, and let `winner` win it.
async fn answer(server: &Client, [segment, unit]: [Option<&str>; 2], winner: &str) {
    let mut body = json!({});
    for (field, value) in [("segment", segment), ("unit", unit)] {
        if let Some(value) = value {
            body[field] = json!(value);
        }
    }
    loop {
        let duel = server.post("/v1/experiments/search/next-duel", &body).await.json(200);
        let [left, right] = [&duel["left"], &duel["right"]];
        let outcome = match winner {
            "tie" => "tie",
            _ if *left == winner => "left",
            _ if *right == winner => "right",
            _ => continue,
        };
        let body = json!({"duel_id": duel["duel_id"], "outcome": outcome});
        let answer = server.feedback("search", &body).await.json(200);
        assert_eq!(answer["status"], "recorded", "{answer}");
        break;
    }
}

async fn results_are_split_by_segment(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for number in 0..60 {
        answer(&server, [Some("phone"), Some(&format!("u-{number}"))], "a").await;
        if number < 30 {
            // a unit counts once, in the segment of its first answer
            answer(&server, [Some("desktop"), Some(&format!("u-{number}"))], "b").await;
        }
    }
    for _ in 0..5 {
        answer(&server, [Some("desktop"), None], "b").await;
        answer(&server, [None, None], "tie").await;
    }
    let response = server.get(PATH).await;
    let report = response.json(200);
    let row = |segment: &Value| {
        let rows = report["segments"].as_array().expect("rows");
        rows.iter().find(|row| row["segment"] == *segment).expect("a row").clone()
    };
    assert_eq!(report["ranker"], "a", "the leader: {report}");
    assert_eq!((&report["segments_total"], &report["waiting"]), (&json!(3), &json!(0)));
    assert_eq!(report["segments"][0]["segment"], "phone", "most duels first");
    let phone = row(&json!("phone"));
    assert_eq!((&phone["duels"], &phone["opponents"][0]["opponent"]), (&json!(60), &json!("b")));
    let phone = &phone["opponents"][0];
    assert_has(phone, json!({"wins": 60, "losses": 0, "ties": 0}));
    assert_eq!(phone["win_rate"], 1.0);
    assert!(phone["low"].as_f64().expect("a number") > 0.5, "{phone}");
    let desktop = row(&json!("desktop"))["opponents"][0].clone();
    assert_eq!((&desktop["wins"], &desktop["losses"]), (&json!(0), &json!(5)));
    let nameless = row(&Value::Null)["opponents"][0].clone();
    assert_eq!((&nameless["ties"], &nameless["win_rate"]), (&json!(5), &Value::Null));
    assert_eq!((&nameless["low"], &nameless["high"]), (&json!(0.0), &json!(1.0)));

    let other = server.get(&format!("{PATH}?ranker=b")).await.json(200);
    assert_eq!(other["ranker"], "b");
    let mirrored = &other["segments"][0]["opponents"][0];
    assert_eq!((&mirrored["wins"], &mirrored["losses"]), (&json!(0), &json!(60)));

    let tag = response.header("etag").expect("a tag").to_owned();
    let again = server.send("GET", PATH, &[("if-none-match", &tag)], Vec::new()).await;
    assert_eq!(again.status, 304);
    answer(&server, [Some("phone"), None], "b").await;
    let phone = server.get(PATH).await.json(200)["segments"][0]["opponents"][0].clone();
    assert_eq!((&phone["wins"], &phone["losses"]), (&json!(60), &json!(1)), "the log has grown");

    let page = eventually("the page", async || {
        let page = server.get("/experiments/search").await.text();
        page.contains("all traffic").then_some(page)
    })
    .await;
    let (_, page) = page.split_once("id=\"whom\"").expect("the section");
    let rows: Vec<_> = page.split("<tbody").nth(1).expect("a table").split("</tr>").collect();
    for (row, parts) in
        [(0, ["all traffic", "60:6", "by how much"]), (1, ["phone", "60:1", "gains"])]
    {
        for part in parts {
            assert!(rows[row].contains(part), "{} lacks {part}", rows[row]);
        }
    }
    let exclude = json!({"exclude": {"units": ["u-59"], "reason": "a crawler"}});
    server.patch("search", &exclude).await.json(200);
    assert_eq!(server.get(PATH).await.json(200)["segments"][0]["opponents"][0]["wins"], 59);
}

async fn the_report_equals_the_table_of_the_command(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b", "c"])).await;
    for number in 0..40_u32 {
        let segment = ["phone", "desktop", "tablet"][number as usize % 3];
        let winner = ["a", "a", "b", "tie", "c"][number as usize % 5];
        answer(&server, [Some(segment), Some(&format!("u-{number}"))], winner).await;
    }
    let exclude = json!({"exclude": {"units": ["u-0"], "reason": "a crawler"}});
    server.patch("search", &exclude).await.json(200);
    let report = server.get(&format!("{PATH}?ranker=b")).await.json(200);
    let store = database.store().await;
    let mut table = Vec::new();
    write_segments(&*store, "search", Some("b"), TableFormat::Jsonl, &mut table)
        .await
        .expect("a table");
    let lines = String::from_utf8(table).expect("text");
    let mut compared = 0;
    for line in lines.lines() {
        let mut row: Value = serde_json::from_str(line).expect("JSON");
        let fields = row.as_object_mut().expect("an object");
        let segment = fields.remove("segment").expect("a segment");
        assert_eq!(fields.remove("ranker"), Some(json!("b")));
        let rows = report["segments"].as_array().expect("rows");
        let of = rows.iter().find(|row| row["segment"] == segment).expect("the segment");
        let opponents = of["opponents"].as_array().expect("rows");
        match opponents.iter().find(|one| one["opponent"] == row["opponent"]) {
            Some(one) => assert_eq!(*one, row),
            None => assert_eq!(row["duels"], 0, "a row without duels is not in the report"),
        }
        compared += 1;
    }
    assert_eq!(compared, 6, "three segments and two opponents: {lines}");
}

/// A spreadsheet calculates a cell that starts as a formula, and callers choose these texts.
async fn tables_for_spreadsheets_have_no_formulas(database: TestDatabase) {
    const FORMULA: &str = "=HYPERLINK(\"http://evil.example\")";
    let server = Server::running(&database, &steady("search", &[FORMULA, "-1"])).await;
    for _ in 0..3 {
        answer(&server, [Some("@SUM(A1:A9)"), None], FORMULA).await;
    }
    let store = database.store().await;
    let quoted = FORMULA.replace('"', "\"\"");
    for format in [TableFormat::Csv, TableFormat::Jsonl] {
        let (mut pages, mut segments) = (Vec::new(), Vec::new());
        write_pages(&*store, "search", format, &mut pages).await.expect("a table");
        write_segments(&*store, "search", None, format, &mut segments).await.expect("a table");
        for table in [pages, segments] {
            let table = String::from_utf8(table).expect("text");
            if format == TableFormat::Jsonl {
                let row: Value =
                    serde_json::from_str(table.lines().next().expect("a row")).expect("JSON");
                assert_eq!(row["segment"], "@SUM(A1:A9)", "programs need the text itself");
                assert!(row["winner"] == FORMULA || row["ranker"] == FORMULA, "{row}");
            } else {
                assert!(table.contains(&format!("\"'{quoted}\"")), "{table}");
                assert!(table.contains("'@SUM(A1:A9)"), "{table}");
                assert!(table.contains(",-1,"), "a number stays: {table}");
                let is_formula = |cell: &str| {
                    cell.trim_start_matches('"').starts_with(['=', '+', '@', '\t', '\r'])
                };
                assert!(!table.split([',', '\n']).any(is_formula), "{table}");
            }
        }
    }
}

async fn only_answers_of_complete_cohorts_count(database: TestDatabase) {
    let spec = with(steady("search", &["a", "b"]), json!({"answer_window_seconds": 60}));
    let server = Server::running(&database, &spec).await;
    for _ in 0..4 {
        answer(&server, [Some("phone"), None], "a").await;
    }
    let report = server.get(PATH).await.json(200);
    assert_eq!((&report["waiting"], &report["segments"]), (&json!(4), &json!([])), "{report}");
    let page = server.get("/experiments/search").await.text().replace('\u{a0}', " ");
    assert!(page.contains("4 answers are in and wait"), "{page}");
}

async fn an_experiment_without_segments_has_one_row(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let empty = server.get(PATH).await.json(200);
    assert_eq!((&empty["segments_total"], &empty["segments"]), (&json!(0), &json!([])));
    answer(&server, [None, None], "a").await;
    let report = server.get(PATH).await.json(200);
    assert_eq!(report["segments"].as_array().expect("rows").len(), 1);
    assert_eq!(report["segments"][0]["segment"], Value::Null);
    eventually("the page", async || {
        let page = server.get("/experiments/search").await.text();
        page.contains("You named no segments").then_some(())
    })
    .await;
}

async fn an_invalid_request_is_refused(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    for query in ["ranker=nobody", "rankers=a"] {
        let answer = server.get(&format!("{PATH}?{query}")).await;
        answer.problem(ProblemKind::InvalidRequest);
    }
    let missing = server.get("/v1/experiments/none/segments").await;
    missing.problem(ProblemKind::ExperimentNotFound);
    assert_eq!(server.get("/experiments/none").await.status, 404);
}
