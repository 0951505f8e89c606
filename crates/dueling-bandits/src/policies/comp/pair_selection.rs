//! Where PCOMP, SCOMP and SCOMP2 differ: the pairs of a round, and who may remove whom.

use crate::Duel;
use crate::policies::comp::evidence::Evidence;
use crate::policies::comp::field::Field;
use crate::saved_state::Serializable;

/// What a closed batch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    /// The last of its round.
    Round,
    /// The round goes on with another.
    PartOfRound,
}

/// Which pairs a round compares, and who may remove whom.
pub(super) trait PairSelection: std::fmt::Debug + Send + Sync + Serializable {
    /// The pairs of the next batch, distinct. At least two rankers are active.
    fn pairs(&self, field: &Field) -> Vec<Duel>;

    /// Adapt to a batch that was answered.
    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed;

    /// Whether a state that was read can be one, for an experiment with `rankers` rankers.
    fn is_sound(&self, rankers: usize) -> bool;
}
