//! Helpers of several modules: feeding policies and comparing distributions.

use dueling_bandits::{Duel, InFlight, Observation, Outcome};

use super::Player;

pub use super::arena::{rng, start};
pub use crate::reference::{Reference, ReferencePolicy};

/// The outcome of a duel outside batches.
pub fn answer(first: usize, second: usize, outcome: Outcome) -> Observation {
    Observation { duel: Duel::new(first, second), outcome, batch: None, ticket: 0 }
}

/// Fold whole wins `counts[winner][loser]`, alternating between the pairs, and then `self_duels`
/// self-duels.
pub fn feed(policy: &mut dyn Player, counts: &[&[u32]], self_duels: u64) {
    let most = counts.iter().flat_map(|row| row.iter()).copied().max().unwrap_or(0);
    for round in 0..most {
        for (i, row) in counts.iter().enumerate() {
            for (j, &wins) in row.iter().enumerate() {
                if round < wins {
                    policy.observe(&answer(i, j, Outcome::First));
                }
            }
        }
    }
    if self_duels > 0 {
        policy.observe_self_duels(0, self_duels);
    }
}

/// The count matrices of the worked examples: row = winner, with the number of self-duels that
/// brings `t` to its value.
pub const A: (&[&[u32]], u64) = (&[&[0, 9, 8, 4], &[3, 0, 7, 2], &[2, 5, 0, 6], &[4, 6, 2, 0]], 1);
pub const B: (&[&[u32]], u64) = (&[&[0, 1, 3], &[0, 0, 0], &[2, 0, 0]], 1);
pub const C: (&[&[u32]], u64) =
    (&[&[0, 40, 5, 30], &[20, 0, 8, 25], &[45, 42, 0, 48], &[20, 25, 2, 0]], 19);
pub const D: (&[&[u32]], u64) =
    (&[&[0, 14, 15, 4], &[6, 0, 3, 9], &[5, 17, 0, 16], &[6, 11, 4, 0]], 0);

/// The number of times that each ordered pair occurs in `draws` selections.
pub fn frequencies(rankers: usize, draws: usize, mut select: impl FnMut() -> Duel) -> Vec<u32> {
    let mut counts = vec![0; rankers * rankers];
    for _ in 0..draws {
        let duel = select();
        counts[duel.first * rankers + duel.second] += 1;
    }
    counts
}

/// The number of times that a policy selects each ordered pair.
pub fn selections(policy: &dyn Player, draws: usize, seed: u64) -> Vec<u32> {
    let (mut rng, idle) = (rng(seed), InFlight::new());
    frequencies(policy.tally().rankers(), draws, || policy.select(&idle, &mut rng).duel)
}

/// Fail unless two samples of the same size can come from one distribution. The statistic is the
/// two-sample chi-square `Σ (a - b)² / (a + b)` over cells; cells with fewer than 10 counts in both
/// samples together are pooled. It must not exceed its quantile at a probability of 1e-6 (Wilson
/// and Hilferty's form, z = 4.75).
pub fn assert_same_distribution(a: &[u32], b: &[u32], what: &str) {
    assert_eq!(a.iter().sum::<u32>(), b.iter().sum::<u32>(), "{what}: samples of different sizes");
    let mut pooled = (0.0, 0.0);
    let (mut statistic, mut cells) = (0.0, 0);
    let mut cell = |a: f64, b: f64| {
        if a + b > 0.0 {
            statistic += (a - b) * (a - b) / (a + b);
            cells += 1;
        }
    };
    for (&a, &b) in a.iter().zip(b) {
        let (a, b) = (f64::from(a), f64::from(b));
        if a + b < 10.0 {
            pooled = (pooled.0 + a, pooled.1 + b);
        } else {
            cell(a, b);
        }
    }
    cell(pooled.0, pooled.1);
    if cells < 2 {
        return;
    }
    let freedom = f64::from(cells - 1);
    let spread = 2.0 / (9.0 * freedom);
    let quantile = freedom * (1.0 - spread + 4.75 * spread.sqrt()).powi(3);
    assert!(
        statistic <= quantile,
        "{what}: chi-square {statistic:.1} with {freedom} degrees of freedom exceeds \
         {quantile:.1}\n{a:?}\n{b:?}"
    );
}
