//! The linear program over the lists that may be shown.

use std::sync::LazyLock;

use super::parameters::MAX_DEPTH;
use super::simplex::Program;

/// A mean credit of a position below this is rounding.
pub(super) const ROUNDING: f64 = 1e-9;
/// Allowed above the least bias, so that rounding does not exclude every distribution.
const LEAST_BIAS_MARGIN: f64 = 1e-8;

/// By set of positions, one bit each: the probability `w` that a searcher looks at one of them, up
/// to a factor, and `w log2 w`. The probability of position `k` is proportional to `1/k`.
static ATTENTION: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    let weight = |set: u32| {
        (1..=MAX_DEPTH).filter(|k| set >> (k - 1) & 1 == 1).map(|k| 1.0 / f64::from(k)).sum()
    };
    let entry = |w: f64| (w, if w > 0.0 { w * libm::log2(w) } else { 0.0 });
    (0..1 << MAX_DEPTH).map(|set| entry(weight(set))).collect()
});

/// How much a list reveals about the preference of a searcher who looks at position `k` with a
/// probability proportional to `1/k`.
pub(super) fn sensitivity(credits: impl Iterator<Item = f64>) -> f64 {
    let (mut left, mut right, mut all) = (0, 0, 0);
    for (k, credit) in credits.enumerate() {
        all |= 1 << k;
        left |= usize::from(credit > 0.0) << k;
        right |= usize::from(credit < 0.0) << k;
    }
    if left == 0 || right == 0 {
        return 0.0;
    }
    let bits = |set: usize| ATTENTION[set].1;
    (bits(left | right) - bits(left) - bits(right)) / ATTENTION[all].0
}

/// The best unbiased distribution over lists with these credits, by position and list; if there is
/// none, the best distribution among those with the least bias. The result is the lists that may
/// have a positive probability, with their probabilities.
pub(super) fn distribution(credits: &[Vec<f64>], gain: &[f64]) -> Option<Vec<(usize, f64)>> {
    let positions = || credits.iter().filter(|row| row.iter().any(|&credit| credit != 0.0));
    let lists = gain.len();
    let mut rows = vec![vec![1.0; lists]];
    rows.extend(positions().cloned());
    let mut right_hand = vec![0.0; rows.len()];
    right_hand[0] = 1.0;
    let fair = Program { rows, right_hand, gain: gain.to_vec() }.solve();
    fair.or_else(|| {
        let bounds = Bounds { positions: positions().collect(), lists };
        let least = bounds.best(None)?.into_iter().find(|&(column, _)| column == lists)?.1;
        let mut solution = bounds.best(Some((gain, least + LEAST_BIAS_MARGIN)))?;
        solution.retain(|&(column, _)| column < lists);
        Some(solution)
    })
}

/// Distributions whose mean credit has a bound at each position.
struct Bounds<'a> {
    positions: Vec<&'a Vec<f64>>,
    lists: usize,
}

impl Bounds<'_> {
    /// The distribution with the largest gain within a bound, or with the least bound, which is
    /// then the column after those of the lists.
    fn best(&self, within: Option<(&[f64], f64)>) -> Option<Vec<(usize, f64)>> {
        let (lists, bounds) = (self.lists, 2 * self.positions.len());
        let mut rows = vec![vec![0.0; lists + 1 + bounds]; 1 + bounds];
        rows[0][..lists].fill(1.0);
        for (at, row) in rows[1..].iter_mut().enumerate() {
            let sign = if at % 2 == 0 { 1.0 } else { -1.0 };
            row.iter_mut().zip(self.positions[at / 2]).for_each(|(to, credit)| *to = sign * credit);
            row[lists] = if within.is_none() { -1.0 } else { 0.0 };
            row[lists + 1 + at] = 1.0;
        }
        let mut right_hand = vec![within.map_or(0.0, |(_, bound)| bound); 1 + bounds];
        right_hand[0] = 1.0;
        let mut gain = vec![0.0; lists + 1 + bounds];
        match within {
            Some((gains, _)) => gain[..lists].copy_from_slice(gains),
            None => gain[lists] = -1.0,
        }
        Program { rows, right_hand, gain }.solve()
    }
}
