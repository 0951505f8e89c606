//! The searchers of a simulation: they answer duels as a preference matrix says.

use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};

use super::feedback::Feedback;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Answer, Duel, PolicyRng};

/// All that a run draws from: independent streams, a function of the simulation's seed, the matrix
/// and the run's number. Not of the policy: every policy meets the same searchers in run `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunSeeds {
    shuffling: u64,
    answering: u64,
    /// For [`Policy::select`](dueling_bandits::Policy::select).
    pub selecting: u64,
    /// For [`Setup::seed`](dueling_bandits::parameters::Setup).
    pub folding: u64,
}

impl RunSeeds {
    /// The seeds of run `run` on the matrix with this [`fingerprint`].
    pub fn new(seed: u64, matrix: &[u8; 32], run: u64) -> Self {
        let mut hash = Sha256::new();
        hash.update(seed.to_le_bytes());
        hash.update(run.to_le_bytes());
        hash.update(matrix);
        let digest = hash.finalize();
        let word = |n: usize| {
            digest[8 * n..8 * n + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        Self { shuffling: word(0), answering: word(1), selecting: word(2), folding: word(3) }
    }
}

/// What tells a matrix from others, whatever it is called and wherever it stands in a list.
pub(super) fn fingerprint(matrix: &PreferenceMatrix) -> [u8; 32] {
    let mut hash = Sha256::new();
    for entry in matrix.rows().flatten() {
        hash.update(entry.to_le_bytes());
    }
    hash.finalize().into()
}

/// Searchers who compare the rankers of one run.
#[derive(Debug)]
pub(super) struct Environment<'a> {
    matrix: &'a PreferenceMatrix,
    feedback: &'a Feedback,
    /// `names[i]` is the matrix's index of what the policy calls ranker `i`.
    names: Vec<usize>,
    pub rng: PolicyRng,
}

impl<'a> Environment<'a> {
    /// The searchers of a run; with `shuffle` the policy sees the rankers in random order, so that
    /// no policy can gain from the order in which a matrix happens to be written.
    pub fn new(
        matrix: &'a PreferenceMatrix,
        feedback: &'a Feedback,
        shuffle: bool,
        seeds: RunSeeds,
    ) -> Self {
        let mut names: Vec<usize> = (0..matrix.rankers()).collect();
        if shuffle {
            names.shuffle(&mut PolicyRng::seed_from_u64(seeds.shuffling));
        }
        Self { matrix, feedback, names, rng: PolicyRng::seed_from_u64(seeds.answering) }
    }

    /// The matrix's index of what the policy calls `ranker`.
    pub fn name(&self, ranker: usize) -> usize {
        self.names[ranker]
    }

    /// What a searcher says about `duel`; `None` when that never reaches the policy.
    pub fn answer(&mut self, duel: Duel) -> Option<Answer> {
        // a probability of 0 draws nothing, which keeps the papers' setting fast
        if self.feedback.loss > 0.0 && self.happens(self.feedback.loss) {
            return None;
        }
        if self.feedback.no_click > 0.0 && self.happens(self.feedback.no_click) {
            return Some(Answer::None);
        }
        if self.feedback.ties > 0.0 && self.happens(self.feedback.ties) {
            return Some(Answer::Tie);
        }
        let win = self.matrix.win_probability(self.names[duel.first], self.names[duel.second]);
        Some(if self.happens(win) { Answer::First } else { Answer::Second })
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.rng.random::<f64>() < probability
    }
}
