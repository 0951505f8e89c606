//! Regret: what showing these rankers cost, compared with showing the best one only.
//!
//! Both kinds are a mean over the two rankers of a duel of what each of them loses, so that the cumulative regret is
//! linear in how often each ranker was shown: `Σ_i appearances[i] · loss[i] / 2`. No sum over steps is needed, and the
//! same formula prices a simulation (with the true scores) and a live experiment (with estimated ones).

use super::PreferenceMatrix;

/// Which regret is meant. Every report says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegretKind {
    /// [`Regret::copeland`].
    Copeland,
    /// [`Regret::condorcet`].
    Condorcet,
}

/// The matrix has no ranker that beats all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has no Condorcet winner, so Condorcet regret is not defined; use Copeland regret")]
pub struct NoCondorcetWinner;

/// What one appearance of each ranker costs, twice: a step that shows `(i, j)` costs `(loss[i] + loss[j]) / 2`.
#[derive(Debug, Clone, PartialEq)]
pub struct Regret {
    losses: Vec<f64>,
}

impl Regret {
    /// Regret of `kind` under `matrix`.
    pub fn of_kind(kind: RegretKind, matrix: &PreferenceMatrix) -> Result<Self, NoCondorcetWinner> {
        match kind {
            RegretKind::Copeland => Ok(Self::copeland(matrix)),
            RegretKind::Condorcet => Self::condorcet(matrix),
        }
    }

    /// Copeland regret, `cpld* - (cpld(i) + cpld(j)) / 2` a step, with scores normalised by `K - 1` (Wu and Liu, NIPS
    /// 2016; Zoghi et al., NIPS 2015, count twice this).
    pub fn copeland(matrix: &PreferenceMatrix) -> Self {
        Self::from_copeland_scores(&matrix.copeland_scores())
    }

    /// Copeland regret under given unnormalised scores, perhaps estimated ones: the plug-in estimate of a live
    /// experiment prices its appearances with the scores of today's `p̂`.
    pub fn from_copeland_scores(scores: &[usize]) -> Self {
        let best = scores.iter().copied().max().unwrap_or(0);
        let others = scores.len().saturating_sub(1).max(1) as f64;
        Self { losses: scores.iter().map(|score| (best - score) as f64 / others).collect() }
    }

    /// Condorcet ("epsilon") regret, `(ε_i + ε_j) / 2` a step, where `ε_i = P[w][i] - 1/2` and `w` is the Condorcet
    /// winner (Agarwal, Ghuge and Nagarajan, ICML 2022).
    pub fn condorcet(matrix: &PreferenceMatrix) -> Result<Self, NoCondorcetWinner> {
        let winner = matrix.condorcet_winner().ok_or(NoCondorcetWinner)?;
        Ok(Self { losses: (0..matrix.rankers()).map(|i| matrix.margin(winner, i)).collect() })
    }

    /// Regret under given losses, one a ranker: a step that shows `(i, j)` costs `(losses[i] + losses[j]) / 2`.
    pub fn from_losses(losses: Vec<f64>) -> Self {
        Self { losses }
    }

    /// Regret of one step that shows `(i, j)`.
    pub fn of_step(&self, i: usize, j: usize) -> f64 {
        (self.losses[i] + self.losses[j]) / 2.0
    }

    /// Cumulative regret of any number of steps, from how often each ranker was shown: a step is two appearances, a
    /// self-duel two of the same ranker. Summed in the order of the rankers; O(K).
    pub fn of_appearances(&self, appearances: &[u64]) -> f64 {
        self.losses.iter().zip(appearances).map(|(loss, &shown)| loss * shown as f64).sum::<f64>() / 2.0
    }

    /// Expected cumulative regret of `steps` steps that draw both rankers uniformly, alike ones included: what the
    /// same traffic would have cost without a policy.
    pub fn of_uniform_pairs(&self, steps: u64) -> f64 {
        let mean = self.losses.iter().sum::<f64>() / self.losses.len().max(1) as f64;
        mean * steps as f64
    }
}
