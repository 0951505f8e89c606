//! The evidence of a run, as a policy that plans for the verdict sees it.

use crate::Tally;
use crate::evidence::certificate::PairEvidence;
use crate::evidence::verdict::{Counted, VerdictTracker};

/// The evidence of a run in two views: what counts, and what is expected to count once the answers
/// that wait have been counted. Its methods need the counts of all answers and the active rankers,
/// ascending, which the policy has.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The verdict, and which answers count.
    pub tracker: &'a VerdictTracker,
    /// Which answers are expected to count; `None` if they are those that count.
    pub expected: Option<&'a Counted>,
    /// The share of answers so far that count or wait. Answers of people who come back do not.
    pub counting: f64,
}

impl<'a> View<'a> {
    /// The evidence that is expected to count.
    pub fn expected(&self, tally: &'a Tally, active: &'a [usize]) -> PairEvidence<'a> {
        match self.expected {
            Some(expected) => self.tracker.evidence_where(expected, tally, active),
            None => self.tracker.evidence(tally, active),
        }
    }

    /// Whether the answers that wait are expected to certify the ranker at this place. O(K² log K).
    pub fn will_certify(&self, evidence: &PairEvidence, place: usize) -> bool {
        self.expected.is_some() && self.tracker.rule().blocks(evidence, place, None).is_none()
    }
}
