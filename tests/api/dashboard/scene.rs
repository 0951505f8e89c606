//! Experiments to show on the dashboard.

use rand::{RngExt as _, SeedableRng as _};
use std::time::Duration;

use rankduel::service::feedback::{Feedback, FeedbackContent, ShownOutcome, receive};
use rankduel::service::units::NamedAudience;
use rankduel::service::{ServiceSettings, lifecycle};
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_store::audience::Segment;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::service::{Server, Settings};

/// How often a ranker wins against the next one; against lower ones it wins more often.
fn wins(better: usize, worse: usize) -> f64 {
    (0.5 + 0.06 + 0.025 * (worse - better) as f64).min(0.93)
}

/// Ids of `count` rankers, best first.
pub fn rankers(count: usize) -> Vec<String> {
    let names = [
        "neural-large",
        "neural",
        "bm25-title-and-anchor-text-tuned",
        "bm25-title",
        "bm25",
        "tf-idf",
        "freshness",
    ];
    (0..count)
        .map(|i| names.get(i).map_or_else(|| format!("variant-{i:03}"), |name| (*name).to_owned()))
        .collect()
}

/// Create an experiment and answer `duels` duels of it. Some are never answered, some are answered
/// twice, and some feedback has an invalid id.
pub async fn fill(server: &Server, name: &str, count: usize, policy: Value, duels: usize) {
    let spec: ExperimentSpec = serde_json::from_value(json!({
        "rankers": rankers(count).into_iter().map(|id| json!({"id": id})).collect::<Vec<_>>(),
        "policy": policy,
        "ties": "skip",
        "duel_ttl_seconds": 3600,
        "seed": 1,
    }))
    .expect("a spec");
    let service = &server.service;
    lifecycle::create(service, name, &spec, &Actor::anyone()).await.expect("an experiment");
    let position =
        |id: &str| spec.rankers.iter().position(|ranker| ranker.id == id).expect("a ranker");
    let mut rng = rand::rngs::StdRng::seed_from_u64(7);
    let mut feedback = Vec::new();
    let segments = ["phone", "desktop", "tablet"].map(|name| Segment::try_from(name).ok());
    for number in 0..duels {
        let audience = NamedAudience { segment: segments[number % 3], unit: None };
        let duel = service.next_duel(name, audience).await.expect("a duel");
        server.clock.advance_ms(1500);
        // A batch that waits for answers gets them.
        if !feedback.is_empty() && (duel.self_duel || feedback.len() > 40) {
            receive(service, name, std::mem::take(&mut feedback)).await.expect("receipts");
        }
        if duel.self_duel || rng.random_bool(0.04) {
            continue;
        }
        let (left, right) = (position(&duel.left), position(&duel.right));
        let left_wins = if left < right { wins(left, right) } else { 1.0 - wins(right, left) };
        let outcome = match rng.random::<f64>() {
            draw if draw < 0.08 => ShownOutcome::None,
            draw if draw < 0.12 => ShownOutcome::Tie,
            _ if rng.random_bool(left_wins) => ShownOutcome::Left,
            _ => ShownOutcome::Right,
        };
        feedback.push(Feedback {
            duel_id: duel.duel_id.into(),
            content: Some(FeedbackContent::Outcome(outcome)),
            unit: None,
            segment: None,
            metrics: None,
        });
        if rng.random_bool(0.05) {
            feedback.push(feedback[feedback.len() - 1].clone());
        }
    }
    receive(service, name, feedback).await.expect("receipts");
    let orphan = Feedback {
        duel_id: "nobody's".into(),
        content: Some(FeedbackContent::Outcome(ShownOutcome::Left)),
        unit: None,
        segment: None,
        metrics: None,
    };
    receive(service, name, vec![orphan.clone(), orphan]).await.expect("receipts");
}

/// Create an experiment with interleaved pages and a canary, and click on `pages` pages. Two times
/// in three, the searcher wants a document of `bm25`.
pub async fn merged(server: &Server, name: &str, pages: usize) {
    let spec = json!({
        "name": name,
        "rankers": ["bm25", "tf-idf", "tf-idf-again"],
        "policy": {"kind": "uniform"},
        "canary": ["tf-idf", "tf-idf-again"],
        // the verdict would come before all pages are made
        "conclude_at": "never",
    });
    server.create(&spec).await;
    let mut rng = rand::rngs::StdRng::seed_from_u64(11);
    let of = |ranker: &Value| -> Vec<String> {
        let id = ranker.as_str().expect("an id");
        (0..5).map(|place| format!("{id} {place}")).collect()
    };
    let mut clicked = 0;
    while clicked < pages {
        let duel = server.next_duel(name).await;
        if duel["self_duel"] == true {
            continue;
        }
        let body = json!({"duel_id": duel["duel_id"], "left": of(&duel["left"]), "right": of(&duel["right"]), "length": 10});
        let page =
            server.post(&format!("/v1/experiments/{name}/interleave"), &body).await.json(200);
        let wanted = if rng.random_bool(2.0 / 3.0) { "bm25" } else { "tf-idf" };
        let slots = page["slots"].as_array().expect("slots");
        let is_wanted =
            |slot: &Value| slot["document"].as_str().is_some_and(|id| id.starts_with(wanted));
        let click = slots.iter().position(is_wanted).unwrap_or(0);
        server
            .feedback(name, &json!({"duel_id": page["duel_id"], "clicks": [click]}))
            .await
            .json(200);
        clicked += 1;
    }
}

/// A server on this database with experiments of 2, 7, 10 and 136 rankers, one in batches, one with
/// interleaved pages, and one without duels.
pub async fn server(database: &TestDatabase) -> Server {
    // Hours pass on the clock meanwhile, and nothing may be evicted.
    let service = ServiceSettings {
        idle_after: Duration::from_secs(30 * 24 * 3600),
        ..ServiceSettings::default()
    };
    let server =
        Server::with(database.store().await, Settings { service, ..Settings::default() }).await;
    fill(&server, "checkout", 7, json!({"kind": "d-ts-plus"}), 3000).await;
    fill(&server, "two", 2, json!({"kind": "d-ts-plus"}), 200).await;
    fill(&server, "ten", 10, json!({"kind": "ccb"}), 800).await;
    fill(&server, "many", 136, json!({"kind": "uniform"}), 6000).await;
    fill(&server, "nightly", 5, json!({"kind": "pcomp", "horizon": 20_000}), 700).await;
    merged(&server, "merged", 150).await;
    fill(&server, "fresh", 3, json!({"kind": "d-ts-plus"}), 0).await;
    server
}
