//! Where policies draw random numbers from.

use rand::SeedableRng;

/// The generator that selecting draws from: fast, seedable, and not part of any state.
pub type PolicyRng = rand::rngs::Xoshiro256PlusPlus;

/// The generator for what is drawn while folding step `step`: a function of the experiment's seed
/// and the step, so that no generator state needs to be kept and every replica draws the same.
pub fn step_rng(seed: u64, step: u64) -> PolicyRng {
    // seed_from_u64 runs SplitMix64; the odd factor keeps (seed, step) pairs apart
    PolicyRng::seed_from_u64(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32)
            .wrapping_add(step.wrapping_mul(0xd1b5_4a32_d192_ed03)),
    )
}
