//! How many pages an interleaving method takes to a verdict on two rankers, and how often the
//! verdict comes although clicks ignore the rankers.
//!
//! An *experiment* compares one pair of rankers, page by page, until the evidence for one of them
//! suffices: the stopping rule of the service for two rankers. It is run twice on the same pages.
//! One run counts the outcomes that are wins, as a policy does that skips ties. The other run
//! counts the shares of the pages, without the coins that make them outcomes: a page is a win of
//! the side with the larger share, with the probability of an outcome as its weight. Weights are
//! rounded as the service does it.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use super::pages::{Page, Pages};
use crate::simulate::Progress;
use dueling_bandits::Duel;
use dueling_bandits::evidence::Score;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::{Levels, ScoreCounts};
use interleaving::{Coins, FastCoins, Outcome, Share};

#[derive(Debug, Clone, Copy)]
pub struct Experiments {
    /// Number of experiments with each pair.
    pub experiments: u64,
    /// An experiment without a verdict ends after this many pages.
    pub most_pages: u64,
    /// The verdict is wrong in at most this share of experiments.
    pub error: f64,
    pub margin: f64,
}

/// When the experiments with a pair had a verdict, and on which ranker.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verdicts {
    pub experiments: u64,
    /// Verdicts for the first ranker.
    pub first: u64,
    /// Verdicts for the second ranker.
    pub second: u64,
    /// Pages of all experiments; one without a verdict counts with all of its pages.
    pub pages: u64,
    /// Pages of each experiment with a verdict, in ascending order.
    #[serde(skip)]
    pub pages_to_verdict: Vec<u64>,
}

impl Verdicts {
    /// Mean pages of an experiment. Too small if some experiments had no verdict.
    pub fn mean_pages(&self) -> f64 {
        self.pages as f64 / self.experiments as f64
    }

    /// Median pages to a verdict; `None` if half of the experiments had none.
    pub fn median_pages(&self) -> Option<u64> {
        self.pages_to_verdict.get(self.experiments as usize / 2).copied()
    }

    /// Adds the experiments of another pair.
    pub fn add(&mut self, other: &Self) {
        self.experiments += other.experiments;
        self.first += other.first;
        self.second += other.second;
        self.pages += other.pages;
        self.pages_to_verdict.extend(&other.pages_to_verdict);
        self.pages_to_verdict.sort_unstable();
    }

    fn record(&mut self, ended: Option<(bool, u64)>, most_pages: u64) {
        self.experiments += 1;
        self.pages += ended.map_or(most_pages, |(_, pages)| pages);
        if let Some((is_first, pages)) = ended {
            *(if is_first { &mut self.first } else { &mut self.second }) += 1;
            self.pages_to_verdict.push(pages);
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PairVerdicts {
    /// From the outcomes that are wins.
    pub by_outcomes: Verdicts,
    /// From the shares.
    pub by_shares: Verdicts,
}

/// Runs the experiments with a pair of rankers (indices into the features of the data set) in the
/// current rayon pool. `None` if it was stopped.
pub fn experiment(
    pages: &Pages<'_>,
    pair: (usize, usize),
    parameters: &Experiments,
    progress: &Progress,
) -> Option<PairVerdicts> {
    let evidence = LeadEvidence::over(parameters.margin);
    let ends: Vec<[Option<(bool, u64)>; 2]> = (0..parameters.experiments)
        .into_par_iter()
        .map(|number| {
            let ends =
                (!progress.is_stopped()).then(|| run(pages, pair, parameters, number, &evidence));
            progress.advance(1);
            ends
        })
        .collect::<Option<_>>()?;
    let mut verdicts = PairVerdicts::default();
    for [by_outcomes, by_shares] in ends {
        verdicts.by_outcomes.record(by_outcomes, parameters.most_pages);
        verdicts.by_shares.record(by_shares, parameters.most_pages);
    }
    verdicts.by_outcomes.pages_to_verdict.sort_unstable();
    verdicts.by_shares.pages_to_verdict.sort_unstable();
    Some(verdicts)
}

/// The pair in the counts of a race.
const PAIR: Duel = Duel { first: 0, second: 1 };

/// The counts of both sides, until one of them is certified.
struct Race<'a> {
    evidence: &'a LeadEvidence,
    threshold: f64,
    /// Wins of the first and of the second side.
    wins: [f64; 2],
    scores: ScoreCounts,
    ended: Option<(bool, u64)>,
}

impl<'a> Race<'a> {
    fn new(evidence: &'a LeadEvidence, error: f64) -> Self {
        let scores = ScoreCounts::default();
        Self { evidence, threshold: -libm::log(error), wins: [0.0; 2], scores, ended: None }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    fn count_win(&mut self, first_won: bool, page: u64) {
        self.wins[usize::from(!first_won)] += 1.0;
        self.check(first_won, page);
    }

    fn count_score(&mut self, first_won: bool, score: Score, page: u64) {
        self.scores.add(PAIR, score, 1);
        self.check(first_won, page);
    }

    /// Look for a verdict for the side that has won the page.
    fn check(&mut self, first_won: bool, page: u64) {
        let none = Levels::default();
        let levels = |x, y| self.scores.levels(x, y).unwrap_or(&none);
        let (x, y) = if first_won { (0, 1) } else { (1, 0) };
        let (wins, losses) = (self.wins[x], self.wins[y]);
        let ln = self.evidence.ln_with_scores(wins, losses, levels(x, y), levels(y, x));
        if ln >= self.threshold {
            self.ended = Some((first_won, page));
        }
    }
}

/// One experiment: who won and after how many pages, by outcomes and by shares.
fn run(
    pages: &Pages<'_>,
    (first, second): (usize, usize),
    parameters: &Experiments,
    number: u64,
    evidence: &LeadEvidence,
) -> [Option<(bool, u64)>; 2] {
    let features = [pages.data.features[first], pages.data.features[second]];
    let generator = |seed| Pages { seed, ..*pages }.generator(b"sensitivity", features, number);
    // rounding has its own, so that the pages are the same however their shares are counted
    let (mut rng, mut rounding) = (generator(pages.seed), generator(!pages.seed));
    let race = || Race::new(evidence, parameters.error);
    let (mut by_outcomes, mut by_shares) = (race(), race());
    let mut shown = Page::default();
    for page in 1..=parameters.most_pages {
        pages.show((first, second), &mut rng, &mut shown);
        let Some(earned) = pages.credit(&shown, &shown.clicked, &mut rng) else { continue };
        match earned.outcome {
            Outcome::Left if !by_outcomes.is_over() => by_outcomes.count_win(true, page),
            Outcome::Right if !by_outcomes.is_over() => by_outcomes.count_win(false, page),
            _ => {}
        }
        if earned.share != Share::EVEN && !by_shares.is_over() {
            let first_won = earned.share > Share::EVEN;
            let happens = |numerator| FastCoins(&mut rounding).happens(numerator);
            // the outcome is the policy's; the verdict does not look at it
            let score = Score::rounded(first_won, earned.share.weight(), false, happens);
            by_shares.count_score(first_won, score, page);
        }
        if by_outcomes.is_over() && by_shares.is_over() {
            break;
        }
    }
    [by_outcomes.ended, by_shares.ended]
}
