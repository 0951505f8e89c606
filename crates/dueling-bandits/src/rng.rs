//! The random generators of policies.

use rand::SeedableRng;

/// The generator that [`Bandit::select`](crate::Bandit::select) draws from. It is not part of a
/// policy's state.
pub type PolicyRng = rand::rngs::Xoshiro256PlusPlus;

/// The generator for random numbers that a policy draws while observing step `step`. It is a
/// function of the seed and the step: no generator state is stored, and observing stays
/// deterministic.
pub fn step_rng(seed: u64, step: u64) -> PolicyRng {
    // seed_from_u64 runs SplitMix64; the odd factor keeps (seed, step) pairs apart
    PolicyRng::seed_from_u64(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32)
            .wrapping_add(step.wrapping_mul(0xd1b5_4a32_d192_ed03)),
    )
}

/// The finaliser of SplitMix64: a bijection that spreads every bit of its input.
#[inline(always)]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
