//! Roster changes at one server while all servers issue duels.

use std::sync::atomic::{AtomicBool, Ordering};

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use super::{NEVER_LOOKS, serve};
use crate::support::TestDatabase;
use crate::support::client::{Client, assert_verifies, eventually};
use crate::support::server::Process;

on_postgres! {
    all_servers_serve_during_roster_changes
    a_server_with_a_stale_roster_does_no_harm
    a_change_is_checked_against_the_current_roster
}

async fn change(client: &Client, body: Value) {
    client.patch("search", &body).await.json(200);
}

async fn retired(client: &Client) -> Vec<String> {
    let experiment = client.experiment("search").await;
    let rankers = experiment["rankers"].as_array().expect("rankers");
    let gone = rankers.iter().filter(|ranker| ranker["retired"] == true);
    gone.map(|ranker| ranker["id"].as_str().expect("an id").to_owned()).collect()
}

fn shows(duel: &Value, id: &str) -> bool {
    duel["left"] == id || duel["right"] == id
}

/// Answer duels until `stop` is set; returns the number of recorded answers.
async fn traffic(client: Client, answers_to: Client, stop: &AtomicBool) -> u64 {
    let mut recorded = 0;
    while !stop.load(Ordering::Relaxed) {
        let duel = client.next_duel("search").await;
        if duel["self_duel"] == false {
            answers_to.answer("search", &duel, "left").await;
            recorded += 1;
        }
    }
    recorded
}

async fn agree(database: &TestDatabase, clients: &[&Client], duels: u64) {
    eventually("equal standings at all servers", async || {
        let expected = clients[0].standings("search").await;
        let mut same = expected["duels"] == duels;
        for client in clients {
            same &= client.standings("search").await == expected;
        }
        same.then_some(())
    })
    .await;
    let store = database.connect().await;
    assert_verifies(&*store, "search").await;
}

async fn all_servers_serve_during_roster_changes(database: TestDatabase) {
    let flags = ["--poll-milliseconds", "20"];
    let ((_one, one), (_other, other)) = (serve(&database, &flags), serve(&database, &flags));
    one.create(
        &json!({"name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"},
            "conclude_at": "never"}),
    )
    .await;
    let stop = AtomicBool::new(false);
    // Every duel is answered at a server other than the one that issued it.
    let changes = async {
        for number in 0..6 {
            let (here, there) = if number % 2 == 0 { (&one, &other) } else { (&other, &one) };
            change(here, json!({"enlist": format!("new-{number}")})).await;
            let goes = ["a", "b", "c", "new-0", "new-1", "new-2"][number];
            change(there, json!({"retire": goes})).await;
            let gone = retired(there).await;
            assert_eq!(gone.len(), number + 1);
            for _ in 0..20 {
                let duel = there.next_duel("search").await;
                assert!(!gone.iter().any(|id| shows(&duel, id)), "{duel} of {gone:?}");
            }
        }
        stop.store(true, Ordering::Relaxed);
    };
    let ((), first, second) = tokio::join!(
        changes,
        traffic(one.clone(), other.clone(), &stop),
        traffic(other.clone(), one.clone(), &stop)
    );
    agree(&database, &[&one, &other], first + second).await;
    assert_eq!(retired(&one).await, retired(&other).await);
}

/// Two servers without notifications. After the second one has read the experiment, the first one
/// adds `d` and retires `a`.
async fn servers_with_one_stale_roster(
    database: &TestDatabase,
) -> ((Process, Client), (Process, Client)) {
    let without_notices = [&NEVER_LOOKS[..], &["--no-listen"]].concat();
    let (one, other) = (serve(database, &without_notices), serve(database, &without_notices));
    one.1
        .create(
            &json!({"name": "search", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"},
                "conclude_at": "never"}),
        )
        .await;
    assert_eq!(other.1.position("search").await, 1, "the other has it in memory");
    change(&one.1, json!({"enlist": "d"})).await;
    change(&one.1, json!({"retire": "a"})).await;
    (one, other)
}

/// It issues duels of the rankers it knows, and records answers about rankers it does not know.
async fn a_server_with_a_stale_roster_does_no_harm(database: TestDatabase) {
    let ((_one, one), (_other, other)) = servers_with_one_stale_roster(&database).await;
    let of = async |client: &Client, id: &str| {
        for _ in 0..1000 {
            let duel = client.pair("search").await;
            if shows(&duel, id) {
                return duel;
            }
        }
        panic!("no duel of {id}");
    };
    let of_a = of(&other, "a").await;
    let of_d = of(&one, "d").await;
    // Its append follows entries that it has not read, so it reads them all now.
    other.answer("search", &of_d, "left").await;
    assert_eq!(retired(&other).await, ["a"]);
    for _ in 0..100 {
        assert!(!shows(&other.next_duel("search").await, "a"));
    }
    one.answer("search", &of_a, "left").await;
    let again = json!({"duel_id": of_a["duel_id"], "outcome": "left"});
    assert_eq!(other.feedback("search", &again).await.json(200)["status"], "duplicate");
    // A change based on an old version is refused.
    let stale = [("content-type", "application/json"), ("if-match", "\"1\"")];
    let body = json!({"enlist": "e"}).to_string().into_bytes();
    let path = "/v1/experiments/search";
    other.send("PATCH", path, &stale, body).await.problem(ProblemKind::PreconditionFailed);
    agree(&database, &[&one], 2).await;
}

/// The winner must be an active ranker, even if the server's roster was stale.
async fn a_change_is_checked_against_the_current_roster(database: TestDatabase) {
    let ((_one, _), (_other, other)) = servers_with_one_stale_roster(&database).await;
    let concluded = |winner: &str| json!({"status": "concluded", "winner": winner});
    other.refuses_change("search", &concluded("a"), "/winner").await;
    let experiment = other.patch("search", &concluded("d")).await.json(200);
    assert_eq!(experiment["winner"], "d");
    assert_eq!(retired(&other).await, ["a"]);
    agree(&database, &[&other], 0).await;
}
