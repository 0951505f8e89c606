//! Fair coins in place of the outcomes of self-duels, for policies that learn from self-duels.

use rand::Rng;

use dueling_bandits::step_rng;

/// Separates these coins from everything else that is drawn while folding.
const COIN_STREAM: u64 = 0x636f_696e;

/// Number of heads among the coins of the `count` steps that follow step `steps`. The coin of a
/// step depends only on the seed and the step, so self-duels may be folded one by one or many at
/// once.
pub fn heads(seed: u64, steps: u64, count: u64) -> u64 {
    let word = |number: u64| step_rng(seed ^ COIN_STREAM, number).next_u64();
    // one word holds the coins of 64 steps
    let upto = |end: u64| word(end / 64) & ((1 << (end % 64)) - 1);
    let end = steps + count;
    if steps / 64 == end / 64 {
        return u64::from((upto(end) & !((1 << (steps % 64)) - 1)).count_ones());
    }
    let head = u64::from((word(steps / 64) >> (steps % 64)).count_ones());
    let middle: u64 =
        (steps / 64 + 1..end / 64).map(|number| u64::from(word(number).count_ones())).sum();
    head + middle + u64::from(upto(end).count_ones())
}
