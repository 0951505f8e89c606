//! PCOMP: compares all pairs of the remaining rankers (Algorithm 1).

use serde::{Deserialize, Serialize};

use super::{
    BATCHES, Batched, Closed, Duel, ELIMINATION, ESTIMATES, Elimination, Estimates, Evidence,
    Field, HORIZON, Scheme, Terms,
};
use crate::Policy;
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};

/// Parameters of PCOMP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pcomp {
    /// `T`, in comparisons.
    pub horizon: u64,
    /// `B`; by default the logarithm of the horizon to base 2.
    #[serde(default)]
    pub batches: Option<u32>,
    /// The rule by which a ranker is clearly beaten.
    #[serde(default)]
    pub elimination: Elimination,
    /// The comparisons that count as evidence.
    #[serde(default)]
    pub estimates: Option<Estimates>,
}

impl Pcomp {
    fn terms(&self) -> Terms {
        Terms {
            horizon: self.horizon,
            batches: self.batches,
            elimination: self.elimination,
            estimates: self.estimates,
        }
    }
}

impl PolicyParameters for Pcomp {
    const DESCRIPTION: Description = Description {
        summary: "In at most B batches: compares all pairs of the remaining rankers, and removes \
                  those that are clearly beaten.",
        source: "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Algorithm 1 (PCOMP)",
        assumes: "a Condorcet winner",
        parameters: &[HORIZON, BATCHES, ELIMINATION, ESTIMATES],
        fixed_rankers: Some(
            "it commits to batches of pairs, and divides its horizon, for the initial rankers",
        ),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.terms().validate(rankers)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Batched::start(self.terms(), setup, AllPairs)
    }

    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Batched::<AllPairs>::restore(self.terms(), setup, format, state)
    }
}

/// The pair selection of PCOMP, and of the second phase of SCOMP and SCOMP2.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AllPairs;

impl Scheme for AllPairs {
    fn pairs(&self, field: &Field) -> Vec<Duel> {
        Field::all_pairs(&field.active)
    }

    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed {
        // lines 5-7, or their replacement by divergences
        field.eliminate(&field.active.clone(), evidence, 1.0);
        field.round += 1;
        Closed::Round
    }

    fn is_sound(&self, _rankers: usize) -> bool {
        true
    }
}
