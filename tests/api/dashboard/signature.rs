//! One experiment from its plan to a signature, and after it: `examples/signature/README.md`. Whoever
//! signs has an answer to each question on one page, in one sentence.

use serde_json::{Value, json};

use super::walk::text;
use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, until};
use crate::support::service::Server;

on_both_databases! {
    from_a_plan_to_a_signature
}

const README: &str = include_str!("../../../examples/signature/README.md");

/// The bodies of the page, in their order.
fn bodies() -> Vec<Value> {
    let blocks = README.split("```json\n").skip(1);
    let bodies = blocks.map(|block| block.split("```").next().expect("an end"));
    bodies.map(|body| serde_json::from_str(body).expect("JSON")).collect()
}

async fn page(server: &Client) -> String {
    text(&server.get("/experiments/search").await.text())
}

/// Request a page of this segment, and answer it: the first one of `order` that is on it wins.
async fn search(server: &Client, segment: &str, order: [&str; 3]) {
    let body = json!({"segment": segment});
    let duel = server.post("/v1/experiments/search/next-duel", &body).await.json(200);
    if duel["self_duel"] == false {
        let place = |side: &str| order.iter().position(|id| duel[side] == **id);
        let outcome = if place("left") < place("right") { "left" } else { "right" };
        server.answer("search", &duel, outcome).await;
    }
}

async fn from_a_plan_to_a_signature(database: TestDatabase) {
    let servers = Server::two(&database).await;
    let [first, second] = &servers;
    let [plan, create] = &bodies()[..] else { panic!("two bodies") };
    let plan = first.post("/v1/plan", plan).await.json(200);
    // how far it gets in its time depends on the machine
    assert!(plan["sentence"].as_str().is_some_and(|text| text.contains("days")), "{plan}");
    first.create(create).await;
    let says = async |server: &Client, sentences: &[&str]| {
        let page = page(server).await;
        for sentence in sentences {
            assert!(page.contains(sentence), "{sentence}: {page}");
        }
    };
    let stops = "The end waits for the comparison with what you run now, and for the segments. It \
                 ends after 30 days at the latest.";

    // a third of all searches come from phones, where the old ranker is better
    let (desktop, phone) = (["neural", "bm25", "title"], ["bm25", "neural", "title"]);
    let go_on = async |pages: std::ops::Range<usize>| {
        for number in pages {
            let is_phone = number % 3 == 0;
            let (segment, order) = if is_phone { ("phone", phone) } else { ("desktop", desktop) };
            search(&servers[number % 2], segment, order).await;
        }
    };
    go_on(0..20).await;
    says(first, &["leads: ", "When will we know?", stops, "Which index?", "Ask search team."])
        .await;
    for round in 1.. {
        assert!(round < 200, "no conclusion: {}", first.verdict("search").await);
        go_on(20 * round..20 * round + 20).await;
        if first.experiment("search").await["status"] == "concluded" {
            break;
        }
    }
    let control = first.verdict("search").await["control"].clone();
    assert_eq!((&control["proven"], &control["ranker"]), (&json!("better"), &json!("neural")));
    // the result can come with fewer answers than it takes to tell of a change
    until("enough answers to tell of a change", async || {
        search(first, "desktop", desktop).await;
        page(first).await.contains("No change found")
    })
    .await;
    let signed = [
        "Ship neural: it beats bm25, which you run now, by at least ",
        "No change found",
        "When did we know?",
        "What did it cost?",
        "In phone, neural is at least ",
    ];
    for server in &servers {
        eventually("the newest answers and the segments", async || {
            let page = page(server).await;
            signed.iter().all(|sentence| page.contains(sentence)).then_some(())
        })
        .await;
    }

    // a month later people want something else
    until("the alarm", async || {
        search(first, "desktop", phone).await;
        second.verdict("search").await["drift"]["alarms_total"] == 1
    })
    .await;
    says(
        second,
        &[
            "Preferences have changed. neural won before that: do not ship on this result.",
            "Preferences changed",
        ],
    )
    .await;
}
