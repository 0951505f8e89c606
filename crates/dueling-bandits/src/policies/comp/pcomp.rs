//! PCOMP: compares all pairs of the remaining rankers (Algorithm 1).

use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::comp::batched::Batched;
use crate::policies::comp::evidence::{Elimination, Estimates, Evidence};
use crate::policies::comp::field::Field;
use crate::policies::comp::pair_selection::{Closed, PairSelection};
use crate::policies::comp::parameters::{
    BATCHES, BatchParameters, ELIMINATION, ESTIMATES, FIXED_RANKERS, HORIZON, batch_parameters,
};
use crate::{Duel, Policy};

batch_parameters! {
    /// Parameters of PCOMP.
    Pcomp
}

impl PolicyParameters for Pcomp {
    const DESCRIPTION: Description = Description {
        summary: "In at most B batches: compares all pairs of the remaining rankers, and removes \
                  those that are clearly beaten.",
        source: "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Algorithm 1 \
                 (PCOMP)",
        assumes: "a Condorcet winner",
        parameters: &[HORIZON, BATCHES, ELIMINATION, ESTIMATES],
        fixed_rankers: Some(FIXED_RANKERS),
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Batched::start(self.shared(), setup, AllPairs)
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<AllPairs>::restore(self.shared(), setup, state)
    }
}

/// The selection of PCOMP, and of the second phase of the other two.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct AllPairs;

impl PairSelection for AllPairs {
    fn most_batches(rounds: u32) -> u32 {
        rounds
    }

    fn pairs(&self, field: &Field) -> Vec<Duel> {
        Field::all_pairs(&field.active)
    }

    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed {
        // lines 5-7, or their replacement with divergences
        field.eliminate(&field.active.clone(), evidence, 1.0);
        field.round += 1;
        Closed::Round
    }

    fn is_sound(&self, _rankers: usize) -> bool {
        true
    }
}
