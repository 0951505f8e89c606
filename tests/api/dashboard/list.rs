//! The list of experiments says how far each is.

use serde_json::json;

use crate::support::client::steady;
use crate::support::service::Server;
use crate::support::{Kind, fresh_database};

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_what_each_experiment_needs() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::start(database.store().await).await;
    server.create(&steady("search", &["a", "b"])).await;
    server.standings("search").await; // loaded, so that the list has it
    let list = async || server.get("/").await.text();
    let page = list().await;
    assert!(page.contains("No answers yet.") && page.contains("<h2>Running</h2>"), "{page}");
    for duels in 1.. {
        assert!(duels < 100, "no verdict");
        let duel = server.pair("search").await;
        let side = if duel["left"] == "a" { "left" } else { "right" };
        server.answer("search", &duel, side).await;
        let verdict = server.get("/v1/experiments/search/verdict").await.json(200);
        let page = list().await;
        if verdict["winners"] == json!(["a"]) {
            assert!(page.contains("<h2>Needs you</h2>") && page.contains("Ship "), "{page}");
            break;
        }
        assert!(page.contains("its rival is not ruled out"), "{page}");
    }
    server.patch("search", &json!({"status": "concluded"})).await.json(200);
    assert!(list().await.contains("<h2>Finished</h2>"));
}
