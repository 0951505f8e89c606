//! A canary: two ids of one ranker. The second takes no part in the tournament.

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has, until};
use crate::support::service::Server;

on_sqlite! {
    a_canary_of_the_best_ranker_does_not_block_the_end
    the_second_id_is_compared_with_the_first_alone
}

/// Answer a duel. `a` and its twin `a2` beat `b`, and win against each other in turn.
async fn a_is_best(server: &Client, name: &str, duel: &Value, a_won: &mut bool) {
    let winner = if duel["left"] != "b" && duel["right"] != "b" {
        *a_won = !*a_won;
        if *a_won { "a" } else { "a2" }
    } else if duel["left"] == "b" {
        duel["right"].as_str().expect("an id")
    } else {
        duel["left"].as_str().expect("an id")
    };
    server.wins(name, duel, winner).await;
}

/// Play until the experiment concludes, for at most so many duels. Returns the duels that it took.
async fn until_the_end(server: &Client, name: &str, most: u64) -> Option<u64> {
    let mut a_won = false;
    for number in 0..most {
        let duel = server.next_duel(name).await;
        if duel["self_duel"] == false {
            a_is_best(server, name, &duel, &mut a_won).await;
        }
        let experiment = server.experiment(name).await;
        if experiment["status"] == "concluded" {
            assert_eq!(experiment["winner"], "a");
            return Some(number);
        }
    }
    None
}

/// Answer so many duels of the canary, and no others. The proof takes a dozen other duels, and none
/// of the canary may come between them.
async fn answer_the_canary(server: &Client, name: &str, count: usize) {
    let mut a_won = false;
    let mut answered = 0;
    for _ in 0..100 * count {
        let duel = server.next_duel(name).await;
        if ["left", "right"].iter().any(|side| duel[side] == "a2") {
            a_is_best(server, name, &duel, &mut a_won).await;
            answered += 1;
        }
        if answered == count {
            return;
        }
    }
    panic!("{answered} of {count} duels of the canary");
}

async fn a_canary_of_the_best_ranker_does_not_block_the_end(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let experiment = |name: &str, share: f64| {
        json!({
            "name": name, "rankers": ["a", "a2", "b"], "canary": ["a", "a2"], "canary_share": share,
            "conclude_at": {"confidence": 0.95, "margin": 0}, "seed": 11,
        })
    };
    server.create(&experiment("outside", 0.2)).await;
    server.create(&experiment("inside", 0.0)).await;
    answer_the_canary(&server, "outside", 4).await;
    assert!(until_the_end(&server, "outside", 400).await.is_some());
    // as a ranker like the others, the canary is as good as the best one for ever
    assert_eq!(until_the_end(&server, "inside", 400).await, None);
    let canary = server.report("outside", "statistics").await["canary"].clone();
    let compared = canary["wins"].as_u64().zip(canary["losses"].as_u64());
    let (wins, losses) = compared.expect("counts");
    assert!(wins + losses >= 4 && canary["alarm"] == false, "{canary}");
    let verdict = server.verdict("outside").await;
    assert_eq!(verdict["condorcet"], true, "{verdict}");
    assert_eq!(verdict["rankers"][1]["possible"], false);
    let page = server.get("/experiments/outside").await;
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(!text.contains("etired"), "{text}");
    let traffic = server.get("/experiments/outside/traffic").await.text();
    assert!(
        traffic.contains("The canary, two ids of the same ranker")
            && traffic.contains("no sign of a bias"),
        "{traffic}"
    );
}

async fn the_second_id_is_compared_with_the_first_alone(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let experiment = json!({
        "name": "search", "rankers": ["b", "b2", "c", "d"], "canary": ["b", "b2"],
        "policy": {"kind": "uniform"}, "conclude_at": "never",
    });
    let created = server.create(&experiment).await;
    assert_eq!(created["canary_share"], 0.05);
    assert!(created["rankers"][1].get("retired").is_none(), "it is shown");
    let mut experiment = experiment;
    experiment["name"] = json!("often");
    experiment["canary_share"] = json!(0.5);
    server.create(&experiment).await;
    let mut compared = 0_u64;
    for _ in 0..120 {
        let duel = server.next_duel("often").await;
        let shown = [&duel["left"], &duel["right"]];
        if shown.iter().any(|id| *id == "b2") {
            assert!(shown.iter().any(|id| *id == "b"), "{duel}");
            // its second id always wins: the counts are biased
            server.answer("often", &duel, if shown[0] == "b2" { "left" } else { "right" }).await;
            compared += 1;
        } else if duel["self_duel"] == false {
            server.answer("often", &duel, "left").await;
        }
    }
    assert!((30..90).contains(&compared), "half of the duels are about 60: {compared}");
    let found = server.report("often", "statistics").await;
    assert_has(&found["canary"], json!({"losses": compared, "wins": 0}));
    assert_eq!(found["canary"]["alarm"], true, "{found}");
    // a verdict would be in doubt, which ends nothing by itself
    let doubts = server.verdict("often").await["rests_on"]["doubts"].clone();
    let doubt = doubts[0].as_str().expect("a doubt");
    assert!(doubt.contains("`b` and `b2`, differ, although they are one ranker"), "{doubt}");
    let standings = server.standings("often").await;
    assert_eq!(standings["rankers"][1]["retired"], true, "it plays no part");
    let loaded = server.service.experiment("often").await.expect("an experiment");
    let tally_of_twin: u64 = {
        let fold = loaded.fold().expect("a fold");
        (0..4).map(|other| fold.run().policy().tally().half_plays(1, other)).sum()
    };
    assert_eq!(tally_of_twin, 0, "the policy learns nothing from it");

    drop(loaded);
    let canary =
        async |server: &Server| server.report("often", "statistics").await["canary"].clone();
    let server = server.same_after_restarts(&database, "often", canary).await;

    // rankers can still come and go; the canary ends with its first id
    server.patch("often", &json!({"enlist": "e"})).await.json(200);
    let retired = server.patch("often", &json!({"retire": "b2"})).await;
    retired.problem_saying(ProblemKind::RankersFixed, "canary");
    server.patch("often", &json!({"retire": "b"})).await.json(200);
    for _ in 0..40 {
        let duel = server.next_duel("often").await;
        for side in ["left", "right"] {
            assert!(duel[side] != "b2" && duel[side] != "b", "{duel}");
        }
    }
    until("the roster", async || {
        let verdict = server.verdict("often").await;
        let retired: Vec<_> = verdict["rankers"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| row["retired"].clone())
            .collect();
        json!(retired) == json!([true, true, false, false, false])
    })
    .await;
}
