//! Batch policies: PCOMP, SCOMP and SCOMP2.

use dueling_bandits::{BatchPair, Duel, Outcome, PairCounts, Policy};

mod champions;
mod contract;
mod elimination;
mod properties;

const KINDS: [&str; 3] = ["pcomp", "scomp", "scomp2"];
const ELIMINATIONS: [&str; 3] = ["kl", "kl-published", "hoeffding"];

fn no_tie(_: u64) -> Outcome {
    unreachable!("these counts have no ties")
}

/// Answer the whole open batch; `wins` returns how many of a pair's comparisons its first ranker
/// wins.
fn answer_batch(policy: &mut dyn Policy, mut wins: impl FnMut(&BatchPair) -> u32) {
    let batch = policy.batch();
    for pair in policy.batch_pairs() {
        let first_wins = wins(&pair);
        let counts = PairCounts {
            duel: pair.duel,
            first_wins,
            second_wins: pair.needed - first_wins,
            ties: 0,
        };
        policy.observe_counts(&counts, batch, &mut no_tie);
    }
}

/// The lower index always wins.
fn lower_wins(pair: &BatchPair) -> u32 {
    if pair.duel.first < pair.duel.second { pair.needed } else { 0 }
}

fn arms(pairs: &[BatchPair]) -> Vec<usize> {
    let mut arms: Vec<usize> =
        pairs.iter().flat_map(|pair| [pair.duel.first, pair.duel.second]).collect();
    arms.sort_unstable();
    arms.dedup();
    arms
}

fn needed(pairs: &[BatchPair]) -> u64 {
    pairs.iter().map(|pair| u64::from(pair.needed)).sum()
}

fn ordered(duel: Duel) -> (usize, usize) {
    (duel.first.min(duel.second), duel.first.max(duel.second))
}
