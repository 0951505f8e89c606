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

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-6, "{found}, expected {expected}");
    }

    /// 0, 1 and 2 beat each other in a cycle and all of them beat 3: three winners with one loss.
    fn cycle_and_loser() -> CopelandHardness {
        let rows = [
            [0.5, 0.6, 0.3, 0.9],
            [0.4, 0.5, 0.8, 0.7],
            [0.7, 0.2, 0.5, 0.55],
            [0.1, 0.3, 0.45, 0.5],
        ];
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"))
    }

    #[test]
    fn the_quantities_of_definition_3() {
        let found = cycle_and_loser();
        assert_eq!((found.winners, found.most_losses), (3, 1));
        // the losses of 3 are 0.4, 0.2, 0.05: the second largest is 0.2
        close(found.own[3], 0.2);
        // winners against 3: 0.4, 0.2, 0.05
        close(found.gap.expect("a loser"), 0.05);
        close(found.smallest_gap.expect("a gap"), 0.05);
        close(found.starred[3][0], 0.4);
        close(found.starred[3][2], 0.2);
        close(found.starred[0][3], 0.4);

        let arxiv = PreferenceMatrix::named("arxiv-6").expect("a name").expect("a matrix");
        let arxiv = CopelandHardness::of(&arxiv);
        assert_eq!((arxiv.winners, arxiv.most_losses), (1, 0));
        // the winner's smallest gap is 0.04, against ranker 3; the smallest of all is 0.01
        close(arxiv.gap.expect("a loser"), 0.04);
        close(arxiv.advantage().expect("gaps"), 16.0);
    }

    #[test]
    fn all_winners_have_no_gap() {
        let rows = vec![vec![0.5, 0.6, 0.4], vec![0.4, 0.5, 0.6], vec![0.6, 0.4, 0.5]];
        let found = CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"));
        assert_eq!((found.winners, found.gap, found.advantage()), (3, None, None));
    }

    #[test]
    fn the_bounds_of_two_rankers() {
        // K = 2, gap 0.1, α = 1, δ = 0.1. C(δ/4) = 3·4/0.025 = 480.
        // Δ*_01 = 0.1, Δ*_10 = 0.1: rates 400 and 400. T of δ/2: 480 + 32 ln 480 + 4 ln 240 + 1 +
        // (6400 + 800 + 8·400) ln T.
        let rows = vec![vec![0.5, 0.6], vec![0.4, 0.5]];
        let found = CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"));
        let constant = 481.0 + 32.0 * 480.0_f64.ln() + 4.0 * 240.0_f64.ln();
        let mut t = 1e5_f64;
        for _ in 0..200 {
            t = constant + 10_400.0 * t.ln();
        }
        let log = 1e6_f64.ln();
        let expected = 481.0 + 800.0 * t.ln() + 10.0 * 40.0_f64.ln() * log.sqrt() + 300.0 * log;
        close(found.bound_of_ccb(1.0, 0.1, 1e6), expected);
        // (1/2) (100 · 0 + 100 · 1 / 1²) ln T
        close(found.order_of_scb(1e6), 50.0 * log);
    }

    #[test]
    fn alpha_near_one_half_has_no_useful_constant() {
        // 10^220.7 for K = 5 and δ = 0.05
        close(confident_after(0.51, 0.05, 5.0).log10(), 220.748_667_4);
        assert!(confident_after(1.01, 0.05, 5.0) < 1300.0);
        assert_eq!(confident_after(0.51, 0.01, 136.0), f64::INFINITY);
    }
}
