//! A walk through experiments with a control and declared segments: once they have ended, no
//! sentence promises more.

use serde_json::json;

use super::walk::{pages, play, result, text};
use crate::support::TestDatabase;
use crate::support::client::{steady, until, with};
use crate::support::service::Server;

on_sqlite! {
    an_ended_experiment_promises_nothing
    a_proof_against_the_control_outlives_the_end
}

/// Words for what only more answers could bring, in small letters.
const PROMISES: [&str; 8] = [
    "not known yet",
    "not proven yet",
    "takes about",
    "once there is",
    "judged yet",
    "still open",
    "we will know",
    "until that is known",
];

async fn an_ended_experiment_promises_nothing(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for (name, duels, winner) in [("early", 9, "b"), ("late", 200, "a")] {
        let body = with(
            steady(name, &["a", "b", "c"]),
            json!({"control": "c", "segments": ["phone", "desktop"]}),
        );
        server.create(&body).await;
        play(&server, name, duels, 9).await;
        let page = pages(&server, name).await;
        assert!(PROMISES.iter().any(|promise| page.contains(promise)), "{name}: {page}");
        server.patch(name, &json!({"status": "concluded", "winner": winner})).await.json(200);
        let found = server.verdict(name).await.to_string();
        let all = [pages(&server, name).await, text(&server.get("/").await.text()), found].concat();
        for promise in PROMISES {
            assert!(!all.contains(promise), "{name}, {promise}: {all}");
        }
    }
    server.clock.advance_ms(2 * 86_400_000);
    server.patch("early", &json!({"owner": "search team"})).await.json(200);
    let list = async || text(&server.get("/").await.text());
    let is_since_the_end = |list: &str| {
        let row = list.split("ended on b without a result.").nth(1);
        row.and_then(|row| row.split("late").next()).is_some_and(|row| row.contains("Mon 21 Sep"))
    };
    until("not the time of a later change", async || is_since_the_end(&list().await)).await;
}

async fn a_proof_against_the_control_outlives_the_end(database: TestDatabase) {
    let body = with(steady("search", &["a", "b", "c"]), json!({"control": "c"}));
    let server = Server::running(&database, &body).await;
    let mut a_wins = false;
    for _ in 0..150 {
        let duel = server.pair("search").await;
        let left_wins = match [&duel["left"], &duel["right"]].map(|id| id.as_str()) {
            [Some("c"), _] => false,
            [_, Some("c")] => true,
            [left, _] => {
                a_wins = !a_wins;
                (left == Some("a")) == a_wins
            }
        };
        server.answer("search", &duel, if left_wins { "left" } else { "right" }).await;
    }
    let found = server.verdict("search").await;
    let better = &found["control"];
    assert_eq!((&found["state"], &better["proven"]), (&json!("open"), &json!("better")), "{found}");
    let change = json!({"status": "concluded", "winner": better["ranker"]});
    server.patch("search", &change).await.json(200);
    let page = result(&server, "search").await;
    let sentence = better["sentence"].as_str().expect("a sentence").replace('`', "");
    assert!(page.contains(&sentence) && page.contains("it is the best is not proven"), "{page}");
    assert!(!page.contains("without a proof"), "{page}");
}
