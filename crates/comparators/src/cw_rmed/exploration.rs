//! How often each pair must be compared to be certain of a Copeland winner: the optima of CW-RMED
//! and ECW-RMED (`lab/notes/comparators.md` §7).
//!
//! Amounts are `x[i][j] = q[i][j] d(ν[i][j])` in `[0, 1]`. An amount of 1 is the most evidence that
//! is ever needed to decide which ranker of the pair is better.

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, Variable};

/// A tournament: which ranker beats which, by how much, and the cost of each duel.
#[derive(Debug)]
pub struct Tournament {
    rankers: usize,
    /// `d(ν[i][j])`, row-major and symmetric; 0 if neither ranker is better.
    divergence: Vec<f64>,
    /// `S_i`: the rankers that beat `i`.
    superiors: Vec<Vec<usize>>,
    /// `I_i`: the rankers that `i` beats.
    inferiors: Vec<Vec<usize>>,
    /// `L(1)` and `L(2)`: the smallest and second smallest number of superiors over all rankers.
    least: (usize, usize),
}

/// How often to compare each pair, and the cost.
#[derive(Debug, Clone)]
pub struct Plan {
    rankers: usize,
    /// `q`, row-major and symmetric, in comparisons per `ln t`.
    comparisons: Vec<f64>,
    /// `Σ r q` over unordered pairs.
    pub cost: f64,
}

impl Plan {
    /// `q[i][j]`.
    pub fn comparisons(&self, i: usize, j: usize) -> f64 {
        self.comparisons[i * self.rankers + j]
    }

    fn none(rankers: usize) -> Self {
        Self { rankers, comparisons: vec![0.0; rankers * rankers], cost: 0.0 }
    }

    fn set(&mut self, i: usize, j: usize, comparisons: f64, regret: f64) {
        self.comparisons[i * self.rankers + j] = comparisons;
        self.comparisons[j * self.rankers + i] = comparisons;
        self.cost += regret * comparisons;
    }
}

/// One constraint of the CW feasible set: the `x` of these pairs sum to at least 1.
#[derive(Debug, Clone, PartialEq)]
struct Constraint {
    sum: f64,
    pairs: Vec<(usize, usize)>,
}

impl Tournament {
    /// `divergence(i, j)` is `d(ν[i][j])`; `beats(i, j)` is whether `ν[i][j] > 1/2`.
    pub fn new(
        rankers: usize,
        divergence: impl Fn(usize, usize) -> f64,
        beats: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let all = 0..rankers;
        let superiors: Vec<Vec<_>> =
            all.clone().map(|i| all.clone().filter(|&j| j != i && beats(j, i)).collect()).collect();
        let inferiors =
            all.clone().map(|i| all.clone().filter(|&j| j != i && beats(i, j)).collect()).collect();
        let divergence = all
            .clone()
            .flat_map(|i| all.clone().map(move |j| (i, j)))
            .map(|(i, j)| if i == j { 0.0 } else { divergence(i, j) })
            .collect();
        let mut losses: Vec<_> = superiors.iter().map(Vec::len).collect();
        losses.sort_unstable();
        let least = (losses[0], losses[1]);
        Self { rankers, divergence, superiors, inferiors, least }
    }

    /// `Ĉ`: the Copeland winners, ascending.
    pub fn candidates(&self) -> impl Iterator<Item = usize> {
        (0..self.rankers).filter(|&i| self.losses(i) == self.least.0)
    }

    /// `L_i`.
    fn losses(&self, i: usize) -> usize {
        self.superiors[i].len()
    }

    fn divergence(&self, i: usize, j: usize) -> f64 {
        self.divergence[i * self.rankers + j]
    }

    /// `r[i][j]`, the Copeland regret of a duel.
    fn regret(&self, i: usize, j: usize) -> f64 {
        let lost = self.losses(i) + self.losses(j) - 2 * self.least.0;
        lost as f64 / (2 * (self.rankers - 1)) as f64
    }

    /// The smallest constraint sum of `R_{i1}` at `x`; 1 if there are no constraints. `x` is in
    /// `R_{i1}` iff the result is at least 1.
    pub fn least_evidence(&self, i1: usize, x: impl Fn(usize, usize) -> f64) -> f64 {
        self.binding(i1, x).map_or(1.0, |constraint| constraint.sum)
    }

    /// The constraint of `R_{i1}` with the smallest sum, built from the smallest amounts that it
    /// can contain.
    fn binding(&self, i1: usize, x: impl Fn(usize, usize) -> f64) -> Option<Constraint> {
        let sorted = |i: usize, others: &[usize], without: usize| -> Vec<(f64, (usize, usize))> {
            let amounts = others.iter().filter(|&&j| j != without).map(|&j| (x(i, j), (i, j)));
            let mut amounts: Vec<_> = amounts.collect();
            amounts.sort_by(|a, b| a.0.total_cmp(&b.0));
            amounts
        };
        let (first, second) = self.least;
        let mut least: Option<Constraint> = None;
        for i2 in (0..self.rankers).filter(|&i2| i2 != i1) {
            let own = sorted(i1, &self.inferiors[i1], i2);
            let theirs = sorted(i2, &self.superiors[i2], i1);
            let beats = self.inferiors[i1].contains(&i2);
            for l in first.saturating_sub(1)..=second {
                // (a) i2 ∉ I, (b) i2 ∈ I
                let flipped = l + 1 - first; // l starts at first - 1 or 0
                let cases = [(false, flipped), (true, flipped.wrapping_sub(1))];
                for (inside, from_own) in cases {
                    if inside && !(beats && flipped >= 1) {
                        continue;
                    }
                    let from_theirs = self.losses(i2).saturating_sub(l + usize::from(inside));
                    if from_own > own.len() || from_theirs > theirs.len() {
                        continue;
                    }
                    let chosen = || own[..from_own].iter().chain(&theirs[..from_theirs]);
                    let extra = if inside { x(i1, i2) } else { 0.0 };
                    let sum = extra + chosen().map(|(amount, _)| amount).sum::<f64>();
                    if least.as_ref().is_none_or(|least| sum < least.sum) {
                        let mut pairs: Vec<_> = chosen().map(|&(_, pair)| pair).collect();
                        pairs.extend(inside.then_some((i1, i2)));
                        least = Some(Constraint { sum, pairs });
                    }
                }
            }
        }
        least
    }

    /// `C^E*_{i1}`: the optimum of ECW-RMED, in closed form.
    pub fn efficient_plan(&self, i1: usize) -> Plan {
        let mut plan = Plan::none(self.rankers);
        for &j in &self.inferiors[i1] {
            plan.set(i1, j, 1.0 / self.divergence(i1, j), self.regret(i1, j));
        }
        for i2 in (0..self.rankers).filter(|&i2| i2 != i1) {
            let superiors = || self.superiors[i2].iter().copied().filter(|&j| j != i1);
            let needed = self.losses(i2) - self.losses(i1) + 1;
            let Some(spare) = superiors().count().checked_sub(needed) else { continue };
            let mut prices: Vec<_> =
                superiors().map(|j| (self.regret(j, i2) / self.divergence(j, i2), j)).collect();
            prices.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut best: Option<(f64, usize)> = None;
            let mut sum = 0.0;
            for (at, (price, _)) in prices.iter().enumerate() {
                sum += price;
                if at >= spare {
                    let mean = sum / (at + 1 - spare) as f64;
                    if best.is_none_or(|(least, _)| mean < least) {
                        best = Some((mean, at + 1));
                    }
                }
            }
            let Some((_, used)) = best else { continue };
            for &(_, j) in &prices[..used] {
                let comparisons = 1.0 / ((used - spare) as f64 * self.divergence(j, i2));
                plan.set(j, i2, comparisons, self.regret(j, i2));
            }
        }
        plan
    }

    /// `C*_{i1}`: the optimum of CW-RMED. It is a linear program; constraints are added when they
    /// are violated. If the solver fails, returns the plan of [`Tournament::efficient_plan`], which
    /// meets all constraints at a higher cost.
    pub fn optimal_plan(&self, i1: usize) -> Plan {
        self.solve(i1).unwrap_or_else(|| self.efficient_plan(i1))
    }

    fn solve(&self, i1: usize) -> Option<Plan> {
        let mut problem = Problem::new(OptimizationDirection::Minimize);
        let mut variables: Vec<Option<Variable>> = vec![None; self.rankers * self.rankers];
        for (i, j) in self.decided_pairs() {
            let variable = problem.add_var(self.regret(i, j) / self.divergence(i, j), (0.0, 1.0));
            variables[i * self.rankers + j] = Some(variable);
            variables[j * self.rankers + i] = Some(variable);
        }
        let variable = |(i, j): (usize, usize)| variables[i * self.rankers + j];
        let mut options = SolveOptions::default();
        options.tolerances.feasibility = 1e-10;
        let mut amounts = vec![0.0; self.rankers * self.rankers];
        let mut known: Vec<Constraint> = Vec::new();
        while let Some(violated) = self.binding(i1, |i, j| amounts[i * self.rankers + j]) {
            if violated.sum >= 1.0 - 1e-8 {
                break;
            }
            // a repeated constraint is met as well as the solver can
            if known.iter().any(|constraint| constraint.pairs == violated.pairs) {
                return None;
            }
            let terms: Option<Vec<_>> =
                violated.pairs.iter().map(|&pair| Some((variable(pair)?, 1.0))).collect();
            problem.add_constraint(terms?, ComparisonOp::Ge, 1.0);
            known.push(violated);
            let solution = problem.solve_with(options.clone()).ok()?.into_solution().ok()?;
            for (amount, variable) in amounts.iter_mut().zip(&variables) {
                *amount = variable.map_or(0.0, |variable| solution.var_value(variable));
            }
        }
        let mut plan = Plan::none(self.rankers);
        for (i, j) in self.decided_pairs() {
            let comparisons = amounts[i * self.rankers + j] / self.divergence(i, j);
            plan.set(i, j, comparisons, self.regret(i, j));
        }
        Some(plan)
    }

    /// The pairs `i > j` in which one ranker is better.
    fn decided_pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let pairs = (0..self.rankers).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.filter(|&(i, j)| self.divergence(i, j) > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dueling_bandits::math::divergence;

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

    fn assert_plan(plan: &Plan, cost: f64, expected: &[(usize, usize, f64)]) {
        assert_close(plan.cost, cost);
        for i in 0..plan.rankers {
            for j in 0..i {
                let comparisons = expected
                    .iter()
                    .find(|pair| (pair.0, pair.1) == (i, j))
                    .map_or(0.0, |pair| pair.2);
                let found = plan.comparisons(i, j);
                assert!(
                    (found - comparisons).abs() < 1e-4,
                    "q[{i}][{j}] is {found}, expected {comparisons}"
                );
            }
        }
    }

    const CYCLIC_4: &[&[f64]] = &[
        &[0.5, 0.6, 0.6, 0.6],
        &[0.4, 0.5, 0.9, 0.1],
        &[0.4, 0.1, 0.5, 0.9],
        &[0.4, 0.9, 0.1, 0.5],
    ];
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
    fn a_condorcet_winner_with_a_cycle_below() {
        let cyclic = of(CYCLIC_4);
        assert_eq!(cyclic.candidates().collect::<Vec<_>>(), [0]);
        let each = 49.663496;
        assert_plan(
            &cyclic.efficient_plan(0),
            49.663496,
            &[(1, 0, each), (2, 0, each), (3, 0, each)],
        );
        let plan = cyclic.optimal_plan(0);
        let half_cycle = 0.5 / divergence::from_half(0.9);
        let mut expected: Vec<_> = (1..4).map(|i| (i, 0, each / 2.0)).collect();
        expected.extend([(2, 1, half_cycle), (3, 1, half_cycle), (3, 2, half_cycle)]);
        assert_plan(&plan, 27.548665, &expected);
    }

    #[test]
    fn a_large_gap_between_the_two() {
        let gap = of(GAP);
        assert_eq!(gap.candidates().collect::<Vec<_>>(), [0]);
        let q = 5.188209;
        assert_plan(
            &gap.efficient_plan(0),
            1252.510763,
            &[(1, 0, q), (2, 0, q), (4, 1, q), (3, 0, 4999.666627)],
        );
        assert_close(gap.optimal_plan(0).cost, 11.024943);
    }

    #[test]
    fn several_winners() {
        let multi = of(MULTI_SOL);
        assert_eq!(multi.candidates().collect::<Vec<_>>(), [0, 1, 2]);
        for i1 in 0..3 {
            assert_close(multi.efficient_plan(i1).cost, 3.242630);
            assert_close(multi.optimal_plan(i1).cost, 3.242630);
        }
        let q = 5.188209;
        assert_plan(
            &multi.efficient_plan(0),
            3.242630,
            &[(2, 0, q), (2, 1, q), (3, 0, q), (4, 0, q)],
        );
    }

    #[test]
    fn the_plan_is_for_the_winner_that_is_cheapest_to_identify() {
        let mslr = of(MSLR_5);
        assert_eq!(mslr.candidates().collect::<Vec<_>>(), [0, 1, 2]);
        for (i1, cost) in [(0, 727.127847), (1, 261.954469), (2, 9114.374982)] {
            assert_close(mslr.efficient_plan(i1).cost, cost);
            let optimum = mslr.optimal_plan(i1).cost;
            assert!((optimum - cost).abs() < 1e-5 * cost, "{optimum}, expected {cost}");
        }
        assert_plan(
            &mslr.efficient_plan(1),
            261.954469,
            &[(1, 0, 1952.7916), (2, 0, 1384.7081), (3, 1, 555.2219), (4, 1, 328.3973)],
        );
    }

    /// The smallest constraint of the feasible set, by enumeration of all constraints.
    fn smallest_by_enumeration(tournament: &Tournament, i1: usize, x: &[Vec<f64>]) -> Option<f64> {
        let subsets = |set: Vec<usize>, size: usize| -> Vec<Vec<usize>> {
            (0..1_u32 << set.len())
                .filter(|bits| bits.count_ones() as usize == size)
                .map(|bits| {
                    set.iter()
                        .enumerate()
                        .filter(|(n, _)| bits >> n & 1 == 1)
                        .map(|(_, &j)| j)
                        .collect()
                })
                .collect()
        };
        let (first, second) = tournament.least;
        let mut least: Option<f64> = None;
        for i2 in (0..tournament.rankers).filter(|&i2| i2 != i1) {
            for l in first.saturating_sub(1)..=second {
                for own in subsets(tournament.inferiors[i1].clone(), l + 1 - first) {
                    let losses =
                        tournament.losses(i2) as i64 - l as i64 - i64::from(own.contains(&i2));
                    let theirs =
                        tournament.superiors[i2].iter().copied().filter(|&j| j != i1).collect();
                    for theirs in subsets(theirs, losses.max(0) as usize) {
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
        use rand::{RngExt, SeedableRng};
        let mut rng = dueling_bandits::PolicyRng::seed_from_u64(81);
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
                let found = tournament.binding(i1, |i, j| x[i][j]).map(|constraint| constraint.sum);
                let expected = smallest_by_enumeration(&tournament, i1, &x);
                match (found, expected) {
                    (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12),
                    (found, expected) => assert_eq!(found, expected),
                }
                // both plans meet all constraints, and the optimum costs no more
                let (efficient, optimal) =
                    (tournament.efficient_plan(i1), tournament.optimal_plan(i1));
                for plan in [&efficient, &optimal] {
                    let amounts =
                        |i: usize, j: usize| plan.comparisons(i, j) * tournament.divergence(i, j);
                    assert!(tournament.least_evidence(i1, amounts) >= 1.0 - 1e-7);
                }
                assert!(optimal.cost <= efficient.cost * (1.0 + 1e-9) + 1e-9);
            }
        }
    }
}
