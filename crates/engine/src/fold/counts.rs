//! Raw counts of the answers, by pair. They do not depend on the policy.

use serde::{Deserialize, Serialize};

use dueling_bandits::pairs::{pair_index, pairs_by_strips};
use dueling_bandits::tally::{MAX_STEPS, widened};
use dueling_bandits::{Answer, Duel};

/// Raw counts of the log of an experiment with `K` rankers. Wins are `K × K` (row = winner); ties
/// and pages without a click are an upper triangle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    rankers: usize,
    wins: Vec<u32>,
    ties: Vec<u32>,
    no_signal: Vec<u32>,
    /// Appearances on pages: a duel adds one for each of its two rankers, a self-duel two for its
    /// ranker.
    appearances: Vec<u64>,
    /// Self-duels that were issued.
    pub self_duels: u64,
    /// Answers of all duels by side of the page: left won, right won, tie, no click.
    pub shown: [u64; 4],
}

/// Answers of one pair or of all pairs of one ranker, from the view of the first ranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairTotals {
    /// Comparisons that the first ranker won.
    pub wins: u64,
    /// Comparisons that the first ranker lost.
    pub losses: u64,
    /// Ties.
    pub ties: u64,
    /// Pages without a click.
    pub no_signal: u64,
}

impl PairTotals {
    fn add(&mut self, other: Self) {
        self.wins += other.wins;
        self.losses += other.losses;
        self.ties += other.ties;
        self.no_signal += other.no_signal;
    }
}

impl Counts {
    /// Zero counts for this many rankers.
    pub fn new(rankers: usize) -> Self {
        let pairs = rankers * (rankers - 1) / 2;
        Self {
            rankers,
            wins: vec![0; rankers * rankers],
            ties: vec![0; pairs],
            no_signal: vec![0; pairs],
            appearances: vec![0; rankers],
            self_duels: 0,
            shown: [0; 4],
        }
    }

    /// Number of answered duels, without self-duels.
    pub fn answered_duels(&self) -> u64 {
        self.appearances.iter().sum::<u64>() / 2 - self.self_duels
    }

    /// Add one more ranker, with the next index.
    pub fn enlist(&mut self) {
        self.wins = widened(&self.wins, self.rankers);
        for pairs in [&mut self.ties, &mut self.no_signal] {
            pairs.resize(pairs.len() + self.rankers, 0);
        }
        self.appearances.push(0);
        self.rankers += 1;
    }

    /// Count one answered duel that is not a self-duel.
    pub fn record(&mut self, duel: Duel, answer: Answer, first_left: bool) {
        self.add(duel, answer, 1);
        let side = match (answer, first_left) {
            (Answer::First, true) | (Answer::Second, false) => 0,
            (Answer::Second, true) | (Answer::First, false) => 1,
            (Answer::Tie, _) => 2,
            (Answer::None, _) => 3,
        };
        self.shown[side] += 1;
    }

    /// Count one answered duel of `ranker` with `twin`, another id of it: a page of `ranker` alone.
    pub fn record_canary(
        &mut self,
        duel: Duel,
        answer: Answer,
        first_left: bool,
        [ranker, twin]: [usize; 2],
    ) {
        self.record(duel, answer, first_left);
        self.appearances[twin] -= 1;
        self.appearances[ranker] += 1;
    }

    /// Count `count` equal answers of a pair whose sides on the page are unknown.
    pub fn add(&mut self, duel: Duel, answer: Answer, count: u32) {
        let Duel { first, second } = duel;
        let counted = match answer {
            Answer::First => &mut self.wins[first * self.rankers + second],
            Answer::Second => &mut self.wins[second * self.rankers + first],
            Answer::Tie => &mut self.ties[pair_index(first, second)],
            Answer::None => &mut self.no_signal[pair_index(first, second)],
        };
        *counted = counted.saturating_add(count);
        self.appearances[first] += u64::from(count);
        self.appearances[second] += u64::from(count);
    }

    /// Count `count` self-duels of `ranker`.
    pub fn record_self_duels(&mut self, ranker: usize, count: u64) {
        self.self_duels += count;
        self.appearances[ranker] += 2 * count;
    }

    /// The answers of the pair (i, j), from the view of `i`.
    pub fn pair(&self, i: usize, j: usize) -> PairTotals {
        PairTotals {
            wins: self.wins[i * self.rankers + j].into(),
            losses: self.wins[j * self.rankers + i].into(),
            ties: self.ties[pair_index(i, j)].into(),
            no_signal: self.no_signal[pair_index(i, j)].into(),
        }
    }

    /// The answers of all pairs of each ranker, from its view.
    pub fn by_ranker(&self) -> Vec<PairTotals> {
        let mut totals = vec![PairTotals::default(); self.rankers];
        pairs_by_strips(self.rankers).for_each(|(i, j)| {
            let pair = self.pair(i, j);
            totals[i].add(pair);
            totals[j].add(PairTotals { wins: pair.losses, losses: pair.wins, ..pair });
        });
        totals
    }

    /// Appearances of each ranker on pages. They add up to twice the time-steps.
    pub fn appearances(&self) -> &[u64] {
        &self.appearances
    }

    /// Whether the shapes are consistent and the counts possible. Decoded counts may be neither.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let pairs = rankers * rankers.saturating_sub(1) / 2;
        self.rankers == rankers
            && self.wins.len() == rankers * rankers
            && self.ties.len() == pairs
            && self.no_signal.len() == pairs
            && self.appearances.len() == rankers
            && self.appearances.iter().all(|&count| count <= 2 * MAX_STEPS)
            && self.shown.iter().chain([&self.self_duels]).all(|&count| count <= MAX_STEPS)
    }
}
