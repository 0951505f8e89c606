//! Every policy that can be served, over HTTP, with a restart of the program in the middle.

use std::collections::BTreeSet;

use dueling_bandits::parameters::Description;
use dueling_bandits::{Duel, InFlight, PolicyRng, PolicySpec};
use rand::SeedableRng as _;
use rankduel_engine::fold::Fold;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{folded_from_the_start, serve, stop};
use crate::events::folded;
use crate::support::TestDatabase;
use crate::support::client::Client;

on_both_databases! {
    every_policy_continues_after_a_restart
}

const RANKERS: [&str; 4] = ["a", "b", "c", "d"];
/// Duels of each experiment in each of the two processes: enough for several batches, and more than
/// the initial phase of any policy.
const DUELS: usize = 40;
const HORIZON: u64 = 200;

/// An experiment of this kind, with the required parameters.
fn experiment(kind: &str, description: &Description) -> Value {
    let mut policy = json!({"kind": kind});
    for parameter in description.parameters.iter().filter(|parameter| parameter.default.is_none()) {
        assert_eq!(parameter.name, "horizon", "{kind}: a value for this parameter is needed here");
        policy["horizon"] = json!(HORIZON);
    }
    json!({"name": kind, "rankers": RANKERS, "policy": policy, "ties": "half", "seed": 9})
}

/// The responses that a caller has received from an experiment.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    duels: u64,
    self_duels: u64,
}

/// Request and answer duels one after the other; the earlier letter usually wins.
async fn live(client: Client, kind: &'static str) -> (&'static str, Seen) {
    let mut seen = Seen::default();
    for number in 0..DUELS {
        let duel = client.next_duel(kind).await;
        if duel["self_duel"] == true {
            seen.self_duels += 1;
            continue;
        }
        let left_is_earlier = duel["left"].as_str() < duel["right"].as_str();
        let outcome = match number % 9 {
            3 => "none",
            6 => "tie",
            upset => ["right", "left"][usize::from(left_is_earlier != (upset == 8))],
        };
        client.answer(kind, &duel, outcome).await;
        seen.duels += 1;
    }
    (kind, seen)
}

async fn live_all(client: &Client) -> Vec<(&'static str, Seen)> {
    let mut callers = JoinSet::new();
    for &(kind, _) in PolicySpec::KINDS {
        callers.spawn(live(client.clone(), kind));
    }
    callers.join_all().await
}

/// The fold of an experiment's log.
async fn fold_of(database: &TestDatabase, kind: &str) -> Fold {
    folded(&database.connect().await, kind, u32::MAX).await.1
}

/// Every pair (with its batch) that a state may select next when nothing is in flight. It is a
/// single pair for a policy that selects without randomness.
fn next(fold: &Fold) -> BTreeSet<(usize, usize, Option<u32>)> {
    let mut rng = PolicyRng::seed_from_u64(1);
    let idle = InFlight::new();
    let select = |_| {
        let selection = fold.policy().select(&idle, &mut rng);
        (selection.duel.first, selection.duel.second, selection.batch)
    };
    (0..2000).map(select).collect()
}

async fn every_policy_continues_after_a_restart(database: TestDatabase) {
    let (process, client) = serve(&database);
    for &(kind, description) in PolicySpec::KINDS {
        let created = client.create(&experiment(kind, description)).await;
        assert_eq!(created["policy"]["kind"], *kind);
        assert_eq!(created["policy_assumes"], description.assumes);
    }
    let seen = live_all(&client).await;
    let mut before = Vec::new();
    for (kind, seen) in seen {
        before.push((kind, seen, client.standings(kind).await));
    }
    stop(process);

    let (process, client) = serve(&database);
    let mut told_apart = 0;
    for (kind, seen, before) in before {
        let fold = fold_of(&database, kind).await;
        let after = client.standings(kind).await;
        for same in ["outcomes", "leaders", "wins", "ties", "duels"] {
            assert_eq!(after[same], before[same], "{kind}: {same}");
        }
        assert_eq!(
            (&after["duels"], &after["self_duels"]),
            (&seen.duels.into(), &seen.self_duels.into())
        );
        assert_eq!(after["position"], fold.position(), "{kind}");
        assert_eq!(after["champion"], RANKERS[fold.policy().champion()], "{kind}");
        if fold.policy().batches().is_some() {
            let batch = client.report(kind, "batch").await;
            let answered: u32 = fold.policy().batch_pairs().iter().map(|pair| pair.answered).sum();
            assert_eq!(
                (&batch["number"], &batch["answered"]),
                (&json!(fold.policy().batch()), &answered.into())
            );
        }

        let possible = next(&fold);
        let duel = client.next_duel(kind).await;
        let index = |side: &str| RANKERS.iter().position(|id| duel[side] == *id).expect("a ranker");
        let shown = Duel::new(index("left"), index("right"));
        let batch = duel["batch"].as_u64().map(|batch| batch as u32);
        let fits = |&(first, second, of): &(usize, usize, Option<u32>)| {
            let pair = Duel::new(first, second);
            (pair == shown || pair == Duel::new(shown.second, shown.first)) && of == batch
        };
        assert!(possible.iter().any(fits), "{kind}: {duel} is none of {possible:?}");
        assert_eq!(duel["state"], fold.position(), "{kind}");
        // Initially, every pair is possible.
        told_apart += usize::from(possible.len() < 6);
        if !shown.is_self() {
            client.answer(kind, &duel, "none").await;
        }
    }
    assert!(told_apart >= 5, "only {told_apart} policies depend on the log in their next duel");

    // Each policy continues: its new state matches its log.
    live_all(&client).await;
    stop(process);
    let (process, client) = serve(&database);
    let mut last = Vec::new();
    for &(kind, _) in PolicySpec::KINDS {
        let standings = client.standings(kind).await;
        let fold = fold_of(&database, kind).await;
        assert!(fold.position() > 0 && standings["position"] == fold.position(), "{kind}");
        assert_eq!(standings["champion"], RANKERS[fold.policy().champion()], "{kind}");
        last.push((kind, standings));
    }
    stop(process);
    let (kind, standings) = last.pop().expect("policies");
    assert_eq!(folded_from_the_start(&database, kind).await, standings);
}
