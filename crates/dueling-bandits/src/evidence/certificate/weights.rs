//! The weights of the terms of a capital, such that it starts at 1 or below: of `Σ o(|N(a)|)` over
//! the rankers of the sum, by the counting lemma of `docs/verdict-rule.md`. With a margin `o = 1/n`,
//! or `1/K` for all rankers.

/// Weights of the products, of the mean and of the capital that follows refuters in type I, without
/// a margin. The products decide where the winner has to beat each rival.
const TYPE_I: [f64; 3] = [0.85, 0.15, 0.0];
/// With a margin, for counts whose order is unknown.
const TYPE_I_MARGIN: [f64; 3] = [0.7, 0.3, 0.0];
/// With a margin, where a capital follows refuters. Without that capital a verdict on 16 rankers
/// takes a quarter more evidence.
const TYPE_I_REFUTERS: [f64; 3] = [0.0, 0.1, 0.9];
/// Weights of the products, of the mean over `S` and of the means over `N(a)` in type II.
const TYPE_II: [f64; 3] = [0.38, 0.22, 0.4];
/// `o(1)` in type I: nearly all, since the winner usually has to show this.
const ONE_LOSS: f64 = 0.9;
/// `o(2)` in type II.
const TWO_LOSSES: f64 = 0.24;
/// `o(1)` of the claim that a ranker beats all others.
const ANY_LOSS: f64 = 0.3;
/// `o` of the next number of losses, relative to the one before.
const NEXT: f64 = 0.2;

/// The weights for one number of rankers, with or without a margin.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    rankers: f64,
    /// Whether the margin is above 0.
    margin: bool,
    /// Of products, mean and refuters in type I.
    pub(super) one: [f64; 3],
    /// Of products, mean over `S` and means over `N(a)` in type II.
    pub(super) two: [f64; 3],
}

impl Weights {
    /// Of a rule without refuters, with a margin above 0 or without one.
    pub(super) fn without_refuters(rankers: usize, margin: bool) -> Self {
        let one = if margin { TYPE_I_MARGIN } else { TYPE_I };
        Self { rankers: rankers as f64, margin, one, two: TYPE_II }
    }

    /// Of a rule with refuters, which has a margin above 0.
    pub(super) fn with_refuters(rankers: usize) -> Self {
        Self { rankers: rankers as f64, margin: true, one: TYPE_I_REFUTERS, two: TYPE_II }
    }

    /// `o(losses)` in type I.
    pub(super) fn alone(&self, losses: usize) -> f64 {
        match losses {
            _ if self.margin => 1.0 / (self.rankers - 1.0),
            1 => ONE_LOSS,
            _ => further(1.0 - ONE_LOSS, losses - 2),
        }
    }

    /// `o(losses)` in type II; `losses` is 2 or more.
    pub(super) fn no_alone(&self, losses: usize) -> f64 {
        match losses {
            _ if self.margin => 1.0 / (self.rankers - 1.0),
            2 => TWO_LOSSES,
            _ => further(1.0 - 4.0 * TWO_LOSSES, losses - 3),
        }
    }

    /// `o(losses)` over all rankers.
    pub(super) fn any_ranker(&self, losses: usize) -> f64 {
        match losses {
            _ if self.margin => 1.0 / self.rankers,
            1 => ANY_LOSS,
            _ => further(1.0 - 3.0 * ANY_LOSS, losses - 2),
        }
    }

    /// The weight of `E(a≻j)` in type I in a rule without refuters.
    pub(super) fn plain_alone(&self) -> f64 {
        let [product, ..] = if self.margin { TYPE_I_MARGIN } else { TYPE_I };
        product * self.alone(1)
    }
}

/// Weights `o(0), o(1), …` in geometric decrease with `2 Σ o = total`.
fn further(total: f64, nth: usize) -> f64 {
    total / 2.0 * (1.0 - NEXT) * libm::pow(NEXT, nth as f64)
}
