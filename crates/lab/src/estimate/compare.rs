//! Simulated comparisons of all pairs of rankers, on all cores. The results do not depend on the
//! number of cores.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use super::pages::{Page, Pages};
use crate::simulate::Progress;
use interleaving::{Credit, NoSignal, Outcome};

/// Number of comparisons that use one generator. Changing it changes the results of a seed.
const BLOCK: u64 = 1000;

/// The outcomes of the comparisons of one pair. Its first ranker is the left side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PairCount {
    /// Pages that the first won.
    pub wins: u64,
    /// Pages that the second won.
    pub losses: u64,
    /// Pages with the same credit for both rankers, not zero.
    pub ties: u64,
    /// Pages without clicks.
    pub no_click: u64,
    /// Pages with clicks but without a signal: two equal lists, or no click on a competitive slot.
    pub no_signal: u64,
    /// Sum of the scores: credit of the first minus credit of the second. A page without a signal
    /// has score 0.
    #[serde(skip)]
    pub score: f64,
    /// Sum of the squares of the scores.
    #[serde(skip)]
    pub score_squares: f64,
}

impl PairCount {
    /// Number of pages.
    pub fn comparisons(&self) -> u64 {
        self.wins + self.losses + self.ties + self.no_click + self.no_signal
    }

    fn record(&mut self, credit: &Credit) {
        match credit.outcome {
            Outcome::Left => self.wins += 1,
            Outcome::Right => self.losses += 1,
            Outcome::Tie => self.ties += 1,
            Outcome::None if credit.no_signal == Some(NoSignal::NoClick) => self.no_click += 1,
            Outcome::None => self.no_signal += 1,
        }
        if credit.outcome != Outcome::None {
            self.score += credit.score();
            self.score_squares += credit.score() * credit.score();
        }
    }

    fn add(&mut self, other: &Self) {
        self.wins += other.wins;
        self.losses += other.losses;
        self.ties += other.ties;
        self.no_click += other.no_click;
        self.no_signal += other.no_signal;
        self.score += other.score;
        self.score_squares += other.score_squares;
    }
}

/// Compares every pair of `rankers` (indices into the features of the data set) on this many pages in
/// the current rayon pool. Returns one count for each pair `i < j` of positions in `rankers`, row by
/// row, or `None` if it was stopped.
///
/// The counts of a pair depend on the seed and its two features, not on the other rankers.
pub fn compare_all(
    pages: &Pages<'_>,
    rankers: &[usize],
    comparisons: u64,
    progress: &Progress,
) -> Option<Vec<PairCount>> {
    let blocks = comparisons.div_ceil(BLOCK);
    pairs(rankers)
        .into_par_iter()
        .map(|pair| {
            let counts = (0..blocks).into_par_iter().map(|block| {
                if progress.is_stopped() {
                    return None;
                }
                let comparisons = BLOCK.min(comparisons - block * BLOCK);
                let count = compare(pages, pair, block, comparisons);
                progress.advance(comparisons);
                Some(count)
            });
            let counts: Vec<PairCount> = counts.collect::<Option<_>>()?;
            // Sums of rounded numbers depend on the order, so add in the order of the blocks.
            let mut total = PairCount::default();
            counts.iter().for_each(|count| total.add(count));
            Some(total)
        })
        .collect()
}

/// The pairs `i < j` of positions in `rankers`, row by row.
fn pairs(rankers: &[usize]) -> Vec<(usize, usize)> {
    let later = |at: usize| rankers[at + 1..].iter().copied();
    rankers.iter().enumerate().flat_map(|(at, &i)| later(at).map(move |j| (i, j))).collect()
}

fn compare(
    pages: &Pages<'_>,
    (first, second): (usize, usize),
    block: u64,
    comparisons: u64,
) -> PairCount {
    // A pair has one random stream, whichever ranker is the first.
    let features = [first.min(second), first.max(second)].map(|at| pages.data.features[at]);
    let mut rng = pages.generator(features, block);
    let (mut count, mut page) = (PairCount::default(), Page::default());
    for _ in 0..comparisons {
        pages.show((first, second), &mut rng, &mut page);
        if let Some(earned) = pages.credit(&page, &mut rng) {
            count.record(&earned);
        }
    }
    count
}
