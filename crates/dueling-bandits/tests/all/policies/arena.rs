//! Runs policies on preference matrices; shared by the tests of single policies and those of the
//! comparators. `Player` is the trait of these policies, and `begin` starts one.
//!
//! Growth is judged by the two halves of a run: regret that grows in proportion to time costs as
//! much in the second half as in the first.

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

/// Steps of a run whose two halves are compared.
pub const STEPS: u64 = 6_000;
const RUNS: u64 = 10;

/// Four rankers in a line, each 0.14 better than the next. It has a Condorcet winner, a total
/// order, strong stochastic transitivity, the triangle inequality, utilities with a linear link,
/// and no equal rankers. Every policy's assumption holds.
pub fn line() -> PreferenceMatrix {
    PreferenceMatrix::from_pairs(4, |i, j| 0.5 + 0.14 * (j as f64 - i as f64))
        .expect("probabilities")
}

/// Five rankers without a Condorcet winner. Ranker 0 beats all but 4, which beats no other ranker;
/// the other three beat each other in a cycle. There is one Copeland winner.
pub fn no_condorcet_winner() -> PreferenceMatrix {
    let wins = |i, j| (i == 0 && j != 4) || matches!((i, j), (1, 2) | (2, 3)) || (i != 0 && j == 4);
    PreferenceMatrix::from_pairs(5, |i, j| if wins(i, j) { 0.8 } else { 0.2 })
        .expect("probabilities")
}

/// The ratio of the regret of the second half of each run to that of the first.
fn ratios(text: &str, matrix: &PreferenceMatrix) -> Vec<f64> {
    let regret = Regret::copeland(matrix);
    let of_run = |seed| {
        let mut rng = rng(seed);
        let mut policy = start(text, matrix.rankers(), seed);
        let mut half = || {
            let mut appearances = vec![0; matrix.rankers()];
            for _ in 0..STEPS / 2 {
                let duel = step(&mut *policy, matrix, &mut rng);
                appearances[duel.first] += 1;
                appearances[duel.second] += 1;
            }
            regret.of_appearances(&appearances)
        };
        let first = half();
        half() / first
    };
    (0..RUNS).map(of_run).collect()
}

/// Assert that in all runs but at most one, the second half costs less than 3/4 of the first.
///
/// If regret does not slow down, the second half costs more in at least half of the runs. This many
/// second halves that are cheaper by a quarter then have a probability of at most 1 in 90. The test
/// counts runs instead of averaging, because a policy without a guarantee may have a run that never
/// learns.
pub fn assert_slows_down(text: &str, matrix: &PreferenceMatrix) {
    let ratios = ratios(text, matrix);
    let slower = ratios.iter().filter(|ratio| **ratio < 0.75).count() as u64;
    assert!(slower + 1 >= RUNS, "{text}: ratios of the second half to the first: {ratios:.2?}");
}

/// Assert that the mean ratio is 1, within four standard errors plus a tenth for what the policy
/// learns at the start. A regret that grows with the logarithm of time has a ratio of
/// `ln 2 / ln 3000`, 0.09.
pub fn assert_grows_in_proportion(text: &str, matrix: &PreferenceMatrix) {
    let ratios = ratios(text, matrix);
    let count = RUNS as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    assert!((mean - 1.0).abs() < 0.1 + 4.0 * error, "{text}: {mean:.2} ± {error:.2}");
    assert!(error < 0.1, "{text}: {mean:.2} ± {error:.2} is too uncertain");
}

/// Select and answer, at most `most` steps, until a ranker is shown alone; returns that ranker.
pub fn explore(
    policy: &mut dyn Player,
    most: usize,
    requests: &mut PolicyRng,
    mut answer: impl FnMut(Duel, &mut PolicyRng) -> Outcome,
) -> Option<usize> {
    for _ in 0..most {
        let selection = policy.select(&InFlight::new(), requests);
        if selection.duel.is_self() {
            return Some(selection.duel.first);
        }
        let outcome = answer(selection.duel, requests);
        fold(policy, selection, outcome);
    }
    None
}

/// Assert that a policy with a horizon of 200 steps explores that long, and then shows its champion
/// alone; returns the policy.
pub fn explores_to_its_horizon(text: &str) -> Box<dyn Player> {
    let (mut policy, mut requests) = (start(text, 4, 5), rng(5));
    // 60 : 40 for the lower index is far from certain within 200 steps
    let found = explore(&mut *policy, 200, &mut requests, |duel, rng| {
        let first = (duel.first < duel.second) == rng.random_bool(0.6);
        if first { Outcome::First } else { Outcome::Second }
    });
    assert_eq!((found, policy.tally().steps()), (None, 200), "{text}");
    let champion = policy.champion();
    let selection = policy.select(&InFlight::new(), &mut requests);
    assert_eq!(selection.duel, Duel::new(champion, champion), "{text}");
    policy
}

/// Assert that the champion is one of those with the largest empirical Copeland score.
pub fn assert_empirical_winner(policy: &dyn Player, text: &str) {
    let score = |ranker| policy.tally().copeland_score(ranker);
    let best = (0..policy.tally().rankers()).map(score).max();
    assert_eq!(Some(score(policy.champion())), best, "{text}");
}

/// Assert that each outcome of arbitrary pairs is one step, and that only its half wins count. The
/// tickets are of another policy.
pub fn assert_counts_every_step(policy: &mut dyn Player, kind: &str) {
    let mut rng = rng(5);
    for _ in 0..200 {
        let duel = Duel::new(rng.random_range(0..3), rng.random_range(0..3));
        let before = policy.tally().clone();
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 3);
            assert_eq!(policy.tally().steps(), before.steps() + 3, "{kind}");
            continue;
        }
        let outcomes = [Outcome::First, Outcome::Half, Outcome::Void, Outcome::None];
        let (outcome, ticket) = (outcomes[rng.random_range(0..4)], rng.random());
        policy.observe(&Observation { duel, outcome, batch: None, ticket });
        assert_eq!(policy.tally().steps(), before.steps() + 1, "{kind}");
        let won = |i, j| policy.tally().half_wins(i, j) - before.half_wins(i, j);
        let (first, second) = (duel.first, duel.second);
        assert_eq!((won(first, second), won(second, first)), outcome.half_wins(), "{kind}");
    }
}
