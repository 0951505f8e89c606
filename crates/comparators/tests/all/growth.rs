//! The growth of regret. It slows down if a policy's assumption holds. It is proportional to time
//! if the assumption does not hold and a paper reports that the policy then fails.
//!
//! The tests compare the two halves of a run. Regret that grows in proportion to time costs as much
//! in the second half as in the first.

use comparators::Comparator;
use dueling_bandits::preference::{PreferenceMatrix, Regret};

use crate::arena::{rng, start, step};

const STEPS: u64 = 6_000;
const RUNS: u64 = 10;

/// Four rankers in a line, each 0.14 better than the next. It has a Condorcet winner, a total
/// order, strong stochastic transitivity, the triangle inequality, utilities with a linear link,
/// and no equal rankers. Every policy's assumption holds.
fn line() -> PreferenceMatrix {
    PreferenceMatrix::from_pairs(4, |i, j| 0.5 + 0.14 * (j as f64 - i as f64))
        .expect("probabilities")
}

/// Five rankers without a Condorcet winner. Ranker 0 beats all but 4, which beats no other ranker;
/// the other three beat each other in a cycle. There is one Copeland winner.
fn no_condorcet_winner() -> PreferenceMatrix {
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
fn assert_slows_down(text: &str, matrix: &PreferenceMatrix) {
    let ratios = ratios(text, matrix);
    let slower = ratios.iter().filter(|ratio| **ratio < 0.75).count() as u64;
    assert!(slower + 1 >= RUNS, "{text}: ratios of the second half to the first: {ratios:.2?}");
}

/// Assert that the mean ratio is 1, within four standard errors plus a tenth for what the policy
/// learns at the start. A regret that grows with the logarithm of time has a ratio of
/// `ln 2 / ln 3000`, 0.09.
fn assert_grows_in_proportion(text: &str, matrix: &PreferenceMatrix) {
    let ratios = ratios(text, matrix);
    let count = RUNS as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let error = (variance / count).sqrt();
    assert!((mean - 1.0).abs() < 0.1 + 4.0 * error, "{text}: {mean:.2} ± {error:.2}");
    assert!(error < 0.1, "{text}: {mean:.2} ± {error:.2} is too uncertain");
}

#[test]
fn regret_slows_down_where_the_assumption_holds() {
    let matrix = line();
    for kind in Comparator::KINDS {
        let text = match *kind {
            // with the constants of the theory it removes no ranker within so few steps
            "btm" => format!("btm:horizon={STEPS},kappa=1"),
            // a linear program per loop instead of one per draw
            "cw-rmed" => "cw-rmed:evaluate=loop".to_string(),
            "rmed2-fh" | "interleaved-filter" | "pbr" | "rank-el" => {
                format!("{kind}:horizon={STEPS}")
            }
            kind => kind.to_string(),
        };
        assert_slows_down(&text, &matrix);
    }
}

/// Policies for Copeland winners.
#[test]
fn regret_slows_down_without_a_condorcet_winner() {
    let matrix = no_condorcet_winner();
    let [pbr, rank_el] = ["pbr", "rank-el"].map(|kind| format!("{kind}:horizon={STEPS}"));
    for kind in ["ecw-rmed", "cw-rmed:evaluate=loop", &pbr, &rank_el] {
        assert_slows_down(kind, &matrix);
    }
}

/// RUCB: Zoghi et al., Copeland Dueling Bandits, NIPS 2015, Figure 1. RCS and RMED1 likewise in
/// Figure 1 (b) of Wu and Liu, NIPS 2016.
#[test]
fn regret_grows_in_proportion_without_the_condorcet_winner_that_a_policy_assumes() {
    let matrix = no_condorcet_winner();
    for kind in ["rucb", "rcs", "rmed1", "rmed2", "winner-stays"] {
        assert_grows_in_proportion(kind, &matrix);
    }
}
