//! Preferences that change while an experiment runs, and after it.

use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, eventually, with};
use crate::support::service::Server;

on_both_databases! {
    a_change_of_preferences_raises_an_alarm
    a_change_of_preferences_starts_the_verdict_again
}

on_sqlite! {
    a_change_of_preferences_starts_the_claims_again
    a_concluded_experiment_is_watched
    an_experiment_tells_of_drift_by_default
}

fn experiment(drift: &str) -> Value {
    json!({
        "name": "search", "rankers": ["a", "b"], "policy": {"kind": "uniform"}, "seed": 3,
        "conclude_at": "never", "answer_window_seconds": 0, "drift": drift,
    })
}

async fn answer(server: &Client, winner: &str, duels: usize) -> u64 {
    let mut position = 0;
    for _ in 0..duels {
        let duel = server.pair("search").await;
        position = server.wins("search", &duel, winner).await;
    }
    position
}

/// The verdict of this server once it has folded the log up to a position.
async fn verdict_at(server: &Client, position: u64) -> Value {
    eventually("the position", async || {
        let found = server.verdict("search").await;
        (found["position"].as_u64() >= Some(position)).then_some(found)
    })
    .await
}

async fn alarms(server: &Client) -> Vec<Value> {
    let traffic = server.report("search", "traffic").await;
    let alarms = traffic["alarms"].as_array().expect("a list").iter();
    alarms.filter(|alarm| alarm["kind"] == "changed-preferences").cloned().collect()
}

async fn a_change_of_preferences_raises_an_alarm(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment("tell")).await;
    answer(&first, "a", 70).await;
    let position = answer(&second, "a", 50).await;
    let before = verdict_at(&first, position).await;
    assert_eq!(before["drift"]["alarms_total"], 0);
    assert_eq!(before["drift"]["sentence"], "No change of preferences was found.");
    assert!(alarms(&first).await.is_empty());

    answer(&first, "b", 40).await;
    let position = answer(&second, "b", 40).await;
    let after = verdict_at(&first, position).await;
    let drift = &after["drift"];
    assert_eq!((&drift["alarms_total"], &drift["evidence_needed"]), (&json!(1), &json!(120.0)));
    let page = first.get("/experiments/search").await.text();
    assert!(page.contains("Is it still true?") && page.contains("Preferences changed"), "{page}");
    let alarm = &drift["alarms"][0];
    assert_eq!(alarm["pair"], json!(["a", "b"]));
    assert_eq!(alarm["before"], json!({"win_rate": 1.0, "answers": 100.0}));
    assert!(alarm["after"]["win_rate"].as_f64() < Some(0.5), "{alarm}");
    assert!(alarm["since"].as_str() <= alarm["found_at"].as_str(), "{alarm}");
    let sentence = drift["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.starts_with("`a` won 100.0 % of 100 duels with `b` until about "),
        "{sentence}"
    );
    // the claim changes nothing in the verdict
    assert_eq!((&after["winners"], &after["rests_on"]["answers"]), (&json!(["a"]), &json!(200)));
    assert_eq!(alarms(&first).await[0]["detail"], drift["sentence"]);
    first.measures(r#"experiment_alarm{experiment="search",kind="changed-preferences"} 1"#).await;

    // every replica finds the same, and one that reads the log anew
    assert_eq!(verdict_at(&second, position).await["drift"], *drift);
    let third = Server::start(database.connect().await).await;
    assert_eq!(verdict_at(&third, position).await["drift"], *drift);
}

async fn a_change_of_preferences_starts_the_verdict_again(database: TestDatabase) {
    let [first, second] = Server::two(&database).await;
    first.create(&experiment("restart")).await;
    let position = answer(&first, "a", 100).await;
    assert_eq!(verdict_at(&second, position).await["winners"], json!(["a"]));
    // at the end of the block
    let position = answer(&second, "b", 50).await;
    let restarted = verdict_at(&first, position).await;
    assert_eq!(restarted["drift"]["alarms_total"], 1);
    assert_eq!((&restarted["winners"], &restarted["rests_on"]["answers"]), (&json!([]), &json!(0)));
    assert_eq!(alarms(&second).await.len(), 1);

    // what is true now; the error that is left is smaller
    let position = answer(&first, "b", 40).await;
    let third = Server::start(database.connect().await).await;
    for server in [&first, &second, &third] {
        let found = verdict_at(server, position).await;
        assert_eq!((&found["winners"], &found["rests_on"]["answers"]), (&json!(["b"]), &json!(40)));
        assert_eq!(found["drift"], first.verdict("search").await["drift"]);
        assert!(alarms(server).await.is_empty(), "the verdict speaks of today");
    }
}

async fn a_change_of_preferences_starts_the_claims_again(database: TestDatabase) {
    let body = with(experiment("restart"), json!({"control": "b", "segments": ["web"]}));
    let server = Server::running(&database, &body).await;
    let path = "/v1/experiments/search/next-duel";
    let answer = async |winner: &str, duels: usize| {
        let mut left = duels;
        while left > 0 {
            let duel = server.post(path, &json!({"segment": "web"})).await.json(200);
            if duel["self_duel"] == false {
                server.wins("search", &duel, winner).await;
                left -= 1;
            }
        }
    };
    // the claims about `a` and the segment that hold, but for the verdict and drift
    let decided = async || {
        let claims = server.report("search", "claims").await;
        let all = claims["claims"].as_array().expect("a list").iter();
        let decided = all.filter(|claim| claim["state"] == "decided");
        let names = decided.map(|claim| claim["claim"].as_str().expect("a name").to_owned());
        names.filter(|name| name != "best" && name != "drift").collect::<Vec<_>>()
    };
    answer("a", 100).await;
    assert_eq!(decided().await, ["better", "not_worse", "unhurt"]);
    answer("b", 50).await;
    assert_eq!(server.verdict("search").await["drift"]["alarms_total"], 1);
    assert_eq!(decided().await, [""; 0]);
    assert_eq!(server.verdict("search").await["control"]["win_rate"], Value::Null);
    answer("b", 100).await;
    assert_eq!(server.verdict("search").await["winners"], json!(["b"]));
    assert_eq!(decided().await, ["worse", "unhurt"]);
}

async fn a_concluded_experiment_is_watched(database: TestDatabase) {
    let body = with(experiment("restart"), json!({"rankers": ["a", "b", "c"], "watch": 0.5}));
    let server = Server::running(&database, &body).await;
    for _ in 0..240 {
        server.first_wins("search", &server.pair("search").await).await;
    }
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    // the winner alone, or with one and the same rival
    let (mut alone, mut rivals) = (0, Vec::new());
    for _ in 0..400 {
        let duel = server.next_duel("search").await;
        if duel["self_duel"] == true {
            alone += 1;
            assert_eq!(duel["left"], "a");
            continue;
        }
        let is_left = duel["left"] == "a";
        rivals.push(if is_left { duel["right"].clone() } else { duel["left"].clone() });
        // the rival wins now
        server.answer("search", &duel, if is_left { "right" } else { "left" }).await;
    }
    assert!((120..280).contains(&alone), "{alone} alone");
    rivals.dedup();
    assert_eq!(rivals.len(), 1, "{rivals:?}");
    // it tells, and the conclusion and its verdict stay
    let found = server.verdict("search").await;
    assert_eq!((&found["drift"]["alarms_total"], &found["winners"]), (&json!(1), &json!(["a"])));
    let experiment = server.experiment("search").await;
    assert_eq!((alarms(&server).await.len(), &experiment["status"]), (1, &json!("concluded")));
}

async fn an_experiment_tells_of_drift_by_default(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let created = server.create(&experiment("off")).await;
    assert_eq!((&created["drift"], &created["watch"]), (&json!("off"), &json!(0.0)));
    answer(&server, "a", 10).await;
    assert_eq!(server.verdict("search").await["drift"], Value::Null);
    // by default an experiment tells
    let default = server.create(&json!({"name": "other", "rankers": ["a", "b"]})).await;
    assert_eq!((&default["drift"], &default["watch"]), (&json!("tell"), &json!(0.02)));
}
