//! Receiving feedback.

use std::sync::Arc;

use tracing::Instrument as _;

use super::clicks;
use super::content::{CLICK_PLACES, Feedback, Receipt};
use super::links::{self, Linking};
use super::opened::OpenedDuel;
use super::request::{CheckedEvent, CheckedItem, CheckedRequest};
use super::values::{self, ValuesReceipt};
use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::error::ServiceError;
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
/// Attempts to find a place in the log for clicks while others take places too.
const PLACE_ATTEMPTS: usize = 4;

/// Receive feedback. Returns one result for each item, in order, once all events that count are
/// durable.
pub async fn receive(
    service: &Service,
    name: &str,
    feedback: Vec<Feedback>,
) -> Result<Vec<Receipt>, ServiceError> {
    let mut loaded = service.experiment(name).await?;
    loaded.with_record(refuse_archived)?;
    let now = service.now_ms();
    let (mut request, unchecked) = check(service, &loaded, feedback).await?;
    if let Some(feedback) = unchecked {
        if request.has_unknown_key {
            service.refresh_signing_keys().await?;
        }
        if request.needs_newer_log {
            loaded.catch_up(&*service.engine.store).await?;
            loaded = service.experiment(name).await?;
        }
        (request, _) = check(service, &loaded, feedback).await?;
    }
    for &duel in &request.duels {
        duels::mention(duel);
    }
    if request.events.iter().any(|event| leaves_duel_open(&event.event)) {
        let fold = loaded.fold()?;
        if fold.state().open_pages.bytes() > service.engine.settings.open_pages_bytes_max {
            return Err(EngineError::Overloaded.into());
        }
    }
    let (received, valued) = tokio::try_join!(
        append_or_find(service, &loaded, request.events, now),
        values::record(service, &loaded, request.values),
    )?;
    let missing = || ServiceError::internal("an item of feedback has no result");
    request
        .items
        .into_iter()
        .map(|item| match item {
            CheckedItem::Refused(receipt) => Ok(receipt),
            CheckedItem::Counted { event, values, mut ignored } => {
                let of_values = values.map(|at| valued.get(at).ok_or_else(missing)).transpose()?;
                ignored.extend(of_values.into_iter().flat_map(|it| it.ignored.iter().cloned()));
                let receipt = match event {
                    Some((event, repeats)) => match received.get(event).ok_or_else(missing)? {
                        Receipt { status: FeedbackStatus::Recorded, position, .. } if repeats => {
                            Receipt::duplicate(*position)
                        }
                        receipt => receipt.clone(),
                    },
                    None => match of_values.ok_or_else(missing)? {
                        ValuesReceipt { recorded: Some(at), .. } => Receipt::recorded(*at),
                        ValuesReceipt { is_late, ignored: own, .. } if !own.is_empty() => {
                            Receipt::ignored(own.clone(), *is_late)
                        }
                        ValuesReceipt { repeated, .. } => Receipt::duplicate(*repeated),
                    },
                };
                Ok(Receipt { ignored, ..receipt })
            }
        })
        .inspect(|result| {
            if let Ok(receipt) = result {
                service.engine.metrics.feedback(receipt.status);
                loaded.traffic().feedback(receipt.status, service.now_ms());
            }
        })
        .collect()
}

/// Check feedback. Returns the feedback too if it has to be checked again: if it needs a key, a
/// ranker or a method that is not known here.
async fn check(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    feedback: Vec<Feedback>,
) -> Result<(CheckedRequest, Option<Vec<Feedback>>), ServiceError> {
    let bytes = feedback.iter().map(Feedback::bytes).sum::<usize>();
    let nanoseconds = feedback.len() * ITEM_NANOSECONDS + bytes * BYTE_NANOSECONDS;
    let now = service.now_ms();
    let keys = service.engine.signing_keys.current();
    let (rankers, methods, linking) = {
        let fold = loaded.fold()?;
        let linking = loaded.document_names().map(|seed| Linking {
            seed,
            methods: fold.state().methods.all().to_vec(),
            complete_until: fold.run().cohorts().complete_until(),
        });
        (fold.run().roster().rankers(), fold.state().methods.all().len(), linking)
    };
    let (loaded, registry) = (Arc::clone(loaded), Arc::clone(&service.engine.registry));
    let check = move || {
        let name_of = |id| registry.name_of(id);
        let knows = |opened: &OpenedDuel| opened.needs_at_most(rankers, methods);
        let linking = linking.as_ref();
        let request =
            CheckedRequest::check(&keys, &loaded, now, knows, name_of, linking, &feedback);
        // the feedback is freed here unless it is still needed, because that takes long as well
        let unchecked = (request.has_unknown_key || request.needs_newer_log).then_some(feedback);
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
    let mut appended = append_all(service, loaded, fresh).await?.into_iter();
    let missing =
        || ServiceError::internal("the store returned fewer results than it was given events");
    let mut receipts = Vec::with_capacity(events.len());
    for checked in events {
        let CheckedEvent { event, expires_at, .. } = &checked;
        if is_late(&checked) {
            let own = found.next().ok_or_else(missing)?;
            let settled = found.next().ok_or_else(missing)?;
            receipts.push(late_result(event, *expires_at, own, settled));
            continue;
        }
        let appended = appended.next().ok_or_else(missing)?;
        receipts.push(match appended {
            Appended::Conflict(_) if leaves_duel_open(event) => {
                append_elsewhere(service, loaded, event).await?
            }
            appended => result(service, loaded, event, appended)?,
        });
    }
    Ok(receipts)
}

/// Whether an event has clicks that do not settle their duel.
fn leaves_duel_open(event: &NewEvent) -> bool {
    event.superseded_by.is_some() || matches!(event.event, Event::Control(ControlEvent::Links(_)))
}

/// Append events.
async fn append_all(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    events: Vec<NewEvent>,
) -> Result<Vec<Appended>, ServiceError> {
    let append = service.engine.writer.append(loaded, events).instrument(export::append_span());
    Ok(append.await?)
}

/// The result for an event that was appended.
fn result(
    service: &Service,
    loaded: &LoadedExperiment,
    event: &NewEvent,
    appended: Appended,
) -> Result<Receipt, ServiceError> {
    Ok(match appended {
        Appended::Recorded(position) => {
            check_growth(service, loaded, &event.event, position);
            Receipt::recorded(position)
        }
        Appended::Duplicate(position) => Receipt::duplicate(position),
        Appended::TooLate(position) => Receipt::late(position),
        Appended::Conflict(position) => conflicting(event, position),
        Appended::Archived | Appended::Missing => {
            return Err(ServiceError::not_appended(&loaded.name, appended));
        }
    })
}

/// Append clicks whose first place in the log is taken by others: at the next free place, unless
/// one of the places has them.
async fn append_elsewhere(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    event: &NewEvent,
) -> Result<Receipt, ServiceError> {
    let places: Vec<_> = match &event.event {
        Event::Control(ControlEvent::Clicks(clicks)) => {
            if let Some(page) =
                loaded.fold()?.state().open_pages.pages().get(&clicks.duel.as_u128())
                && u128::from(page.pieces) >= CLICK_PLACES
            {
                // no question to the store, which would read all of them
                let is_known = page.has(clicks);
                return Ok(if is_known {
                    Receipt::duplicate(None)
                } else {
                    Receipt::no_place(true)
                });
            }
            clicks::places(clicks).collect()
        }
        Event::Control(ControlEvent::Links(links)) => links::places(links).collect(),
        _ => {
            return Err(ServiceError::internal("an event that leaves its duel open has no clicks"));
        }
    };
    for _ in 0..PLACE_ATTEMPTS {
        let mut free = None;
        let found = service.engine.store.find(loaded.id, &places).await?;
        for (place, entry) in places.iter().zip(found) {
            match entry {
                Some(entry) if event.event.repeats(&entry.event) => {
                    return Ok(Receipt::duplicate(entry.position));
                }
                Some(_) => {}
                None => free = free.or(Some(*place)),
            }
        }
        let Some(nonce) = free else {
            let Some(settling) = event.superseded_by else { return Ok(Receipt::no_place(false)) };
            let settled = service.engine.store.find(loaded.id, &[settling]).await?;
            let settled = settled.into_iter().flatten().next();
            let late = settled.map(|entry| Receipt::late(entry.position));
            return Ok(late.unwrap_or_else(|| Receipt::no_place(true)));
        };
        let moved = NewEvent { nonce, ..event.clone() };
        match append_all(service, loaded, vec![moved]).await?.into_iter().next() {
            Some(Appended::Conflict(_)) => {}
            Some(appended) => return result(service, loaded, event, appended),
            None => return Err(ServiceError::internal("an event has no result")),
        }
    }
    // others take one place after the other
    Err(EngineError::Overloaded.into())
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
        // that place has other clicks
        (_, None) if leaves_duel_open(event) => Receipt::expired(expired_at),
        (Some(entry), _) => conflicting(event, entry.position),
        (None, Some(entry)) => Receipt::late(entry.position),
        (None, None) => Receipt::expired(expired_at),
    }
}
