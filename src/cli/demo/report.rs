//! The report of the demo.

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::drive::Driven;
use super::searches::World;
use dueling_bandits::evidence::Target;
use dueling_bandits::preference::Regret;
use lab::policies::Spec;
use lab::simulate::calibration::Trial;
use lab::simulate::{Entrant, Feedback, Progress};

/// Other ways to a verdict, and what they are called here.
const OTHER_WAYS: [(&str, &str); 3] =
    [("uniform", "all pairs equally often"), ("savage", "savage"), ("d-ts-plus", "d-ts-plus")];
/// Steps and runs of a simulation of another way.
const SIMULATED_STEPS: u64 = 100_000;
const SIMULATED_RUNS: u64 = 5;

/// What another policy costs up to the same verdict, on the true preferences.
fn otherwise(world: &World, policy: &str, target: Target) -> anyhow::Result<String> {
    let trial = Trial {
        name: policy.into(),
        matrix: world.matrix.clone(),
        drift: None,
        entrant: Entrant { text: policy.into(), spec: Spec::from_text(policy)? },
        horizon: SIMULATED_STEPS,
        looks: Vec::new(),
        runs: SIMULATED_RUNS,
        seed: 1,
        target,
        forecasts: false,
        feedback: Feedback::default(),
    };
    let found = trial.run(&Progress::new()).context("the simulation was interrupted")?;
    Ok(match (found.verdict.median_steps, found.verdict.regret_at_verdict) {
        (Some(steps), Some(regret)) => format!("{steps} pages, regret {regret:.0}"),
        _ => {
            format!("no verdict in {SIMULATED_STEPS} pages, regret {:.0}", found.total_regret.mean)
        }
    })
}

/// Prints the report; fails if the log does not have exactly the acknowledged answers.
pub fn report(
    world: &World,
    driven: &Driven,
    standings: &Value,
    verdict: &Value,
) -> anyhow::Result<()> {
    let regret = Regret::copeland(&world.matrix);
    let cost = regret.of_appearances(&driven.appearances);
    let uniform = regret.of_uniform_pairs(driven.pages);
    let seconds = driven.elapsed.as_secs_f64();
    let in_log =
        standings["duels"].as_u64().context("the standings do not have the number of duels")?;
    let ids = |key: &str| -> String {
        let ids = standings[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        ids.collect::<Vec<_>>().join(", ")
    };
    let champion = standings["champion"].as_str().unwrap_or_default();
    let winners = world.matrix.copeland_winners();
    let best =
        winners.iter().map(|&winner| world.rankers[winner].as_str()).collect::<Vec<_>>().join(", ");

    let ndcg: Vec<_> = (0..world.rankers.len()).map_while(|ranker| world.ndcg(ranker)).collect();
    let of_documents = if ndcg.is_empty() { "" } else { "   NDCG@10" };
    println!("{:<30} {:>10}{of_documents}", "ranker", "shown");
    for (at, (ranker, shown)) in world.rankers.iter().zip(&driven.appearances).enumerate() {
        let quality = ndcg.get(at).map(|ndcg| format!("{ndcg:>10.3}")).unwrap_or_default();
        println!("{ranker:<30} {shown:>10}{quality}");
    }
    println!();
    let row = |label: &str, value: String| println!("{label:<30} {value}");
    row("pages", format!("{} ({} with one ranker alone)", driven.pages, driven.self_duels));
    row("answers acknowledged", format!("{} once, {} repeats", driven.recorded, driven.duplicates));
    row("answers in the log", in_log.to_string());
    row("pages never answered", format!("{}, and {} too late", driven.lost, driven.expired));
    row(
        "leader",
        format!("{} (true best: {best}; the policy recommends {champion})", ids("leaders")),
    );
    if let Some(most) = ndcg.iter().copied().max_by(f64::total_cmp) {
        let found: Vec<_> = world.rankers.iter().zip(&ndcg).collect();
        let of = |id: &str| {
            found.iter().find(|(ranker, _)| *ranker == id).map_or(f64::NAN, |(_, ndcg)| **ndcg)
        };
        let place = 1 + ndcg.iter().filter(|&&ndcg| ndcg > of(champion)).count();
        row(
            "NDCG@10 of the champion",
            format!("{:.3}, place {place} of {}; the best has {most:.3}", of(champion), ndcg.len()),
        );
        row("clicks sent ahead", format!("{} pieces", driven.pieces));
    }
    row(
        "true Copeland regret",
        format!("{cost:.0} ({:.1} % of uniform pairs, {uniform:.0})", 100.0 * cost / uniform),
    );
    row(
        "speed",
        format!(
            "{:.0} duels and {:.0} answers per second over HTTP, each answer durable, in {seconds:.1} s",
            driven.pages as f64 / seconds,
            (driven.recorded + driven.duplicates) as f64 / seconds
        ),
    );
    println!();
    println!("verdict: {}", verdict["sentence"].as_str().unwrap_or_default());
    if let Some(duels) = verdict["decided_after_duels"].as_u64() {
        let target = Target {
            confidence: verdict["confidence"].as_f64().unwrap_or(0.95),
            margin: verdict["margin"].as_f64().unwrap_or(0.0),
        };
        println!("It took {duels} answered duels. To the same verdict, by simulation:");
        for (policy, name) in OTHER_WAYS {
            println!("  {name:<28} {}", otherwise(world, policy, target)?);
        }
    }
    println!();
    if driven.retried > 0 {
        row("requests tried again", driven.retried.to_string());
    }
    if in_log != driven.recorded {
        bail!("{} answers were acknowledged, but {in_log} are in the log", driven.recorded);
    }
    Ok(())
}
