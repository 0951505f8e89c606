//! How long a new experiment would take to its verdict: simulations of its policy on assumed
//! preferences.

use crate::service::Service;
use crate::service::error::ServiceError;
use dueling_bandits::evidence::Target;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{InFlight, Outcome, Policy, PolicyRng, PolicySpec, step_rng};
use rand::RngExt;
use rankduel_engine::experiment_spec::ExperimentSpec;

/// How often the best ranker is assumed to win against each other one.
const WIN_RATES: [f64; 3] = [0.52, 0.55, 0.6];
/// Simulations for each of these rates. They run side by side, so that the median is known as soon
/// as half of them have ended.
const RUNS: u64 = 7;
/// Steps of all simulations of a rate together, times the number of rankers.
const STEPS_TIMES_RANKERS: u64 = 300_000;
/// Steps of one simulation between two looks at the others.
const STRIDE: u64 = 64;
/// Most rankers that are simulated on a request.
const RANKERS_MAX: usize = 64;

/// How long the verdict takes if the best ranker wins at this rate against each other one, which
/// are even among themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeToVerdict {
    /// The assumed rate.
    pub win_rate: f64,
    /// Median of the pages, self-duels included; the error is a number that it is above.
    pub pages: Result<u64, u64>,
}

impl Service {
    /// How long the experiment of a valid spec would take, if every page had a winner; empty with
    /// many rankers. Computed on the threads for reports.
    pub async fn times_to_verdict(
        &self,
        spec: &ExperimentSpec,
    ) -> Result<Vec<TimeToVerdict>, ServiceError> {
        let (rankers, policy, target) =
            (spec.rankers.len(), spec.policy.clone(), spec.verdict_target());
        if rankers > RANKERS_MAX {
            return Ok(Vec::new());
        }
        let simulate = move || {
            let of = |win_rate| TimeToVerdict {
                win_rate,
                pages: pages(&policy, target, rankers, win_rate),
            };
            WIN_RATES.map(of).to_vec()
        };
        self.reports.run(simulate).await
    }
}

fn pages(policy: &PolicySpec, target: Target, rankers: usize, win_rate: f64) -> Result<u64, u64> {
    let mut runs: Vec<Simulation> = (0..RUNS)
        .map(|seed| Simulation {
            run: Run::new(policy.start(Setup { rankers, seed }), target, 0),
            rng: step_rng(seed, 0),
            steps: 0,
        })
        .collect();
    let (mut ended, mut spent) = (Vec::new(), 0);
    while spent < STEPS_TIMES_RANKERS / rankers as u64 {
        runs.retain_mut(|run| {
            let before = run.steps;
            let has_ended = run.advance(win_rate);
            spent += run.steps - before;
            if has_ended {
                ended.push(run.steps);
            }
            !has_ended
        });
        // Those that have ended are the shortest.
        if ended.len() as u64 > RUNS / 2 {
            ended.sort_unstable();
            return Ok(ended[(RUNS / 2) as usize]);
        }
    }
    Err(runs.first().map_or(0, |run| run.steps))
}

/// One simulation.
struct Simulation {
    run: Run,
    rng: PolicyRng,
    steps: u64,
}

impl Simulation {
    /// Up to [`STRIDE`] further steps. Returns whether there is a verdict.
    fn advance(&mut self, win_rate: f64) -> bool {
        let none = InFlight::new();
        // No policy may gain from the order of the rankers.
        let best = self.run.tally().rankers() / 2;
        for _ in 0..STRIDE {
            self.steps += 1;
            let selection = self.run.select(&none, &mut self.rng);
            let duel = selection.duel;
            if duel.is_self() {
                self.run.observe_self_duels(duel.first, 1);
                continue;
            }
            let first_wins = match (duel.first == best, duel.second == best) {
                (true, _) => win_rate,
                (_, true) => 1.0 - win_rate,
                _ => 0.5,
            };
            let first = self.rng.random::<f64>() < first_wins;
            let outcome = if first { Outcome::First } else { Outcome::Second };
            self.run.observe(&selection.observed(outcome));
            if self.run.verdict().verdict().is_some() {
                return true;
            }
        }
        false
    }
}
