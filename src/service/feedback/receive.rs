//! Receiving feedback.

use super::clicks::clicks_event;
use super::content::{Feedback, FeedbackContent, Received, ShownOutcome};
use crate::engine::condition::Condition;
use crate::engine::error::EngineError;
use crate::engine::experiment_spec::FieldError;
use crate::engine::loaded::LoadedExperiment;
use crate::engine::log_regression;
use crate::events::{ControlEvent, Event, OutcomeEvent};
use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::duel_id::{OTHER_EXPERIMENT, not_valid};
use crate::service::error::ServiceError;
use crate::store::{Appended, LogEntry, NewEvent};
use crate::telemetry::trace;
use crate::tokens::duel_token::{DuelToken, TokenError};
use dueling_bandits::Answer;

/// Most bytes of memory for clicks of unsettled duels of one experiment.
const OPEN_PAGES_BYTES_MAX: usize = 64 << 20;

/// Feedback after its `duel_id` was checked.
enum Checked {
    Fresh(NewEvent),
    Late { event: NewEvent, expired_at: i64 },
    Invalid(String),
    Refused(FieldError),
    UnknownKey,
}

impl Service {
    /// Receive feedback. Returns one result for each piece, in order, when all events that count
    /// are durable.
    pub async fn receive(
        &self,
        name: &str,
        feedback: &[Feedback],
    ) -> Result<Vec<Received>, ServiceError> {
        let loaded = self.experiment(name).await?;
        loaded.with_record(refuse_archived)?;
        let now = self.now_ms();
        let check = |item| self.check_feedback(&loaded, item, now);
        let mut checked: Vec<_> = feedback.iter().map(check).collect();
        if checked.iter().any(|checked| matches!(checked, Checked::UnknownKey)) {
            self.refresh_signing_keys().await?;
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
                Checked::Late { event, .. } => {
                    Some([event.nonce, event.superseded_by.unwrap_or(event.nonce)])
                }
                _ => None,
            })
            .flatten()
            .collect();
        if fresh.iter().any(|event| event.superseded_by.is_some())
            && loaded.fold()?.open_pages().bytes() > OPEN_PAGES_BYTES_MAX
        {
            return Err(EngineError::Overloaded.into());
        }
        let found = match late.is_empty() {
            true => Vec::new(),
            false => self.engine.store.find(loaded.id, &late).await?,
        };
        let mut found = found.into_iter();
        let mut appended = self.engine.writer.append(&loaded, fresh).await?.into_iter();
        let missing =
            || ServiceError::internal("the store returned fewer results than it was given events");
        checked
            .into_iter()
            .map(|checked| {
                Ok(match checked {
                    Checked::Invalid(detail) => Received::Invalid(detail),
                    Checked::Refused(error) => Received::Refused(error),
                    Checked::UnknownKey => Received::Invalid(not_valid(TokenError::UnknownKey)),
                    Checked::Late { event, expired_at } => {
                        let own = found.next().ok_or_else(missing)?;
                        late_result(&event, expired_at, own, found.next().ok_or_else(missing)?)
                    }
                    Checked::Fresh(event) => match appended.next().ok_or_else(missing)? {
                        Appended::Recorded(position) => {
                            self.check_growth(&loaded, &event.event, position);
                            Received::Recorded(position)
                        }
                        Appended::Duplicate(position) => Received::Duplicate(position),
                        Appended::Conflict(position) => conflicting(&event, position),
                        Appended::TooLate(position) => Received::Late(position),
                        // another process archived it, and this one does not know yet
                        Appended::Archived => return Err(ServiceError::Archived(name.into())),
                        Appended::Missing => return Err(ServiceError::not_found(name)),
                    },
                })
            })
            .inspect(|result| {
                if let Ok(received) = result {
                    self.engine.metrics.feedback(received.status());
                    loaded.traffic().feedback(received.status());
                }
            })
            .collect()
    }

    /// The answer of a duel must follow the entries that the duel was selected from. If it does
    /// not, acknowledged entries were lost. After a restart, only this check shows it.
    fn check_growth(&self, loaded: &LoadedExperiment, event: &Event, position: u64) {
        let chosen_at = match event {
            Event::Outcome(outcome) => outcome.chosen_at,
            Event::Control(ControlEvent::Clicks(clicks)) => clicks.chosen_at,
            Event::Control(_) => return,
        };
        if position <= chosen_at && loaded.condition() != Condition::LogRegressed {
            let sign = "the log is shorter than the one a duel was selected from";
            log_regression::report(&self.engine.metrics, &loaded.name, position, chosen_at, sign);
        }
    }

    fn check_feedback(&self, loaded: &LoadedExperiment, feedback: &Feedback, now: i64) -> Checked {
        let keys = &self.engine.signing_keys;
        let id = match keys.open(&feedback.duel_id) {
            Ok(id) => id,
            Err(TokenError::UnknownKey) => return Checked::UnknownKey,
            Err(error) => return Checked::Invalid(not_valid(error)),
        };
        if id.duel.experiment != loaded.id {
            return Checked::Invalid(OTHER_EXPERIMENT.into());
        }
        trace::about(id.duel.nonce);
        let event = match &feedback.content {
            FeedbackContent::Outcome(outcome) => outcome_event(&id.duel, *outcome),
            FeedbackContent::Clicks { clicks, last } => {
                match clicks_event(keys, &loaded.spec.pages.event_weights, &id, clicks, *last) {
                    Ok(event) => event,
                    Err(error) => return Checked::Refused(error),
                }
            }
        };
        if now > id.duel.expires_at {
            Checked::Late { event, expired_at: id.duel.expires_at }
        } else {
            Checked::Fresh(event)
        }
    }
}

fn outcome_event(token: &DuelToken, outcome: ShownOutcome) -> NewEvent {
    let answer = match (outcome, token.first_left) {
        (ShownOutcome::Left, true) | (ShownOutcome::Right, false) => Answer::First,
        (ShownOutcome::Left, false) | (ShownOutcome::Right, true) => Answer::Second,
        (ShownOutcome::Tie, _) => Answer::Tie,
        (ShownOutcome::None, _) => Answer::None,
    };
    let event = Event::Outcome(OutcomeEvent {
        first: token.first,
        second: token.second,
        first_left: token.first_left,
        answer,
        batch: token.batch,
        ticket: token.ticket,
        chosen_at: token.chosen_at,
        issued_at: token.issued_at,
    });
    NewEvent::new(token.nonce, event)
}

/// The result for feedback on a duel that was settled differently before: two outcomes contradict
/// each other, while clicks are only too late.
fn conflicting(event: &NewEvent, position: u64) -> Received {
    match event.event {
        Event::Outcome(_) => Received::Conflict(position),
        Event::Control(_) => Received::Late(position),
    }
}

/// The result for feedback on an expired duel. A repeat of feedback that was recorded in time is
/// still a repeat. `own` is the entry under the nonce of the event, `settled` the one under the
/// nonce of the duel.
fn late_result(
    event: &NewEvent,
    expired_at: i64,
    own: Option<LogEntry>,
    settled: Option<LogEntry>,
) -> Received {
    match (own, settled) {
        (Some(entry), _) if entry.event == event.event => Received::Duplicate(entry.position),
        (Some(entry), _) => conflicting(event, entry.position),
        (None, Some(entry)) => Received::Late(entry.position),
        (None, None) => Received::Expired { expired_at },
    }
}
