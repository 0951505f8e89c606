//! A database of every released version opens with the same standings, claims and selections.
//!
//! `tests/fixtures` has a folder for each version: an SQLite database that its program wrote,
//! exports of the experiments, which PostgreSQL imports, and what was true of them
//! (`expected.json`). That of the version in `Cargo.toml` is remade until it is tagged:
//!
//! ```text
//! RANKDUEL_KEEP_RELEASED=1 scripts/test --all-features --test storage upgrade::
//! ```

use std::path::{Path, PathBuf};

use dueling_bandits::{InFlight, step_rng};
use rankduel_store::SharedStore;
use serde_json::{Map, Value, json};

use crate::events::folded;
use crate::support::client::{Client, eventually};
use crate::support::server::{outcome, rankduel};
use crate::support::service::Server;
use crate::support::{Kind, TestDatabase, fresh_database};

/// The policies of the experiments, which are called as their kinds.
const POLICIES: [&str; 4] = ["d-ts-verdict", "d-ts-plus", "pcomp", "savage"];
/// An experiment with claims of every kind.
const CLAIMS: &str = "claims";
const DUELS: usize = 200;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Create the experiments, and play them. Returns an open duel of each that still compares rankers.
async fn play(server: &Server) -> Map<String, Value> {
    let mut open = Map::new();
    for kind in POLICIES {
        let mut policy = json!({"kind": kind});
        if kind != "d-ts-verdict" && kind != "d-ts-plus" {
            policy["horizon"] = json!(10_000);
        }
        server
            .create(&json!({
                "name": kind, "rankers": ["a", "b", "c", "d"], "policy": policy, "seed": 7,
                "ties": "half", "conclude_at": "never",
            }))
            .await;
        for number in 0..DUELS {
            let duel = server.next_duel(kind).await;
            if duel["self_duel"] == true {
                continue;
            }
            match number % 10 {
                3 => click(server, kind, &duel).await,
                6 => drop(server.answer(kind, &duel, "none").await),
                number => {
                    let left_is_earlier = duel["left"].as_str() < duel["right"].as_str();
                    let outcome =
                        ["right", "left"][usize::from(left_is_earlier != (number % 3 == 1))];
                    server.answer(kind, &duel, outcome).await;
                }
            }
        }
        let duel = server.next_duel(kind).await;
        if duel["self_duel"] == false {
            open.insert(kind.into(), duel["duel_id"].clone());
        }
    }
    open
}

/// Create the experiment with claims, and play it until everything counts.
async fn play_claims(server: &Server) {
    let metrics = json!([
        {"name": "latency", "cap": 1000, "limit": 500, "difference": 50, "on_harm": "tell"},
        {"name": "revenue", "of": "page", "better": "higher", "cap": 9, "difference": 1},
    ]);
    server
        .create(&json!({
            "name": CLAIMS, "rankers": ["a", "b", "c"], "seed": 7, "conclude_at": "never",
            "control": "b", "segments": ["desktop", "mobile"], "alone": 0.2, "metrics": metrics,
            "value_window_seconds": 1,
        }))
        .await;
    for number in 0..2 * DUELS {
        let segment = ["desktop", "mobile"][number % 2];
        let body = json!({"unit": format!("u-{number}"), "segment": segment});
        let duel = server.post(&format!("/v1/experiments/{CLAIMS}/next-duel"), &body).await;
        let duel = duel.json(200);
        let [left, right] = ["left", "right"].map(|side| duel[side].as_str().expect("an id"));
        let mut answer = json!({"duel_id": duel["duel_id"]});
        if duel["alone"].is_string() {
            answer["metrics"] = json!({left: {"revenue": number % 7}});
        } else if duel["self_duel"] == true {
            continue;
        } else {
            answer["outcome"] =
                json!(if (left < right) != (number % 5 == 0) { "left" } else { "right" });
            answer["metrics"] = json!({left: {"latency": number}, right: {"latency": 40}});
        }
        assert_eq!(server.feedback(CLAIMS, &answer).await.status, 200);
    }
    // the windows of all pages end
    server.clock.advance_ms(70_000);
    eventually("the values", async || {
        let claims = server.report(CLAIMS, "claims").await;
        let counted = |claim: &Value| claim["metric"]["pages"].as_u64() > Some(0);
        claims["claims"].as_array().expect("a list").iter().any(counted).then_some(())
    })
    .await;
}

/// Show a page of the duel, and click on its first slot.
async fn click(client: &Client, name: &str, duel: &Value) {
    let body = json!({
        "duel_id": duel["duel_id"], "left": ["1", "2", "3"], "right": ["3", "4", "1"], "length": 3,
    });
    let page = client.post(&format!("/v1/experiments/{name}/interleave"), &body).await.json(200);
    let clicks = json!({"duel_id": page["duel_id"], "clicks": [0]});
    assert_eq!(client.feedback(name, &clicks).await.status, 200);
}

/// The facts of an experiment that must stay true.
async fn truth(client: &Client, store: &SharedStore, name: &str) -> Value {
    let standings = client.standings(name).await;
    let mut verdict = client.verdict(name).await;
    // a simulation, which only forecasts, and a message for people
    for member in ["duels_to_go", "duels_to_go_reason", "sentence"] {
        verdict.as_object_mut().expect("an object").remove(member);
    }
    let rankers: Map<String, Value> = ["wins", "ties", "duels", "self_duels", "leaders"]
        .map(|member| (member.to_owned(), standings[member].clone()))
        .into_iter()
        .collect();
    let mut claims = client.report(name, "claims").await;
    for claim in claims["claims"].as_array_mut().expect("a list") {
        claim.as_object_mut().expect("an object").remove("duels_to_go");
    }
    json!({
        "standings": rankers, "verdict": verdict, "claims": claims,
        "selections": selections(store, name).await,
    })
}

/// The next fifty selections of the log in the database, folded here, with nothing in flight.
async fn selections(store: &SharedStore, name: &str) -> Value {
    let (_, fold) = folded(store, name, 10_000).await;
    let select = |step| {
        let duel = fold.run().policy().select(&InFlight::new(), &mut step_rng(77, step)).duel;
        format!("{}{}", duel.first, duel.second)
    };
    json!((0..50).map(select).collect::<Vec<_>>().join(" "))
}

fn experiments() -> impl Iterator<Item = &'static str> {
    POLICIES.into_iter().chain([CLAIMS])
}

async fn truths(server: &Server, store: &SharedStore) -> Map<String, Value> {
    let mut truths = Map::new();
    for name in experiments() {
        truths.insert(name.into(), truth(server, store, name).await);
    }
    truths
}

/// Write the fixture of the present version.
async fn keep(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("the former fixture goes");
    }
    std::fs::create_dir_all(folder).expect("a folder");
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::start(database.store().await).await;
    let open = play(&server).await;
    play_claims(&server).await;
    assert!(!open.is_empty(), "every policy has decided");
    // the log has every self-duel once the server has stopped
    server.stop().await;
    let server = Server::start(database.store().await).await;
    let expected =
        json!({"open": open, "experiments": truths(&server, &database.connect().await).await});
    server.stop().await;
    // one file, without its write-ahead log
    database.execute("pragma journal_mode = delete; vacuum").await;
    std::fs::copy(database.path(), folder.join("sqlite.db")).expect("a copy");
    let text = serde_json::to_string_pretty(&expected).expect("JSON");
    std::fs::write(folder.join("expected.json"), text + "\n").expect("a file");
    for name in experiments() {
        let (code, export, error) =
            outcome(rankduel(&["export", name, "--database-url", &database.url]));
        assert_eq!(code, Some(0), "{error}");
        std::fs::write(folder.join(format!("{name}.export")), export).expect("a file");
    }
}

/// Whether `found` has all of `kept`. A later version may have more members.
fn has(found: &Value, kept: &Value) -> bool {
    match (found, kept) {
        (Value::Object(found), Value::Object(kept)) => {
            kept.iter().all(|(name, kept)| found.get(name).is_some_and(|found| has(found, kept)))
        }
        (Value::Array(found), Value::Array(kept)) => {
            found.len() == kept.len()
                && found.iter().zip(kept).all(|(found, kept)| has(found, kept))
        }
        _ => found == kept,
    }
}

/// The database of a fixture: a copy of its file, or its exports imported.
async fn opened(kind: Kind, folder: &Path) -> TestDatabase {
    let database = fresh_database(kind).await;
    match kind {
        Kind::Sqlite => {
            std::fs::copy(folder.join("sqlite.db"), database.path()).expect("a copy");
        }
        Kind::Postgres => {
            drop(database.store().await);
            for name in experiments() {
                let path = folder.join(format!("{name}.export"));
                let path = path.to_str().expect("UTF-8");
                let (code, _, error) =
                    outcome(rankduel(&["import", path, "--database-url", &database.url]));
                assert_eq!(code, Some(0), "{error}");
            }
        }
    }
    database
}

#[tokio::test]
async fn databases_of_released_versions_open_as_they_were() {
    if std::env::var_os("RANKDUEL_KEEP_RELEASED").is_some() {
        keep(&fixtures().join(env!("CARGO_PKG_VERSION"))).await;
    }
    let folders: Vec<_> = std::fs::read_dir(fixtures())
        .expect("the fixtures")
        .map(|entry| entry.expect("a folder").path())
        .filter(|path| path.join("expected.json").exists())
        .collect();
    assert!(!folders.is_empty(), "there is no fixture");
    for folder in folders {
        let expected = std::fs::read_to_string(folder.join("expected.json")).expect("a file");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        for kind in [Kind::Sqlite, Kind::Postgres] {
            let database = opened(kind, &folder).await;
            let server = Server::start(database.store().await).await;
            let found = truths(&server, &database.connect().await).await;
            for (name, truth) in &found {
                let kept = &expected["experiments"][name];
                assert!(
                    has(truth, kept),
                    "{}: {name} on {kind:?} is another one; until this version is tagged, run \
                     again with RANKDUEL_KEEP_RELEASED=1: {truth} has not {kept}",
                    folder.display()
                );
            }
            // the keys that sign duels are not exported
            if kind == Kind::Sqlite {
                for (name, duel) in expected["open"].as_object().expect("duels") {
                    let body = json!({"duel_id": duel, "outcome": "left"});
                    assert_eq!(server.feedback(name, &body).await.status, 200, "{name}");
                }
            }
            server.stop().await;
        }
    }
}
