//! The best rankers, under each notion of best (`P` is the matrix, `K` its number of rankers).
//!
//! | notion | the winner | exists |
//! | --- | --- | --- |
//! | Copeland | beats the most others with `P > 1/2` | always, perhaps several |
//! | Condorcet | beats all others | not always |
//! | Borda | has the largest mean `P` against the others | always |
//! | random walk | is visited most by a walk that moves to a better ranker more often | always |
//! | von Neumann | a mixed strategy that no ranker beats in expectation | always |
//!
//! Scores that differ by rounding alone are level: see [`LEVEL`].
//!
//! Sources: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015 (Copeland,
//! Condorcet, and the comparison of all five); Dudík et al., "Contextual Dueling Bandits", COLT
//! 2015 (von Neumann); Negahban, Oh and Shah, "Iterative ranking from pair-wise comparisons", NIPS
//! 2012 (the walk).

use crate::preference::matrix::PreferenceMatrix;

/// The share of the best score within which another is level with it. The entries are exact to
/// [`TOLERANCE`](super::matrix::TOLERANCE) only, and their sums depend on the order of rankers in
/// the last digits.
pub const LEVEL: f64 = 1e-9;

/// The von Neumann winner could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the linear program of the von Neumann winner was not solved: rounding keeps it from an end"
)]
pub struct Unsolved;

impl PreferenceMatrix {
    /// The number of others that each ranker beats: `Cpld(i)`, from 0 to `K - 1`. Ties do not
    /// count.
    pub fn copeland_scores(&self) -> Vec<usize> {
        let k = self.rankers();
        (0..k).map(|i| (0..k).filter(|&j| self.beats(i, j)).count()).collect()
    }

    /// The rankers with the largest Copeland score, in ascending order; never empty.
    pub fn copeland_winners(&self) -> Vec<usize> {
        leaders(&self.copeland_scores().iter().map(|&score| score as f64).collect::<Vec<_>>())
    }

    /// The ranker that beats all others, if there is one.
    pub fn condorcet_winner(&self) -> Option<usize> {
        let k = self.rankers();
        (0..k).find(|&i| (0..k).all(|j| j == i || self.beats(i, j)))
    }

    /// Mean `P[i][j]` over the others `j`.
    pub fn borda_scores(&self) -> Vec<f64> {
        let k = self.rankers();
        let others = (k - 1) as f64;
        let score = |i: usize| -> f64 {
            (0..k).filter(|&j| j != i).map(|j| self.win_probability(i, j)).sum::<f64>() / others
        };
        (0..k).map(score).collect()
    }

    /// The rankers with the largest Borda score, in ascending order; never empty.
    pub fn borda_winners(&self) -> Vec<usize> {
        leaders(&self.borda_scores())
    }

    /// The smallest set of rankers each of which beats every ranker outside it (the Smith set), in
    /// ascending order.
    pub fn smith_set(&self) -> Vec<usize> {
        let k = self.rankers();
        let mut inside = vec![false; k];
        // a Copeland winner is always in the set, and so is every ranker that a member does not
        // beat
        let mut open = vec![self.copeland_winners()[0]];
        inside[open[0]] = true;
        while let Some(member) = open.pop() {
            for (other, inside) in inside.iter_mut().enumerate() {
                if !*inside && !self.beats(member, other) {
                    *inside = true;
                    open.push(other);
                }
            }
        }
        (0..k).filter(|&i| inside[i]).collect()
    }

    /// Stationary distribution of the walk that, at `i`, draws `j ≠ i` uniformly and moves to `j`
    /// with probability `P[j][i]`. It is unique: of any two rankers at least one can be reached
    /// from the other.
    ///
    /// Computed by state reduction (Grassmann, Taksar and Heyman, 1985), which has no subtractions
    /// and so loses no digits; O(K³).
    pub fn random_walk_distribution(&self) -> Vec<f64> {
        let k = self.rankers();
        // rates instead of probabilities: the factor 1/(K - 1) cancels
        let mut rate: Vec<f64> =
            (0..k * k).map(|at| self.win_probability(at % k, at / k)).collect();
        let mut leaving = vec![0.0; k];
        let mut root = 0;
        for n in (1..k).rev() {
            leaving[n] = rate[n * k..n * k + n].iter().sum();
            if leaving[n] == 0.0 {
                // no lower state is reached from here: the lower states are transient
                root = n;
                break;
            }
            for i in 0..n {
                let through = rate[i * k + n] / leaving[n];
                for j in 0..n {
                    rate[i * k + j] += through * rate[n * k + j];
                }
            }
        }
        let mut weight = vec![0.0; k];
        weight[root] = 1.0;
        for n in root + 1..k {
            weight[n] = (0..n).map(|i| weight[i] * rate[i * k + n]).sum::<f64>() / leaving[n];
        }
        let total: f64 = weight.iter().sum();
        weight.iter().map(|w| w / total).collect()
    }

    /// Stationary distribution of the walk whose steps are the rows of `P` transposed, each divided
    /// by its sum: from `i` to `j` with probability `P[j][i] / Σ_k P[k][i]`, where the sum includes
    /// the diagonal, 1/2. It leaves a weak ranker as fast as a strong one, up to the diagonal.
    ///
    /// The walk of [`Self::random_walk_distribution`] stays longer at strong rankers; its times
    /// between moves, scaled by the sums, give this one.
    pub fn normalised_walk_distribution(&self) -> Vec<f64> {
        let k = self.rankers();
        let leaving = |i: usize| (0..k).map(|j| self.win_probability(j, i)).sum::<f64>();
        let walk = self.random_walk_distribution();
        let weights: Vec<f64> = (0..k).map(|i| walk[i] * leaving(i)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    /// The rankers that this walk visits most, in ascending order; never empty.
    pub fn normalised_walk_winners(&self) -> Vec<usize> {
        leaders(&self.normalised_walk_distribution())
    }

    /// The rankers that the walk visits most, in ascending order; never empty.
    pub fn random_walk_winners(&self) -> Vec<usize> {
        leaders(&self.random_walk_distribution())
    }

    /// A mixed strategy `x` (weights that sum to 1) with `Σ_i x[i] (P[i][j] - 1/2) ≥ 0` for every
    /// `j`, up to rounding.
    ///
    /// Solved on the [Smith set](Self::smith_set) alone: a strategy that no ranker inside beats
    /// also beats every ranker outside.
    pub fn von_neumann_strategy(&self) -> Result<Vec<f64>, Unsolved> {
        let members = self.smith_set();
        let mut strategy = vec![0.0; self.rankers()];
        if let [winner] = members[..] {
            strategy[winner] = 1.0;
            return Ok(strategy);
        }
        let win = |i: usize, j: usize| self.win_probability(members[i], members[j]);
        let solved = balanced(members.len(), win).ok_or(Unsolved)?;
        let total: f64 = solved.iter().sum();
        for (&member, weight) in members.iter().zip(solved) {
            strategy[member] = weight / total;
        }
        Ok(strategy)
    }
}

/// Least amount by which a pivot improves, and least pivot.
const PIVOT: f64 = 1e-12;
/// Pivots for each ranker before the solver gives up: 1 to 5 are enough (test `winners`).
const PIVOTS: usize = 100;

/// Weights `y ≥ 0` of the largest sum with `Σ_i P[j][i] y[i] ≤ 1` for every `j`, by the simplex
/// method. Scaled to a sum of 1, no `j` beats them: the largest sum is 2, because the game is
/// symmetric (Dantzig, "A proof of the equivalence of the programming problem and the game
/// problem", 1951). `None` if rounding keeps it from an end.
fn balanced(rankers: usize, win: impl Fn(usize, usize) -> f64) -> Option<Vec<f64>> {
    let (k, end) = (rankers, rankers);
    // the last row is the sum, and the last column has the values of the basis
    let mut rows: Vec<Vec<f64>> = (0..=k)
        .map(|j| (0..=k).map(|i| if i == k || j == k { 1.0 } else { win(j, i) }).collect())
        .collect();
    rows[end][end] = 0.0;
    // weights are numbered from 0, and the slack of each row from k
    let (mut basis, mut others): (Vec<usize>, Vec<usize>) =
        ((k..2 * k).collect(), (0..k).collect());
    for pivot in 0..PIVOTS * k {
        let gains = (0..k).filter(|&column| rows[end][column] > PIVOT);
        // Bland's rule, which never turns in a circle, once the faster one has had its time
        let entering = match pivot < 4 * k {
            true => gains.max_by(|&a, &b| rows[end][a].total_cmp(&rows[end][b])),
            false => gains.min_by_key(|&column| others[column]),
        };
        let Some(column) = entering else {
            let mut weights = vec![0.0; k];
            for (row, &of) in basis.iter().enumerate().filter(|(_, of)| **of < k) {
                weights[of] = rows[row][end].max(0.0);
            }
            return Some(weights);
        };
        let limits = (0..k).filter(|&row| rows[row][column] > PIVOT);
        let ratio = |row: usize| rows[row][end] / rows[row][column];
        let row =
            limits.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b])))?;
        std::mem::swap(&mut basis[row], &mut others[column]);
        let by = 1.0 / rows[row][column];
        let mut own = std::mem::take(&mut rows[row]);
        own.iter_mut().for_each(|entry| *entry *= by);
        own[column] = by;
        for other in rows.iter_mut().filter(|other| !other.is_empty()) {
            let times = std::mem::take(&mut other[column]);
            other.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= times * own);
        }
        rows[row] = own;
    }
    None
}

/// The indices of the largest values, none of which is negative, and of those [`LEVEL`] with them;
/// in ascending order.
fn leaders(values: &[f64]) -> Vec<usize> {
    let best = values.iter().copied().fold(0.0, f64::max);
    (0..values.len()).filter(|&i| values[i] >= best * (1.0 - LEVEL)).collect()
}
