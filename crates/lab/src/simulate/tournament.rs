//! The parameters of a tournament: policies that are compared on one matrix.

use std::borrow::Cow;

use rand::RngExt;
use rand_distr::Open01;

use comparators::Spec;
use comparators::feedback::Feedback;
use dueling_bandits::preference::{NoCondorcetWinner, PreferenceMatrix, Regret, RegretKind};
use dueling_bandits::step_rng;

/// Policies that are compared on one matrix.
#[derive(Debug, Clone)]
pub struct Tournament {
    /// The name of the matrix in the report.
    pub name: String,
    /// The true preferences.
    pub matrix: PreferenceMatrix,
    pub regret_kind: RegretKind,
    /// The regret of each ranker.
    pub regret: Regret,
    /// The policies, validated for this matrix.
    pub entrants: Vec<Entrant>,
    /// Number of steps of a run, at least 1.
    pub horizon: u64,
    /// Number of runs of every policy, at least 1.
    pub runs: u64,
    /// The seed of all random numbers. Run `n` on this matrix does not depend on the other runs.
    pub seed: u64,
    /// Whether each run numbers the rankers at random.
    pub shuffle_rankers: bool,
    /// How feedback reaches the policy.
    pub feedback: Feedback,
    /// Draws another matrix of the same size for each run, instead of `matrix`.
    pub drawn: Option<Drawn>,
}

/// A distribution of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drawn {
    /// SYN-CD of Agarwal, Ghuge and Nagarajan (ICML 2022): one ranker beats all others by a gap
    /// drawn from (0, 1/2), all other pairs are even.
    OneWinner,
}

/// A policy and its name in the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// The policy, as the user wrote it.
    pub text: String,
    pub spec: Spec,
}

impl Tournament {
    /// A tournament in the setting of the papers: shuffled rankers and immediate feedback. It has
    /// one run and seed 0.
    pub fn new(
        name: impl Into<String>,
        matrix: PreferenceMatrix,
        regret_kind: RegretKind,
        entrants: Vec<Entrant>,
        horizon: u64,
    ) -> Result<Self, NoCondorcetWinner> {
        let regret = Regret::of_kind(regret_kind, &matrix)?;
        Ok(Self {
            name: name.into(),
            matrix,
            regret_kind,
            regret,
            entrants,
            horizon,
            runs: 1,
            seed: 0,
            shuffle_rankers: true,
            feedback: Feedback::default(),
            drawn: None,
        })
    }

    /// The tournament with the matrix of run `number`.
    pub fn of_run(&self, number: u64) -> Cow<'_, Self> {
        let Some(Drawn::OneWinner) = self.drawn else { return Cow::Borrowed(self) };
        let mut rng = step_rng(self.seed, number);
        let rankers = self.matrix.rankers();
        let winner = rng.random_range(0..rankers);
        let gap = 0.5 * rng.sample::<f64, _>(Open01);
        let matrix = PreferenceMatrix::from_pairs(rankers, |i, j| {
            0.5 + gap * (f64::from(u8::from(i == winner)) - f64::from(u8::from(j == winner)))
        });
        let matrix = matrix.expect("probabilities between 0 and 1");
        let regret = Regret::of_kind(self.regret_kind, &matrix).expect("a Condorcet winner");
        Cow::Owned(Self { matrix, regret, ..self.clone() })
    }

    /// Number of steps of all runs together.
    pub fn total_steps(&self) -> u64 {
        self.horizon.saturating_mul(self.runs).saturating_mul(self.entrants.len() as u64)
    }
}
