//! Whole runs of a batch policy, one batch at a time.

use dueling_bandits::Duel;
use dueling_bandits::preference::PreferenceMatrix;
use rand::seq::SliceRandom;
use rand_distr::{Binomial, Distribution};

use super::super::arena::{rng, start};
use super::answer_batch;

/// One run.
pub struct Played {
    /// Cumulative Condorcet regret after the horizon.
    pub regret: f64,
    /// Whether the champion at the horizon is the Condorcet winner.
    pub is_right: bool,
}

/// `matrix` with its rankers in a random order.
pub fn shuffled(matrix: &PreferenceMatrix, seed: u64) -> PreferenceMatrix {
    let mut order: Vec<usize> = (0..matrix.rankers()).collect();
    order.shuffle(&mut rng(seed));
    matrix.restricted_to(&order).expect("a permutation")
}

/// Run the policy `text` with the given horizon on `matrix`, in the given order of rankers.
pub fn play(text: &str, matrix: &PreferenceMatrix, horizon: u64, seed: u64) -> Played {
    let mut rng = rng(!seed);
    let winner = matrix.condorcet_winner().expect("a Condorcet winner");
    let gap = |i: usize| matrix.win_probability(winner, i) - 0.5;
    let mut policy = start(text, matrix.rankers(), seed);
    let mut regret = 0.0;
    while policy.batch().is_some() {
        answer_batch(policy.as_mut(), |pair| {
            let Duel { first, second } = pair.duel;
            regret += f64::from(pair.needed) * (gap(first) + gap(second)) / 2.0;
            let odds = matrix.win_probability(first, second);
            let wins = Binomial::new(u64::from(pair.needed), odds).expect("a probability");
            wins.sample(&mut rng) as u32
        });
    }
    let champion = policy.champion();
    regret += (horizon - policy.tally().steps()) as f64 * gap(champion);
    Played { regret, is_right: champion == winner }
}

/// The mean and its standard error.
pub fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}
