//! Evidence that the mean of a bounded value is above a limit, or below it: betting on counts.
//!
//! A guardrail asks whether a ranker does harm (its latency, its errors, its pages without results
//! are above a limit), and whether it is safe (they are below). Values `z` are rounded at random to
//! 17 levels, so that the counts of the levels are all there is to keep. For the null hypothesis
//! "each value has a mean of at most `b` given all before it",
//!
//! `E = 1/8 Σ_λ Π (1 + λ (z - b))`, with `λ = 0.9 · 2^-i / (b - least value)` for i = 0, …, 7.
//!
//! Each factor is at least 0.1, and its mean is at most 1 under the null hypothesis. So `E` is a
//! nonnegative supermartingale that starts at 1 and ever reaches `1/δ` with a probability of at
//! most δ (Ville). Every λ is fixed, so the order of the values does not matter. Evidence that the
//! mean is below the limit is that of the negated values.
//!
//! # Rounding
//!
//! A value between two levels goes to either with the probability that keeps its mean, so a factor,
//! which is linear in the value, keeps its mean too. Levels are 0 and ± a power of 1/2 of the
//! largest value. Even levels need three times as many pages for small differences in a large
//! range, because their rounding adds more noise than the values have.
//!
//! # Missing values
//!
//! A value that is missing is the worst one for the claim in question: the largest for safety, and
//! the least for harm. So what is bet on, `Z`, is at least the true value `z` for safety and at most
//! `z` for harm, whatever the missing value was: `1 + λ (b - Z) ≤ 1 + λ (b - z)` for safety, and
//! mirrored for harm. The mean of each factor is still at most 1 if each value, missing or not, has
//! a mean of at least (at most) `b` given all before it, so silence proves neither claim.
//!
//! # Differences
//!
//! Load changes during the day. A value that depends on it is compared with that of the control on
//! the same page: `z = y_x - y_c`. What a bet must be able to lose is the largest difference.
//! [`Bets::on_difference`] has room for all of it. [`Bets::on_cut_difference`] cuts differences at
//! ± 10 limits, and finds harm of twice the limit after a third of the pages; its claim is about
//! the mean of the cut differences. A mean of cut differences within the limit says nothing about
//! rare long waits, so there is no claim of safety by it.
//!
//! [`Bets::on_arms`] are for pages that show one ranker alone, which have no such difference: a coin
//! takes its place.
//!
//! # Bounds
//!
//! Each limit b has evidence of its own from the same counts. That the mean is below b grows with
//! b: `λ (b - z)` is a share of `(b - z) / (most - b)`, which grows with b for each z up to the
//! largest value. So the limits that are beaten have a least one, [`Bets::bound`], and of harm a
//! largest one. The true mean is ever beaten with a probability of at most the error (Ville).

/// Number of levels.
pub const LEVELS: usize = 17;
/// The level of 0.
const ZERO: usize = LEVELS / 2;
/// Number of bets.
const BETS: usize = 8;
/// Share of the capital that the boldest bet stakes.
const BOLDEST: f64 = 0.9;
/// Each halves the distance of a bound to the last limit that is not beaten.
const HALVINGS: usize = 20;
/// Differences are cut at this multiple of their limit.
const CUT: f64 = 10.0;

/// How many values are at each level.
pub type Counts = [u32; LEVELS];

/// The claims on a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The mean is above the limit.
    Harm,
    /// The mean is below the limit.
    Safe,
}

const SIDES: [Side; 2] = [Side::Harm, Side::Safe];

impl Side {
    /// Its name, such as `harm`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Harm => "harm",
            Self::Safe => "safe",
        }
    }
}

/// Bets on the mean of a value against a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Bets {
    /// The largest level.
    most: f64,
    /// The least value.
    least: f64,
    /// The logarithms of the factors of each bet, by level.
    harm: [[f64; LEVELS]; BETS],
    safe: [[f64; LEVELS]; BETS],
    /// The stake of the boldest bet times the excess over the limit, by level: for harm, for safe.
    staked: [[f64; LEVELS]; 2],
}

impl Bets {
    /// On a value from 0 to `cap`, with a `limit` within: 0 < `limit` < `cap`.
    pub fn on_value(cap: f64, limit: f64) -> Self {
        Self::on(cap, 0.0, limit)
    }

    /// On the difference of two values from 0 to `cap`, with a `limit` above 0.
    pub fn on_difference(cap: f64, limit: f64) -> Self {
        Self::on(cap, -cap, limit)
    }

    /// The same, with differences cut at ± 10 limits; `None` if there are none beyond.
    pub fn on_cut_difference(cap: f64, limit: f64) -> Option<Self> {
        let most = CUT * limit;
        (most < cap).then(|| Self::on(most, -most, limit))
    }

    /// On the difference of the means of two arms, of values from 0 to `cap`, with a `limit` from 0:
    /// on `2 s (y - f)`, for the value y of a page, its arm s = ±1 by a fair coin, and a forecast f
    /// of y that does not depend on the coin. Its mean is the difference.
    pub fn on_arms(cap: f64, limit: f64) -> Self {
        Self::on(2.0 * cap, -2.0 * cap, limit)
    }

    fn on(most: f64, least: f64, limit: f64) -> Self {
        let staked = SIDES.map(|side| staked(side, [least, most], limit));
        let bets = |staked: &[f64; LEVELS]| {
            std::array::from_fn(|bet| {
                staked.map(|excess| libm::log1p(libm::ldexp(excess, -(bet as i32))))
            })
        };
        let [harm, safe] = staked.each_ref().map(bets);
        Self { most, least, harm, safe, staked }
    }

    /// The level of a value, which is cut to the range of the levels. `coin` is uniform in [0, 1),
    /// and independent of the value.
    pub fn level(&self, value: f64, coin: f64) -> usize {
        let value = (value / self.most).clamp(-1.0, 1.0);
        let above = (1..LEVELS - 1).find(|&level| value < SHARES[level]).unwrap_or(LEVELS - 1);
        let (low, high) = (SHARES[above - 1], SHARES[above]);
        above - usize::from(coin * (high - low) >= value - low)
    }

    /// The largest value.
    pub fn most(&self) -> f64 {
        self.most
    }

    /// These counts, with so many missing values as the worst ones for the claim.
    fn with_missing(side: Side, counts: &Counts, missing: u32) -> Counts {
        let mut counts = *counts;
        let worst = match side {
            Side::Harm => &mut counts[0],
            Side::Safe => &mut counts[LEVELS - 1],
        };
        *worst = worst.saturating_add(missing);
        counts
    }

    /// The largest value that the mean is proven to be above, for harm, or the least one that it is
    /// proven to be below, for safety, to 2^-20 of the range; `None` if there is none. It is wrong
    /// at any time in at most this share of experiments.
    pub fn bound(&self, side: Side, counts: &Counts, missing: u32, error: f64) -> Option<f64> {
        let counts = Self::with_missing(side, counts, missing);
        let range = [self.least, self.most];
        let is_proven = |limit: f64| {
            let staked = staked(side, range, limit);
            let ln = ln_mean(|bet| {
                let terms = staked.iter().zip(&counts).filter(|(_, count)| **count > 0);
                let ln = |excess: f64| libm::log1p(libm::ldexp(excess, -(bet as i32)));
                terms.map(|(&excess, &count)| f64::from(count) * ln(excess)).sum()
            });
            ln >= -libm::log(error)
        };
        let (mut proven, mut open) = match side {
            Side::Harm => (self.least, self.most),
            Side::Safe => (self.most, self.least),
        };
        let end = proven;
        for _ in 0..HALVINGS {
            let middle = 0.5 * (proven + open);
            *(if is_proven(middle) { &mut proven } else { &mut open }) = middle;
        }
        (proven != end).then_some(proven)
    }

    /// The mean of the values so far; `None` before the first.
    pub fn mean(&self, counts: &Counts) -> Option<f64> {
        let sum = |of: &dyn Fn(usize) -> f64| {
            counts
                .iter()
                .enumerate()
                .map(|(level, &count)| f64::from(count) * of(level))
                .sum::<f64>()
        };
        let values = sum(&|_| 1.0);
        (values > 0.0).then(|| self.most * sum(&|level| SHARES[level]) / values)
    }

    /// No less than [`Bets::ln`], in a fraction of its time: `ln(1 + x)` is at most `x`.
    pub fn ln_at_most(&self, side: Side, counts: &Counts, missing: u32) -> f64 {
        let counts = Self::with_missing(side, counts, missing);
        let staked = self.staked[side as usize].iter().zip(&counts);
        staked.map(|(staked, &count)| staked * f64::from(count)).sum::<f64>().max(0.0)
    }

    /// `ln E` of the claim, from the values so far. The same on every machine.
    pub fn ln(&self, side: Side, counts: &Counts, missing: u32) -> f64 {
        let counts = Self::with_missing(side, counts, missing);
        let bets = match side {
            Side::Harm => &self.harm,
            Side::Safe => &self.safe,
        };
        ln_mean(|bet| {
            let terms = bets[bet].iter().zip(&counts);
            terms.map(|(factor, &count)| f64::from(count) * factor).sum()
        })
    }
}

/// The logarithm of the mean of all bets, from the logarithm of each.
fn ln_mean(ln: impl Fn(usize) -> f64) -> f64 {
    let ends: [f64; BETS] = std::array::from_fn(ln);
    let largest = ends.into_iter().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = ends.iter().map(|end| libm::exp(end - largest)).sum();
    largest + libm::log(sum / BETS as f64)
}

/// The stake of the boldest bet times the excess over the limit, by level, for values in this
/// range.
fn staked(side: Side, [least, most]: [f64; 2], limit: f64) -> [f64; LEVELS] {
    let (sign, least) = match side {
        Side::Harm => (1.0, least),
        Side::Safe => (-1.0, -most),
    };
    std::array::from_fn(|level| {
        let value = (sign * SHARES[level] * most).max(least);
        BOLDEST / (sign * limit - least) * (value - sign * limit)
    })
}

/// The levels, as shares of the largest one: from -1 to 1.
const SHARES: [f64; LEVELS] = {
    let mut shares = [0.0; LEVELS];
    let mut distance = 1;
    while distance <= ZERO {
        let size = 1.0 / (1_u32 << (ZERO - distance)) as f64;
        shares[ZERO - distance] = -size;
        shares[ZERO + distance] = size;
        distance += 1;
    }
    shares
};
