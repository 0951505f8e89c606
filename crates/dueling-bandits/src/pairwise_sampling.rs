//! Thompson samples for steps that use only their side of 1/2 (`algorithms.md` §2).
//!
//! `θ[i][j] ~ Beta(W[i][j]+1, W[j][i]+1)` is above 1/2 with a probability that changes only when
//! the pair is played. [`WinProbabilities`] keeps this probability for every pair.
//! [`PairwiseSample`] draws the winner of each pair in one selection. Every pair has its own
//! position in a counter-based random stream, so the winner of a pair can be drawn again instead of
//! being stored.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch};
use rand::{RngExt, SeedableRng};

use crate::PolicyRng;
use crate::pairs::{pair_index, pairs_by_strips};
use crate::rng::mix;
use crate::win_probability::{NEARLY, WinProbabilitySource};

/// `Pr(θ[high][low] > 1/2)` of every pair `low < high`, in two bytes a pair: the 16 leading bits.
/// These bits leave one draw in 65,536 undecided; the other bits are then computed from the source.
#[derive(Debug, Clone)]
pub struct WinProbabilities {
    rankers: usize,
    /// The leading bits in the order of [`pair_index`], so that the pairs of a ranker with all
    /// earlier ones are contiguous; then padding for one register.
    leading_bits: Vec<u16>,
    /// Pairs `(low, high)` that differ from their source, perhaps repeated.
    stale: Vec<(u16, u16)>,
    /// Instruction set of the processor. It changes the speed, not the result.
    level: Level,
}

/// Number of rankers that the widest register holds.
const WIDEST: usize = 32;
const EVEN: u16 = 1 << 15;

/// `Pr(θ[high][low] > 1/2)` in units of 2⁻³²: at most 2³², which is certainty.
fn scaled_probability(
    source: &(impl WinProbabilitySource + ?Sized),
    low: usize,
    high: usize,
) -> u64 {
    (source.above_half(high, low) * 2.0_f64.powi(32)).round() as u64
}

/// The 16 leading bits of the [`scaled_probability`].
fn leading_bits_of(source: &impl WinProbabilitySource, low: usize, high: usize) -> u16 {
    if let Some(nearly) = source.nearly_above_half(high, low) {
        // twice the error, because the exact probability is rounded
        let [least, most] = [nearly - 2.0 * NEARLY, nearly + 2.0 * NEARLY]
            .map(|bound| (bound * 2.0_f64.powi(16)) as u16); // from 0 to 65,535
        if least == most {
            return least;
        }
    }
    leading_bits(scaled_probability(source, low, high))
}

fn leading_bits(scaled: u64) -> u16 {
    u16::try_from(scaled >> 16).unwrap_or(u16::MAX)
}

impl WinProbabilities {
    /// The win probabilities that `source` gives for `rankers` rankers.
    pub fn new(rankers: usize, source: &impl WinProbabilitySource) -> Self {
        let mut probabilities = Self {
            rankers,
            leading_bits: vec![EVEN; padded_pairs(rankers)],
            stale: Vec::new(),
            level: Level::new(),
        };
        pairs_by_strips(rankers).for_each(|(low, high)| {
            probabilities.update(source, low, high);
        });
        probabilities
    }

    /// Read the probability of `{i, j}` from `source` again.
    pub fn update(&mut self, source: &impl WinProbabilitySource, i: usize, j: usize) {
        if i != j {
            let leading_bits = leading_bits_of(source, i.min(j), i.max(j));
            self.leading_bits[pair_index(i, j)] = leading_bits;
        }
    }

    /// Read the probability of `{i, j}` again at the next [`WinProbabilities::catch_up`].
    pub fn update_later(&mut self, i: usize, j: usize) {
        if i == j {
            return;
        }
        // bounds the list to two entries a pair, at a constant amortised cost
        if self.stale.len() >= self.rankers * (self.rankers - 1) {
            self.remove_repeats();
        }
        self.stale.push((i.min(j) as u16, i.max(j) as u16));
    }

    /// Read the probabilities of all pairs of [`WinProbabilities::update_later`] again.
    pub fn catch_up(&mut self, source: &impl WinProbabilitySource) {
        self.remove_repeats();
        for (i, j) in std::mem::take(&mut self.stale) {
            self.update(source, i.into(), j.into());
        }
    }

    fn remove_repeats(&mut self) {
        self.stale.sort_unstable();
        self.stale.dedup();
    }

    /// Add one ranker, with the next index, that wins each pair with 1/2.
    pub fn enlist(&mut self) {
        self.rankers += 1;
        self.leading_bits.resize(padded_pairs(self.rankers), EVEN);
    }
}

fn padded_pairs(rankers: usize) -> usize {
    rankers * (rankers - 1) / 2 + WIDEST
}

/// The winners of all pairs in one selection. The winner of the ordered pair `(owner, other)` is a
/// function of the sample. The two orders of a pair are drawn independently, so ask for each
/// unordered pair in one order only.
#[derive(Clone, Copy)]
pub struct PairwiseSample<'a> {
    probabilities: &'a WinProbabilities,
    source: &'a dyn WinProbabilitySource,
    key: u64,
}

impl<'a> PairwiseSample<'a> {
    /// A new sample. `source` is the source of `probabilities`.
    pub fn new(
        probabilities: &'a WinProbabilities,
        source: &'a dyn WinProbabilitySource,
        rng: &mut PolicyRng,
    ) -> Self {
        Self { probabilities, source, key: rng.random() }
    }

    /// Length of the slices of [`PairwiseSample::score_against_earlier`] for `rankers` rankers.
    pub const fn padded_len(rankers: usize) -> usize {
        rankers.next_multiple_of(WIDEST)
    }

    /// Add the results of each of `owners` against every earlier ranker `j` with `included[j] = 1`
    /// to `scores`: one point for the winner. `included` is 0 for all other rankers. Both slices
    /// have the length [`PairwiseSample::padded_len`].
    ///
    /// The winners are those of [`SampleRow::wins`]; a register of pairs is drawn at once.
    pub fn score_against_earlier(
        self,
        owners: impl Iterator<Item = usize>,
        included: &[u16],
        scores: &mut [u16],
    ) {
        let len = Self::padded_len(self.probabilities.rankers);
        let (included, scores) = (&included[..len], &mut scores[..len]);
        dispatch!(self.probabilities.level, simd => score_rows(simd, self, owners, included, scores));
    }

    /// Whether `high` wins where the 16 bits that were drawn equal its leading bits.
    #[cold]
    #[inline(never)]
    fn wins_tie(self, low: usize, high: usize, drawn: u16) -> bool {
        let further = self.word(FURTHER_BITS + pair_index(low, high) as u64) & 0xffff;
        (u64::from(drawn) << 16 | further) < scaled_probability(self.source, low, high)
    }

    /// The winners of `owner` against every other ranker.
    #[inline(always)]
    pub fn row(self, owner: usize) -> SampleRow<'a> {
        let word = self.word(owner as u64);
        SampleRow { sample: self, owner, keys: [word as u32, (word >> 32) as u32] }
    }

    /// The random generator of the unordered pair `{i, j}`, the same in either order.
    pub fn pair_rng(self, i: usize, j: usize) -> PolicyRng {
        PolicyRng::seed_from_u64(self.word(PAIR_RNGS + pair_index(i, j) as u64))
    }

    /// Output number `index` of the SplitMix64 stream of this sample.
    #[inline(always)]
    fn word(self, index: u64) -> u64 {
        mix(self.key.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

// Positions in the stream: rows take the first words, then follow the seeds of pair generators and
// the further bits of pairs.
const PAIR_RNGS: u64 = 1 << 33;
const FURTHER_BITS: u64 = 1 << 34;

/// One row of a [`PairwiseSample`]: 16 random bits for each other ranker. One keyed hash gives the
/// bits of two rankers, in 32-bit operations and without a branch.
#[derive(Clone, Copy)]
pub struct SampleRow<'a> {
    sample: PairwiseSample<'a>,
    owner: usize,
    keys: [u32; 2],
}

// lowbias32 (Chris Wellons, "Prospecting for Hash Functions"): both halves of its output are mixed
const MULTIPLIERS: [u32; 2] = [0x7feb_352d, 0x846c_a68b];

impl SampleRow<'_> {
    /// Whether `θ[owner][other] > 1/2`.
    #[inline]
    pub fn wins(&self, other: usize) -> bool {
        let (low, high) = (self.owner.min(other), self.owner.max(other));
        let draw = self.draw(other);
        let leading = self.sample.probabilities.leading_bits[pair_index(low, high)];
        let high_wins =
            if draw == leading { self.sample.wins_tie(low, high, draw) } else { draw < leading };
        high_wins == (self.owner == high)
    }

    #[inline(always)]
    fn draw(&self, other: usize) -> u16 {
        let mut x = ((other / 2) as u32).wrapping_add(self.keys[0]);
        x = (x ^ (x >> 16)).wrapping_mul(MULTIPLIERS[0]);
        x = (x ^ (x >> 15) ^ self.keys[1]).wrapping_mul(MULTIPLIERS[1]);
        x ^= x >> 16;
        // the halves in the order in which a register's 32-bit lane splits into 16-bit lanes
        let [a, b, c, d] = x.to_ne_bytes();
        u16::from_ne_bytes([[a, b], [c, d]][other % 2])
    }

    /// [`SampleRow::draw`] for a register of consecutive rankers; `halves` are the indices of every
    /// second one, halved.
    #[inline(always)]
    fn draws<S: Simd>(&self, halves: S::u32s) -> S::u16s {
        let mut x = halves + self.keys[0];
        x = (x ^ (x >> 16)) * MULTIPLIERS[0];
        x = (x ^ (x >> 15) ^ self.keys[1]) * MULTIPLIERS[1];
        (x ^ (x >> 16)).bitcast()
    }
}

/// [`PairwiseSample::score_against_earlier`], for a block of rankers in one register at a time.
/// Compiled once for each register width: everything it calls must be inlined.
#[inline(always)]
fn score_rows<S: Simd>(
    simd: S,
    sample: PairwiseSample,
    owners: impl Iterator<Item = usize>,
    included: &[u16],
    scores: &mut [u16],
) {
    let lanes = S::u16s::from_fn(simd, |lane| lane as u16);
    let none = S::u16s::splat(simd, 0);
    let first_halves = S::u32s::from_fn(simd, |lane| lane as u32);
    for owner in owners {
        let row = sample.row(owner);
        let leading = &sample.probabilities.leading_bits[owner * owner.saturating_sub(1) / 2..];
        let blocks = leading
            .chunks_exact(S::u16s::LEN)
            .zip(included.chunks_exact(S::u16s::LEN))
            .zip(scores.chunks_exact_mut(S::u16s::LEN));
        let (mut won, mut won_tied, mut halves) = (none, 0, first_halves);
        for (((leading, included), scores), first) in blocks.zip((0..owner).step_by(S::u16s::LEN)) {
            let leading = S::u16s::from_slice(simd, leading);
            // only rankers before the owner
            let included = lanes
                .simd_lt((owner - first).min(S::u16s::LEN) as u16)
                .select(S::u16s::from_slice(simd, included), none);
            let draws = row.draws::<S>(halves);
            // 1 where the owner wins, as in `SampleRow::wins`; the others get the other points
            let points = draws.simd_lt(leading).select(included, none);
            won += points;
            (S::u16s::from_slice(simd, scores) + (included - points)).store_slice(scores);
            // where the 16 bits do not decide, the other ranker has the point until further bits do
            let tied = draws.simd_eq(leading);
            if tied.any_true() {
                let tied = tied.to_bitmask();
                for lane in
                    (0..S::u16s::LEN).filter(|lane| tied >> lane & 1 == 1 && included[*lane] == 1)
                {
                    if sample.wins_tie(first + lane, owner, draws[lane]) {
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
