//! Thompson samples of which only the side of 1/2 matters (`algorithms.md` §2, "An exact shortcut").
//!
//! `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` is above 1/2 with a probability that changes only when the pair is played.
//! [`SignOdds`] keeps it for every ordered pair; [`SignDraw`] draws the signs of one selection, each from its own
//! place in a counter-based stream, so that a sign can be asked for again without having been stored.

use fearless_simd::{Level, Simd, dispatch};
use rand::{RngExt, SeedableRng};
use rand_distr::{Beta, Distribution, Exp1};
use special::Beta as _;

use super::{Chance, Tally};

/// `Pr(θ > 1/2)` for `θ ~ Beta(W+1, L+1)`, from `2W` and `2L`.
///
/// The smaller tail is computed and the other is its complement, so that neither loses its digits. Absolute error
/// below 1e-9; 0 or 1 where the smaller tail is below 1e-11.
pub fn probability_above_half(half_wins: u32, half_losses: u32) -> f64 {
    beta_above_half(f64::from(half_wins) / 2.0, f64::from(half_losses) / 2.0)
}

/// `Pr(θ > 1/2)` for `θ ~ Beta(a+1, b+1)`, `a` and `b` at least 0; as [`probability_above_half`].
pub fn beta_above_half(a: f64, b: f64) -> f64 {
    if a == b {
        return 0.5;
    }
    let tail = lower_tail(a.min(b), a.max(b));
    if a < b { tail } else { 1.0 - tail }
}

/// `Pr(Beta(a+1, b+1) > 1/2)` for `a < b`.
fn lower_tail(a: f64, b: f64) -> f64 {
    // It is Pr(Bin(m, 1/2) ≤ a) with m = a + b + 1, continued to half-integers
    let m = a + b + 1.0;
    let z = (b - a) / m.sqrt();
    // Hoeffding: the tail is at most exp(-z²/2)
    if z > 7.2 {
        return 0.0;
    }
    if m > NORMAL_FROM {
        // Normal with continuity correction and the next Edgeworth term; the error is O(m⁻²) and the cost constant,
        // where the series of the incomplete beta takes √m terms and loses digits
        let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        return 0.5 * libm::erfc(z / std::f64::consts::SQRT_2) - density * (z * z * z - z) / (12.0 * m);
    }
    let (p, q) = (b + 1.0, a + 1.0);
    0.5_f64.inc_beta(p, q, p.ln_beta(q))
}

/// Comparisons of a pair from which the normal form is used: its error is below 1e-9 there.
const NORMAL_FROM: f64 = 10_000.0;

/// `Pr(θ[i][j] > 1/2)` of every ordered pair, in units of 2⁻³². Four bytes an ordered pair.
#[derive(Debug, Clone)]
pub struct SignOdds {
    rankers: usize,
    /// Row-major. `NEVER`, `ALWAYS`, `EVEN`, or the probability as a multiple of 2⁻³².
    odds: Vec<u32>,
    /// Pairs `(low, high)` whose odds are not those of the tally yet; some of them several times.
    stale: Vec<(u16, u16)>,
    /// What the processor can do; it changes how fast signs are drawn, not which.
    level: Level,
}

const NEVER: u32 = 0;
const ALWAYS: u32 = u32::MAX;
const EVEN: u32 = 1 << 31;

impl SignOdds {
    /// The odds of a tally.
    pub fn new(tally: &Tally) -> Self {
        let rankers = tally.rankers();
        let mut odds =
            Self { rankers, odds: vec![EVEN; rankers * rankers], stale: Vec::new(), level: Level::new() };
        for i in 1..rankers {
            for j in 0..i {
                odds.update(tally, i, j);
            }
        }
        odds
    }

    /// Odds from `above(i, j)`, `Pr(θ[i][j] > 1/2)` for each pair `i > j`.
    pub fn from_probabilities(rankers: usize, mut above: impl FnMut(usize, usize) -> f64) -> Self {
        let mut odds =
            Self { rankers, odds: vec![EVEN; rankers * rankers], stale: Vec::new(), level: Level::new() };
        for i in 1..rankers {
            for j in 0..i {
                odds.set(i, j, above(i, j));
            }
        }
        odds
    }

    /// The counts of `{i, j}` have changed.
    pub fn update(&mut self, tally: &Tally, i: usize, j: usize) {
        if i == j {
            return;
        }
        self.set(i, j, probability_above_half(tally.half_wins(i, j), tally.half_wins(j, i)));
    }

    fn set(&mut self, i: usize, j: usize, above: f64) {
        let odds = (above * 2.0_f64.powi(32)).round() as u32; // saturates
        let (odds, reverse) = match odds {
            0 | 1 => (NEVER, ALWAYS),
            u32::MAX => (ALWAYS, NEVER),
            odds => (odds, odds.wrapping_neg()),
        };
        self.odds[i * self.rankers + j] = odds;
        self.odds[j * self.rankers + i] = reverse;
    }

    /// The counts of `{i, j}` have changed; the odds may wait for [`SignOdds::settle`].
    pub fn update_later(&mut self, i: usize, j: usize) {
        if i == j {
            return;
        }
        // at most two entries a pair, and a pair is sorted twice at most for each that is added
        if self.stale.len() >= self.rankers * (self.rankers - 1) {
            self.forget_repeats();
        }
        self.stale.push((i.min(j) as u16, i.max(j) as u16));
    }

    /// Catch up with all that was left for later. The newest counts of a pair alone matter.
    pub fn settle(&mut self, tally: &Tally) {
        self.forget_repeats();
        for (i, j) in std::mem::take(&mut self.stale) {
            self.update(tally, i.into(), j.into());
        }
    }

    fn forget_repeats(&mut self) {
        self.stale.sort_unstable();
        self.stale.dedup();
    }

    /// One more ranker, with the next index.
    pub fn enlist(&mut self) {
        let old = self.rankers;
        let mut wider = vec![EVEN; (old + 1) * (old + 1)];
        for (i, row) in self.odds.chunks_exact(old).enumerate() {
            wider[i * (old + 1)..i * (old + 1) + old].copy_from_slice(row);
        }
        self.rankers = old + 1;
        self.odds = wider;
    }
}

/// The signs of one selection. The sign of an ordered pair `(owner, other)` is a function of the draw; ask for each
/// unordered pair in one order only, as the two orders are drawn apart.
#[derive(Debug, Clone, Copy)]
pub struct SignDraw<'a> {
    odds: &'a SignOdds,
    key: u64,
}

impl<'a> SignDraw<'a> {
    /// Fresh signs.
    pub fn new(odds: &'a SignOdds, chance: &mut Chance) -> Self {
        Self { odds, key: chance.random() }
    }

    /// Let each of `owners` meet every later ranker `j` with `counted[j] = 1` (the others have 0): whoever wins gets a point
    /// in `scores`. The same signs as [`SignRow::wins`], many at a time.
    pub fn meet_later(self, owners: impl Iterator<Item = usize>, counted: &[u32], scores: &mut [u32]) {
        dispatch!(self.odds.level, simd => meet_rows(simd, self, owners, counted, scores));
    }

    /// The signs of `owner`'s row.
    #[inline(always)]
    pub fn row(self, owner: usize) -> SignRow<'a> {
        let k = self.odds.rankers;
        let word = self.word(owner as u64);
        SignRow {
            odds: &self.odds.odds[owner * k..(owner + 1) * k],
            owner,
            keys: [word as u32, (word >> 32) as u32],
        }
    }

    /// A generator of the unordered pair's own, the same in either order.
    pub fn pair_chance(self, i: usize, j: usize) -> Chance {
        let pair = i.min(j) * self.odds.rankers + i.max(j);
        Chance::seed_from_u64(self.word(PAIRS + pair as u64))
    }

    /// Output number `index` of the SplitMix64 stream of this draw.
    #[inline(always)]
    fn word(self, index: u64) -> u64 {
        let mut z = self.key.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

// Where in the stream generators of pairs begin; rows take the first words.
const PAIRS: u64 = 1 << 33;

/// One row of a [`SignDraw`].
#[derive(Debug, Clone, Copy)]
pub struct SignRow<'a> {
    odds: &'a [u32],
    owner: usize,
    keys: [u32; 2],
}

impl SignRow<'_> {
    /// Whether `θ[owner][other] > 1/2`.
    #[inline]
    pub fn wins(&self, other: usize) -> bool {
        sign(self.keys, other as u32, self.odds[other]) == 1
    }

    /// [`SignDraw::meet_later`] for one owner.
    #[inline(always)]
    fn meet_later(&self, counted: &[u32], scores: &mut [u32]) {
        let first = self.owner + 1;
        let (odds, counted) = (&self.odds[first..], &counted[first..]);
        let (own, others) = scores.split_at_mut(first);
        let others = &mut others[..odds.len()];
        let (mut won, mut other) = (0, first as u32);
        for ((&odds, &counted), score) in odds.iter().zip(counted).zip(others) {
            let wins = sign(self.keys, other, odds);
            won += wins & counted;
            *score += !wins & counted;
            other += 1;
        }
        own[self.owner] += won;
    }
}

/// Compiled once for each width of the processor's registers: everything in it has to be inlined.
#[inline(always)]
fn meet_rows<S: Simd>(
    _: S,
    draw: SignDraw,
    owners: impl Iterator<Item = usize>,
    counted: &[u32],
    scores: &mut [u32],
) {
    for owner in owners {
        draw.row(owner).meet_later(counted, scores);
    }
}

/// 1 with probability `odds`, else 0: a keyed hash of `other` in 32-bit steps and without a branch, so that the compiler
/// makes several at once of a loop.
#[inline(always)]
fn sign(keys: [u32; 2], other: u32, odds: u32) -> u32 {
    let mut x = other.wrapping_add(keys[0]);
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    // the last multiplication leaves its upper bits mixed, and those decide
    x = (x ^ (x >> 15) ^ keys[1]).wrapping_mul(0x846c_a68b);
    u32::from(x < odds) | u32::from(odds == ALWAYS)
}

/// `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)`.
pub fn theta(tally: &Tally, i: usize, j: usize, chance: &mut Chance) -> f64 {
    theta_of(tally.wins(i, j), tally.wins(j, i), chance)
}

/// `θ ~ Beta(wins+1, losses+1)`.
pub fn theta_of(wins: f64, losses: f64, chance: &mut Chance) -> f64 {
    beta(wins, losses).sample(chance)
}

/// `Beta(a+1, b+1)`.
fn beta(a: f64, b: f64) -> Beta<f64> {
    Beta::new(a + 1.0, b + 1.0).expect("both shapes are at least 1")
}

/// `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` given on which side of 1/2 it lies.
pub fn theta_given_sign(tally: &Tally, i: usize, j: usize, above: bool, chance: &mut Chance) -> f64 {
    if above {
        theta_above_half(tally.wins(i, j), tally.wins(j, i), chance)
    } else {
        1.0 - theta_above_half(tally.wins(j, i), tally.wins(i, j), chance)
    }
}

/// `θ ~ Beta(a+1, b+1)` given `θ > 1/2`, `a` and `b` at least 0. Takes few draws, however unlikely the condition.
pub fn theta_above_half(a: f64, b: f64, chance: &mut Chance) -> f64 {
    if a + b == 0.0 {
        return 0.5 + chance.random::<f64>() / 2.0;
    }
    let behind = b - a;
    if behind <= (a + b + 1.0).sqrt() {
        // not rarer than about 1 in 6: draw until it is so
        let beta = beta(a, b);
        loop {
            let theta = beta.sample(chance);
            if theta > 0.5 {
                return theta;
            }
        }
    }
    // The log-density a ln θ + b ln(1-θ) is concave and falls above 1/2, so it lies under its tangent there, whose
    // slope is -2 (b - a): propose from that exponential, accept by the gap.
    let slope = 2.0 * behind;
    loop {
        let step: f64 = chance.sample::<f64, _>(Exp1) / slope;
        if step >= 0.5 || step == 0.0 {
            continue;
        }
        let gap = a * (2.0 * step).ln_1p() + b * (-2.0 * step).ln_1p() + slope * step;
        if chance.sample::<f64, _>(Exp1) >= -gap {
            return 0.5 + step;
        }
    }
}
