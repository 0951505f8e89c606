//! The page of an experiment that orders decide: it says what the report of orders says.

use serde_json::{Value, json};

use super::walk::result;
use crate::support::TestDatabase;
use crate::support::client::{eventually, steady, with};
use crate::support::service::{START_MS, Server, Settings};

on_sqlite! {
    the_page_says_what_the_report_says
    without_orders_the_page_has_no_word_of_them
}

/// A page of this unit, with clicks on all documents of one ranker, of which the first is returned.
async fn visit(server: &Server, unit: &str, ranker: &str) -> String {
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings = json!({"bait": of("bait"), "bm25": of("bm25")});
    let body = json!({"unit": unit, "rankings": rankings, "length": 4});
    loop {
        let page = server.post("/v1/experiments/shop/next-duel", &body).await.json(200);
        let slots = page["slots"].as_array().expect("slots").iter();
        let documents = slots.map(|slot| slot["document"].as_str().expect("an id"));
        let clicked: Vec<_> = documents.filter(|id| id.starts_with(ranker)).collect();
        let body = json!({"duel_id": page["duel_id"], "clicks": clicked});
        // a page of one ranker alone teaches nothing
        if let Some(first) = clicked.first()
            && server.feedback("shop", &body).await.json(200)["status"] == "recorded"
        {
            return (*first).to_owned();
        }
    }
}

async fn order(server: &Server, unit: &str, document: &str, seconds: i64) {
    let at = rankduel_engine::clock::rfc3339(START_MS + 1000 * seconds);
    let lines = json!([{"document": document}]);
    let order =
        json!({"order_id": format!("{unit}-{document}"), "unit": unit, "at": at, "lines": lines});
    let body = json!({"orders": [order]});
    let answer = server.post("/v1/experiments/shop/orders", &body).await.json(200);
    assert_eq!(answer["results"][0]["status"], "recorded");
}

async fn the_page_says_what_the_report_says(database: TestDatabase) {
    let server = Server::with(database.store().await, Settings::quick()).await;
    let shop = json!({
        "name": "shop", "rankers": ["bait", "bm25"], "seed": 7, "conclude_at": "never",
        "policy": {"kind": "uniform"},
        "decide_by": {"event": "order", "window_seconds": 600, "arrival_seconds": 60},
    });
    server.post("/v1/experiments", &shop).await.json(201);
    let page = result(&server, "shop").await;
    assert!(page.contains("What do people order?") && page.contains("0 of 0 people"), "{page}");
    assert!(!page.contains("Unit unknown"), "{page}");
    // everybody clicks one ranker first, then the other, and buys of that
    for second in 1..=120 {
        let unit = format!("u{second}");
        visit(&server, &unit, "bait").await;
        server.clock.advance_ms(1000);
        let bought = visit(&server, &unit, "bm25").await;
        order(&server, &unit, &bought, second).await;
    }
    order(&server, "u1", "unseen", 120).await;
    order(&server, "stranger", "bm250", 120).await;
    for is_closed in [false, true] {
        if is_closed {
            server.clock.advance_ms(3_600_000);
            eventually("the baskets count", async || {
                (server.verdict("shop").await["rests_on"]["answers"] == 120).then_some(())
            })
            .await;
        }
        let report = server.verdict("shop").await["orders"].clone();
        assert_eq!((&report["units"], &report["ordered"]), (&json!(120), &json!(120)), "{report}");
        assert_eq!(report["clicks"].is_string(), is_closed, "{report}");
        let page = result(&server, "shop").await;
        for sentence in [&report["sentence"], &report["clicks"]] {
            let Some(sentence) = sentence.as_str() else { continue };
            assert!(page.contains(&sentence.replace('`', "")), "{sentence}: {page}");
        }
    }
    let verdict = server.verdict("shop").await;
    let page = result(&server, "shop").await;
    for part in [
        "bm25 is the best ranker by orders: it beats",
        "within 10 minutes of their first page",
        "Orders decide.",
        "Credited to one ranker120 (",
        "Not clicked1 (",
        "Unit unknown1 (",
        "Late0 (",
        "Of 122 lines of orders",
    ] {
        assert!(page.contains(part), "{part}: {verdict} {page}");
    }
}

async fn without_orders_the_page_has_no_word_of_them(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let page: String = result(&server, "search").await;
    assert!(!page.contains("order?") && !page.contains("Basket"), "{page}");
    let body: Value = with(server.verdict("search").await, json!({}));
    assert_eq!(body.get("orders"), None);
}
