//! The searchers of a simulation: they answer duels with the probabilities of a preference matrix.

use std::borrow::Cow;

use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use sha2::{Digest, Sha256};

use super::feedback::Feedback;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Answer, Duel, PolicyRng};

/// The seeds of a run's independent random streams: a function of the simulation's seed, the matrix
/// and the number of the run. They do not depend on the policy, so that every policy meets the same
/// searchers in run `n`.
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

/// A hash of the entries of a matrix. It does not depend on the name of the matrix.
pub(super) fn fingerprint(matrix: &PreferenceMatrix) -> [u8; 32] {
    let mut hash = Sha256::new();
    for entry in matrix.rows().flatten() {
        hash.update(entry.to_le_bytes());
    }
    hash.finalize().into()
}

/// The searchers of one run.
#[derive(Debug)]
pub(super) struct Environment<'a> {
    matrix: Cow<'a, PreferenceMatrix>,
    feedback: &'a Feedback,
    /// `names[i]` is the index in the matrix of the policy's ranker `i`.
    names: Vec<usize>,
    pub rng: PolicyRng,
}

impl<'a> Environment<'a> {
    /// The searchers of a run. With `shuffle`, the policy sees the rankers in random order, so that
    /// no policy benefits from the order of a matrix.
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
        let matrix = Cow::Borrowed(matrix);
        Self { matrix, feedback, names, rng: PolicyRng::seed_from_u64(seeds.answering) }
    }

    /// The index in the matrix of the policy's ranker `ranker`.
    pub fn name(&self, ranker: usize) -> usize {
        self.names[ranker]
    }

    /// From now on the searchers have these preferences.
    pub fn change(&mut self, matrix: PreferenceMatrix) {
        self.matrix = Cow::Owned(matrix);
    }

    /// The answer of a searcher to `duel`; `None` if it is lost.
    pub fn answer(&mut self, duel: Duel) -> Option<Answer> {
        // A probability of 0 draws no random number, which keeps the setting of the papers fast.
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
