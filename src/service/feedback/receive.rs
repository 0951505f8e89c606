//! Receiving feedback.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::Instrument as _;

use super::content::{Feedback, Receipt};
use super::opened::OpenedDuel;
use super::request::{CheckedEvent, CheckedItem, CheckedRequest};
use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::duel_id::OTHER_EXPERIMENT;
use crate::service::error::ServiceError;
use crate::service::units::UnitHasher;
use crate::telemetry::{duels, export};
use rankduel_engine::condition::Condition;
use rankduel_engine::error::EngineError;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::log_regression;
use rankduel_engine::metrics::FeedbackStatus;
use rankduel_store::events::{ControlEvent, Event};
use rankduel_store::{Appended, LogEntry, NewEvent};

/// Approximate nanoseconds to check the signature of an item of feedback.
const ITEM_NANOSECONDS: usize = 3_000;
/// Approximate nanoseconds that each byte of its `duel_id` and its clicks adds.
const BYTE_NANOSECONDS: usize = 10;

/// Receive feedback. Returns one result for each item, in order, once all events that count are
/// durable.
pub async fn receive(
    service: &Service,
    name: &str,
    feedback: Vec<Feedback>,
) -> Result<Vec<Receipt>, ServiceError> {
    let loaded = service.experiment(name).await?;
    let now = service.now_ms();
    let Checked { loaded, request, foreign } = check_or_refresh(service, loaded, feedback).await?;
    match foreign {
        Some(feedback) => receive_each(service, &loaded, request, feedback, now).await,
        None => record(service, &loaded, request, now).await,
    }
}

/// Feedback that was checked against an experiment.
struct Checked {
    loaded: Arc<LoadedExperiment>,
    request: CheckedRequest,
    /// The feedback, if some of it names duels of other experiments: they may be segments that were
    /// split off from this one.
    foreign: Option<Vec<Feedback>>,
}

/// Check feedback. If it needs a key, a ranker or a method that is not known here, read those from
/// the store and check again.
async fn check_or_refresh(
    service: &Service,
    mut loaded: Arc<LoadedExperiment>,
    feedback: Vec<Feedback>,
) -> Result<Checked, ServiceError> {
    loaded.with_record(refuse_archived)?;
    let (mut request, mut unchecked) = check_once(service, &loaded, feedback).await?;
    if let Some(feedback) = unchecked.take_if(|_| request.has_unknown_key || request.is_ahead) {
        if request.has_unknown_key {
            service.refresh_signing_keys().await?;
        }
        if request.is_ahead {
            loaded.catch_up(&*service.engine.store).await?;
            loaded = service.experiment(&loaded.name).await?;
        }
        (request, unchecked) = check_once(service, &loaded, feedback).await?;
    }
    let foreign = unchecked.filter(|_| request.names_others());
    Ok(Checked { loaded, request, foreign })
}

/// Receive feedback of which some is about duels of other experiments. Each item goes to the
/// experiment that issued its duel, if a segment of this one was split off into it. If one
/// experiment refuses its part, others may have recorded theirs; a repeat is safe.
async fn receive_each(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    request: CheckedRequest,
    feedback: Vec<Feedback>,
    now: i64,
) -> Result<Vec<Receipt>, ServiceError> {
    let mut issuers = BTreeMap::new();
    // items with their places in the request, by the id of the issuer; `None` for this experiment
    let mut parts: BTreeMap<_, (Vec<usize>, Vec<Feedback>)> = BTreeMap::new();
    let mut receipts = vec![None; feedback.len()];
    for (place, (item, feedback)) in request.items.iter().zip(feedback).enumerate() {
        let mut issuer = None;
        if let CheckedItem::OfOther(id) = item {
            if !issuers.contains_key(id) {
                issuers.insert(*id, service.split_off_with_id(loaded, *id).await?);
            }
            issuer = issuers.get(id).and_then(Option::as_ref).map(|issuer| issuer.id);
        }
        let (places, items) = parts.entry(issuer).or_default();
        places.push(place);
        items.push(feedback);
    }
    for (issuer, (places, feedback)) in parts {
        let issuer = issuer.and_then(|id| issuers.get(&id)?.clone());
        let issuer = issuer.unwrap_or_else(|| Arc::clone(loaded));
        let Checked { loaded, request, .. } = check_or_refresh(service, issuer, feedback).await?;
        let received = record(service, &loaded, request, now).await?;
        for (place, receipt) in places.into_iter().zip(received) {
            receipts[place] = Some(receipt);
        }
    }
    let missing = || ServiceError::internal("an item of feedback has no result");
    receipts.into_iter().map(|receipt| receipt.ok_or_else(missing)).collect()
}

/// Record checked feedback. Returns one result for each item, in order.
async fn record(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    request: CheckedRequest,
    now: i64,
) -> Result<Vec<Receipt>, ServiceError> {
    for &duel in &request.duels {
        duels::mention(duel);
    }
    {
        let fold = loaded.fold()?;
        let leaves_duel_open = |event: &CheckedEvent| event.event.superseded_by.is_some();
        if request.events.iter().any(leaves_duel_open)
            && fold.open_pages().bytes() > service.engine.settings.open_pages_bytes_max
        {
            return Err(EngineError::Overloaded.into());
        }
    }
    let received = append_or_find(service, loaded, request.events, now).await?;
    request
        .items
        .into_iter()
        .map(|item| match item {
            CheckedItem::OfOther(_) => Ok(Receipt::invalid(OTHER_EXPERIMENT)),
            CheckedItem::Refused(receipt) => Ok(receipt),
            CheckedItem::InEvent { event, repeats, ignored } => {
                let receipt = match received.get(event) {
                    Some(Receipt {
                        status: FeedbackStatus::Recorded, position: Some(at), ..
                    }) if repeats => Receipt::duplicate(*at),
                    Some(receipt) => receipt.clone(),
                    None => {
                        let why = "an item of feedback has no result";
                        return Err(ServiceError::internal(why));
                    }
                };
                Ok(Receipt { ignored, ..receipt })
            }
        })
        .inspect(|result| {
            if let Ok(receipt) = result {
                service.engine.metrics.feedback(receipt.status);
                loaded.traffic().feedback(receipt.status);
            }
        })
        .collect()
}

/// Check feedback. Returns the feedback too if it has to be checked again: if it needs a key, a
/// ranker or a method that is not known here, or if some of it may belong to a segment that was
/// split off.
async fn check_once(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    feedback: Vec<Feedback>,
) -> Result<(CheckedRequest, Option<Vec<Feedback>>), ServiceError> {
    let bytes = feedback.iter().map(Feedback::bytes).sum::<usize>();
    let nanoseconds = feedback.len() * ITEM_NANOSECONDS + bytes * BYTE_NANOSECONDS;
    let now = service.now_ms();
    let (keys, units) = (service.engine.signing_keys.current(), UnitHasher::of(loaded));
    let (rankers, methods) = {
        let fold = loaded.fold()?;
        (fold.roster().rankers(), fold.methods().len())
    };
    let loaded = Arc::clone(loaded);
    let check = move || {
        let knows = |opened: &OpenedDuel| opened.needs_at_most(rankers, methods);
        let of = (loaded.id, &loaded.spec);
        let request = CheckedRequest::check(&keys, of, units, now, knows, &feedback);
        // the feedback is freed here unless it is still needed, because that takes long as well
        let may_be_split = !loaded.spec.segments.is_empty() && request.names_others();
        let is_unsure = request.has_unknown_key || request.is_ahead || may_be_split;
        let unchecked = is_unsure.then_some(feedback);
        (request, unchecked)
    };
    service.run_by_cost(nanoseconds, check).await
}

/// Append the events of duels that have not expired, and look up those of expired duels, which may
/// have been recorded in time. Returns one result for each event, in order.
async fn append_or_find(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    events: Vec<CheckedEvent>,
    now: i64,
) -> Result<Vec<Receipt>, ServiceError> {
    let is_late = |event: &CheckedEvent| now > event.expires_at;
    let fresh: Vec<_> =
        events.iter().filter(|event| !is_late(event)).map(|event| event.event.clone()).collect();
    let late: Vec<_> = events
        .iter()
        .filter(|event| is_late(event))
        .flat_map(|CheckedEvent { event, .. }| {
            [event.nonce, event.superseded_by.unwrap_or(event.nonce)]
        })
        .collect();
    let found = match late.is_empty() {
        true => Vec::new(),
        false => service.engine.store.find(loaded.id, &late).await?,
    };
    let mut found = found.into_iter();
    let append = service.engine.writer.append(loaded, fresh).instrument(export::append_span());
    let mut appended = append.await?.into_iter();
    let missing =
        || ServiceError::internal("the store returned fewer results than it was given events");
    events
        .into_iter()
        .map(|checked| {
            let CheckedEvent { event, expires_at, .. } = &checked;
            if is_late(&checked) {
                let own = found.next().ok_or_else(missing)?;
                let settled = found.next().ok_or_else(missing)?;
                return Ok(late_result(event, *expires_at, own, settled));
            }
            Ok(match appended.next().ok_or_else(missing)? {
                Appended::Recorded(position) => {
                    check_growth(service, loaded, &event.event, position);
                    Receipt::recorded(position)
                }
                Appended::Duplicate(position) => Receipt::duplicate(position),
                Appended::Conflict(position) => conflicting(event, position),
                Appended::TooLate(position) => Receipt::late(position),
                // another process archived it, and this one does not know yet
                Appended::Archived => {
                    return Err(ServiceError::Archived(loaded.name.clone()));
                }
                Appended::Missing => return Err(ServiceError::not_found(&loaded.name)),
            })
        })
        .collect()
}

/// Report that acknowledged entries were lost, if the answer of a duel does not follow the entries
/// that the duel was selected from. After a restart, only this check shows it.
fn check_growth(service: &Service, loaded: &LoadedExperiment, event: &Event, position: u64) {
    let chosen_at = match event {
        Event::Outcome(outcome) => outcome.chosen_at,
        Event::Control(ControlEvent::Clicks(clicks)) => clicks.chosen_at,
        Event::Control(_) => return,
    };
    if position <= chosen_at && loaded.condition() != Condition::LogRegressed {
        let sign = "the log is shorter than the one a duel was selected from";
        log_regression::report(&service.engine.metrics, &loaded.name, position, chosen_at, sign);
    }
}

/// The result for feedback on a duel that was settled differently before: two outcomes contradict
/// each other, while clicks are only too late.
fn conflicting(event: &NewEvent, position: u64) -> Receipt {
    match event.event {
        Event::Outcome(_) => Receipt::conflict(position),
        Event::Control(_) => Receipt::late(position),
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
) -> Receipt {
    match (own, settled) {
        (Some(entry), _) if event.event.repeats(&entry.event) => Receipt::duplicate(entry.position),
        (Some(entry), _) => conflicting(event, entry.position),
        (None, Some(entry)) => Receipt::late(entry.position),
        (None, None) => Receipt::expired(expired_at),
    }
}
