//! The source of randomness of a method.
//!
//! A method needs only fair coins and weighted choices. A server draws them from the duel's seed. A
//! test goes through every branch of the same code and computes the exact probability of each page.

use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

use crate::share::Share;

/// The generator of simulations: fast and seedable. It is not part of any stored state.
pub type FastRng = rand::rngs::Xoshiro256PlusPlus;

/// The source of a method's random choices.
pub trait Coins {
    /// Tosses a fair coin; `true` means the left side.
    fn left(&mut self) -> bool;

    /// Draws an index with probability proportional to its weight. Weights are finite and not
    /// negative, and at least one is positive.
    fn choose(&mut self, weights: &[f64]) -> usize;

    /// Tosses a coin that shows `true` with the probability `numerator` / [`Share::ONE`], exactly.
    fn happens(&mut self, numerator: u32) -> bool;
}

/// The coins of one duel: ChaCha with 12 rounds, keyed with the duel's seed. They are the same on
/// every server and for every page of results of the duel.
///
/// The seed must be a keyed hash of the duel's id. If a browser could know the seed, it could
/// compute which ranker each slot belongs to.
#[derive(Debug)]
pub struct DuelCoins(ChaCha12Rng);

impl DuelCoins {
    /// The coins for drafting the duel's list.
    pub fn drafting(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// The coins for crediting the duel's clicks.
    pub fn crediting(seed: [u8; 32]) -> Self {
        let mut generator = ChaCha12Rng::from_seed(seed);
        generator.set_stream(1);
        Self(generator)
    }

    /// The coins for whoever counts the duel's score, beside its outcome.
    pub fn counting(seed: [u8; 32]) -> Self {
        let mut generator = ChaCha12Rng::from_seed(seed);
        generator.set_stream(2);
        Self(generator)
    }
}

impl Coins for DuelCoins {
    fn left(&mut self) -> bool {
        left(&mut self.0)
    }

    fn choose(&mut self, weights: &[f64]) -> usize {
        choose(&mut self.0, weights)
    }

    fn happens(&mut self, numerator: u32) -> bool {
        happens(&mut self.0, numerator)
    }
}

/// The coins of a simulation, drawn from a fast generator.
#[derive(Debug)]
pub struct FastCoins<'a>(pub &'a mut FastRng);

impl Coins for FastCoins<'_> {
    fn left(&mut self) -> bool {
        left(self.0)
    }

    fn choose(&mut self, weights: &[f64]) -> usize {
        choose(self.0, weights)
    }

    fn happens(&mut self, numerator: u32) -> bool {
        happens(self.0, numerator)
    }
}

// These functions do not use a library of distributions, because its values may change between
// versions. A duel issued before an upgrade must be credited in the same way after it.

fn left(rng: &mut impl Rng) -> bool {
    rng.next_u64() >> 63 == 0
}

fn happens(rng: &mut impl Rng, numerator: u32) -> bool {
    rng.next_u64() >> (64 - Share::ONE.trailing_zeros()) < u64::from(numerator)
}

fn choose(rng: &mut impl Rng, weights: &[f64]) -> usize {
    let total: f64 = weights.iter().sum();
    let uniform = (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
    let mut rest = uniform * total;
    let mut last_possible = 0;
    for (index, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            if rest < weight {
                return index;
            }
            rest -= weight;
            last_possible = index;
        }
    }
    // Rounding may leave a small positive rest after the last weight.
    last_possible
}
