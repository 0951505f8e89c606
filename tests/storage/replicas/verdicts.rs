//! Servers with a thousand duels in flight agree on the verdict, whatever happens to the answers.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rankduel::service::ServiceSettings;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, until};
use crate::support::service::{Server, Settings};

on_both_databases! {
    the_verdict_is_a_function_of_the_log
}

const IN_FLIGHT: usize = 1000;
/// Duels that end between two comparisons of the servers.
const WAVE: usize = 300;
/// Far more waves than the verdict takes.
const WAVES_MAX: usize = 40;
const PATH: &str = "/v1/experiments/search/verdict";

/// Two servers on this database that run a maintenance round this often.
async fn two(database: &TestDatabase, maintain_every: Duration) -> [Server; 2] {
    let start = async || {
        let idle_after = Duration::from_secs(3600);
        let service = ServiceSettings { maintain_every, idle_after, ..ServiceSettings::default() };
        Server::with(database.store().await, Settings { service, ..Settings::default() }).await
    };
    [start().await, start().await]
}

/// The verdict that both servers give at the end of the log.
async fn agreed(database: &TestDatabase, servers: &[Server; 2]) -> Value {
    eventually("the end of the log at both servers", async || {
        let head = database.count("select head from experiment").await;
        let mut found = Vec::new();
        for server in servers {
            let mut verdict = server.get(PATH).await.json(200);
            if verdict["position"] != head {
                return None;
            }
            // it is simulated, and may be an earlier estimate that is used again
            let members = verdict.as_object_mut().expect("an object");
            members.retain(|name, _| !name.starts_with("duels_to_go"));
            // it has the alarms of each server
            members.retain(|name, _| !["answer", "sentence"].contains(&name.as_str()));
            found.push(verdict);
        }
        assert_eq!(found[0], found[1], "the same position");
        found.pop()
    })
    .await
}

/// The parts that must not change any more once there is a verdict.
fn latched(verdict: &Value) -> [Value; 3] {
    ["state", "winners", "decided_after_duels"].map(|member| verdict[member].clone())
}

fn evidence(verdict: &Value) -> Vec<Value> {
    let rankers = verdict["rankers"].as_array().expect("rankers");
    rankers.iter().map(|row| row["evidence_against"].clone()).collect()
}

/// Post answers in lists, each to the server that its number says, all at once. Returns how many
/// got each status.
async fn post(clients: &[Client; 2], answers: &[(usize, Value)]) -> BTreeMap<String, usize> {
    let to = async |server: usize| {
        let own: Vec<_> =
            answers.iter().filter(|(to, _)| *to == server).map(|(_, answer)| answer).collect();
        let mut statuses = BTreeMap::new();
        for list in own.chunks(100) {
            let receipts =
                clients[server].feedback("search", &json!({"feedback": list})).await.json(200);
            for receipt in receipts["results"].as_array().expect("receipts") {
                let status = receipt["status"].as_str().expect("a status").to_owned();
                *statuses.entry(status).or_default() += 1;
            }
        }
        statuses
    };
    let (mut statuses, other) = tokio::join!(to(0), to(1));
    for (status, count) in other {
        *statuses.entry(status).or_default() += count;
    }
    statuses
}

async fn the_verdict_is_a_function_of_the_log(database: TestDatabase) {
    // without maintenance rounds, the log has only the answers
    let servers = two(&database, Duration::from_secs(3600)).await;
    let clients = [servers[0].client(), servers[1].client()];
    let experiment = json!({
        "name": "search", "rankers": ["a", "b", "c", "d"], "seed": 5, "conclude_at": "never",
    });
    clients[0].create(&experiment).await;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut in_flight, mut late, mut answered) = (Vec::new(), Vec::new(), Vec::new());
    let mut verdict = agreed(&database, &servers).await;
    for wave in 0.. {
        if verdict["state"] == "decided" {
            break;
        }
        assert!(wave < WAVES_MAX, "no verdict yet: {verdict}");
        while in_flight.len() < IN_FLIGHT {
            let (one, other) = tokio::join!(clients[0].pair("search"), clients[1].pair("search"));
            in_flight.extend([one, other]);
        }
        in_flight.shuffle(&mut rng);
        let mut answers = Vec::new();
        for duel in in_flight.drain(..WAVE) {
            // the first ranker in alphabetical order wins four of five
            let left_first = duel["left"].as_str() < duel["right"].as_str();
            let outcome = if rng.random_bool(0.8) == left_first { "left" } else { "right" };
            let answer = json!({"duel_id": duel["duel_id"], "outcome": outcome});
            match rng.random_range(0..10) {
                0 => {}
                1 => late.push((rng.random_range(0..2), answer)),
                _ => answers.push((rng.random_range(0..2), answer)),
            }
        }
        let statuses = post(&clients, &answers).await;
        assert_eq!(statuses, BTreeMap::from([("recorded".to_owned(), answers.len())]));
        answered.extend(answers);
        verdict = agreed(&database, &servers).await;
    }
    assert_eq!((&verdict["winners"], &verdict["duels"]), (&json!(["a"]), &json!(answered.len())));
    let certified = latched(&verdict);

    // late answers count, and leave the verdict as it is
    assert!(!late.is_empty());
    let statuses = post(&clients, &late).await;
    assert_eq!(statuses, BTreeMap::from([("recorded".to_owned(), late.len())]));
    verdict = agreed(&database, &servers).await;
    assert_eq!(latched(&verdict), certified);
    assert_eq!(verdict["duels"], json!(answered.len() + late.len()));

    // every answer once more, at the other server: nothing changes
    answered.append(&mut late);
    let again: Vec<_> = answered.iter().map(|(to, answer)| (1 - to, answer.clone())).collect();
    let statuses = post(&clients, &again).await;
    assert_eq!(statuses, BTreeMap::from([("duplicate".to_owned(), again.len())]));
    assert_eq!(agreed(&database, &servers).await, verdict);

    // servers that fold the whole log at once
    for server in servers {
        server.stop().await;
    }
    assert_eq!(database.count("select count(*) from snapshot").await, 0);
    let servers = two(&database, Duration::from_millis(50)).await;
    // the self-duels have been appended since
    let whole = agreed(&database, &servers).await;
    assert_eq!(latched(&whole), certified, "from the log");
    assert_eq!(evidence(&whole), evidence(&verdict), "from the log");

    // servers that start from a snapshot, without the log before it
    servers[0].clock.advance_ms(2 * 3_600_000);
    until("the snapshot of an idle experiment", async || {
        database.count("select count(*) from snapshot").await > 0
    })
    .await;
    for server in servers {
        server.stop().await;
    }
    database
        .execute("delete from log; update experiment set pruned_to = (select max(position) from snapshot)")
        .await;
    let servers = two(&database, Duration::from_secs(3600)).await;
    assert_eq!(agreed(&database, &servers).await, whole, "from the snapshot");
    let duels: Vec<_> = in_flight.iter().take(20).map(|duel| &duel["duel_id"]).collect();
    let answers: Vec<_> =
        duels.iter().map(|id| (0, json!({"duel_id": id, "outcome": "left"}))).collect();
    post(&[servers[0].client(), servers[1].client()], &answers).await;
    let after = agreed(&database, &servers).await;
    assert_eq!(latched(&after), certified);
    assert_eq!(after["duels"].as_u64(), verdict["duels"].as_u64().map(|duels| duels + 20));
}
