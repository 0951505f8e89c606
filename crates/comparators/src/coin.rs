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

#[cfg(test)]
mod tests {
    use super::heads;

    #[test]
    fn coins_counted_together_are_the_coins_one_by_one() {
        for (steps, count) in
            [(0, 0), (0, 1), (0, 64), (63, 1), (63, 2), (5, 58), (5, 59), (70, 300), (128, 128)]
        {
            let single: u64 = (steps..steps + count).map(|step| heads(9, step, 1)).sum();
            assert_eq!(heads(9, steps, count), single, "{count} after {steps}");
        }
    }

    #[test]
    fn coins_are_fair_and_differ_between_seeds() {
        // the standard deviation is sqrt(n)/2 = 500 at n = 10^6; allow five of them
        for seed in 0..4 {
            assert!(heads(seed, 17, 1_000_000).abs_diff(500_000) < 2_500);
        }
        assert_ne!(heads(1, 0, 1_000_000), heads(2, 0, 1_000_000));
    }
}
