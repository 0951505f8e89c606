//! The preference matrix of single-feature rankers, from a learning-to-rank data set, simulated
//! users and a method of interleaving: the recipe of Zoghi et al. ("Relative upper confidence
//! bound", ICML 2014; "MergeRUCB", WSDM 2015).
//!
//! - this file: the comparisons, on all cores, with the same numbers on any number of them.
//! - [`report`]: what they say, and which of it may be chance.

use rand::{RngExt, SeedableRng};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use sha2::{Digest, Sha256};

use crate::letor::DataSet;
use crate::simulate::Watch;
use dueling_bandits::PolicyRng;
use interleaving::click_models::ClickModel;
use interleaving::{Click, InvalidClick};
use interleaving::{
    Credit, CreditSheet, FastCoins, Lists, Method, NoSignal, Outcome, Plans, Spec, credit, draft,
};

pub mod report;

/// Comparisons that are drawn from one generator. Part of what a seed means.
const BLOCK: u64 = 1000;

/// How rankers are compared.
#[derive(Debug, Clone, Copy)]
pub struct Comparing {
    /// How two rankings become a page.
    pub method: Spec,
    /// Who clicks on it.
    pub users: ClickModel,
    /// Slots of the page.
    pub length: usize,
    /// Comparisons of each pair.
    pub comparisons: u64,
    /// Seed of everything.
    pub seed: u64,
}

/// What the comparisons of one pair said, seen from its first ranker, the left side.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairCount {
    /// Pages that the first won.
    pub wins: u64,
    /// Pages that the second won.
    pub losses: u64,
    /// Pages with the same credit for both, and not none.
    pub ties: u64,
    /// Pages that nobody clicked.
    pub no_click: u64,
    /// Pages with clicks that say nothing: two equal lists, or clicks on nobody's slots alone.
    pub no_signal: u64,
    /// Sum of the scores, the first's credit less the second's; a page without a signal has 0.
    pub score: f64,
    /// Sum of their squares.
    pub score_squares: f64,
}

impl PairCount {
    /// Pages in all.
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

/// Compare every pair of `rankers` (indices into the data set's features) in the current rayon
/// pool: one count for each pair `i < j` of positions in `rankers`, row by row. `None` when
/// stopped.
///
/// A pair's numbers depend on the seed and on its two features, and not on which others are
/// compared.
pub fn compare_all(
    data: &DataSet,
    rankers: &[usize],
    comparing: &Comparing,
    plans: &dyn Plans,
    watch: &Watch,
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
                if watch.is_stopped() {
                    return None;
                }
                let comparisons = BLOCK.min(comparing.comparisons - block * BLOCK);
                let count = compare(data, pair, comparing, block, comparisons, plans);
                watch.advance(comparisons);
                Some(count)
            });
            let counts: Vec<PairCount> = counts.collect::<Option<_>>()?;
            // sums of rounded numbers: in the order of the blocks, whoever finished first
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
    // what is ranked below the page can only be shown by probabilistic interleaving
    let depth = match spec.method {
        Method::Probabilistic(_) => usize::MAX,
        _ => comparing.length,
    };
    // one pair is one stream, whichever of the two is asked for first
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
        comparing.users.click(grades, &mut rng, &mut positions);
        clicks.clear();
        clicks.extend(positions.iter().map(|&position| Click::at(position)));
        let earned: Result<Credit, InvalidClick> =
            credit(spec, &CreditSheet::of(spec, &lists, &page), &clicks, &mut FastCoins(&mut rng));
        // users click on what is shown
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
