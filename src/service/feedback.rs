//! Feedback: from what the searcher did to an event in the log, exactly once.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::FieldError;
use crate::engine::fold::open_pages::MAX_CLICKED;
use crate::engine::loaded::LoadedExperiment;
use crate::engine::log_regression;
use crate::events::{ClicksEvent, ControlEvent, Event, OutcomeEvent};
use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::store::{Appended, LogEntry, NewEvent, Nonce};
use crate::telemetry::metrics::FeedbackStatus;
use crate::telemetry::trace;
use crate::tokens::duel_token::{DuelId, DuelToken, TokenError};
use crate::tokens::page_payload::{DuelSecrets, PagePayload, sheet_to_text};
use dueling_bandits::Answer;

/// Most bytes that clicks which wait to be settled may take in memory, for one experiment.
const OPEN_PAGES_BYTES_MAX: usize = 64 << 20;

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

/// What a click was on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clicked {
    /// A position of the shown list, from 0.
    Position(u64),
    /// A document, by its id.
    Document(String),
    /// A slot, by its token.
    Slot(String),
}

/// One event on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEvent {
    /// Where.
    pub on: Clicked,
    /// Which kind of event; its weight is the experiment's.
    pub event: String,
}

/// What is said about a duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedbackContent {
    /// What it came to.
    Outcome(ShownOutcome),
    /// What was clicked on the page that the service has made of it.
    Clicks {
        /// In any order.
        clicks: Vec<PageEvent>,
        /// Whether that is all: the duel is settled on these clicks and those that came before.
        last: bool,
    },
}

/// Feedback of one duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The `duel_id` as it was handed out.
    pub duel_id: String,
    /// What is said about it.
    pub said: FeedbackContent,
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
    /// The duel was settled before these clicks, at this position; they change nothing.
    Late(u64),
    /// It names no duel of this experiment.
    Invalid(String),
    /// Its duel is one, and something else of it is wrong.
    Refused(FieldError),
}

impl Service {
    /// Take in answers. Returns when what counts is durable; one result each, in order.
    pub async fn receive(
        &self,
        name: &str,
        feedback: &[Feedback],
    ) -> Result<Vec<Received>, ServiceError> {
        let loaded = self.experiment(name).await?;
        loaded.with_record(refuse_archived)?;
        let now = self.clock.now_ms();
        let check = |item| self.check_feedback(&loaded, item, now);
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
            return Err(ServiceError::Overloaded);
        }
        let mut found =
            if late.is_empty() { Vec::new() } else { self.store.find(loaded.id, &late).await? }
                .into_iter();
        let mut appended = self.writer.append(&loaded, fresh).await?.into_iter();
        let missing = || {
            ServiceError::Internal("the store answered for fewer events than it was given".into())
        };
        checked
            .into_iter()
            .map(|checked| {
                Ok(match checked {
                    Checked::Invalid(detail) => Received::Invalid(detail),
                    Checked::Refused(error) => Received::Refused(error),
                    Checked::UnknownKey => Received::Invalid(not_valid(TokenError::UnknownKey)),
                    Checked::Late { event, expired_at } => {
                        let own = found.next().ok_or_else(missing)?;
                        late_answer(&event, expired_at, own, found.next().ok_or_else(missing)?)
                    }
                    Checked::Fresh(event) => match appended.next().ok_or_else(missing)? {
                        Appended::Recorded(position) => {
                            self.check_growth(&loaded, &event.event, position);
                            Received::Recorded(position)
                        }
                        Appended::Duplicate(position) => Received::Duplicate(position),
                        Appended::Conflict(position) => conflicting(&event, position),
                        Appended::TooLate(position) => Received::Late(position),
                        // by another process, which this one has not heard of yet
                        Appended::Archived => return Err(ServiceError::Archived(name.into())),
                        Appended::Missing => return Err(ServiceError::NotFound(name.into())),
                    },
                })
            })
            .inspect(|result| {
                if let Ok(received) = result {
                    self.metrics.feedback(received.status());
                    loaded.traffic().feedback(received.status());
                }
            })
            .collect()
    }

    /// A duel was selected from a log of so many entries; its answer stands after them all. If it
    /// does not, entries are gone that were there, and their callers were told that they count.
    /// After a restart nothing else would show it.
    fn check_growth(&self, loaded: &LoadedExperiment, event: &Event, position: u64) {
        let chosen_at = match event {
            Event::Outcome(outcome) => outcome.chosen_at,
            Event::Control(ControlEvent::Clicks(clicks)) => clicks.chosen_at,
            Event::Control(_) => return,
        };
        if position <= chosen_at && !loaded.log_has_regressed() {
            let sign = "a duel was selected from a longer log than there is";
            log_regression::report(&self.metrics, &loaded.name, position, chosen_at, sign);
        }
    }

    fn check_feedback(&self, loaded: &LoadedExperiment, feedback: &Feedback, now: i64) -> Checked {
        let id = match self.keys.open(&feedback.duel_id) {
            Ok(id) => id,
            Err(TokenError::UnknownKey) => return Checked::UnknownKey,
            Err(error) => return Checked::Invalid(not_valid(error)),
        };
        if id.duel.experiment != loaded.id {
            return Checked::Invalid(ANOTHER_EXPERIMENT.into());
        }
        trace::about(id.duel.nonce);
        let event = match &feedback.said {
            FeedbackContent::Outcome(outcome) => outcome_event(&id.duel, *outcome),
            FeedbackContent::Clicks { clicks, last } => {
                match self.clicks_event(loaded, &id, clicks, *last) {
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

    fn clicks_event(
        &self,
        loaded: &LoadedExperiment,
        id: &DuelId,
        clicks: &[PageEvent],
        last: bool,
    ) -> Result<NewEvent, FieldError> {
        let Some(shown) = &id.shown else {
            return Err(FieldError::new(
                "/duel_id",
                "this duel was not interleaved here, so nobody knows what `clicks` are on: send the `duel_id` that \
                 `interleave` answered, or an `outcome`",
            ));
        };
        if clicks.len() > MAX_CLICKED {
            let detail = format!(
                "there are {} clicks; at most {MAX_CLICKED} on one page count",
                clicks.len()
            );
            return Err(FieldError::new("/clicks", detail));
        }
        let secrets = self
            .keys
            .secrets(id.key, id.duel.nonce)
            .map_err(|error| FieldError::new("/duel_id", not_valid(error)))?;
        let slots = Slots { shown, secrets };
        let mut weights = BTreeMap::new();
        for (index, click) in clicks.iter().enumerate() {
            let pointer = || format!("/clicks/{index}");
            let weight =
                loaded.spec.pages.event_weights.get(&click.event).copied().ok_or_else(|| {
                    let known: Vec<_> =
                        loaded.spec.pages.event_weights.keys().map(String::as_str).collect();
                    let detail = format!(
                        "the experiment has no event `{}`; its `event_weights` are of: {}",
                        cut(&click.event),
                        known.join(", ")
                    );
                    FieldError::new(pointer(), detail)
                })?;
            let position =
                slots.position(&click.on).map_err(|detail| FieldError::new(pointer(), detail))?;
            let known = weights.entry(position).or_insert(0);
            *known = weight.max(*known);
        }
        let duel = &id.duel;
        let event = ClicksEvent {
            duel: Uuid::from_u128(duel.nonce),
            first: duel.first,
            second: duel.second,
            first_left: duel.first_left,
            batch: duel.batch,
            ticket: duel.ticket,
            chosen_at: duel.chosen_at,
            issued_at: duel.issued_at,
            method: shown.method,
            sheet: sheet_to_text(&shown.sheet),
            // positions are below 1000, weights at most 100
            clicks: weights
                .into_iter()
                .map(|(position, weight)| (position as u16, weight as u8))
                .collect(),
        };
        let nonce = if last { duel.nonce } else { piece_nonce(&event) };
        let superseded_by = Some(duel.nonce).filter(|settling| *settling != nonce);
        let event = Event::Control(ControlEvent::Clicks(Box::new(event)));
        Ok(NewEvent { nonce, event, superseded_by })
    }
}

/// What was shown, and how its slots are named.
struct Slots<'a> {
    shown: &'a PagePayload,
    secrets: DuelSecrets,
}

impl Slots<'_> {
    fn position(&self, on: &Clicked) -> Result<usize, String> {
        let documents = &self.shown.documents;
        match on {
            Clicked::Position(position) => usize::try_from(*position)
                .ok()
                .filter(|&position| position < documents.len())
                .ok_or_else(|| {
                    format!(
                        "there is no position {position}: {} results were shown, counted from 0",
                        documents.len()
                    )
                }),
            Clicked::Document(id) => {
                let name = self.secrets.document(id);
                documents
                    .iter()
                    .position(|shown| *shown == name)
                    .ok_or_else(|| format!("document `{}` was not shown", cut(id)))
            }
            Clicked::Slot(token) => documents
                .iter()
                .enumerate()
                .position(|(position, document)| self.secrets.slot(position, document) == *token)
                .ok_or_else(|| format!("slot `{}` was not shown", cut(token))),
        }
    }
}

/// Enough of a caller's text to find it again.
fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}

fn outcome_event(token: &DuelToken, outcome: ShownOutcome) -> NewEvent {
    let answer = match (outcome, token.first_left) {
        (ShownOutcome::Left, true) | (ShownOutcome::Right, false) => Answer::First,
        (ShownOutcome::Left, false) | (ShownOutcome::Right, true) => Answer::Second,
        (ShownOutcome::Tie, _) => Answer::Tie,
        (ShownOutcome::None, _) => Answer::None,
    };
    let outcome = OutcomeEvent {
        first: token.first,
        second: token.second,
        first_left: token.first_left,
        answer,
        batch: token.batch,
        ticket: token.ticket,
        chosen_at: token.chosen_at,
        issued_at: token.issued_at,
    };
    NewEvent::new(token.nonce, Event::Outcome(outcome))
}

/// The nonce of clicks that do not settle their duel: a function of what they say, so that a repeat
/// is one. Its highest bit is set, as that of no nonce that is drawn.
fn piece_nonce(event: &ClicksEvent) -> Nonce {
    let mut hash = Sha256::new();
    hash.update(b"rankduel clicks\0");
    hash.update(event.duel.as_bytes());
    hash.update(event.method.to_be_bytes());
    hash.update((event.sheet.len() as u64).to_be_bytes());
    hash.update(&event.sheet);
    for (position, weight) in &event.clicks {
        hash.update(position.to_be_bytes());
        hash.update([*weight]);
    }
    let hash: [u8; 32] = hash.finalize().into();
    Nonce::from_be_bytes(std::array::from_fn(|index| hash[index])) | 1 << 127
}

/// Feedback after its token was looked at.
enum Checked {
    Fresh(NewEvent),
    Late { event: NewEvent, expired_at: i64 },
    Invalid(String),
    Refused(FieldError),
    UnknownKey,
}

/// Why a duel of this service is none of the experiment's.
pub(crate) const ANOTHER_EXPERIMENT: &str = "`duel_id` belongs to another experiment";

pub(crate) fn not_valid(error: TokenError) -> String {
    format!("`duel_id` is not valid: {error}")
}

/// What feedback is told when the duel was settled otherwise before: two outcomes contradict one
/// another, while clicks were only too late.
fn conflicting(event: &NewEvent, position: u64) -> Received {
    match event.event {
        Event::Outcome(_) => Received::Conflict(position),
        Event::Control(_) => Received::Late(position),
    }
}

/// What feedback that came after the duel's time is told: a repeat of what counted in time is still
/// a repeat. `own` is what the log has under its nonce, `settled` under the duel's.
fn late_answer(
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

impl Received {
    /// What it is counted as.
    pub fn status(&self) -> FeedbackStatus {
        match self {
            Self::Recorded(_) => FeedbackStatus::Recorded,
            Self::Duplicate(_) => FeedbackStatus::Duplicate,
            Self::Conflict(_) => FeedbackStatus::Conflict,
            Self::Expired { .. } => FeedbackStatus::Expired,
            Self::Late(_) => FeedbackStatus::Late,
            Self::Invalid(_) | Self::Refused(_) => FeedbackStatus::Invalid,
        }
    }
}
