//! Runs policies on preference matrices; shared by the tests of single policies and those of the
//! comparators. `Player` is the trait of these policies, and `begin` starts one.

use dueling_bandits::preference::{PreferenceMatrix, Regret};
use dueling_bandits::{Duel, InFlight, Observation, Outcome, PolicyRng, Selection};
use rand::{RngExt, SeedableRng};

use super::{Player, begin};

/// A built-in matrix.
pub fn matrix(name: &str) -> PreferenceMatrix {
    PreferenceMatrix::named(name).expect("a known name").expect("a valid size")
}

/// A generator seeded with `seed`.
pub fn rng(seed: u64) -> PolicyRng {
    PolicyRng::seed_from_u64(seed)
}

/// A policy in its text form, before its first observation.
pub fn start(text: &str, rankers: usize, seed: u64) -> Box<dyn Player> {
    begin(text, rankers, seed)
}

/// A random outcome of `duel` for the true probabilities in `matrix`.
pub fn answer(matrix: &PreferenceMatrix, duel: Duel, rng: &mut PolicyRng) -> Outcome {
    let first_wins = rng.random::<f64>() < matrix.win_probability(duel.first, duel.second);
    if first_wins { Outcome::First } else { Outcome::Second }
}

/// Fold the outcome of a selection.
pub fn fold(policy: &mut dyn Player, selection: Selection, outcome: Outcome) {
    let Selection { duel, batch, ticket } = selection;
    if duel.is_self() {
        policy.observe_self_duels(duel.first, 1);
    } else {
        policy.observe(&Observation { duel, outcome, batch, ticket });
    }
}

/// Play one step with nothing else in flight, and return its pair.
pub fn step(policy: &mut dyn Player, matrix: &PreferenceMatrix, rng: &mut PolicyRng) -> Duel {
    let selection = policy.select(&InFlight::new(), rng);
    let outcome = answer(matrix, selection.duel, rng);
    fold(policy, selection, outcome);
    selection.duel
}

/// The regret of one run of `steps` steps.
pub fn run(text: &str, matrix: &PreferenceMatrix, regret: &Regret, steps: u64, seed: u64) -> f64 {
    let mut rng = rng(seed);
    let mut policy = start(text, matrix.rankers(), seed);
    let mut appearances = vec![0; matrix.rankers()];
    for _ in 0..steps {
        let duel = step(&mut *policy, matrix, &mut rng);
        appearances[duel.first] += 1;
        appearances[duel.second] += 1;
    }
    regret.of_appearances(&appearances)
}

/// Assert that the mean regret of `runs` runs is below `share` of the regret of uniform pairs, by
/// at least four standard errors of that mean. If the true mean were at the bound, such a small
/// sample mean would occur once in thirty thousand runs.
pub fn costs_less_than_uniform(
    text: &str,
    matrix: &PreferenceMatrix,
    regret: &Regret,
    steps: u64,
    runs: u64,
    share: f64,
) {
    let values: Vec<f64> = (0..runs).map(|seed| run(text, matrix, regret, steps, seed)).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    let uniform = regret.of_uniform_pairs(steps);
    assert!(
        mean + 4.0 * error < share * uniform,
        "{text}: regret {mean:.1} ± {error:.1} after {steps} steps, which is not below {share} of \
         uniform's {uniform:.1}"
    );
}
