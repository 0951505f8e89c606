//! A policy made of win counts alone, for callers who keep the counts themselves.

use crate::parameters::Setup;
use crate::saved_state::save_state;
use crate::{Duel, Outcome, Policy, PolicySpec, Tally};

/// Most wins of one ranker over another.
pub const WINS_MAX: u32 = 1 << 30;
/// Most time-steps.
pub const STEPS_MAX: u64 = 1 << 53;

/// Counts that no policy can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotCount {
    /// The policy's state is more than counts.
    #[error(
        "policy `{0}` decides by more than win counts: by the order of what it saw, its phases or its batches; create an \
         experiment for it, or choose uniform, d-ts, d-ts-plus or self-sparring"
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

impl CannotCount {
    /// JSON pointer to what is wrong in a request.
    pub fn pointer(&self) -> &'static str {
        match self {
            Self::NeedsHistory(_) => "/policy/kind",
            Self::FewSteps { .. } => "/steps",
            Self::TooMany => "/wins",
        }
    }
}

impl PolicySpec {
    /// The policy as it is after `wins[i][j]` duels that `i` won against `j` (at most
    /// [`WINS_MAX`]), and `steps` time-steps in all (at most [`STEPS_MAX`]; those beyond the duels
    /// taught nothing; as many as the duels unless given). `wins` is square. Only policies whose
    /// state is these counts: the others need what they saw in its order.
    pub fn from_counts(
        &self,
        wins: &[Vec<u32>],
        steps: Option<u64>,
    ) -> Result<Box<dyn Policy>, CannotCount> {
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
            return Err(CannotCount::FewSteps { steps, duels });
        }
        tally.skip(steps - duels);
        let state = match self {
            Self::SelfSparring(_) => save_state(&tally),
            // nobody is retired
            Self::Uniform(_) | Self::DoubleThompson(_) | Self::DoubleThompsonPlus(_) => {
                save_state(&(&tally, Vec::<u16>::new()))
            }
            _ => return Err(CannotCount::NeedsHistory(self.kind())),
        };
        let setup = Setup { rankers, seed: 0 };
        let format = self.start(setup).format();
        self.restore(setup, format, &state).ok_or(CannotCount::TooMany)
    }
}
