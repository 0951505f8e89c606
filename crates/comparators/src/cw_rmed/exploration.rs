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
                // `I` is a set of rankers that i1 beats, (a) without i2 or (b) with i2
                let flipped = l + 1 - first; // |I|; l starts at first - 1 or 0
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
