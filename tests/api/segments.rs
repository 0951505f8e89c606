//! The results of a ranker by declared segment, in the API and on their page.

use rankduel::http::ProblemKind;
use serde_json::json;

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has, steady, with};
use crate::support::service::Server;

on_sqlite! {
    results_are_split_by_declared_segment
    only_answers_of_complete_cohorts_count
    an_experiment_without_segments_has_no_rows
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

async fn results_are_split_by_declared_segment(database: TestDatabase) {
    let spec = with(steady("search", &["a", "b"]), json!({"segments": ["phone", "desktop"]}));
    let server = Server::running(&database, &spec).await;
    let empty = server.get(PATH).await.json(200);
    let segments = ["phone", "desktop", "other"];
    let unmet = segments.map(|segment| json!({"segment": segment, "opponents": []}));
    assert_eq!(empty["segments"], json!(unmet));
    for number in 0..60 {
        answer(&server, [Some("phone"), Some(&format!("u-{number}"))], "a").await;
        if number < 30 {
            // a unit counts once, in the segment of its first answer
            answer(&server, [Some("desktop"), Some(&format!("u-{number}"))], "b").await;
        }
    }
    for _ in 0..5 {
        answer(&server, [Some("desktop"), None], "b").await;
        answer(&server, [Some("television"), None], "b").await;
        answer(&server, [None, None], "a").await;
    }
    let response = server.get(PATH).await;
    let report = response.json(200);
    assert_eq!(report["ranker"], "a", "the leader: {report}");
    for (place, wins, losses) in [(0, 60.0, 0.0), (1, 0.0, 5.0), (2, 5.0, 5.0)] {
        let row = &report["segments"][place];
        assert_eq!(row["segment"], segments[place]);
        let row = &row["opponents"][0];
        assert_has(row, json!({"opponent": "b", "wins": wins, "losses": losses}));
        assert_eq!(row["win_rate"], wins / (wins + losses), "{row}");
        let [low, high] = ["low", "high"].map(|end| row[end].as_f64().expect("a number"));
        let rate = wins / (wins + losses);
        assert!(0.0 <= low && low <= rate && rate <= high && high <= 1.0, "{row}");
        assert_eq!(low > 0.5, place == 0, "{row}");
    }

    let other = server.get(&format!("{PATH}?ranker=b")).await.json(200);
    assert_eq!(other["ranker"], "b");
    assert_has(&other["segments"][0]["opponents"][0], json!({"wins": 0.0, "losses": 60.0}));

    let tag = response.header("etag").expect("a tag").to_owned();
    let again = server.send("GET", PATH, &[("if-none-match", &tag)], Vec::new()).await;
    assert_eq!(again.status, 304);
    answer(&server, [Some("phone"), None], "b").await;
    let phone = server.get(PATH).await.json(200)["segments"][0]["opponents"][0].clone();
    assert_has(&phone, json!({"wins": 60.0, "losses": 1.0}));

    // the fold keeps these counts
    let here = server.get(PATH).await.json(200);
    let server = server.restarted_from_snapshot(&database, "search").await;
    assert_eq!(server.get(PATH).await.json(200), here);

    let page = server.get("/experiments/search").await.text();
    let (_, page) = page.split_once("id=\"whom\"").expect("the section");
    let rows: Vec<_> = page.split("<tbody").nth(1).expect("a table").split("</tr>").collect();
    for (row, parts) in [
        (0, ["all traffic", "65:11", "by how much"]),
        (1, ["phone", "60:1", "ahead"]),
        (3, ["other", "5:5", "not known"]),
    ] {
        for part in parts {
            assert!(rows[row].contains(part), "{} lacks {part}", rows[row]);
        }
    }
    let exclude = json!({"exclude": {"units": ["u-59"], "reason": "a crawler"}});
    server.patch("search", &exclude).await.json(200);
    let phone = server.get(PATH).await.json(200)["segments"][0]["opponents"][0].clone();
    assert_eq!(phone["wins"], 59.0, "{phone}");
}

async fn only_answers_of_complete_cohorts_count(database: TestDatabase) {
    let settings = json!({"answer_window_seconds": 60, "segments": ["phone"]});
    let server = Server::running(&database, &with(steady("search", &["a", "b"]), settings)).await;
    for _ in 0..4 {
        answer(&server, [Some("phone"), None], "a").await;
    }
    let report = server.get(PATH).await.json(200);
    assert_eq!(report["segments"][0]["opponents"], json!([]), "{report}");
    let page = server.get("/experiments/search").await.text().replace('\u{a0}', " ");
    assert!(page.contains("4 answers are in and wait"), "{page}");
}

async fn an_experiment_without_segments_has_no_rows(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    answer(&server, [Some("phone"), None], "a").await;
    assert_eq!(server.get(PATH).await.json(200)["segments"], json!([]));
    let page = server.get("/experiments/search").await.text();
    assert!(page.contains("Is it better?") && !page.contains("For whom?"), "{page}");
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
