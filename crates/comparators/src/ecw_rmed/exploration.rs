//! How often each pair must be compared to be certain of a Copeland winner: the optimum of ECW-RMED
//! (`lab/notes/comparators.md` §7).
//!
//! Amounts are `x[i][j] = q[i][j] d(ν[i][j])` in `[0, 1]`. An amount of 1 is the most evidence that
//! is ever needed to decide which ranker of the pair is better.

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
    /// `R_{i1}` iff the result is at least 1. A constraint is built from the smallest amounts that
    /// it can contain.
    pub fn least_evidence(&self, i1: usize, x: impl Fn(usize, usize) -> f64) -> f64 {
        let sorted = |i: usize, others: &[usize], without: usize| -> Vec<f64> {
            let others = others.iter().filter(|&&j| j != without);
            let mut amounts: Vec<f64> = others.map(|&j| x(i, j)).collect();
            amounts.sort_by(f64::total_cmp);
            amounts
        };
        let (first, second) = self.least;
        let mut least: Option<f64> = None;
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
                    let chosen = own[..from_own].iter().chain(&theirs[..from_theirs]);
                    let extra = if inside { x(i1, i2) } else { 0.0 };
                    let sum = extra + chosen.sum::<f64>();
                    least = Some(least.map_or(sum, |least| least.min(sum)));
                }
            }
        }
        least.unwrap_or(1.0)
    }

    /// `C^E*_{i1}`: the optimum, in closed form.
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
}
