//! Answers that the verdict counts by the score of their page.

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{steady, with};
use crate::support::service::Server;

on_sqlite! {
    the_verdict_counts_scores_and_the_policy_winners
    reported_outcomes_and_signs_have_no_score
}

/// Answer a page with a click on a document that ranker `a` has higher than `b`, but not by much.
async fn answer_page(server: &Server) {
    let duel = server.next_duel("search").await;
    let of =
        |side: &str| if duel[side] == "a" { ["x", "y", "z", "w"] } else { ["y", "x", "w", "z"] };
    let body = json!({
        "duel_id": duel["duel_id"], "left": of("left"), "right": of("right"), "length": 4,
    });
    let page = server.post("/v1/experiments/search/interleave", &body).await.json(200);
    let slots = page["slots"].as_array().expect("slots");
    let slot = slots.iter().find(|slot| slot["document"] == "x").expect("the document");
    let clicks = json!([{"position": slot["position"]}]);
    let body = json!({"duel_id": page["duel_id"], "clicks": clicks, "final": true});
    assert_eq!(server.feedback("search", &body).await.json(200)["status"], "recorded");
}

fn experiment(method: Value, window: u64) -> Value {
    with(
        steady("search", &["a", "b"]),
        json!({"interleaving": method, "answer_window_seconds": window}),
    )
}

async fn the_verdict_counts_scores_and_the_policy_winners(database: TestDatabase) {
    let server = Server::running(
        &database,
        &experiment(json!({"kind": "optimized", "credit": "linear"}), 0),
    )
    .await;
    for _ in 0..120 {
        answer_page(&server).await;
    }
    let report = server.verdict("search").await;
    let rests_on = &report["rests_on"];
    assert_eq!((&rests_on["answers"], &rests_on["by_score"]), (&json!(120), &json!(120)));
    assert_eq!(report["winners"], json!(["a"]), "{report}");
    // the policy observed a winner of some pages only, and the verdict counts the scores of all
    let outcomes = &server.standings("search").await["outcomes"];
    let won = ["left", "right"].map(|side| outcomes[side].as_u64().expect("a count"));
    let won: u64 = won.iter().sum();
    assert!((10..115).contains(&won), "{outcomes}");
    let effect = &report["effects"][0];
    assert_eq!((&effect["losses"], &effect["win_rate"]), (&json!(0.0), &json!(1.0)));
    // each page has a quarter of the largest score
    assert_eq!(effect["wins"], 30.0, "{effect}");
    // another server folds the log anew
    let other = Server::start(database.connect().await).await;
    assert_eq!(other.verdict("search").await, report);
}

async fn reported_outcomes_and_signs_have_no_score(database: TestDatabase) {
    let server = Server::running(&database, &experiment(json!({"kind": "team-draft"}), 0)).await;
    for _ in 0..5 {
        answer_page(&server).await;
    }
    let duel = server.next_duel("search").await;
    let body = json!({"duel_id": duel["duel_id"], "outcome": "left"});
    server.feedback("search", &body).await.json(200);
    assert_eq!(server.verdict("search").await["rests_on"]["by_score"], 0);
}
