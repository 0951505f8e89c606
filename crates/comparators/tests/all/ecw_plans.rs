//! The plans of ECW-RMED: the worked examples, and all constraints by enumeration.

use comparators::ecw_rmed::exploration::{Plan, Tournament};
use dueling_bandits::math::divergence;
use rand::RngExt;

use crate::support::rng;

fn of(matrix: &[&[f64]]) -> Tournament {
    let divergence = |i: usize, j: usize| divergence::from_half(matrix[i][j]);
    Tournament::new(matrix.len(), divergence, |i, j| matrix[i][j] > 0.5)
}

fn assert_close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 2e-7 * expected.abs().max(1.0),
        "{found}, expected {expected}"
    );
}

fn assert_plan(rankers: usize, plan: &Plan, expected: &[(usize, usize, f64)]) {
    for i in 0..rankers {
        for j in 0..i {
            let comparisons =
                expected.iter().find(|pair| (pair.0, pair.1) == (i, j)).map_or(0.0, |pair| pair.2);
            let found = plan.comparisons(i, j);
            assert!(
                (found - comparisons).abs() < 1e-4,
                "q[{i}][{j}] is {found}, expected {comparisons}"
            );
        }
    }
}

const CYCLIC_4: &[&[f64]] =
    &[&[0.5, 0.6, 0.6, 0.6], &[0.4, 0.5, 0.9, 0.1], &[0.4, 0.1, 0.5, 0.9], &[0.4, 0.9, 0.1, 0.5]];
const GAP: &[&[f64]] = &[
    &[0.5, 0.8, 0.8, 0.51, 0.2],
    &[0.2, 0.5, 0.8, 0.2, 0.8],
    &[0.2, 0.2, 0.5, 0.8, 0.8],
    &[0.49, 0.8, 0.2, 0.5, 0.2],
    &[0.8, 0.2, 0.2, 0.8, 0.5],
];
const MULTI_SOL: &[&[f64]] = &[
    &[0.5, 0.2, 0.8, 0.8, 0.8],
    &[0.8, 0.5, 0.2, 0.8, 0.8],
    &[0.2, 0.8, 0.5, 0.8, 0.8],
    &[0.2, 0.2, 0.2, 0.5, 0.6],
    &[0.2, 0.2, 0.2, 0.4, 0.5],
];
const MSLR_5: &[&[f64]] = &[
    &[0.5, 0.484, 0.519, 0.529, 0.518],
    &[0.516, 0.5, 0.481, 0.530, 0.539],
    &[0.481, 0.519, 0.5, 0.504, 0.512],
    &[0.471, 0.470, 0.496, 0.5, 0.503],
    &[0.482, 0.461, 0.488, 0.497, 0.5],
];

#[test]
fn worked_examples() {
    // comparisons of a pair whose better ranker wins 0.6 and 0.8
    let [q6, q8] = [0.6, 0.8].map(|p| 1.0 / divergence::from_half(p));
    // for each winner the cost of its plan, and one plan
    let (cyclic, gap) = ([(0, 49.663496)], [(0, 1252.510763)]);
    let multi = [0, 1, 2].map(|winner| (winner, 3.242630));
    let mslr = [(0, 727.127847), (1, 261.954469), (2, 9114.374982)];
    let of_cyclic = [(1, 0, q6), (2, 0, q6), (3, 0, q6)];
    let of_gap = [(1, 0, q8), (2, 0, q8), (4, 1, q8), (3, 0, 4999.666627)];
    let of_multi = [(2, 0, q8), (2, 1, q8), (3, 0, q8), (4, 0, q8)];
    let of_mslr = [(1, 0, 1952.7916), (2, 0, 1384.7081), (3, 1, 555.2219), (4, 1, 328.3973)];
    for (matrix, costs, planned, plan) in [
        (CYCLIC_4, &cyclic[..], 0, &of_cyclic[..]),
        (GAP, &gap, 0, &of_gap),
        (MULTI_SOL, &multi, 0, &of_multi),
        (MSLR_5, &mslr, 1, &of_mslr),
    ] {
        let tournament = of(matrix);
        assert!(tournament.candidates().eq(costs.iter().map(|of| of.0)));
        for &(winner, cost) in costs {
            assert_close(tournament.efficient_plan(winner).cost, cost);
        }
        assert_plan(matrix.len(), &tournament.efficient_plan(planned), plan);
    }
}

/// The smallest constraint of the feasible set, by enumeration of all constraints.
fn smallest_by_enumeration(matrix: &[&[f64]], i1: usize, x: &[Vec<f64>]) -> Option<f64> {
    let k = matrix.len();
    let beaten_by = |i: usize| (0..k).filter(move |&j| matrix[i][j] < 0.5);
    let subsets = |set: Vec<usize>, size: usize| -> Vec<Vec<usize>> {
        let members = |bits: u32| set.iter().enumerate().filter(move |(n, _)| bits >> n & 1 == 1);
        (0..1_u32 << set.len())
            .filter(|bits| bits.count_ones() as usize == size)
            .map(|bits| members(bits).map(|(_, &j)| j).collect())
            .collect()
    };
    let losses = |i: usize| beaten_by(i).count();
    let mut sorted: Vec<usize> = (0..k).map(losses).collect();
    sorted.sort_unstable();
    let (first, second) = (sorted[0], sorted[1]);
    let mut least: Option<f64> = None;
    for i2 in (0..k).filter(|&i2| i2 != i1) {
        for l in first.saturating_sub(1)..=second {
            let inferiors = (0..k).filter(|&j| matrix[i1][j] > 0.5).collect();
            for own in subsets(inferiors, l + 1 - first) {
                let lost = losses(i2) as i64 - l as i64 - i64::from(own.contains(&i2));
                let theirs = beaten_by(i2).filter(|&j| j != i1).collect();
                for theirs in subsets(theirs, lost.max(0) as usize) {
                    let sum: f64 = own.iter().map(|&j| x[i1][j]).sum::<f64>()
                        + theirs.iter().map(|&j| x[i2][j]).sum::<f64>();
                    least = Some(least.map_or(sum, |least| least.min(sum)));
                }
            }
        }
    }
    least
}

#[test]
fn the_binding_constraint_is_the_smallest_of_all() {
    let mut rng = rng(81);
    for _ in 0..300 {
        let k = rng.random_range(2..6);
        let mut matrix = vec![vec![0.5; k]; k];
        let mut x = vec![vec![0.0; k]; k];
        for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
            matrix[i][j] = if rng.random() { 0.3 } else { 0.7 };
            matrix[j][i] = 1.0 - matrix[i][j];
            x[i][j] = rng.random();
            x[j][i] = x[i][j];
        }
        let rows: Vec<&[f64]> = matrix.iter().map(Vec::as_slice).collect();
        let tournament = of(&rows);
        for i1 in tournament.candidates() {
            // without constraints, everything is feasible
            let expected = smallest_by_enumeration(&rows, i1, &x).unwrap_or(1.0);
            assert_close(tournament.least_evidence(i1, |i, j| x[i][j]), expected);
            // the plan meets all constraints
            let plan = tournament.efficient_plan(i1);
            let amounts =
                |i: usize, j: usize| plan.comparisons(i, j) * divergence::from_half(matrix[i][j]);
            assert!(tournament.least_evidence(i1, amounts) >= 1.0 - 1e-7);
        }
    }
}
