//! The share of units that take part in an experiment.

use std::collections::BTreeSet;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, with};
use crate::support::service::Server;

on_both_databases! {
    the_same_units_take_part_everywhere_and_a_higher_coverage_adds_others
}

on_sqlite! {
    a_page_outside_shows_the_control_and_its_feedback_is_ignored
    the_control_stays_while_it_is_shown_outside
    the_share_that_takes_part_is_measured_anew_after_a_change
}

const UNITS: usize = 500;

fn search(coverage: f64) -> Value {
    json!({
        "name": "search", "rankers": ["a", "b", "c"], "control": "c", "coverage": coverage,
        "policy": {"kind": "uniform"}, "seed": 5, "conclude_at": "never",
    })
}

async fn ask(server: &Client, body: Value) -> Value {
    server.post("/v1/experiments/search/next-duel", &body).await.json(200)
}

/// Whether a duel is one; if not, it is the control's page without an id.
fn takes_part(duel: &Value) -> bool {
    if duel["enrolled"] == Value::Null {
        assert!(duel["duel_id"].as_str().is_some_and(|id| !id.is_empty()), "{duel}");
        return true;
    }
    assert_eq!((&duel["enrolled"], &duel["duel_id"]), (&json!(false), &json!("")));
    assert_eq!([&duel["left"], &duel["right"]], ["c", "c"]);
    assert_eq!(duel["self_duel"], true);
    false
}

/// The units that take part.
async fn units(server: &Client) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for unit in 0..UNITS {
        if takes_part(&ask(server, json!({"unit": format!("unit-{unit}")})).await) {
            found.insert(unit);
        }
    }
    found
}

async fn set(server: &Client, coverage: f64) {
    let changed = server.patch("search", &json!({"coverage": coverage})).await.json(200);
    assert_eq!(changed["coverage"], coverage);
}

async fn the_same_units_take_part_everywhere_and_a_higher_coverage_adds_others(
    database: TestDatabase,
) {
    let [first, second] = Server::two(&database).await;
    assert_eq!(first.create(&search(0.3)).await["coverage"], 0.3);
    let few = units(&first).await;
    // four standard deviations are 0.082
    let share = |units: &BTreeSet<usize>| units.len() as f64 / UNITS as f64;
    assert!((share(&few) - 0.3).abs() < 0.082, "{}", share(&few));
    assert_eq!(units(&second).await, few);

    set(&first, 0.6).await;
    let more = units(&first).await;
    assert!((share(&more) - 0.6).abs() < 0.088, "{}", share(&more));
    assert!(few.is_subset(&more), "nobody leaves");
    let new = *more.difference(&few).next().expect("a unit that came");
    eventually("the other server to follow", async || {
        let duel = ask(&second, json!({"unit": format!("unit-{new}")})).await;
        takes_part(&duel).then_some(())
    })
    .await;
    assert_eq!(units(&second).await, more);

    set(&second, 0.3).await;
    let third = Server::start(database.connect().await).await;
    assert_eq!(units(&third).await, few, "also after a restart");
    set(&third, 1.0).await;
    assert_eq!(units(&third).await.len(), UNITS);
}

async fn a_page_outside_shows_the_control_and_its_feedback_is_ignored(database: TestDatabase) {
    let server = Server::running(&database, &search(0.3)).await;
    // without a unit, each page has a coin
    let stock = ask(&server, json!({"count": 1000})).await;
    let duels = stock["duels"].as_array().expect("a list");
    let enrolled = duels.iter().filter(|duel| takes_part(duel)).count();
    assert!((240..360).contains(&enrolled), "{enrolled}");
    let traffic = server.report("search", "traffic").await;
    assert_eq!(traffic["outside"], 1000 - enrolled);
    let metrics = server.get("/metrics").await.text();
    let issued = format!("rankduel_duels_total{{kind=\"outside\"}} {}", 1000 - enrolled);
    assert!(metrics.contains(&issued), "{metrics}");
    let page = server.get("/experiments/search/traffic").await.text();
    assert!(page.contains("Pages that take part") && page.contains("planned"), "{page}");

    let rankings = json!({"a": ["a1", "x"], "b": ["b1", "x"], "c": ["c1", "x"]});
    for unit in 0..20 {
        let body =
            json!({"unit": format!("unit-{unit}"), "rankings": rankings.clone(), "length": 2});
        let page = ask(&server, body).await;
        if !takes_part(&page) {
            let shown = page["slots"].as_array().expect("slots").iter();
            let shown: Vec<_> = shown.map(|slot| &slot["document"]).collect();
            assert_eq!(shown, ["c1", "x"]);
        }
    }
    let [outcome, clicks] = [json!({"outcome": "left"}), json!({"clicks": [0]})];
    let outside = |it: &Value| with(it.clone(), json!({"duel_id": ""}));
    let event = |more: Value| with(json!({"action_name": "click"}), more);
    let at = json!({"position": {"ordinal": 1}, "duel_id": ""});
    let ubi = "/v1/experiments/search/feedback/ubi";
    let events = json!({"duels": {"q-1": ""}, "events": [
        event(json!({"query_id": "q-1", "event_attributes": {"position": {"ordinal": 1}}})),
        event(json!({"query_id": "q-2", "event_attributes": at.clone()})),
        event(json!({"query_id": "", "event_attributes": {"position": {"ordinal": 1}}})),
        event(json!({"event_attributes": at})),
    ]});
    let assert_ignored = async |server: &Client| {
        for it in [&outcome, &clicks] {
            let receipt = server.feedback("search", &outside(it)).await.json(200);
            assert_eq!(receipt["status"], "ignored", "{receipt}");
            let many = json!({"feedback": [outside(it)]});
            let receipts = server.feedback("search", &many).await.json(200);
            assert_eq!(receipts["results"][0]["status"], "ignored", "{receipts}");
        }
        let receipts = server.post(ubi, &events).await.json(200);
        for receipt in receipts["results"].as_array().expect("a list") {
            assert_eq!(receipt["status"], "ignored", "{receipts}");
        }
    };
    assert_ignored(&server).await;
    // pages from before everybody takes part are still clicked on
    set(&server, 1.0).await;
    assert_ignored(&server).await;
    let feedback = server.report("search", "traffic").await["feedback"].clone();
    assert_eq!((&feedback["ignored"], &feedback["invalid"]), (&json!(16), &json!(0)));
    // where nobody is outside, the id was lost
    server.create(&json!({"name": "all", "rankers": ["a", "b"]})).await;
    server.feedback("all", &outside(&outcome)).await.problem(ProblemKind::InvalidDuel);
}

async fn the_control_stays_while_it_is_shown_outside(database: TestDatabase) {
    let server = Server::running(&database, &search(0.5)).await;
    let patch = async |body: Value| server.patch("search", &body).await;
    patch(json!({"coverage": 1.5})).await.problem_at(ProblemKind::InvalidRequest, "/coverage");
    let detail = patch(json!({"retire": "c"})).await.problem(ProblemKind::RankersFixed);
    assert!(detail["detail"].as_str().is_some_and(|it| it.contains("name another control")));
    let unchanged = server.experiment("search").await;
    assert_eq!((&unchanged["coverage"], &unchanged["version"]), (&json!(0.5), &json!(1)));
    patch(json!({"coverage": 1.0})).await.json(200);
    patch(json!({"retire": "c"})).await.json(200);
    // what was retired is not shown to anybody
    patch(json!({"coverage": 0.5})).await.problem_at(ProblemKind::InvalidRequest, "/coverage");
}

async fn the_share_that_takes_part_is_measured_anew_after_a_change(database: TestDatabase) {
    let server = Server::running(&database, &with(search(0.5), json!({"alone": 0.2}))).await;
    let measured = async || {
        let page = server.get("/experiments/search/traffic").await.text();
        let fact = page.split_once(" planned, ").map(|(before, after)| {
            let planned = before.rsplit('>').next().expect("a text");
            (planned.to_owned(), after.split(" measured").next().expect("a text").to_owned())
        });
        fact.map(|(planned, measured)| [planned, measured].map(|it| it.replace('\u{202f}', " ")))
    };
    let share = |count: usize| format!("{:.0} %", 100.0 * count as f64 / UNITS as f64);
    let before = units(&server).await.len();
    assert_eq!(measured().await, Some(["50 %".into(), share(before)]));
    server.patch("search", &json!({"owner": "search-team"})).await.json(200);
    assert_eq!(measured().await, Some(["50 %".into(), share(before)]));
    set(&server, 0.9).await;
    assert_eq!(measured().await, None);
    let after = units(&server).await.len();
    assert!(after > before);
    assert_eq!(measured().await, Some(["90 %".into(), share(after)]));
}
