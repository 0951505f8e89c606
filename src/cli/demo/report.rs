//! The report of the demo.

use std::time::Duration;

use anyhow::{Context as _, bail};
use rand::{RngExt, SeedableRng};
use serde_json::Value;

use super::users::{Tally, World};
use dueling_bandits::evidence::{Target, VerdictTracker};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use dueling_bandits::{InFlight, Observation, Outcome, PolicyRng, PolicySpec, Roster};

/// The policies to compare with, and their names in the report.
const OTHER_POLICIES: [(&str, &str); 3] =
    [("uniform", "all pairs equally often"), ("savage", "savage"), ("d-ts-plus", "d-ts-plus")];
/// Most steps of a simulated run.
const SIMULATED_STEPS: u64 = 100_000;
/// Simulated runs of each of these policies.
const SIMULATED_RUNS: u64 = 5;

/// The cost of another policy up to the same verdict, on the true preferences.
fn simulated_cost(matrix: &PreferenceMatrix, kind: &str, target: Target) -> anyhow::Result<String> {
    let spec = PolicySpec::from_text(kind)?;
    let runs = (1..=SIMULATED_RUNS).map(|seed| simulate(matrix, &spec, target, seed));
    let mut runs: Vec<_> = runs.collect();
    runs.sort_unstable_by_key(|&(steps, _)| steps);
    let mean = runs.iter().map(|&(_, regret)| regret).sum::<f64>() / SIMULATED_RUNS as f64;
    Ok(match runs[runs.len() / 2].0 {
        SIMULATED_STEPS.. => format!("no verdict in {SIMULATED_STEPS} pages, regret {mean:.0}"),
        steps => format!("{steps} pages, regret {mean:.0}"),
    })
}

/// The steps of one run up to its verdict, and their Copeland regret. Answers come at once.
fn simulate(matrix: &PreferenceMatrix, spec: &PolicySpec, target: Target, seed: u64) -> (u64, f64) {
    let (rankers, regret) = (matrix.rankers(), Regret::copeland(matrix));
    let mut rng = PolicyRng::seed_from_u64(seed);
    let mut policy = spec.start(Setup { rankers, seed });
    let mut tracker = VerdictTracker::new(target, rankers);
    let (roster, in_flight) = (Roster::new(rankers), InFlight::new());
    let (mut steps, mut cost) = (0, 0.0);
    while steps < SIMULATED_STEPS && tracker.verdict().is_none() {
        let selection = policy.select(&in_flight, &mut rng);
        let duel = selection.duel;
        steps += 1;
        cost += regret.of_step(duel.first, duel.second);
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
            continue;
        }
        let first_wins = rng.random_bool(matrix.win_probability(duel.first, duel.second));
        let outcome = if first_wins { Outcome::First } else { Outcome::Second };
        let (batch, ticket) = (selection.batch, selection.ticket);
        policy.observe(&Observation { duel, outcome, batch, ticket });
        tracker.observe(policy.tally(), roster.active(), duel);
    }
    (steps, cost)
}

/// Prints the report; fails if the log does not have exactly the acknowledged answers.
pub fn print(
    world: &World,
    tally: &Tally,
    elapsed: Duration,
    standings: &Value,
    verdict: &Value,
) -> anyhow::Result<()> {
    let regret = Regret::copeland(&world.matrix);
    let cost = regret.of_appearances(&tally.appearances);
    let uniform = regret.of_uniform_pairs(tally.pages);
    let seconds = elapsed.as_secs_f64();
    let in_log =
        standings["duels"].as_u64().context("the standings do not have the number of duels")?;
    let leaders = standings["leaders"].as_array().into_iter().flatten();
    let leaders = leaders.filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
    let champion = standings["champion"].as_str().unwrap_or_default();
    let winners = world.matrix.copeland_winners();
    let best =
        winners.iter().map(|&winner| world.rankers[winner].as_str()).collect::<Vec<_>>().join(", ");

    let row = |label: &str, value: String| println!("{label:<30} {value}");
    println!("{:<30} {:>10}", "ranker", "shown");
    for (ranker, shown) in world.rankers.iter().zip(&tally.appearances) {
        println!("{ranker:<30} {shown:>10}");
    }
    println!();
    row("pages", format!("{} ({} with one ranker alone)", tally.pages, tally.self_duels));
    row("answers acknowledged", format!("{} once, {} repeats", tally.recorded, tally.duplicates));
    row("answers in the log", in_log.to_string());
    row("pages never answered", format!("{}, and {} too late", tally.lost, tally.expired));
    row("leader", format!("{leaders} (true best: {best}; the policy recommends {champion})"));
    row(
        "true Copeland regret",
        format!("{cost:.0} ({:.1} % of uniform pairs, {uniform:.0})", 100.0 * cost / uniform),
    );
    row(
        "speed",
        format!(
            "{:.0} duels and {:.0} answers per second over HTTP, each answer durable, in {seconds:.1} s",
            tally.pages as f64 / seconds,
            (tally.recorded + tally.duplicates) as f64 / seconds
        ),
    );
    if tally.retried > 0 {
        row("requests tried again", tally.retried.to_string());
    }
    println!("\nverdict: {}", verdict["sentence"].as_str().unwrap_or_default());
    if let Some(duels) = verdict["decided_after_duels"].as_u64() {
        let target = Target {
            confidence: verdict["confidence"].as_f64().unwrap_or(0.95),
            margin: verdict["margin"].as_f64().unwrap_or(0.0),
        };
        println!("It took {duels} answered duels. To the same verdict, by simulation:");
        for (kind, name) in OTHER_POLICIES {
            println!("  {name:<28} {}", simulated_cost(&world.matrix, kind, target)?);
        }
    }
    if in_log != tally.recorded {
        bail!("{} answers were acknowledged, but {in_log} are in the log", tally.recorded);
    }
    Ok(())
}
