//! Thompson samples of which only the side of 1/2 matters (`algorithms.md` §2, "An exact
//! shortcut").
//!
//! `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` is above 1/2 with a probability that changes only when
//! the pair is played. [`WinProbabilities`] keeps it for every pair; [`PairwiseSample`] draws the
//! signs of one selection, each from its own place in a counter-based stream, so that a sign can be
//! asked for again without having been stored.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};
use rand::{RngExt, SeedableRng};
use rand_distr::{Beta, Distribution, Exp1};
use special::Beta as _;

use crate::pairs::pair_index;
use crate::{PolicyRng, Tally};

/// `Pr(θ > 1/2)` for `θ ~ Beta(W+1, L+1)`, from `2W` and `2L`.
///
/// The smaller tail is computed and the other is its complement, so that neither loses its digits.
/// Absolute error below 1e-9; 0 or 1 where the smaller tail is below 1e-11.
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
        // Normal with continuity correction and the next Edgeworth term; the error is O(m⁻²) and
        // the cost constant, where the series of the incomplete beta takes √m terms and loses
        // digits
        let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        return 0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
            - density * (z * z * z - z) / (12.0 * m);
    }
    let (p, q) = (b + 1.0, a + 1.0);
    0.5_f64.inc_beta(p, q, p.ln_beta(q))
}

/// Comparisons of a pair from which the normal form is used: its error is below 1e-9 there.
const NORMAL_FROM: f64 = 10_000.0;

/// Where the odds of signs come from.
pub trait WinProbabilitySource {
    /// `Pr(θ[i][j] > 1/2)`, to all its digits.
    fn above_half(&self, i: usize, j: usize) -> f64;
}

impl WinProbabilitySource for Tally {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        probability_above_half(self.half_wins(i, j), self.half_wins(j, i))
    }
}

/// `Pr(θ[high][low] > 1/2)` of every pair `low < high`, as far as the first 16 bits of a draw ask
/// for it: two bytes a pair. The rest is computed anew for the one draw in 65,536 whose first bits
/// do not decide.
#[derive(Debug, Clone)]
pub struct WinProbabilities {
    rankers: usize,
    /// The first 16 bits of the odds, in the order of [`pair_index`], so that a ranker's pairs with
    /// those before it lie together; then room for a register beyond the last.
    odds: Vec<u16>,
    /// Pairs `(low, high)` whose odds are not those of their source yet; some of them several
    /// times.
    stale: Vec<(u16, u16)>,
    /// What the processor can do; it changes how fast signs are drawn, not which.
    level: Level,
}

/// Rankers that the widest register holds.
const WIDEST: usize = 32;
const EVEN: u16 = 1 << 15;

/// The odds of the pair `low < high`, in units of 2⁻³²: at most 2³², which is certainty.
fn odds_of(source: &(impl WinProbabilitySource + ?Sized), low: usize, high: usize) -> u64 {
    (source.above_half(high, low) * 2.0_f64.powi(32)).round() as u64
}

fn first_bits(odds: u64) -> u16 {
    u16::try_from(odds >> 16).unwrap_or(u16::MAX)
}

impl WinProbabilities {
    /// The odds that `source` gives for so many rankers.
    pub fn new(rankers: usize, source: &impl WinProbabilitySource) -> Self {
        let mut odds = Self {
            rankers,
            odds: vec![EVEN; places(rankers)],
            stale: Vec::new(),
            level: Level::new(),
        };
        for high in 1..rankers {
            for low in 0..high {
                odds.update(source, low, high);
            }
        }
        odds
    }

    /// What `source` says of `{i, j}` has changed.
    pub fn update(&mut self, source: &impl WinProbabilitySource, i: usize, j: usize) {
        if i != j {
            self.odds[pair_index(i, j)] = first_bits(odds_of(source, i.min(j), i.max(j)));
        }
    }

    /// What its source says of `{i, j}` has changed; the odds may wait for
    /// [`WinProbabilities::catch_up`].
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
    pub fn catch_up(&mut self, source: &impl WinProbabilitySource) {
        self.forget_repeats();
        for (i, j) in std::mem::take(&mut self.stale) {
            self.update(source, i.into(), j.into());
        }
    }

    fn forget_repeats(&mut self) {
        self.stale.sort_unstable();
        self.stale.dedup();
    }

    /// One more ranker, with the next index and even odds.
    pub fn enlist(&mut self) {
        self.rankers += 1;
        self.odds.resize(places(self.rankers), EVEN);
    }
}

fn places(rankers: usize) -> usize {
    rankers * (rankers - 1) / 2 + WIDEST
}

/// The signs of one selection. The sign of an ordered pair `(owner, other)` is a function of the
/// draw; ask for each unordered pair in one order only, as the two orders are drawn apart.
#[derive(Clone, Copy)]
pub struct PairwiseSample<'a> {
    odds: &'a WinProbabilities,
    source: &'a dyn WinProbabilitySource,
    key: u64,
}

impl<'a> PairwiseSample<'a> {
    /// Fresh signs. `source` is what the odds were made from.
    pub fn new(
        odds: &'a WinProbabilities,
        source: &'a dyn WinProbabilitySource,
        rng: &mut PolicyRng,
    ) -> Self {
        Self { odds, source, key: rng.random() }
    }

    /// So many places [`PairwiseSample::meet_earlier`] wants for each of its counts of `rankers`.
    pub const fn room(rankers: usize) -> usize {
        rankers.next_multiple_of(WIDEST)
    }

    /// Let each of `owners` meet every earlier ranker `j` with `counted[j] = 1` (the others have
    /// 0): whoever wins gets a point in `scores`. The same signs as [`SampleRow::wins`], many at a
    /// time. Both slices have [`PairwiseSample::room`].
    pub fn meet_earlier(
        self,
        owners: impl Iterator<Item = usize>,
        counted: &[u16],
        scores: &mut [u16],
    ) {
        let room = Self::room(self.odds.rankers);
        let (counted, scores) = (&counted[..room], &mut scores[..room]);
        dispatch!(self.odds.level, simd => meet_rows(simd, self, owners, counted, scores));
    }

    /// Whether `high` wins where the first bits of its odds are those that were drawn.
    #[cold]
    #[inline(never)]
    fn tied(self, low: usize, high: usize, drawn: u16) -> bool {
        let rest = self.word(RESTS + pair_index(low, high) as u64) & 0xffff;
        (u64::from(drawn) << 16 | rest) < odds_of(self.source, low, high)
    }

    /// The signs of `owner`'s row.
    #[inline(always)]
    pub fn row(self, owner: usize) -> SampleRow<'a> {
        let word = self.word(owner as u64);
        SampleRow { signs: self, owner, keys: [word as u32, (word >> 32) as u32] }
    }

    /// A generator of the unordered pair's own, the same in either order.
    pub fn pair_chance(self, i: usize, j: usize) -> PolicyRng {
        PolicyRng::seed_from_u64(self.word(PAIRS + pair_index(i, j) as u64))
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

// Where in the stream generators of pairs begin, and further bits of pairs; rows take the first
// words.
const PAIRS: u64 = 1 << 33;
const RESTS: u64 = 1 << 34;

/// One row of a [`PairwiseSample`]: 16 bits for each other ranker, two of them by one keyed hash in
/// 32-bit steps and without a branch.
#[derive(Clone, Copy)]
pub struct SampleRow<'a> {
    signs: PairwiseSample<'a>,
    owner: usize,
    keys: [u32; 2],
}

// lowbias32 (Chris Wellons, "Prospecting for Hash Functions"), whose both halves are mixed
const MULTIPLIERS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

impl SampleRow<'_> {
    /// Whether `θ[owner][other] > 1/2`.
    #[inline]
    pub fn wins(&self, other: usize) -> bool {
        let (low, high) = (self.owner.min(other), self.owner.max(other));
        let draw = self.draw(other);
        let odds = self.signs.odds.odds[pair_index(low, high)];
        let high_wins = if draw == odds { self.signs.tied(low, high, draw) } else { draw < odds };
        high_wins == (self.owner == high)
    }

    #[inline(always)]
    fn draw(&self, other: usize) -> u16 {
        let mut x = ((other / 2) as u32).wrapping_add(self.keys[0]);
        x = (x ^ (x >> 16)).wrapping_mul(MULTIPLIERS[0]);
        x = (x ^ (x >> 15) ^ self.keys[1]).wrapping_mul(MULTIPLIERS[1]);
        x ^= x >> 16;
        // as a register's 32-bit lanes fall into two
        let [a, b, c, d] = x.to_ne_bytes();
        u16::from_ne_bytes([[a, b], [c, d]][other % 2])
    }

    /// [`SampleRow::draw`] for as many others as a register holds; `halves` are those of the first,
    /// of the third, and so on.
    #[inline(always)]
    fn draws<S: Simd>(&self, halves: S::u32s) -> S::u16s {
        let mut x = halves + self.keys[0];
        x = (x ^ (x >> 16)) * MULTIPLIERS[0];
        x = (x ^ (x >> 15) ^ self.keys[1]) * MULTIPLIERS[1];
        (x ^ (x >> 16)).bitcast()
    }
}

/// Compiled once for each width of the processor's registers: everything in it has to be inlined.
#[inline(always)]
fn meet_rows<S: Simd>(
    simd: S,
    draw: PairwiseSample,
    owners: impl Iterator<Item = usize>,
    counted: &[u16],
    scores: &mut [u16],
) {
    let lanes = S::u16s::from_fn(simd, |lane| lane as u16);
    let none = S::u16s::splat(simd, 0);
    let first_halves = S::u32s::from_fn(simd, |lane| lane as u32);
    for owner in owners {
        let row = draw.row(owner);
        let odds = &draw.odds.odds[owner * owner.saturating_sub(1) / 2..];
        let blocks = odds
            .chunks_exact(S::u16s::LEN)
            .zip(counted.chunks_exact(S::u16s::LEN))
            .zip(scores.chunks_exact_mut(S::u16s::LEN));
        let (mut won, mut won_tied, mut halves) = (none, 0, first_halves);
        for (((odds, counted), scores), first) in blocks.zip((0..owner).step_by(S::u16s::LEN)) {
            let odds = S::u16s::from_slice(simd, odds);
            // nobody from the owner on
            let counted = lanes
                .simd_lt((owner - first).min(S::u16s::LEN) as u16)
                .select(S::u16s::from_slice(simd, counted), none);
            let draws = row.draws::<S>(halves);
            let points = draws.simd_lt(odds).select(counted, none);
            won += points;
            (S::u16s::from_slice(simd, scores) + (counted - points)).store_slice(scores);
            let tied = draws.simd_eq(odds);
            if tied.any_true() {
                let tied = tied.to_bitmask();
                for lane in
                    (0..S::u16s::LEN).filter(|lane| tied >> lane & 1 == 1 && counted[*lane] == 1)
                {
                    if draw.tied(first + lane, owner, draws[lane]) {
                        won_tied += 1;
                        scores[lane] -= 1;
                    }
                }
            }
            halves += (S::u16s::LEN / 2) as u32;
        }
        scores[owner] += won.reduce_sum() + won_tied;
    }
}

/// `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)`.
pub fn theta(tally: &Tally, i: usize, j: usize, rng: &mut PolicyRng) -> f64 {
    theta_of(tally.wins(i, j), tally.wins(j, i), rng)
}

/// `θ ~ Beta(wins+1, losses+1)`.
pub fn theta_of(wins: f64, losses: f64, rng: &mut PolicyRng) -> f64 {
    beta(wins, losses).sample(rng)
}

/// `Beta(a+1, b+1)`.
fn beta(a: f64, b: f64) -> Beta<f64> {
    Beta::new(a + 1.0, b + 1.0).expect("both shapes are at least 1")
}

/// `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` given on which side of 1/2 it lies.
pub fn theta_given_sign(
    tally: &Tally,
    i: usize,
    j: usize,
    above: bool,
    rng: &mut PolicyRng,
) -> f64 {
    if above {
        theta_above_half(tally.wins(i, j), tally.wins(j, i), rng)
    } else {
        1.0 - theta_above_half(tally.wins(j, i), tally.wins(i, j), rng)
    }
}

/// `θ ~ Beta(a+1, b+1)` given `θ > 1/2`, `a` and `b` at least 0. Takes few draws, however unlikely
/// the condition.
pub fn theta_above_half(a: f64, b: f64, rng: &mut PolicyRng) -> f64 {
    if a + b == 0.0 {
        return 0.5 + rng.random::<f64>() / 2.0;
    }
    let behind = b - a;
    if behind <= (a + b + 1.0).sqrt() {
        // not rarer than about 1 in 6: draw until it is so
        let beta = beta(a, b);
        loop {
            let theta = beta.sample(rng);
            if theta > 0.5 {
                return theta;
            }
        }
    }
    // The log-density a ln θ + b ln(1-θ) is concave and falls above 1/2, so it lies under its
    // tangent there, whose slope is -2 (b - a): propose from that exponential, accept by the gap.
    let slope = 2.0 * behind;
    loop {
        let step: f64 = rng.sample::<f64, _>(Exp1) / slope;
        if step >= 0.5 || step == 0.0 {
            continue;
        }
        let gap = a * (2.0 * step).ln_1p() + b * (-2.0 * step).ln_1p() + slope * step;
        if rng.sample::<f64, _>(Exp1) >= -gap {
            return 0.5 + step;
        }
    }
}
