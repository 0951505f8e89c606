//! The model, kept minimal: each duel has one answer or none.

use rankduel::service::feedback::Received;

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
    pub fn hear(&mut self, outcome: Outcome, now: i64, received: &Received) -> Result<(), String> {
        let position = match (self.counted, received) {
            (None, Received::Expired { .. }) if self.is_late(now) => return Ok(()),
            (None, Received::Recorded(position)) if !self.is_late(now) => *position,
            (Some(counted), Received::Duplicate(position)) if counted == outcome => *position,
            (Some(counted), Received::Conflict(position)) if counted != outcome => *position,
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
