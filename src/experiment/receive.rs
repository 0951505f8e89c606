//! Feedback: from what the searcher did to an event in the log, exactly once.

use super::error::ServiceError;
use super::lifecycle::refuse_archived;
use super::live::Live;
use super::loss;
use super::service::Service;
use super::token::TokenError;
use crate::policy::Answer;
use crate::store::{Appended, Event, LogEntry, NewEvent, OutcomeEvent};
use crate::telemetry::metrics::FeedbackStatus;

/// What the searcher said, as it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownOutcome {
    /// The left ranker won.
    Left,
    /// The right ranker won.
    Right,
    /// Equal credit, and not none.
    Tie,
    /// No click.
    None,
}

/// The answer to one duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The `duel_id` as it was handed out.
    pub duel_id: String,
    /// What it came to.
    pub outcome: ShownOutcome,
}

/// What became of one piece of feedback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It counts, and stands in the log at this position.
    Recorded(u64),
    /// The same answer counted already, at this position.
    Duplicate(u64),
    /// Another answer of this duel counted already, at this position; that one stands.
    Conflict(u64),
    /// It came after the duel's time.
    Expired {
        /// Unix milliseconds at which the duel expired.
        expired_at: i64,
    },
    /// It names no duel of this experiment.
    Invalid(String),
}

impl Service {
    /// Take in answers. Returns when what counts is durable; one result each, in order.
    pub async fn receive(&self, name: &str, feedback: &[Feedback]) -> Result<Vec<Received>, ServiceError> {
        let live = self.experiment(name).await?;
        live.with_record(refuse_archived)?;
        let now = self.clock.now_ms();
        let check = |item| self.check_feedback(&live, item, now);
        let mut checked: Vec<_> = feedback.iter().map(check).collect();
        if checked.iter().any(|checked| matches!(checked, Checked::UnknownKey)) {
            // perhaps one that was added since this process read them
            self.keys.refresh_for_unknown().await?;
            checked = feedback.iter().map(check).collect();
        }
        let fresh: Vec<_> = checked
            .iter()
            .filter_map(|checked| match checked {
                Checked::Fresh(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        let late: Vec<_> = checked
            .iter()
            .filter_map(|checked| match checked {
                Checked::Late { event, .. } => Some(event.nonce),
                _ => None,
            })
            .collect();
        let mut found =
            if late.is_empty() { Vec::new() } else { self.store.find(live.id, &late).await? }.into_iter();
        let mut appended = self.writer.append(&live, fresh).await?.into_iter();
        let missing =
            || ServiceError::Internal("the store answered for fewer events than it was given".into());
        checked
            .into_iter()
            .map(|checked| {
                Ok(match checked {
                    Checked::Invalid(detail) => Received::Invalid(detail),
                    Checked::UnknownKey => Received::Invalid(not_valid(TokenError::UnknownKey)),
                    Checked::Late { event, expired_at } => {
                        late_answer(&event, expired_at, found.next().ok_or_else(missing)?)
                    }
                    Checked::Fresh(event) => match appended.next().ok_or_else(missing)? {
                        Appended::Recorded(position) => {
                            self.check_growth(&live, &event.event, position);
                            Received::Recorded(position)
                        }
                        Appended::Duplicate(position) => Received::Duplicate(position),
                        Appended::Conflict(position) => Received::Conflict(position),
                        // by another process, which this one has not heard of yet
                        Appended::Archived => return Err(ServiceError::Archived(name.into())),
                        Appended::Missing => return Err(ServiceError::NotFound(name.into())),
                    },
                })
            })
            .inspect(|result| {
                if let Ok(received) = result {
                    self.metrics.feedback(received.status());
                    live.traffic().feedback(received.status());
                }
            })
            .collect()
    }

    /// A duel was selected from a log of so many entries; its answer stands after them all. If it does not, entries are
    /// gone that were there, and their callers were told that they count. After a restart nothing else would show it.
    fn check_growth(&self, live: &Live, event: &Event, position: u64) {
        let Event::Outcome(outcome) = event else { return };
        if position <= outcome.chosen_at && !live.is_of_a_lost_log() {
            let sign = "a duel was selected from a longer log than there is";
            loss::report(&self.metrics, &live.name, position, outcome.chosen_at, sign);
        }
    }

    fn check_feedback(&self, live: &Live, feedback: &Feedback, now: i64) -> Checked {
        let token = match self.keys.verify(&feedback.duel_id) {
            Ok(token) => token,
            Err(TokenError::UnknownKey) => return Checked::UnknownKey,
            Err(error) => return Checked::Invalid(not_valid(error)),
        };
        if token.experiment != live.id {
            return Checked::Invalid("`duel_id` belongs to another experiment".into());
        }
        let answer = match (feedback.outcome, token.first_left) {
            (ShownOutcome::Left, true) | (ShownOutcome::Right, false) => Answer::First,
            (ShownOutcome::Left, false) | (ShownOutcome::Right, true) => Answer::Second,
            (ShownOutcome::Tie, _) => Answer::Tie,
            (ShownOutcome::None, _) => Answer::None,
        };
        let event = NewEvent {
            nonce: token.nonce,
            event: Event::Outcome(OutcomeEvent {
                first: token.first,
                second: token.second,
                first_left: token.first_left,
                answer,
                batch: token.batch,
                ticket: token.ticket,
                chosen_at: token.chosen_at,
                issued_at: token.issued_at,
            }),
        };
        if now > token.expires_at {
            Checked::Late { event, expired_at: token.expires_at }
        } else {
            Checked::Fresh(event)
        }
    }
}

/// Feedback after its token was looked at.
enum Checked {
    Fresh(NewEvent),
    Late { event: NewEvent, expired_at: i64 },
    Invalid(String),
    UnknownKey,
}

fn not_valid(error: TokenError) -> String {
    format!("`duel_id` is not valid: {error}")
}

/// What a late answer is told: a repeat of one that counted in time is still a repeat.
fn late_answer(event: &NewEvent, expired_at: i64, found: Option<LogEntry>) -> Received {
    match found {
        Some(entry) if entry.event == event.event => Received::Duplicate(entry.position),
        Some(entry) => Received::Conflict(entry.position),
        None => Received::Expired { expired_at },
    }
}

impl Received {
    /// What it is counted as.
    pub fn status(&self) -> FeedbackStatus {
        match self {
            Self::Recorded(_) => FeedbackStatus::Recorded,
            Self::Duplicate(_) => FeedbackStatus::Duplicate,
            Self::Conflict(_) => FeedbackStatus::Conflict,
            Self::Expired { .. } => FeedbackStatus::Expired,
            Self::Invalid(_) => FeedbackStatus::Invalid,
        }
    }
}
