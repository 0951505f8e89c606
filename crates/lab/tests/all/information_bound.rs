//! The least to a verdict, against closed forms and the linear program with all truths.

use dueling_bandits::math::divergence::between;
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use lab::simulate::information_bound;
use microlp::{ComparisonOp, OptimizationDirection, Problem};

/// Two rankers: one pair, so the least number of duels is `1 / d(p, 1/2)` for each nat. Each
/// costs half of the regret of the worse ranker, which is 1.
#[test]
fn two_rankers() {
    let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.6).unwrap();
    let bound = information_bound(&matrix, 0.05, 0.0).unwrap();
    let expected = between(0.05, 0.95) / between(0.6, 0.5);
    assert!((bound.duels / expected - 1.0).abs() < 1e-6, "{bound:?} {expected}");
    assert!((bound.regret / expected - 0.5).abs() < 1e-6, "{bound:?} {expected}");
}

/// Two even winners cannot be told apart without a margin.
#[test]
fn two_even_winners() {
    let matrix = PreferenceMatrix::from_pairs(2, |_, _| 0.5).unwrap();
    assert_eq!(information_bound(&matrix, 0.05, 0.0), None);
    assert!(information_bound(&matrix, 0.05, 0.02).is_some());
}

/// Three rankers: 0 beats 1 and 2, and 1 beats 2. For 1 to be better it must beat 0, at a
/// distance of `s d`. For 2 to be better it must beat 0, and beat 1 or have 1 beat 0, at a
/// distance of `t d + min(r e, s d)`. So it is best to spend nothing on the pair of 0 and 2. A
/// duel of 0 and 1 costs a regret of 1/4, one of 0 and 2 costs 1/2, and one of 1 and 2 costs
/// 3/4.
#[test]
fn three_rankers() {
    let beats = |i: usize, j: usize| if (i, j) == (1, 2) { 0.8 } else { 0.7 };
    let matrix = PreferenceMatrix::from_pairs(3, beats).unwrap();
    let (d, e) = (between(0.7, 0.5), between(0.8, 0.5));
    let expected = between(0.05, 0.95) * (1.0 / d + 1.0 / e);
    let bound = information_bound(&matrix, 0.05, 0.0).unwrap();
    assert!((bound.duels / expected - 1.0).abs() < 1e-3, "{bound:?} {expected}");
    // `s d` is 1, and so is `r e` or `t d`, whichever is cheaper
    let of_regret = between(0.05, 0.95) * (0.25 / d + f64::min(0.75 / e, 0.5 / d));
    assert!((bound.regret / of_regret - 1.0).abs() < 1e-3, "{bound:?} {of_regret}");
}

/// Four rankers in a cycle, with a constraint for each set of pairs that moves.
#[test]
fn the_bound_is_the_optimum_over_all_truths() {
    let beats = |i: usize, j: usize| if (i, j) == (0, 2) { 0.35 } else { 0.65 + 0.02 * j as f64 };
    let matrix = PreferenceMatrix::from_pairs(4, beats).unwrap();
    let regret = Regret::copeland(&matrix);
    for margin in [0.0, 0.05] {
        let bound = information_bound(&matrix, 0.05, margin).unwrap();
        let least = |price: &dyn Fn(usize, usize) -> f64| {
            let of_answer = |a| by_trying(&matrix, a, margin, price);
            between(0.05, 0.95) * (0..4).filter_map(of_answer).fold(f64::INFINITY, f64::min)
        };
        let (duels, cost) = (least(&|_, _| 1.0), least(&|x, y| regret.of_step(x, y)));
        assert!((bound.duels / duels - 1.0).abs() < 1e-3, "{bound:?} {duels}");
        assert!((bound.regret / cost - 1.0).abs() < 1e-3, "{bound:?} {cost}");
    }
}

/// The least price of duels with which every truth in which the answer `a` is wrong has a distance
/// of 1 or more; `None` if `a` is wrong. In a truth each pair stays, or moves to `1/2 - margin` or
/// `1/2 + margin`, just across.
fn by_trying(
    matrix: &PreferenceMatrix,
    a: usize,
    margin: f64,
    price: impl Fn(usize, usize) -> f64,
) -> Option<f64> {
    let pairs: Vec<(usize, usize)> = (0..4).flat_map(|y| (0..y).map(move |x| (x, y))).collect();
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let duels: Vec<_> =
        pairs.iter().map(|&(x, y)| problem.add_var(price(x, y), (0.0, f64::INFINITY))).collect();
    for code in 0..3_usize.pow(6) {
        let (mut upper, mut lower, mut terms) = ([0; 4], [0; 4], Vec::new());
        for (at, &(x, y)) in pairs.iter().enumerate() {
            let p = matrix.win_probability(x, y);
            // x at least as good as the margin allows, y likewise; x and y sure winners
            let (target, sure_x, sure_y) = match code / 3_usize.pow(at as u32) % 3 {
                0 => (p, p >= 0.5 + margin && p > 0.5, p <= 0.5 - margin && p < 0.5),
                1 => (0.5 + margin, true, false),
                _ => (0.5 - margin, false, true),
            };
            terms.push((duels[at], between(p, target)));
            upper[x] += usize::from(!sure_y);
            upper[y] += usize::from(!sure_x);
            lower[x] += usize::from(sure_x);
            lower[y] += usize::from(sure_y);
        }
        if (0..4).any(|j| j != a && lower[j] > upper[a]) {
            if terms.iter().all(|term| term.1 == 0.0) {
                return None;
            }
            problem.add_constraint(terms, ComparisonOp::Ge, 1.0);
        }
    }
    Some(problem.solve().unwrap().into_solution().unwrap().objective())
}
