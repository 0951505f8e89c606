//! A walk through experiments with a control and declared segments: once they have ended, no
//! sentence promises more.

use serde_json::json;

use super::walk::{pages, play, text, verdict};
use crate::support::TestDatabase;
use crate::support::client::steady;
use crate::support::service::Server;

on_sqlite! {
    an_ended_experiment_promises_nothing
}

/// What only more answers could bring, in small letters.
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
        let mut body = steady(name, &["a", "b", "c"]);
        body["control"] = json!("c");
        body["segments"] = json!(["phone", "desktop"]);
        server.create(&body).await;
        play(&server, name, duels, 9).await;
        let page = pages(&server, name).await;
        assert!(PROMISES.iter().any(|promise| page.contains(promise)), "{name}: {page}");
        server.patch(name, &json!({"status": "concluded", "winner": winner})).await.json(200);
        let found = verdict(&server, name).await.to_string();
        let all = [pages(&server, name).await, text(&server.get("/").await.text()), found].concat();
        for promise in PROMISES {
            assert!(!all.contains(promise), "{name}, {promise}: {all}");
        }
        assert!(all.contains(if name == "early" { "ended by " } else { "known " }), "{all}");
    }
}
