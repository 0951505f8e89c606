//! Policies made from win counts, for callers that keep the counts themselves.

use crate::parameters::Setup;
use crate::tally::MAX_STEPS;
use crate::{Duel, MAX_RANKERS, Outcome, Policy, PolicySpec, Tally};

/// Most wins of one ranker over another.
pub const WINS_MAX: u32 = 1 << 30;
/// Most time-steps.
pub const STEPS_MAX: u64 = MAX_STEPS;

/// Win counts that no policy can be made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// The state of the policy is more than counts.
    #[error(
        "policy `{0}` needs more than win counts: the order of the duels, its phases or its \
         batches; policies that need only counts: {known}",
        known = PolicySpec::kinds_from_counts().collect::<Vec<_>>().join(", ")
    )]
    NeedsHistory(&'static str),
    /// Fewer steps than duels.
    #[error("`steps` is {steps}, and `wins` has {duels} duels")]
    FewSteps {
        /// Steps.
        steps: u64,
        /// Duels.
        duels: u64,
    },
    /// More than a policy can hold.
    #[error("these are more duels than a policy can hold")]
    TooMany,
}

impl PolicySpec {
    /// The policy after `wins[i][j]` duels that `i` won against `j` (at most [`WINS_MAX`] each),
    /// and `steps` time-steps in all (at most [`STEPS_MAX`]). `wins` is square.
    ///
    /// Steps beyond the duels are steps without an outcome; `None` means as many steps as duels.
    /// Only the policies of [`PolicySpec::kinds_from_counts`] can start from counts.
    ///
    /// ```
    /// use dueling_bandits::PolicySpec;
    ///
    /// let spec = PolicySpec::DoubleThompson(Default::default());
    /// let policy = spec.from_counts(&[vec![0, 30], vec![12, 0]], None)?;
    /// assert_eq!(policy.champion(), 0);
    /// # Ok::<(), dueling_bandits::CountsError>(())
    /// ```
    pub fn from_counts(
        &self,
        wins: &[Vec<u32>],
        steps: Option<u64>,
    ) -> Result<Box<dyn Policy>, CountsError> {
        let rankers = wins.len();
        let mut tally = Tally::new(rankers);
        for (i, row) in wins.iter().enumerate() {
            for (j, &count) in row.iter().enumerate().filter(|&(j, _)| j != i) {
                tally.record_run(Duel::new(i, j), Outcome::First, count);
            }
        }
        let duels = tally.steps();
        let steps = steps.unwrap_or(duels);
        if steps < duels {
            return Err(CountsError::FewSteps { steps, duels });
        }
        if !(1..=MAX_RANKERS).contains(&rankers) || steps > STEPS_MAX {
            return Err(CountsError::TooMany);
        }
        tally.skip(steps - duels);
        self.start_from_tally(Setup { rankers, seed: 0 }, tally)
            .ok_or(CountsError::NeedsHistory(self.kind()))
    }
}
