//! Simulated comparisons of all pairs of rankers, on all cores. The results do not depend on the
//! number of cores.

use rand::{RngExt, SeedableRng};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use sha2::{Digest, Sha256};

use crate::letor::DataSet;
use crate::simulate::Progress;
use dueling_bandits::PolicyRng;
use interleaving::click_models::ClickModel;
use interleaving::{
    Click, Credit, CreditSheet, FastCoins, Lists, Method, NoSignal, Outcome, Plans, Spec, credit,
    draft,
};

/// Number of comparisons that use one generator. Changing it changes the results of a seed.
const BLOCK: u64 = 1000;

/// The parameters of the comparisons.
#[derive(Debug, Clone, Copy)]
pub struct Comparing {
    /// The interleaving method.
    pub method: Spec,
    /// The simulated users.
    pub click_model: ClickModel,
    /// Number of slots of a page.
    pub length: usize,
    /// Number of comparisons of each pair.
    pub comparisons: u64,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The outcomes of the comparisons of one pair. Its first ranker is the left side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
    pub score: f64,
    /// Sum of the squares of the scores.
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

/// Compares every pair of `rankers` (indices into the features of the data set) in the current
/// rayon pool. Returns one count for each pair `i < j` of positions in `rankers`, row by row, or
/// `None` if it was stopped.
///
/// The counts of a pair depend on the seed and its two features, not on the other rankers.
pub fn compare_all(
    data: &DataSet,
    rankers: &[usize],
    comparing: &Comparing,
    plans: &dyn Plans,
    progress: &Progress,
) -> Option<Vec<PairCount>> {
    let pairs: Vec<(usize, usize)> = rankers
        .iter()
        .enumerate()
        .flat_map(|(at, &i)| rankers[at + 1..].iter().map(move |&j| (i, j)))
        .collect();
    let blocks = comparing.comparisons.div_ceil(BLOCK);
    pairs
        .into_par_iter()
        .map(|pair| {
            let counts = (0..blocks).into_par_iter().map(|block| {
                if progress.is_stopped() {
                    return None;
                }
                let comparisons = BLOCK.min(comparing.comparisons - block * BLOCK);
                let count = compare(data, pair, comparing, block, comparisons, plans);
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

fn compare(
    data: &DataSet,
    (first, second): (usize, usize),
    comparing: &Comparing,
    block: u64,
    comparisons: u64,
    plans: &dyn Plans,
) -> PairCount {
    let spec = &comparing.method;
    // Only probabilistic interleaving can show documents from below the end of the page.
    let depth = match spec.method {
        Method::Probabilistic(_) => usize::MAX,
        _ => comparing.length,
    };
    // A pair has one random stream, whichever ranker is the first.
    let (low, high) = (data.features[first.min(second)], data.features[first.max(second)]);
    let mut rng = PolicyRng::from_seed(seed(comparing.seed, low, high, block));
    let mut count = PairCount::default();
    let (mut left, mut right, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    let mut clicks = Vec::new();
    for _ in 0..comparisons {
        let query = &data.queries[rng.random_range(0..data.queries.len())];
        query.ranking(first).draw(depth, &mut rng, &mut left);
        query.ranking(second).draw(depth, &mut rng, &mut right);
        let lists = Lists::new(&left, &right, query.grades.len(), spec.depth_policy);
        let page = draft(spec, &lists, comparing.length, &mut FastCoins(&mut rng), plans);
        let grades = page.slots.iter().map(|slot| query.grades[slot.document as usize]);
        comparing.click_model.click(grades, &mut rng, &mut positions);
        clicks.clear();
        clicks.extend(positions.iter().map(|&position| Click::at(position)));
        let earned =
            credit(spec, &CreditSheet::of(spec, &lists, &page), &clicks, &mut FastCoins(&mut rng));
        // A click model only clicks positions that are shown, so this never fails.
        if let Ok(earned) = earned {
            count.record(&earned);
        }
    }
    count
}

fn seed(seed: u64, low: u32, high: u32, block: u64) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(low.to_le_bytes());
    hash.update(high.to_le_bytes());
    hash.update(block.to_le_bytes());
    hash.finalize().into()
}
