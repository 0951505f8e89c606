//! The part in which PCOMP, SCOMP and SCOMP2 differ: the pairs of a round, and the rankers that may
//! remove others.

use crate::Duel;
use crate::policies::comp::evidence::Evidence;
use crate::policies::comp::field::Field;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The part of a round that a closed batch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// The last batch of its round.
    Round,
    /// Not the last batch: the round continues.
    PartOfRound,
}

/// Selects the pairs of each batch, and removes rankers after it.
pub(super) trait PairSelection:
    std::fmt::Debug + Clone + Send + Sync + Serialize + DeserializeOwned + 'static
{
    /// Most batches of a horizon that is divided into this many rounds.
    fn most_batches(rounds: u32) -> u32;

    /// The pairs of the next batch, distinct. At least two rankers are active.
    fn pairs(&self, field: &Field) -> Vec<Duel>;

    /// Adapt to a completed batch.
    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed;

    /// Whether a decoded selection is a possible state for an experiment with `rankers` rankers.
    fn is_sound(&self, rankers: usize) -> bool;
}
