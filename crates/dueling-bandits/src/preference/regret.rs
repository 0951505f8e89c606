//! Regret: the cost of the rankers that were shown, compared with showing only the best one.
//!
//! All kinds of regret but the weak one are the mean loss of the two rankers of a duel. The
//! cumulative regret is then linear in the appearances of each ranker: `Σ_i appearances[i] · loss[i]
//! / 2`. No sum over steps is needed. The formula is the same with true scores, as in a simulation,
//! and with estimated ones.

use crate::preference::matrix::PreferenceMatrix;

/// The kind of regret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegretKind {
    /// [`Regret::copeland`].
    Copeland,
    /// [`Regret::condorcet`].
    Condorcet,
    /// [`Regret::borda`].
    Borda,
    /// [`Regret::weak`].
    Weak,
}

/// A matrix without a ranker that beats all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has no Condorcet winner, so Condorcet and weak regret are not defined; use Copeland regret"
)]
pub struct NoCondorcetWinner;

/// The loss of each ranker. A step that shows `(i, j)` costs `(loss[i] + loss[j]) / 2`; with weak
/// regret, the smaller of the two.
///
/// ```
/// use dueling_bandits::preference::{PreferenceMatrix, Regret};
///
/// let matrix = PreferenceMatrix::named("cyclic-4").expect("a known name")?;
/// let regret = Regret::condorcet(&matrix).expect("ranker 0 beats all others");
/// assert_eq!(regret.of_step(0, 0), 0.0);
/// assert!((regret.of_step(0, 3) - 0.05).abs() < 1e-9);
/// # Ok::<(), dueling_bandits::preference::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Regret {
    losses: Vec<f64>,
    /// Mean regret of uniformly random pairs.
    uniform: f64,
    weak: bool,
}

impl Regret {
    /// Regret of `kind` under `matrix`.
    pub fn of_kind(kind: RegretKind, matrix: &PreferenceMatrix) -> Result<Self, NoCondorcetWinner> {
        match kind {
            RegretKind::Copeland => Ok(Self::copeland(matrix)),
            RegretKind::Condorcet => Self::condorcet(matrix),
            RegretKind::Borda => Ok(Self::borda(matrix)),
            RegretKind::Weak => Self::weak(matrix),
        }
    }

    /// Copeland regret, `cpld* - (cpld(i) + cpld(j)) / 2` a step, with scores normalised by `K - 1`
    /// (Wu and Liu, NIPS 2016; Zoghi et al., NIPS 2015, count twice this).
    pub fn copeland(matrix: &PreferenceMatrix) -> Self {
        Self::from_copeland_scores(&matrix.copeland_scores())
    }

    /// Copeland regret under given unnormalised scores. With the scores of the empirical `p̂` it is
    /// the plug-in estimate.
    pub fn from_copeland_scores(scores: &[usize]) -> Self {
        Self::from_copeland_scores_among(scores, &(0..scores.len()).collect::<Vec<_>>())
    }

    /// Copeland regret when only the rankers in `active` (ascending) can be selected. `scores[i]`
    /// is the number of active rankers that `i` beats. The score of a retired ranker is divided by
    /// the number of active rankers. If it is then above that of the best active ranker, the loss
    /// of the retired ranker is 0.
    pub fn from_copeland_scores_among(scores: &[usize], active: &[usize]) -> Self {
        let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
        let others = active.len().saturating_sub(1).max(1) as f64;
        let best_share = best as f64 / others;
        let retired = |score: usize| (best_share - score as f64 / active.len() as f64).max(0.0);
        let mut losses: Vec<f64> = scores.iter().map(|&score| retired(score)).collect();
        for &i in active {
            losses[i] = (best - scores[i]) as f64 / others;
        }
        Self::from_losses(losses).with_uniform_pairs_of(active)
    }

    /// Condorcet ("epsilon") regret, `(ε_i + ε_j) / 2` a step, where `ε_i = P[w][i] - 1/2` and `w`
    /// is the Condorcet winner (Agarwal, Ghuge and Nagarajan, ICML 2022).
    pub fn condorcet(matrix: &PreferenceMatrix) -> Result<Self, NoCondorcetWinner> {
        let winner = matrix.condorcet_winner().ok_or(NoCondorcetWinner)?;
        Ok(Self::from_losses((0..matrix.rankers()).map(|i| matrix.margin(winner, i)).collect()))
    }

    /// Borda regret, `b* - (b(i) + b(j)) / 2` a step, where `b(i)` is the mean `P[i][k]` over the
    /// other rankers `k` and `b*` the largest (Saha, Koren and Mansour, "Adversarial Dueling
    /// Bandits", ICML 2021).
    pub fn borda(matrix: &PreferenceMatrix) -> Self {
        let scores = matrix.borda_scores();
        let best = scores.iter().copied().fold(0.0, f64::max);
        Self::from_losses(scores.iter().map(|score| best - score).collect())
    }

    /// Weak Condorcet regret, `min(ε_i, ε_j)` a step: nothing is lost while the winner is one of the
    /// two (Yue, Broder, Kleinberg and Joachims, 2012; Chen and Frazier, ICML 2017).
    pub fn weak(matrix: &PreferenceMatrix) -> Result<Self, NoCondorcetWinner> {
        let losses = Self::condorcet(matrix)?.losses;
        let least = |a: &f64| losses.iter().map(|b| a.min(*b)).sum::<f64>();
        let uniform = losses.iter().map(least).sum::<f64>() / (losses.len() as f64).powi(2);
        Ok(Self { losses, uniform, weak: true })
    }

    /// Regret under given losses, one for each ranker.
    pub fn from_losses(losses: Vec<f64>) -> Self {
        let uniform = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
        Self { losses, uniform, weak: false }
    }

    /// The same regret, but uniformly random pairs consist of `active` rankers only.
    pub fn with_uniform_pairs_of(mut self, active: &[usize]) -> Self {
        self.uniform =
            active.iter().map(|&i| self.losses[i]).sum::<f64>() / active.len().max(1) as f64;
        self
    }

    /// Regret of one step that shows `(i, j)`.
    pub fn of_step(&self, i: usize, j: usize) -> f64 {
        if self.weak {
            self.losses[i].min(self.losses[j])
        } else {
            (self.losses[i] + self.losses[j]) / 2.0
        }
    }

    /// Whether the regret of a step is the smaller loss of its rankers, not their mean, so that
    /// [`Self::of_appearances`] does not give it.
    pub fn is_weak(&self) -> bool {
        self.weak
    }

    /// Cumulative regret from the appearances of each ranker, unless it [is weak](Self::is_weak). A
    /// step is two appearances; a self-duel is two of the same ranker. Summed in the order of the
    /// rankers; O(K).
    pub fn of_appearances(&self, appearances: &[u64]) -> f64 {
        self.losses.iter().zip(appearances).map(|(loss, &shown)| loss * shown as f64).sum::<f64>()
            / 2.0
    }

    /// Expected cumulative regret of `steps` steps that draw both rankers uniformly and
    /// independently: the cost of the same steps without a policy.
    pub fn of_uniform_pairs(&self, steps: u64) -> f64 {
        self.uniform * steps as f64
    }
}
