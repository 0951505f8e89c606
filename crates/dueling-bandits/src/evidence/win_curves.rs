//! `Pr(θ > 1/2)` for `θ ~ Beta(a + 1, b + 1)` of many pairs, quickly.
//!
//! Every pair with `n` comparisons and `λ` pseudo-duels has the same `a + b = n + λ`. With many
//! pairs and few comparisons of each, the probabilities lie on a few smooth curves over `a`. Each
//! curve is computed at equal distances and interpolated between them. Without pseudo-duels, `a` and
//! `b` are small counts: the probability of each count is computed once, without an error.

use crate::Tally;
use crate::pairs::pairs_by_strips;
use crate::win_probability::beta_above_half;

/// Points of a curve in a standard deviation of `a` given an even pair. The interpolation is of
/// degree 5: its error falls with the sixth power, and is 1e-8 or less with 12.
const POINTS: f64 = 12.0;
/// Twice the most comparisons of a pair that a curve is made for.
const HALF_PLAYS_MAX: usize = 256;
/// A curve or a table is made if it serves at least this many pairs for each of its values.
const PAIRS_A_VALUE: usize = 4;
/// Number of points that an interpolation uses.
const USED: usize = 6;

/// A quick way to win probabilities that fits a tally.
#[derive(Debug)]
pub(super) enum WinCurves {
    /// Interpolated between points, by twice the number of comparisons of a pair; `None` where few
    /// pairs have that number.
    Curves(Vec<Option<Curve>>),
    /// Exact, by half wins and half losses, row-major.
    Counts {
        /// Number of rows and of columns.
        side: usize,
        values: Vec<f64>,
    },
}

impl WinCurves {
    /// For the pairs of `tally`, each with this number of pseudo-duels.
    pub fn new(tally: &Tally, pseudo_duels: f64) -> Self {
        let pairs = pairs_by_half_plays(tally);
        if pseudo_duels > 0.0 {
            let curve = |(half_plays, &pairs): (usize, &usize)| {
                let total = half_plays as f64 / 2.0 + pseudo_duels;
                (pairs >= PAIRS_A_VALUE * Curve::points(total)).then(|| Curve::new(total))
            };
            return Self::Curves(pairs.iter().enumerate().map(curve).collect());
        }
        let all: usize = pairs.iter().sum();
        let most = pairs.iter().rposition(|&pairs| pairs > 0).map_or(0, |most| most + 1);
        let side = most.min((all / PAIRS_A_VALUE).isqrt());
        let counts = (0..side).flat_map(|wins| (0..side).map(move |losses| (wins, losses)));
        let values = counts
            .map(|(wins, losses)| beta_above_half(wins as f64 / 2.0, losses as f64 / 2.0))
            .collect();
        Self::Counts { side, values }
    }

    /// `Pr(θ > 1/2)` of a pair with `half_plays` half wins and half losses; `a` includes the
    /// pseudo-duels. The error is at most `NEARLY`, which [`crate::win_probability`] defines.
    /// `None` where there is no quick way.
    pub fn nearly(&self, half_plays: u64, a: f64) -> Option<f64> {
        let Self::Curves(curves) = self else { return None };
        Some(curves.get(usize::try_from(half_plays).ok()?)?.as_ref()?.at(a))
    }

    /// `Pr(θ > 1/2)` of a pair with these wins and losses, pseudo-duels included.
    pub fn exact(&self, wins: f64, losses: f64) -> f64 {
        if let Self::Counts { side, values } = self {
            let (wins, losses) = ((2.0 * wins) as usize, (2.0 * losses) as usize);
            if wins < *side && losses < *side {
                return values[wins * side + losses];
            }
        }
        beta_above_half(wins, losses)
    }
}

/// Number of pairs by twice their comparisons, up to [`HALF_PLAYS_MAX`].
fn pairs_by_half_plays(tally: &Tally) -> Vec<usize> {
    let mut pairs = vec![0; HALF_PLAYS_MAX + 1];
    pairs_by_strips(tally.rankers()).for_each(|(low, high)| {
        let half_plays = usize::try_from(tally.half_plays(low, high)).unwrap_or(usize::MAX);
        if let Some(pairs) = pairs.get_mut(half_plays) {
            *pairs += 1;
        }
    });
    pairs
}

/// `Pr(θ > 1/2)` over `a`, for one `a + b`.
#[derive(Debug)]
pub(super) struct Curve {
    /// The values at equal distances: the first with `a = 0`, the last with `b = 0`.
    values: Vec<f64>,
    /// Number of these distances in a unit of `a`.
    in_unit: f64,
}

impl Curve {
    /// Number of values for this `a + b`.
    fn points(total: f64) -> usize {
        // an even pair has a standard deviation of √(total + 1) / 2 wins
        let distances = 2.0 * POINTS * total / (total + 1.0).sqrt();
        (distances.ceil() as usize + 1).max(USED)
    }

    fn new(total: f64) -> Self {
        let last = Self::points(total) - 1;
        let wins = |point: usize| total * point as f64 / last as f64;
        // a win probability and that of the other ranker add up to 1
        let mut values = vec![0.0; last + 1];
        for point in 0..=last / 2 {
            let value = beta_above_half(wins(point), wins(last - point));
            values[point] = value;
            values[last - point] = 1.0 - value;
        }
        Self { values, in_unit: last as f64 / total }
    }

    /// The value at `a`, which is 0 or more and at most `a + b`. By Lagrange's formula on the six
    /// points around it; at the ends, on the first or last six.
    fn at(&self, a: f64) -> f64 {
        let place = a * self.in_unit;
        let first = (place as usize).saturating_sub(2).min(self.values.len() - USED);
        let x = place - first as f64;
        let [x0, x1, x2, x3, x4, x5] = [x, x - 1.0, x - 2.0, x - 3.0, x - 4.0, x - 5.0];
        let (x01, x23, x45) = (x0 * x1, x2 * x3, x4 * x5);
        let y = &self.values[first..first + USED];
        // the products over all points but one, over the same products at that point
        x23 * x45 * (x0 * y[1] / 24.0 - x1 * y[0] / 120.0)
            + x01 * x45 * (x2 * y[3] / 12.0 - x3 * y[2] / 12.0)
            + x01 * x23 * (x4 * y[5] / 120.0 - x5 * y[4] / 24.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::win_probability::NEARLY;
    use crate::{Duel, Outcome};

    #[test]
    fn interpolated_values_are_near() {
        for total in [2.0, 2.5, 4.0, 5.0, 9.5, 17.0, 34.0, 66.0, 128.0, 131.5, 256.0] {
            let curve = Curve::new(total);
            for step in 0..=20_000 {
                let a = total * f64::from(step) / 20_000.0;
                let (found, exact) = (curve.at(a), beta_above_half(a, total - a));
                assert!((found - exact).abs() < NEARLY / 4.0, "{a} of {total}: {found}, {exact}");
            }
        }
    }

    #[test]
    fn counts_have_no_error() {
        let mut tally = Tally::new(50);
        tally.record_run(Duel::new(0, 1), Outcome::First, 9);
        let curves = WinCurves::new(&tally, 0.0);
        for (wins, losses) in [(0.0, 0.0), (0.5, 1.0), (3.0, 2.5), (70.0, 90.0)] {
            assert_eq!(curves.exact(wins, losses), beta_above_half(wins, losses));
        }
    }
}
