//! How many duels a verdict takes at least, and how much regret, whatever policy and rule.
//!
//! Let a procedure be wrong in at most a share `δ` of experiments, and `n_ij` the mean number of
//! its duels of each pair. For its answer `a` and for all preferences `q` under which `a` is wrong,
//!
//! ```text
//! Σ n_ij d(p_ij, q_ij) ≥ d(δ, 1 - δ)
//! ```
//!
//! with the divergence `d` of two Bernoulli distributions (Garivier & Kaufmann, "Optimal best arm
//! identification with fixed confidence", COLT 2016, Theorem 1 and Lemma 1; with several right
//! answers the bound holds as `δ` goes to 0: Degenne & Koolen, NeurIPS 2019). So the least sum of
//! the `n_ij` that satisfy this is a bound of the duels, and the least sum of `n_ij` times the
//! regret of a duel is a bound of the regret up to the verdict. The least over all right answers is
//! taken.
//!
//! Under `q`, `a` is wrong if it beats fewer rankers than some `j` surely beats, where pairs within
//! the margin count for both ([`dueling_bandits::evidence::certificate::CopelandRule::new`]). The
//! nearest such `q` moves pairs of `a` and pairs of `j` just across the margin, so it is a set of
//! pairs with a divergence each, found by sorting. The least sum is a linear program to which such
//! sets are added until none is violated.

use dueling_bandits::math::divergence;
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use microlp::{ComparisonOp, OptimizationDirection, Problem};
use serde::Serialize;

/// A constraint is violated if its sum is below 1 by more than this.
const GAP: f64 = 1e-4;
/// The linear program is solved at most so many times before the search ends without a result.
const MOST_ROUNDS: usize = 2_000;

/// The smallest cost of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Least {
    /// Mean number of duels. Self-duels bring no evidence and are not included.
    pub duels: f64,
    /// Mean Copeland regret, of the duels that are chosen so that the regret is least.
    pub regret: f64,
}

/// The least cost of a verdict with this error and margin. `None` if no number of duels is enough,
/// as with two even winners without a margin, or if a linear program was not solved.
pub fn information_bound(matrix: &PreferenceMatrix, error: f64, margin: f64) -> Option<Least> {
    let divergences = Divergences::new(matrix, margin);
    let regret = Regret::copeland(matrix);
    let needed = divergence::between(error, 1.0 - error);
    let least = |price: &dyn Fn(usize, usize) -> f64| {
        let right = (0..matrix.rankers()).filter(|&a| divergences.is_right(a));
        let sums = right.map(|a| divergences.least_cost(a, price)).collect::<Option<Vec<f64>>>()?;
        let least = sums.into_iter().fold(f64::INFINITY, f64::min);
        least.is_finite().then_some(needed * least)
    };
    Some(Least { duels: least(&|_, _| 1.0)?, regret: least(&|x, y| regret.of_step(x, y))? })
}

/// The cost of moving each pair across the margin.
struct Divergences {
    rankers: usize,
    /// By `x * K + y`: the divergence to preferences under which x no longer beats y, not even
    /// within the margin; `None` where that is so already.
    not_beating: Vec<Option<f64>>,
    /// The same for preferences under which x surely beats y.
    surely_beating: Vec<Option<f64>>,
}

/// The move of a pair `x < y` across the margin, and the divergence that it takes.
#[derive(Clone, Copy)]
struct Move {
    x: usize,
    y: usize,
    divergence: f64,
}

/// Moves of pairs that make an answer wrong: a constraint of the linear program.
type Cut = Vec<Move>;

impl Divergences {
    fn new(matrix: &PreferenceMatrix, margin: f64) -> Self {
        let k = matrix.rankers();
        let of = |distance: &dyn Fn(f64) -> Option<f64>| {
            let pairs = (0..k).flat_map(|x| (0..k).map(move |y| (x, y)));
            pairs.map(|(x, y)| distance(matrix.win_probability(x, y))).collect()
        };
        let (low, high) = (0.5 - margin, 0.5 + margin);
        Self {
            rankers: k,
            not_beating: of(&|p| (p > low).then(|| divergence::between(p, low))),
            surely_beating: of(&|p| (p < high || p == 0.5).then(|| divergence::between(p, high))),
        }
    }

    /// The number of rankers that `a` beats if all pairs within the margin go its way.
    fn upper(&self, a: usize) -> usize {
        self.others(a).filter(|&y| self.not_beating[a * self.rankers + y].is_some()).count()
    }

    /// The number of rankers that `j` surely beats.
    fn lower(&self, j: usize) -> usize {
        self.others(j).filter(|&x| self.surely_beating[j * self.rankers + x].is_none()).count()
    }

    fn others(&self, a: usize) -> impl Iterator<Item = usize> {
        (0..self.rankers).filter(move |&x| x != a)
    }

    fn is_right(&self, a: usize) -> bool {
        self.others(a).all(|j| self.lower(j) <= self.upper(a))
    }

    /// Find the cheapest duel counts that rule out every alternative. An alternative is a set of
    /// preferences under which the answer `a` is wrong. It is ruled out when its distance, the sum
    /// of duels × divergence over the pairs, is at least 1. Returns the sum of price × duels over
    /// all pairs: infinite if no number of duels rules out some alternative, `None` if a linear
    /// program was not solved or [`MOST_ROUNDS`] were too few.
    fn least_cost(&self, a: usize, price: impl Fn(usize, usize) -> f64) -> Option<f64> {
        let pairs: Vec<(usize, usize)> =
            (0..self.rankers).flat_map(|y| (0..y).map(move |x| (x, y))).collect();
        let place = |x: usize, y: usize| y * (y - 1) / 2 + x;
        let prices: Vec<f64> = pairs.iter().map(|&(x, y)| price(x, y)).collect();
        // start with almost no duels, so that every constraint is violated
        let mut duels = vec![f64::EPSILON; pairs.len()];
        let mut cuts: Vec<Cut> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let found: Vec<(f64, Cut)> =
                self.others(a).filter_map(|j| self.nearest(a, j, &duels, place)).collect();
            let violated = found.into_iter().filter(|(distance, _)| *distance < 1.0 - GAP);
            let before = cuts.len();
            cuts.extend(violated.map(|(_, cut)| cut));
            if cuts.len() == before {
                return Some(duels.iter().zip(&prices).map(|(duels, price)| duels * price).sum());
            }
            if cuts.iter().any(|cut| cut.iter().all(|pair| pair.divergence == 0.0)) {
                return Some(f64::INFINITY);
            }
            duels = cheapest_duels(&cuts, &prices, place)?;
        }
        None
    }

    /// The nearest preferences under which `j` surely beats more rankers than `a` can, and their
    /// distance: pairs with their divergences. `None` if there are none.
    fn nearest(
        &self,
        a: usize,
        j: usize,
        duels: &[f64],
        place: impl Fn(usize, usize) -> usize,
    ) -> Option<(f64, Cut)> {
        let k = self.rankers;
        let needed = (self.upper(a) + 1).saturating_sub(self.lower(j));
        // the move of a pair, with its distance: duels × divergence
        let step = |x: usize, y: usize, divergence: f64| {
            let (x, y) = (x.min(y), x.max(y));
            (duels[place(x, y)] * divergence, Move { x, y, divergence })
        };
        let mut single: Vec<(f64, Move)> = Vec::new();
        for x in (0..k).filter(|&x| x != a && x != j) {
            single.extend(self.not_beating[a * k + x].map(|d| step(a, x, d)));
            single.extend(self.surely_beating[j * k + x].map(|d| step(j, x, d)));
        }
        single.sort_by(|one, other| one.0.total_cmp(&other.0));
        let with = |first: Option<(f64, Move)>, points: usize| {
            let rest = needed.saturating_sub(points);
            (single.len() >= rest).then(|| {
                let taken: Vec<_> =
                    first.into_iter().chain(single[..rest].iter().copied()).collect();
                let distance: f64 = taken.iter().map(|(distance, _)| distance).sum();
                (distance, taken.into_iter().map(|(_, pair)| pair).collect::<Cut>())
            })
        };
        // the pair of the two counts for both: once `a` no longer beats `j`, twice once `j` surely
        // beats `a`
        let loses = self.not_beating[a * k + j].map(|d| step(a, j, d));
        let beaten = self.surely_beating[j * k + a].map(|d| step(a, j, d));
        let both = beaten.and_then(|beaten| with(Some(beaten), 1 + usize::from(loses.is_some())));
        let once = loses.and_then(|loses| with(Some(loses), 1));
        [with(None, 0), once, both]
            .into_iter()
            .flatten()
            .min_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// The cheapest duels with which the distance of every set is 1 or more.
fn cheapest_duels(
    cuts: &[Cut],
    prices: &[f64],
    place: impl Fn(usize, usize) -> usize,
) -> Option<Vec<f64>> {
    // distances are small numbers: as multiples of the largest one the program is well scaled
    let scale = cuts.iter().flatten().map(|pair| pair.divergence).fold(0.0, f64::max);
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let duels: Vec<_> =
        prices.iter().map(|&price| problem.add_var(price, (0.0, f64::INFINITY))).collect();
    for cut in cuts {
        let terms = cut.iter().map(|it| (duels[place(it.x, it.y)], it.divergence / scale));
        problem.add_constraint(terms, ComparisonOp::Ge, 1.0);
    }
    let solution = problem.solve().ok()?.into_solution().ok()?;
    Some(duels.iter().map(|&count| solution.var_value(count).max(0.0) / scale).collect())
}
