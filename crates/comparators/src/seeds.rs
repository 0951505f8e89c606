//! The random streams of a simulated run.

use dueling_bandits::preference::PreferenceMatrix;
use sha2::{Digest, Sha256};

/// The seeds of a run's independent random streams: a function of the simulation's seed, the matrix
/// and the number of the run. They do not depend on the policy, so that every policy meets the same
/// searchers in run `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSeeds {
    /// For the order in which the policy sees the rankers.
    pub shuffling: u64,
    /// For the searchers.
    pub answering: u64,
    /// For [`Bandit::select`](dueling_bandits::Bandit::select).
    pub selecting: u64,
    /// For [`Setup::seed`](dueling_bandits::Setup::seed).
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
pub fn fingerprint(matrix: &PreferenceMatrix) -> [u8; 32] {
    let mut hash = Sha256::new();
    for entry in matrix.rows().flatten() {
        hash.update(entry.to_le_bytes());
    }
    hash.finalize().into()
}
