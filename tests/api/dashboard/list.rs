//! The list of experiments says how near each verdict is.

use serde_json::json;

use crate::support::client::steady;
use crate::support::service::Server;
use crate::support::{Kind, fresh_database};

/// The column on the nearness of the verdict of the only experiment.
async fn nearness(server: &Server) -> String {
    let page = server.get("/").await.text();
    let cell = page.split("<td").nth(3).expect("a cell").to_owned();
    cell.split("</td>").next().expect("its content").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_says_how_near_each_verdict_is() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::start(database.store().await).await;
    server.create(&steady("search", &["a", "b"])).await;
    server.standings("search").await; // loaded, so that the list has it
    assert!(nearness(&server).await.ends_with('–'), "{}", nearness(&server).await);

    let mut shares = Vec::new();
    for duels in 1.. {
        assert!(duels < 100, "no verdict");
        let duel = server.pair("search").await;
        let side = if duel["left"] == "a" { "left" } else { "right" };
        server.answer("search", &duel, side).await;
        let verdict = server.get("/v1/experiments/search/verdict").await.json(200);
        let near = nearness(&server).await;
        if verdict["winners"] == json!(["a"]) {
            assert!(near.contains("decided"), "{near}");
            break;
        }
        let ln = |value: &serde_json::Value| value.as_f64().expect("a number").ln();
        let rival =
            verdict["rankers"].as_array().expect("rankers").iter().find(|row| row["id"] == "b");
        let share = ln(&rival.expect("b")["evidence_against"]) / ln(&verdict["evidence_needed"]);
        let percent = 100.0 * share.clamp(0.0, 0.99);
        assert!(near.contains(&format!(r#"value="{percent:.0}""#)), "{percent}: {near}");
        shares.push(share);
    }
    assert!(shares.len() > 3 && shares.is_sorted(), "every win of `a` is evidence: {shares:?}");
}
