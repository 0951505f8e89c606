//! The evidence that one ranker beats another.

use crate::Tally;
use crate::math::divergence;
use crate::policies::batch::Rows;

/// When a ranker is clearly beaten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Elimination {
    /// `N d(p̂, 1/2) > ln(T K²)`.
    #[default]
    Kl,
    /// `N d(p̂, 1/2) > ln(K²)`: the only reading of the paper's threshold that comes near its
    /// figures. It is the least certain of the three.
    KlPublished,
    /// `p̂ > 1/2 + γ` and its multiples: the rules of the paper's theorems.
    Hoeffding,
}

/// The comparisons of a pair that count as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimates {
    /// All comparisons of the pair.
    All,
    /// The comparisons of the round, as in the paper's Equation 1.
    Fresh,
}

/// Measures the counts of a pair against the thresholds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    elimination: Elimination,
    /// `ln(1/δ)` of the elimination.
    threshold: f64,
    /// `ln(1/δ)` of `γ`, with the `δ = 1/(6TK²B)` of line 2.
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
        let log_inverse_delta =
            libm::log(6.0) + log_horizon + log_pairs + libm::log(f64::from(batches));
        let threshold = match elimination {
            Elimination::Kl => log_horizon + log_pairs,
            Elimination::KlPublished => log_pairs,
            Elimination::Hoeffding => log_inverse_delta,
        };
        Self { elimination, threshold, log_inverse_delta }
    }

    /// How clearly a ranker with these counts beats the other, as a multiple of the threshold:
    /// `(p̂ - 1/2) / γ`, or `N d(p̂, 1/2) / ln(1/δ)`. 0 if it does not lead.
    fn margin(&self, counts: HalfCounts) -> f64 {
        match self.elimination {
            Elimination::Hoeffding => self.radii(counts),
            Elimination::Kl | Elimination::KlPublished if counts.leads() => {
                counts.plays() * divergence::from_half(counts.mean()) / self.threshold
            }
            Elimination::Kl | Elimination::KlPublished => 0.0,
        }
    }

    /// `(p̂ - 1/2) / γ` with `γ = sqrt(ln(1/δ) / 2N)`; 0 if the ranker does not lead.
    fn radii(&self, counts: HalfCounts) -> f64 {
        if !counts.leads() {
            return 0.0;
        }
        (counts.mean() - 0.5) * (2.0 * counts.plays() / self.log_inverse_delta).sqrt()
    }
}

/// The half wins and half losses of one ranker against another.
#[derive(Debug, Clone, Copy)]
struct HalfCounts(u32, u32);

impl HalfCounts {
    fn leads(self) -> bool {
        self.0 > self.1
    }

    /// `N`.
    fn plays(self) -> f64 {
        (f64::from(self.0) + f64::from(self.1)) / 2.0
    }

    /// `p̂`.
    fn mean(self) -> f64 {
        f64::from(self.0) / (f64::from(self.0) + f64::from(self.1))
    }
}

/// The counts that a policy learns from after a closed batch.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    pub(super) rule: &'a Rule,
    /// The comparisons that the elimination uses.
    pub(super) estimates: Estimates,
    /// All comparisons so far.
    pub(super) all: &'a Tally,
    /// The results of the round: of its earlier batches, and of the batch that has just closed.
    pub(super) round: [&'a Rows; 2],
}

impl Evidence<'_> {
    fn of_round(&self, i: usize, j: usize) -> HalfCounts {
        self.round.iter().fold(HalfCounts(0, 0), |sum, rows| {
            let more = rows.half_wins(i, j);
            HalfCounts(sum.0 + more.0, sum.1 + more.1)
        })
    }

    /// How clearly `i` beats `j`, as a multiple of the threshold of the elimination; 0 if `i` does
    /// not lead.
    pub(super) fn margin(&self, i: usize, j: usize) -> f64 {
        self.rule.margin(match self.estimates {
            Estimates::All => HalfCounts(self.all.half_wins(i, j), self.all.half_wins(j, i)),
            Estimates::Fresh => self.of_round(i, j),
        })
    }

    /// `(P̂[i][j] - 1/2) / γ` on the round's own estimates (Equation 1), whatever the elimination
    /// rule is; 0 if `i` does not lead.
    pub(super) fn radii_in_round(&self, i: usize, j: usize) -> f64 {
        self.rule.radii(self.of_round(i, j))
    }

    /// Whether the paper's own elimination applies, in which seeds alone remove rankers. With
    /// divergences any remaining ranker removes another.
    pub(super) fn is_hoeffding(&self) -> bool {
        self.rule.elimination == Elimination::Hoeffding
    }
}
