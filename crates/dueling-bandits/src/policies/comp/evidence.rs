//! The evidence that one ranker beats another.

use crate::Tally;
use crate::math::divergence;
use crate::policies::batch::Rows;

/// When a ranker is clearly beaten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Elimination {
    /// `N d(p̂, 1/2) > ln(T K²)`.
    #[default]
    Kl,
    /// `N d(p̂, 1/2) > ln(K²)`: the only reading of the paper's threshold that reproduces its
    /// figures. It is wrong about one pair in `K²`.
    KlPublished,
    /// `p̂ > 1/2 + γ` and its multiples: the rules of the paper's theorems.
    Hoeffding,
}

/// The comparisons of a pair that count as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum Estimates {
    /// All comparisons of the pair.
    All,
    /// The comparisons of the round, as in the paper's Equation 1.
    Fresh,
}

/// Measures the counts of a pair against a threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    elimination: Elimination,
    /// `ln(1/δ)`.
    log_inverse_delta: f64,
}

impl Rule {
    pub(super) fn new(
        elimination: Elimination,
        horizon: u64,
        rankers: usize,
        batches: u32,
    ) -> Self {
        let log_pairs = 2.0 * libm::log(rankers as f64);
        let log_horizon = libm::log(horizon as f64);
        let log_inverse_delta = match elimination {
            Elimination::Kl => log_horizon + log_pairs,
            Elimination::KlPublished => log_pairs,
            Elimination::Hoeffding => {
                libm::log(6.0) + log_horizon + log_pairs + libm::log(f64::from(batches))
            }
        };
        Self { elimination, log_inverse_delta }
    }

    /// How clearly a ranker with these counts beats the other, as a multiple of the threshold:
    /// `(p̂ - 1/2) / γ` with `γ = sqrt(ln(1/δ) / 2N)`, or `N d(p̂, 1/2) / ln(1/δ)`. 0 if it does
    /// not lead.
    fn margin(&self, half_wins: u32, half_losses: u32) -> f64 {
        if half_wins <= half_losses {
            return 0.0;
        }
        let half_plays = f64::from(half_wins) + f64::from(half_losses);
        let mean = f64::from(half_wins) / half_plays;
        match self.elimination {
            Elimination::Hoeffding => (mean - 0.5) * (half_plays / self.log_inverse_delta).sqrt(),
            Elimination::Kl | Elimination::KlPublished => {
                half_plays / 2.0 * divergence::from_half(mean) / self.log_inverse_delta
            }
        }
    }
}

/// The counts that the elimination after a closed batch uses.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    rule: &'a Rule,
    counts: Counts<'a>,
}

#[derive(Debug)]
enum Counts<'a> {
    All(&'a Tally),
    Round([&'a Rows; 2]),
}

impl<'a> Evidence<'a> {
    pub(super) fn of_all(rule: &'a Rule, tally: &'a Tally) -> Self {
        Self { rule, counts: Counts::All(tally) }
    }

    /// The results of the batches of one round.
    pub(super) fn of_round(rule: &'a Rule, batches: [&'a Rows; 2]) -> Self {
        Self { rule, counts: Counts::Round(batches) }
    }

    /// How clearly `i` beats `j`, as a multiple of the threshold; 0 if `i` does not lead.
    pub(super) fn margin(&self, i: usize, j: usize) -> f64 {
        let (half_wins, half_losses) = match self.counts {
            Counts::All(tally) => (tally.half_wins(i, j), tally.half_wins(j, i)),
            Counts::Round(batches) => batches.iter().fold((0, 0), |sum, rows| {
                let more = rows.half_wins(i, j);
                (sum.0 + more.0, sum.1 + more.1)
            }),
        };
        self.rule.margin(half_wins, half_losses)
    }

    /// Whether the paper's own rules apply. Otherwise, rules with divergences replace them.
    pub(super) fn is_hoeffding(&self) -> bool {
        self.rule.elimination == Elimination::Hoeffding
    }
}
