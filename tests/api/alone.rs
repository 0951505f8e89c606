//! Pages of the leader or the control alone, for a share of the units.

use std::collections::BTreeMap;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_verifies, until};
use crate::support::service::{Server, Settings};

on_both_databases! {
    units_see_one_ranker_alone_and_every_server_counts_them
}

on_sqlite! {
    lost_answers_of_one_arm_raise_an_alarm
    the_control_stays_while_it_is_shown_alone
}

fn search(alone: f64) -> Value {
    json!({
        "name": "search", "rankers": ["a", "b", "c"], "control": "c", "alone": alone, "seed": 5,
        "policy": {"kind": "uniform"}, "conclude_at": "never", "answer_window_seconds": 0,
    })
}

async fn duel_of(server: &Client, unit: usize) -> Value {
    let body = json!({"unit": format!("unit-{unit}")});
    server.post("/v1/experiments/search/next-duel", &body).await.json(200)
}

/// The arm of a unit by its duel.
fn arm(duel: &Value) -> Option<&str> {
    let arm = duel["alone"].as_str()?;
    assert_eq!((&duel["self_duel"], &duel["left"]), (&json!(true), &duel["right"]), "{duel}");
    assert!(arm == "leader" || arm == "control" && duel["left"] == "c", "{duel}");
    Some(arm)
}

fn alarm(traffic: &Value) -> Option<&Value> {
    let alarms = traffic["alarms"].as_array().expect("a list");
    alarms.iter().find(|alarm| alarm["kind"] == "uneven-arms")
}

/// Wait until a server has counted so many units with a page and with an answer, by arm.
async fn counted(server: &Client, issued: [usize; 2], answered: [usize; 2]) {
    let expected = json!({"planned": 0.4, "issued": issued, "answered": answered});
    until("the units to count", async || {
        server.report("search", "traffic").await["alone"] == expected
    })
    .await;
}

async fn units_see_one_ranker_alone_and_every_server_counts_them(database: TestDatabase) {
    let first = Server::with(database.store().await, Settings::quick()).await;
    let second = Server::with(database.connect().await, Settings::quick()).await;
    assert_eq!(first.create(&search(0.4)).await["alone"], 0.4);
    let servers = [&first, &second];
    let mut alone = BTreeMap::new();
    for unit in 0..400 {
        let duel = duel_of(servers[unit % 2], unit).await;
        if let Some(arm) = arm(&duel) {
            alone.insert(unit, (arm == "control", duel));
        }
    }
    let controls = alone.values().filter(|(is_control, _)| *is_control).count();
    let issued = [alone.len() - controls, controls];
    // within four standard deviations
    assert!((121..200).contains(&alone.len()), "{issued:?}");
    assert!(issued[0].abs_diff(issued[1]) < 51, "{issued:?}");
    // a unit sees the same at every server, and counts once
    for (&unit, (is_control, _)) in alone.iter().take(40) {
        let again = duel_of(servers[(unit + 1) % 2], unit).await;
        assert_eq!(arm(&again), Some(if *is_control { "control" } else { "leader" }));
    }
    for server in servers {
        counted(server, issued, [0, 0]).await;
    }

    let mut answered = [0, 0];
    for (nth, (is_control, duel)) in alone.values().take(60).enumerate() {
        first.answer("search", duel, if nth % 2 == 0 { "left" } else { "none" }).await;
        answered[usize::from(*is_control)] += 1;
    }
    // it may have seen a page alone before: its duel does not count for preferences
    let (unit, _) = alone.first_key_value().expect("a unit");
    let pair = first.pair("search").await;
    let body =
        json!({"duel_id": pair["duel_id"], "outcome": "left", "unit": format!("unit-{unit}")});
    assert_eq!(first.feedback("search", &body).await.json(200)["status"], "recorded");
    assert_eq!(first.standings("search").await["duels"], 0);
    for server in servers {
        counted(server, issued, answered).await;
    }
    let third = Server::start(database.connect().await).await;
    counted(&third, issued, answered).await;
    assert_eq!(alarm(&third.report("search", "traffic").await), None);
    let page = third.get("/experiments/search/traffic").await.text();
    assert!(
        page.contains("one ranker alone (leader : control)")
            && page.contains("no proof of a difference")
    );
    assert_verifies(&*database.connect().await, "search").await;

    // the holdout stays after the conclusion
    let concluded = json!({"status": "concluded", "winner": "b"});
    first.patch("search", &concluded).await.json(200);
    for (&unit, (is_control, _)) in alone.iter().take(20) {
        let duel = duel_of(&first, unit).await;
        assert_eq!(duel["left"], if *is_control { "c" } else { "b" });
    }
}

async fn lost_answers_of_one_arm_raise_an_alarm(database: TestDatabase) {
    let server = Server::running(&database, &search(0.5)).await;
    let (mut lost, mut answers) = (Vec::new(), 0);
    for unit in 0.. {
        let duel = duel_of(&server, unit).await;
        match arm(&duel) {
            Some("leader") => {
                server.answer("search", &duel, "none").await;
                answers += 1;
            }
            Some(_) => lost.push(duel),
            None => continue,
        }
        if alarm(&server.report("search", "traffic").await).is_some() {
            break;
        }
        assert!(answers < 150, "no alarm");
    }
    assert!(answers > 80, "{answers}");
    for duel in &lost {
        server.answer("search", duel, "none").await;
    }
    let after = server.report("search", "traffic").await;
    let detail = alarm(&after).expect("it stays")["detail"].as_str().expect("a text").to_owned();
    assert!(detail.contains("units that answered one") && detail.contains("of 100"), "{detail}");
    server.measures(r#"experiment_alarm{experiment="search",kind="uneven-arms"} 1"#).await;
}

async fn the_control_stays_while_it_is_shown_alone(database: TestDatabase) {
    let server = Server::running(&database, &search(0.1)).await;
    let retired = server.patch("search", &json!({"retire": "c"})).await;
    retired.problem(ProblemKind::RankersFixed);
    server.patch("search", &json!({"control": "a"})).await.json(200);
    server.patch("search", &json!({"retire": "c"})).await.json(200);
}
