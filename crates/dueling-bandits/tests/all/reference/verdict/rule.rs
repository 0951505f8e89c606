//! The stopping rule of `docs/verdict-rule.md`: the table of "The smallest capital over all truths",
//! row by row.
//!
//! Rankers are places among the active ones, and `e[x][y]` is `ln E(x≻y)`. Sums and products run
//! from the smallest value up, as in the policy's own form, because the plan compares capitals that
//! differ by very little.

use super::field::Field;
use super::refuters::Refuters;

/// For one roster: the number of its rankers, the error of its stretch, the margin, and what
/// follows the leader, if anything does.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'a> {
    pub rankers: usize,
    pub error: f64,
    pub margin: f64,
    pub refuters: Option<&'a Refuters>,
}

/// A truth as it enters the capital of `a` against `j`.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Whether `j` beats all others.
    type_one: bool,
    /// Whether `j` is in `N(a)`.
    direct: bool,
    near: bool,
    /// Rankers other than `a` in `S`.
    u: usize,
    /// `|N(a) \ j|`.
    v: usize,
}

impl Rule<'_> {
    pub fn threshold(&self) -> f64 {
        -libm::log(self.error)
    }

    fn n(&self) -> f64 {
        (self.rankers - 1) as f64
    }

    /// The five weights of type I, and that of the capital that follows the leader.
    fn type_one_weights(&self) -> ([f64; 5], f64) {
        match self.refuters {
            Some(_) if self.margin > 0.0 => ([0.1, 0.045, 0.003, 0.001, 0.001], 0.85),
            Some(_) => ([0.76, 0.03, 0.004, 0.003, 0.003], 0.2),
            None => (self.plain_type_one_weights(), 0.0),
        }
    }

    /// The five weights of type I in a rule without refuters.
    fn plain_type_one_weights(&self) -> [f64; 5] {
        match self.margin > 0.0 {
            true => [0.7, 0.26, 0.02, 0.01, 0.01],
            false => [0.82, 0.15, 0.01, 0.01, 0.01],
        }
    }

    /// `X(j)`, with its weight.
    fn followed(&self, e: &[Vec<f64>], j: usize) -> f64 {
        self.refuters.map_or(0.0, |refuters| self.type_one_weights().1 * refuters.capital(e, j))
    }

    /// The evidence with which "x beats y" multiplies to `1/δ`, with its `weight` and as a refuter.
    fn target(&self, e: &[Vec<f64>], weight: f64, (x, y): (usize, usize)) -> f64 {
        let followed = self
            .refuters
            .map_or(0.0, |refuters| self.type_one_weights().1 * refuters.multiplier(e, x, y));
        self.threshold() - libm::log(weight + followed)
    }

    /// The evidence that a win needs without refuters, where `losses` of each other ranker are
    /// needed too, and that a loss needs. Proofs are compared by these.
    pub fn plain_targets(&self, losses: usize) -> (f64, f64) {
        let o = if self.margin > 0.0 { 1.0 / self.n() } else { 0.93 };
        let [b1, b2, ..] = self.plain_type_one_weights();
        let win = match losses {
            0 => b1 * o,
            _ => 0.36 * 0.8 / self.n(),
        };
        match self.rankers {
            2 => (self.threshold(), self.threshold()),
            _ => {
                let loss = b2.min(0.2) / self.n();
                (self.threshold() - libm::log(win), self.threshold() - libm::log(loss))
            }
        }
    }

    /// The evidence that "a beats y" needs, where `losses` of each other ranker are needed too.
    pub fn win_target(&self, e: &[Vec<f64>], (a, y): (usize, usize), losses: usize) -> f64 {
        let ([b1, ..], _) = self.type_one_weights();
        let o = if self.margin > 0.0 { 1.0 / self.n() } else { 0.93 };
        match (self.rankers, losses) {
            (2, _) => self.threshold(),
            (_, 0) => self.target(e, b1 * o, (a, y)),
            _ => self.threshold() - libm::log(0.36 * 0.8 / self.n()),
        }
    }

    /// The evidence that "x beats y" needs as a loss of `y`.
    pub fn loss_target(&self, e: &[Vec<f64>], (x, y): (usize, usize)) -> f64 {
        if self.rankers == 2 {
            return self.threshold();
        }
        let ([_, b2, ..], _) = self.type_one_weights();
        let (_, plain) = self.plain_targets(1);
        match self.refuters {
            Some(_) => self.target(e, b2 / self.n(), (x, y)).max(plain),
            None => plain,
        }
    }

    /// The winners at these counts, the leader first; empty without a verdict.
    pub fn winners(&self, field: &Field) -> Vec<usize> {
        let certified = |&x: &usize| self.certifies(field, x);
        let Some(leader) = field.leading(0.5 - self.margin).into_iter().find(certified) else {
            return Vec::new();
        };
        let others = (0..self.rankers).filter(|&x| x != leader).filter(certified);
        std::iter::once(leader).chain(others).collect()
    }

    pub fn certifies(&self, field: &Field, a: usize) -> bool {
        (0..self.rankers)
            .filter(|&j| j != a)
            .all(|j| self.ln_capital(&field.evidence, a, j) >= self.threshold())
    }

    /// "`a` beats every other ranker".
    pub fn certifies_condorcet(&self, field: &Field, a: usize) -> bool {
        let own = ascending((0..self.rankers).filter(|&y| y != a).map(|y| field.evidence[a][y]));
        let enough = |c: usize| {
            let o = match c {
                _ if self.margin > 0.0 => 1.0 / self.rankers as f64,
                1 => 0.3,
                _ => 0.02 * 0.5_f64.powi(c as i32 - 2),
            };
            libm::log(o) + own[..c].iter().sum::<f64>() >= self.threshold()
        };
        (self.rankers == 2 || (1..self.rankers).all(enough)) && self.certifies(field, a)
    }

    /// `ln` of the smallest capital over the truths in which `j` is a winner and `a` is wrong.
    pub fn ln_capital(&self, e: &[Vec<f64>], a: usize, j: usize) -> f64 {
        if self.rankers == 2 {
            return e[a][j].min(40.0);
        }
        let others = || (0..self.rankers).filter(|&x| x != a && x != j);
        let rivals = ascending(others().map(|x| e[x][j]));
        let own = ascending(others().map(|y| e[a][y]));
        let followed = self.followed(e, j);
        let q = self.rankers - 2;
        let type_one = (0..=q).map(|v| Row { type_one: true, direct: true, near: false, u: q, v });
        let row = |direct, near, u, v| Row { type_one: false, direct, near, u, v };
        let type_two = (1..=q).flat_map(|v| {
            let mut rows = vec![row(true, true, q - v, v), row(true, false, q - v + 1, v)];
            if v >= 2 {
                rows.push(row(false, true, q + 2 - v, v));
            }
            if v >= 3 {
                rows.push(row(false, false, q + 3 - v, v));
            }
            rows
        });
        let capitals = type_one.chain(type_two).map(|row| {
            self.capital(row, e[a][j].min(40.0), &rivals, &own)
                + if row.type_one { followed } else { 0.0 }
        });
        libm::log(capitals.fold(f64::INFINITY, f64::min))
    }

    /// The bound of one row. `direct` is `ln E(a≻j)`; `rivals` and `own` are those of the others
    /// against `j`, and of `a` against the others, ascending.
    fn capital(&self, row: Row, direct: f64, rivals: &[f64], own: &[f64]) -> f64 {
        let n = self.n();
        let b = match row.type_one {
            true => self.type_one_weights().0,
            false => [0.3, 0.2, 0.36, 0.07, 0.07],
        };
        let c = row.v + usize::from(row.direct);
        let (o, g) = self.shares(row, c);
        let of_direct = |value: f64| if row.direct { value } else { 0.0 };
        let smallest_mean = match (row.type_one, row.direct) {
            (true, _) => (exp(direct) + sum_exp(rivals)) / n,
            // means of ascending values ascend
            (_, false) => sum_exp(&rivals[..row.u]) / row.u as f64,
            (_, true) => smallest_mean_from(row.u, rivals, exp(direct)),
        };
        let h = if row.type_one { n } else { n.min(c as f64) };
        let staked_rivals = self.staked(rivals, row.u) + of_direct(self.ln_staked(direct));
        b[0] * o * exp(of_direct(direct) + own[..row.v].iter().sum::<f64>())
            + b[1] * smallest_mean
            + b[2] * g / h * sum_exp(&own[..row.v])
            + b[3] * exp(staked_rivals)
            + b[4] * g * exp(staked_rivals + self.staked(own, row.v))
    }

    /// `o` and `g`, with `c = |N(a)|`.
    fn shares(&self, row: Row, c: usize) -> (f64, f64) {
        let (n, count) = (self.n(), c as f64);
        let halved = 0.5_f64.powi(c as i32 - 2);
        if self.margin > 0.0 {
            let g = match (row.type_one, row.near) {
                (true, _) => 1.0,
                (false, true) => 0.8,
                (false, false) => 0.2,
            };
            return (1.0 / n, g / n);
        }
        match (row.type_one, c) {
            (true, 1) => (0.93, 1.0 / n),
            (true, 2) if self.rankers == 3 => (0.07, 1.0 / n),
            (true, 2) => (0.042, 1.0 / n),
            (true, _) => (0.028 * halved, 1.0 / n),
            // with two losses the far row stands for a near ranker that is even with `j` alone
            (false, _) if row.near || c == 2 => {
                let all = if self.rankers == 3 { 1.0 } else { 0.8 };
                let share = all / n.min(2.0 * count - 1.0);
                (share, share)
            }
            (false, _) => (0.2 * halved / n.min(2.0 * count), 0.2 / n),
        }
    }

    /// `ln` of the smallest product of `size` or more factors `1 - w + w E`: the smallest ones, and
    /// all that are below 1.
    fn staked(&self, ascending: &[f64], size: usize) -> f64 {
        let below_one = ascending.iter().filter(|&&ln| ln < 0.0).count();
        ascending[..size.max(below_one)].iter().map(|&ln| self.ln_staked(ln)).sum()
    }

    /// `ln(1 - w + w E)`.
    fn ln_staked(&self, ln: f64) -> f64 {
        let w = (1.0 / self.n()).min(0.5);
        // from here on `1 - w` is beyond the last digit
        if ln > 30.0 { ln + libm::log(w) } else { libm::log(1.0 - w + w * exp(ln)) }
    }
}

/// Evidence is cut off at 40 nats.
fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.map(|value| value.min(40.0)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn sum_exp(values: &[f64]) -> f64 {
    values.iter().map(|&value| exp(value)).sum()
}

/// The smallest mean of `direct` and the `size` smallest, over all sizes from `least` on.
fn smallest_mean_from(least: usize, ascending: &[f64], direct: f64) -> f64 {
    let mut sum = sum_exp(&ascending[..least]);
    let mut smallest = (sum + direct) / (least + 1) as f64;
    for (at, &value) in ascending.iter().enumerate().skip(least) {
        sum += exp(value);
        smallest = smallest.min((sum + direct) / (at + 2) as f64);
    }
    smallest
}

/// Stays finite.
fn exp(exponent: f64) -> f64 {
    libm::exp(exponent.min(300.0))
}
