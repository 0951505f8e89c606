//! The parameters of a tournament: policies that are compared on one matrix.

use super::feedback::Feedback;
use dueling_bandits::PolicySpec;
use dueling_bandits::preference::{NoCondorcetWinner, PreferenceMatrix, Regret, RegretKind};

/// Policies that are compared on one matrix.
#[derive(Debug, Clone)]
pub struct Tournament {
    /// The name of the matrix in the report.
    pub name: String,
    /// The true preferences.
    pub matrix: PreferenceMatrix,
    /// The kind of regret that is counted.
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
}

/// A policy and its name in the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    /// The policy, as the user wrote it.
    pub text: String,
    /// The policy and its parameters.
    pub spec: PolicySpec,
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
        })
    }

    /// Number of steps of all runs together.
    pub fn total_steps(&self) -> u64 {
        self.horizon.saturating_mul(self.runs).saturating_mul(self.entrants.len() as u64)
    }
}
