//! PCOMP: all pairs of the rankers left (Algorithm 1).

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
    /// `B`; the logarithm of the horizon to base 2 where it is not given.
    #[serde(default)]
    pub batches: Option<u32>,
    /// When a ranker is clearly beaten.
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
        summary: "In at most B batches: compares all pairs of the rankers left, and drops who is clearly beaten.",
        source: "Agarwal, Ghuge & Nagarajan, Batched Dueling Bandits, ICML 2022, Algorithm 1 (PCOMP)",
        assumes: "a Condorcet winner",
        parameters: &[HORIZON, BATCHES, ELIMINATION, ESTIMATES],
        fixed_rankers: Some(
            "it commits to batches of pairs, and divides its horizon, for the rankers that it began with",
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

/// The scheme of PCOMP, and of the second phase of the other two.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AllPairs;

impl Scheme for AllPairs {
    fn pairs(&self, field: &Field) -> Vec<Duel> {
        Field::all_pairs(&field.active)
    }

    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed {
        // lines 5-7, and their replacement by divergences
        field.eliminate(&field.active.clone(), evidence, 1.0);
        field.round += 1;
        Closed::Round
    }

    fn is_sound(&self, _rankers: usize) -> bool {
        true
    }
}
