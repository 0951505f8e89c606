//! The model, kept minimal: each duel has one answer or none.

use rankduel::service::feedback::Receipt;
use rankduel_engine::metrics::FeedbackStatus;

use super::op::Outcome;

/// A duel that was issued.
#[derive(Debug, Clone)]
pub struct Duel {
    pub id: String,
    pub experiment: usize,
    pub expires_at: i64,
    /// The answer that counts.
    pub counted: Option<Outcome>,
    /// Its log position, once a caller has received it.
    pub position: Option<u64>,
}

impl Duel {
    /// Whether a first answer at this time is too late.
    pub fn is_late(&self, now: i64) -> bool {
        now > self.expires_at
    }

    /// Record that the answer reached the log.
    pub fn count(&mut self, outcome: Outcome, now: i64) {
        if self.counted.is_none() && !self.is_late(now) {
            self.counted = Some(outcome);
        }
    }

    /// Check the response to an answer. The error names the expected response.
    pub fn hear(&mut self, outcome: Outcome, now: i64, received: &Receipt) -> Result<(), String> {
        let position = match (self.counted, received.status, received.position) {
            (None, FeedbackStatus::Expired, _) if self.is_late(now) => return Ok(()),
            (None, FeedbackStatus::Recorded, Some(at)) if !self.is_late(now) => at,
            (Some(own), FeedbackStatus::Duplicate, Some(at)) if own == outcome => at,
            (Some(own), FeedbackStatus::Conflict, Some(at)) if own != outcome => at,
            _ => {
                return Err(format!(
                    "{outcome:?} at {now} of {self:?} was answered with {received:?}"
                ));
            }
        };
        if self.position.is_some_and(|before| before != position) {
            return Err(format!("{self:?} has moved to position {position}"));
        }
        self.position = Some(position);
        self.count(outcome, now);
        Ok(())
    }
}
