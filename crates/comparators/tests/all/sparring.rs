//! Sparring: its two machines against explicitly computed indices, and the effect of self-duels and
//! pages without a click.

use dueling_bandits::{Duel, InFlight, Observation, Outcome};
use rand::RngExt;

use crate::arena::{answer, fold, matrix, rng, start};

/// Indices of one machine from its complete history of (arm, reward), α = 3.
fn indices(k: usize, history: &[(usize, f64)]) -> Vec<f64> {
    let log_timer = (1.0 + history.len() as f64).ln();
    (0..k)
        .map(|arm| {
            let rewards: Vec<f64> =
                history.iter().filter(|(a, _)| *a == arm).map(|(_, r)| *r).collect();
            let n = rewards.len() as f64;
            if n == 0.0 {
                return f64::INFINITY;
            }
            rewards.iter().sum::<f64>() / n + (2.5 * log_timer / n).sqrt()
        })
        .collect()
}

fn assert_largest(indices: &[f64], chosen: usize) {
    let best = indices.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!(indices[chosen] == best || best - indices[chosen] < 1e-12, "{chosen} of {indices:?}");
}

#[test]
fn either_machine_proposes_the_arm_with_the_largest_index() {
    let k = 4;
    let mut requests = rng(2);
    let mut policy = start("sparring", k, 2);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for _ in 0..600 {
        let selected = policy.select(&InFlight::new(), &mut requests).duel;
        assert_largest(&indices(k, &left), selected.first);
        assert_largest(&indices(k, &right), selected.second);
        // any pair may be folded; a self-duel is excluded because this test does not see its coin
        let duel = if selected.is_self() {
            Duel::new(selected.first, (selected.first + 1) % k)
        } else {
            selected
        };
        let (outcome, second) = match requests.random_range(0..5) {
            0 => (Outcome::Half, Some(0.5)),
            1 => (Outcome::None, None),
            2 => (Outcome::Void, None),
            3 => (Outcome::First, Some(0.0)),
            _ => (Outcome::Second, Some(1.0)),
        };
        policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
        if let Some(second) = second {
            left.push((duel.first, 1.0 - second));
            right.push((duel.second, second));
        }
    }
}

#[test]
fn two_machines_with_their_own_orders_do_not_move_in_lock_step() {
    for seed in 0..20 {
        let mut policy = start("sparring", 2, seed);
        let mut requests = rng(seed);
        let matrix = matrix("btl:2:1");
        let mut compared = 0;
        for _ in 0..100 {
            let selection = policy.select(&InFlight::new(), &mut requests);
            compared += usize::from(!selection.duel.is_self());
            let outcome = answer(&matrix, selection.duel, &mut requests);
            fold(&mut *policy, selection, outcome);
        }
        assert!(compared >= 20, "seed {seed}: {compared} comparisons in 100 steps");
    }
}
