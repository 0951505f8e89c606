//! Settings of a new experiment that cannot work are refused where they stand, with a remedy.

use rankduel::http::ProblemKind;
use serde_json::{Map, Value, json};

use crate::support::TestDatabase;
use crate::support::client::with;
use crate::support::service::Server;

on_sqlite! {
    settings_that_cannot_work_are_refused
    settings_at_their_limits_are_accepted
}

/// A new experiment of three rankers with these members.
fn experiment(settings: &Value) -> Value {
    let body = json!({"name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"}});
    with(body, settings.clone())
}

/// An experiment with a control and one metric.
fn metric(metric: Value) -> Value {
    json!({"control": "c", "alone": 0.1, "metrics": [metric]})
}

/// The same with a metric of pages.
fn of_page(members: Value) -> Value {
    metric(with(json!({"name": "revenue", "of": "page", "cap": 10}), members))
}

fn conclude_at(conclude_at: Value) -> Value {
    json!({ "conclude_at": conclude_at })
}

/// An experiment with segments, a control and parts of the error, which is 0.1 in all.
fn errors(errors: Value) -> Value {
    json!({
        "segments": ["mobile", "desktop"], "control": "b", "errors": errors,
        "conclude_at": {"confidence": 0.9, "segments": true},
    })
}

async fn settings_that_cannot_work_are_refused(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
    let events: Map<String, Value> = (0..33).map(|nth| (format!("e{nth}"), json!(1))).collect();
    let pcomp = json!({"kind": "pcomp", "horizon": 1000});
    let limited = json!({"name": "latency", "cap": 1, "limit": 0.5});
    let revenue = json!({"name": "revenue", "of": "page", "cap": 10, "difference": 1});
    let latency = json!({"name": "latency", "cap": 1, "difference": 0.1});
    for (settings, pointer) in [
        (json!({"alone": -0.1, "control": "c"}), "/alone"),
        (json!({"alone": 0.51, "control": "c"}), "/alone"),
        (json!({"canary": ["a", "b"], "policy": pcomp}), "/canary"),
        (json!({"canary": ["a", "b"], "rankers": ["a", "b"]}), "/canary"),
        (json!({"canary": ["a", "d"]}), "/canary/1"),
        (json!({"canary": ["a", "a"]}), "/canary"),
        (json!({"canary": ["a"]}), "/canary"),
        (json!({"canary": ["a", "b"], "canary_share": 0.6}), "/canary_share"),
        (json!({"canary": ["a", "b"], "canary_share": -0.1}), "/canary_share"),
        (json!({"canary_share": 0.1}), "/canary_share"),
        (json!({"control": "d"}), "/control"),
        (json!({"control": 3}), "/control"),
        (json!({"control": "c", "goal": "worst"}), "/goal"),
        (json!({"drift": "tell", "watch": 0.6}), "/watch"),
        (json!({"drift": "tell", "watch": -0.1}), "/watch"),
        (json!({"drift": "off", "watch": 0.1}), "/watch"),
        (json!({"drift": "sometimes"}), "/drift"),
        (metric(json!({"name": "Latency", "cap": 1, "limit": 0.5})), "/metrics/0/name"),
        (metric(json!({"name": "latency", "cap": 0, "limit": 0.5})), "/metrics/0/cap"),
        (metric(json!({"name": "latency", "cap": 1e300, "limit": 1e299})), "/metrics/0/cap"),
        (metric(json!({"name": "latency", "cap": 1, "limit": 1})), "/metrics/0/limit"),
        (metric(json!({"name": "latency", "cap": 1, "difference": 0})), "/metrics/0/difference"),
        (metric(json!({"name": "latency", "cap": 1})), "/metrics/0"),
        (json!({"control": "c", "metrics": [latency, latency]}), "/metrics/1/name"),
        (json!({"metrics": [latency]}), "/metrics/0/difference"),
        (json!({"value_window_seconds": 100_000, "metrics": [limited]}), "/value_window_seconds"),
        (json!({"control": "c", "metrics": [revenue]}), "/metrics/0/of"),
        (of_page(json!({"limit": 0.5})), "/metrics/0/limit"),
        (of_page(json!({"difference": -1})), "/metrics/0/difference"),
        (of_page(json!({"difference": 11})), "/metrics/0/difference"),
        (of_page(json!({"better": "more"})), "/metrics/0/better"),
        (json!({"segments": "mobile"}), "/segments"),
        (errors(json!({"better": 0.06})), "/errors/better"),
        (conclude_at(json!({"confidence": 0.49})), "/conclude_at/confidence"),
        (conclude_at(json!({"confidence": 1.0})), "/conclude_at/confidence"),
        (conclude_at(json!({"confidence": -1.0})), "/conclude_at/confidence"),
        (conclude_at(json!({"sure": 0.95})), "/conclude_at/sure"),
        (conclude_at(json!({"margin": -0.1})), "/conclude_at/margin"),
        (conclude_at(json!({"margin": 0.3})), "/conclude_at/margin"),
        (conclude_at(json!({"max_duels": 0})), "/conclude_at/max_duels"),
        (conclude_at(json!({"max_days": 0})), "/conclude_at/max_days"),
        (conclude_at(json!({"min_days": -1})), "/conclude_at/min_days"),
        (conclude_at(json!({"min_days": 5000})), "/conclude_at/min_days"),
        (conclude_at(json!({"min_days": 3, "max_days": 2})), "/conclude_at/min_days"),
        (conclude_at(json!({"control": "c"})), "/conclude_at/control"),
        (json!({"answer_window_seconds": 3601}), "/answer_window_seconds"),
        (
            json!({"answer_window_seconds": 10, "settle_after_seconds": 20}),
            "/answer_window_seconds",
        ),
        (json!({"settle_after_seconds": 0}), "/settle_after_seconds"),
        (json!({"settle_after_seconds": 3601}), "/settle_after_seconds"),
        (json!({"interleaving": {"kind": "optimized", "depth": 11}}), "/interleaving/depth"),
        (json!({"interleaving": "team-draft"}), "/interleaving"),
        (json!({"event_weights": {"click": 0}}), "/event_weights/click"),
        (json!({"event_weights": {"a/b": 101}}), "/event_weights/a~1b"),
        (json!({"event_weights": {"": 1}}), "/event_weights/"),
        (json!({"event_weights": {"click": 1.5}}), "/event_weights/click"),
        (json!({"event_weights": events}), "/event_weights"),
    ] {
        let answer = server.post("/v1/experiments", &experiment(&settings)).await;
        assert_eq!(answer.status, 422, "{settings}: {}", answer.text());
        let problem = answer.problem_at(ProblemKind::InvalidRequest, pointer);
        if settings.get("metrics").is_some() {
            let errors = problem["errors"].as_array().expect("a list");
            let detail = errors[0]["detail"].as_str().expect("a text");
            assert!(errors.len() == 1 && detail.len() < 150, "{problem}");
        }
    }
    for (settings, pointer, remedy) in [
        (json!({"alone": 0.1}), "/alone", "name the `control`"),
        (json!({"coverage": 0.0, "control": "c"}), "/coverage", "pause the experiment"),
        (json!({"coverage": 1.01, "control": "c"}), "/coverage", "pause the experiment"),
        (json!({"coverage": 0.5}), "/coverage", "name the `control`"),
        (json!({"control": "c", "canary": ["a", "c"]}), "/control", "name the first id"),
        (json!({"goal": "improve"}), "/goal", "name the `control`"),
        (json!({"segments": many}), "/segments", "leave out the smallest"),
        (json!({"segments": ["mobile", "desktop", "mobile"]}), "/segments/2", "leave one out"),
        (json!({"segments": ["other"]}), "/segments/0", "leave it out"),
        (json!({"segments": ["mobile", ""]}), "/segments/1", "1 to 32 bytes"),
        (conclude_at(json!({"segments": true})), "/conclude_at/segments", "declare `segments`"),
        (errors(json!({"best": 0.05, "control": 0.04, "segments": 0.02})), "/errors", "to 0.89"),
        (errors(json!({"best": 0.1, "control": 0.0})), "/errors/control", "0.0001 to 0.5"),
        (errors(json!({"best": 0.1, "control": 0.01})), "/errors", "make one of them smaller"),
        (
            errors(json!({"best": 0.06, "control": 0.04})),
            "/errors/segments",
            "leave nothing to `segments`",
        ),
        (errors(json!({"best": 0.06, "metrics": 0.05})), "/errors", "to 0.89"),
    ] {
        let problem = server.refuses(&experiment(&settings), pointer).await.to_string();
        assert!(problem.contains(remedy), "{settings}: {problem}");
    }
    assert_eq!(server.get("/v1/experiments").await.json(200)["experiments"], json!([]));
}

async fn settings_at_their_limits_are_accepted(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let segments: Vec<String> = (0..16).map(|number| number.to_string()).collect();
    let pcomp = json!({"kind": "pcomp", "horizon": 1000});
    for (number, settings) in [
        json!({"segments": segments}),
        json!({"alone": 0.5, "control": "c"}),
        json!({"coverage": 1.0}),
        // as a ranker like the others, every policy can have a canary
        json!({"canary": ["a", "b"], "canary_share": 0, "policy": pcomp}),
        json!({"answer_window_seconds": 10}),
        errors(json!({"best": 0.04, "segments": 0.05})),
    ]
    .into_iter()
    .enumerate()
    {
        let body = with(experiment(&settings), json!({"name": format!("of-{number}")}));
        let created = server.create(&body).await;
        for (member, value) in settings.as_object().expect("members") {
            let matches = created[member] == *value || created[member].as_f64() == value.as_f64();
            assert!(
                matches || member == "policy" || member == "conclude_at",
                "{member}: {created}"
            );
        }
    }
}
