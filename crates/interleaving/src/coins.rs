//! Where chance comes in.
//!
//! A method asks for nothing but fair coins and choices by weight. Serving draws them from the
//! duel's seed; a test drives every branch of the same code and knows the exact probability of each
//! page.

use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

use crate::FastRng;

/// The source of a method's choices.
pub trait Coins {
    /// A fair coin: whether it fell for left.
    fn left(&mut self) -> bool;

    /// An index, with probability proportional to its weight. Weights are finite and not negative,
    /// and one is positive.
    fn choose(&mut self, weights: &[f64]) -> usize;
}

/// The coins of one duel, the same on every node and for every page of its results: ChaCha with 12
/// rounds, keyed with the duel's seed. The seed must be a keyed hash of the duel's id; with a seed
/// that a page can know, the page could tell whose slot is whose.
#[derive(Debug)]
pub struct DuelCoins(ChaCha12Rng);

impl DuelCoins {
    /// The coins that a duel's list is drafted with.
    pub fn drafting(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// The coins that its clicks are credited with.
    pub fn crediting(seed: [u8; 32]) -> Self {
        let mut generator = ChaCha12Rng::from_seed(seed);
        generator.set_stream(1);
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
}

/// The coins of a simulation, from a fast generator.
#[derive(Debug)]
pub struct FastCoins<'a>(pub &'a mut FastRng);

impl Coins for FastCoins<'_> {
    fn left(&mut self) -> bool {
        left(self.0)
    }

    fn choose(&mut self, weights: &[f64]) -> usize {
        choose(self.0, weights)
    }
}

// Written out rather than taken from a library of distributions, whose values may change between
// versions: a duel that was issued before an upgrade must be credited after it.

fn left(rng: &mut impl Rng) -> bool {
    rng.next_u64() >> 63 == 0
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
    // rounding left a crumb over
    last_possible
}
