//! The quantities that decide how hard a matrix is for CCB and SCB, and the bounds on their regret
//! (Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015, Definitions 3, 5,
//! 10 and 12, Theorems 11 and 13).

use crate::preference::matrix::PreferenceMatrix;

/// The quantities of Definition 3. The paper assumes that no pair is even; here an even pair has no
/// gap.
#[derive(Debug, Clone, PartialEq)]
pub struct CopelandHardness {
    rankers: usize,
    /// `Cpld`, unnormalised.
    scores: Vec<usize>,
    /// `C`: number of Copeland winners.
    pub winners: usize,
    /// `L_C`: the largest number of rankers that beat a Copeland winner.
    pub most_losses: usize,
    /// `Δ`; `None` if every ranker is a Copeland winner.
    pub gap: Option<f64>,
    /// `Δ_min`; `None` if all pairs are even.
    pub smallest_gap: Option<f64>,
    /// `Δ_ij` of every ordered pair.
    gaps: Vec<Vec<f64>>,
    /// `Δ*_i`; 0 for a winner.
    own: Vec<f64>,
    /// `Δ*_ij`.
    starred: Vec<Vec<f64>>,
}

impl CopelandHardness {
    /// The quantities of `matrix`.
    pub fn of(matrix: &PreferenceMatrix) -> Self {
        let k = matrix.rankers();
        let scores = matrix.copeland_scores();
        let best = matrix.copeland_winners();
        let is_winner = |i: usize| best.binary_search(&i).is_ok();
        let losses = |i: usize| -> Vec<f64> {
            (0..k).filter(|&j| matrix.beats(j, i)).map(|j| matrix.margin(j, i)).collect()
        };
        let most_losses = best.iter().map(|&i| losses(i).len()).max().unwrap_or(0);
        // item 4: the (L_C + 1)th largest loss. With even pairs there may be fewer: the least loss.
        let own = |i: usize| {
            let mut losses = losses(i);
            losses.sort_by(|a, b| b.total_cmp(a));
            losses.get(most_losses).or(losses.last()).copied().unwrap_or(0.0)
        };
        let own: Vec<f64> = (0..k).map(|i| if is_winner(i) { 0.0 } else { own(i) }).collect();
        let gaps: Vec<Vec<f64>> =
            (0..k).map(|i| (0..k).map(|j| matrix.margin(i, j).abs()).collect()).collect();
        // item 5
        let starred = |i: usize, j: usize| {
            if matrix.beats(j, i) { own[i].max(gaps[i][j]) } else { own[i] + gaps[i][j] }
        };
        let starred = (0..k).map(|i| (0..k).map(|j| starred(i, j)).collect()).collect();
        let others = || (0..k).filter(|&j| !is_winner(j));
        let between = best.iter().flat_map(|&i| others().map(move |j| (i, j)));
        let gap = least(between.map(|(i, j)| gaps[i][j]).chain(others().map(|i| own[i])));
        let smallest_gap = least(gaps.iter().flatten().copied());
        let winners = best.len();
        Self { rankers: k, scores, winners, most_losses, gap, smallest_gap, gaps, own, starred }
    }

    /// `Δ²/Δ_min²`: how much larger the bound on CCB's regret would be with `Δ_min`.
    pub fn advantage(&self) -> Option<f64> {
        Some((self.gap? / self.smallest_gap?).powi(2))
    }

    /// Theorem 11: the bound on the regret of CCB after `steps` steps that holds with probability
    /// `1 - delta`, in the paper's regret (twice that of [`Regret`](super::Regret)). Infinite if it
    /// is beyond the range of numbers.
    pub fn bound_of_ccb(&self, alpha: f64, delta: f64, steps: f64) -> f64 {
        let k = self.rankers as f64;
        let lists = self.most_losses as f64 + 1.0;
        let after = |delta: f64| confident_after(alpha, delta, k);
        // N̂_i / ln t, item 8
        let rate = |i: usize| -> f64 {
            let others = (0..self.rankers).filter(|&j| j != i && self.starred[i][j] > 0.0);
            others.map(|j| 4.0 * alpha / self.starred[i][j].powi(2)).sum()
        };
        let rates: Vec<f64> = (0..self.rankers).map(rate).collect();
        let of_others = || (0..self.rankers).filter(|&i| self.own[i] > 0.0);
        let all: f64 = rates.iter().sum();
        let largest = of_others().map(|i| rates[i]).fold(0.0, f64::max);
        let smallest = self.smallest_gap.unwrap_or(f64::INFINITY);

        // Definition 5 at δ/2: the smallest T with T ≥ constant + slope ln T
        let half = delta / 2.0;
        let constant = after(half / 2.0)
            + 8.0 * (k * lists).powi(2) * libm::log(6.0 * k * k / half)
            + k * k * libm::log(6.0 * k / half)
            + 1.0;
        let slope = 32.0 * alpha * k * lists / smallest.powi(2) + all + 4.0 * k * largest;
        let mut t = constant + slope;
        for _ in 0..100 {
            t = constant + slope * libm::log(t.max(1.0));
        }

        // Definition 10
        let first = after(delta / 4.0) + all * libm::log(t) + 1.0;
        let second: f64 = of_others().map(|i| lists.sqrt() / self.own[i]).sum::<f64>()
            * libm::log(2.0 * k / delta);
        let best = self.scores.iter().max();
        let winners = || (0..self.rankers).filter(|&i| Some(&self.scores[i]) == best);
        let losers = || (0..self.rankers).filter(|&i| Some(&self.scores[i]) != best);
        let between = winners().flat_map(|i| losers().map(move |j| self.gaps[i][j]));
        let third = between.filter(|&gap| gap > 0.0).map(|gap| gap.powi(-2)).sum::<f64>()
            + of_others().map(|i| 2.0 * lists / self.own[i].powi(2)).sum::<f64>();
        let log = libm::log(steps);
        first + second * log.sqrt() + third * log
    }

    /// Theorem 13: the order of SCB's expected regret after `steps` steps, `(1/K) Σ_i H_i (1 -
    /// cpld(a_i)) / Δ_i² · ln T`. The theorem gives no constant.
    pub fn order_of_scb(&self, steps: f64) -> f64 {
        let others = self.rankers as f64 - 1.0;
        let share = |i: usize| self.scores[i] as f64 / others;
        let best = (0..self.rankers).map(share).fold(0.0, f64::max);
        let of = |i: usize| {
            let gaps = self.gaps[i].iter().filter(|&&gap| gap > 0.0);
            let hardness: f64 = gaps.map(|gap| gap.powi(-2)).sum();
            hardness * (1.0 - share(i)) / (best - share(i)).max(1.0 / others).powi(2)
        };
        (0..self.rankers).map(of).sum::<f64>() / self.rankers as f64 * libm::log(steps)
    }
}

/// `C(δ)`: the number of steps after which the bounds of CCB and RUCB hold with probability `1 - δ`.
fn confident_after(alpha: f64, delta: f64, rankers: f64) -> f64 {
    let base = (4.0 * alpha - 1.0) * rankers * rankers / ((2.0 * alpha - 1.0) * delta);
    libm::pow(base, 1.0 / (2.0 * alpha - 1.0))
}

/// The least value above 0.
fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.filter(|&value| value > 0.0).reduce(f64::min)
}
