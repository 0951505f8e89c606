//! The answer of an experiment is computed from what is in memory, and stored with its record.
//!
//! Every server computes it in its maintenance rounds, for the experiments in its memory, and
//! stores it in place of the one that it has seen before if it says something else. If two do so at
//! once, the database lets one of them, and the other reads its answer first. So the list, a
//! webhook and a server that starts know the answer without loading an experiment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::service::Service;
use crate::service::answer::{Answer, State};
use crate::service::answer_order::{self, answer};
use crate::service::error::ServiceError;
pub(crate) use crate::service::kept::stored;
use crate::service::kept::{Kept, LeadOver};
use crate::service::notices::notice;
use crate::service::reports::findings::{Findings, findings};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::{ExperimentRecord, ListedExperiment};

/// Without a new log entry, the alarms and the stored answer are looked at again after this time.
const LOOK_EVERY_MS: i64 = 15_000;
/// The pause after an answer was computed, in times of that: the leader of many rankers takes long.
const PAUSE_TIMES: u32 = 20;
/// An experiment whose answers or clicks wait is looked at again after this time, also if the
/// server that has it in memory has stopped.
const OPEN_WORK_MS: i64 = 15 * 60_000;
/// An experiment that should have ended is looked at again after this time.
const AGAIN_AFTER_MS: i64 = 10 * 60_000;
/// Neither a round of maintenance nor a change waits for an answer for longer.
const FOUND_WITHIN: Duration = Duration::from_secs(1);
/// The end of a process waits no longer for all of them.
const ALL_WITHIN: Duration = Duration::from_secs(2);

/// On two busy servers of a distributed database, one try a second took up to 14 s to succeed.
const STORE_TRIES: u32 = 5;
const STORE_PAUSE: Duration = Duration::from_millis(20);

/// The state that the newest answer of a loaded experiment was computed from.
#[derive(Default)]
struct Seen {
    position: u64,
    version: u64,
    /// Unix milliseconds.
    at: i64,
    not_before: Option<Instant>,
}

#[derive(Default)]
struct SharedSeen(tokio::sync::Mutex<Seen>);

/// The answer of now.
pub(crate) async fn current(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Answer, ServiceError> {
    Ok(answer(&findings(service, loaded).await?))
}

/// The answer to a row of a list, which loads no experiment, and the lead over the control.
pub(crate) fn of_listed(
    service: &Service,
    listed: &ListedExperiment,
) -> (Answer, Option<LeadOver>) {
    let is_unreadable = service.engine.registry.refusal(&listed.place.name).is_some();
    match Kept::read(listed.answer.as_deref()).filter(|_| !is_unreadable) {
        Some(kept) => (kept.answer, kept.lead),
        None => (Answer::unknown(listed.status, listed.updated_at, is_unreadable), None),
    }
}

/// Compute the answer of an experiment, and store it if it says something else than the stored one.
pub(super) async fn keep(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    let shared = loaded.extensions().get::<SharedSeen>();
    match shared.0.try_lock() {
        Ok(mut seen) => look(service, loaded, &mut seen).await,
        Err(_) => Ok(()),
    }
}

/// Keep the newest answers before the process ends, as far as there is time: a list after the next
/// start has nothing else.
pub(super) async fn keep_all(service: &Service) {
    let all = async {
        for loaded in service.loaded() {
            let shared = loaded.extensions().get::<SharedSeen>();
            let Ok(mut seen) = shared.0.try_lock() else { continue };
            seen.not_before = None;
            if let Err(error) = look(service, &loaded, &mut seen).await {
                tracing::warn!(experiment = loaded.name, %error, "its answer was not stored");
            }
        }
    };
    let _ = tokio::time::timeout(ALL_WITHIN, all).await;
}

/// Keep the answer after a change, so that its reply says what holds from now on. A failure is only
/// logged: the change is made, and the next round of maintenance looks again.
pub(super) async fn keep_after_change(service: &Service, loaded: &Arc<LoadedExperiment>) {
    let shared = loaded.extensions().get::<SharedSeen>();
    let Ok(mut seen) = tokio::time::timeout(FOUND_WITHIN, shared.0.lock()).await else { return };
    if let Err(error) = look(service, loaded, &mut seen).await {
        let experiment = &loaded.name;
        tracing::warn!(experiment, %error, "the answer after a change was not stored");
    }
}

async fn look(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    seen: &mut Seen,
) -> Result<(), ServiceError> {
    if loaded.is_broken() {
        return Ok(());
    }
    let (now, position) = (service.now_ms(), loaded.fold()?.state().position);
    let version = loaded.with_record(|record| record.version);
    let is_late = !(0..LOOK_EVERY_MS).contains(&(now - seen.at));
    let may_look = seen.not_before.is_none_or(|at| Instant::now() >= at);
    if version == seen.version && (!may_look || position == seen.position && !is_late) {
        return Ok(());
    }
    if is_late {
        read_stored(service, loaded).await?;
    }
    let before = loaded.record();
    let started = Instant::now();
    // a leader that takes longer is computed to the end, and is there in a later round
    let found = tokio::time::timeout(FOUND_WITHIN, findings(service, loaded)).await;
    let Ok(found) = found else { return Ok(()) };
    let found = found?;
    let answer = answer(&found);
    seen.not_before = Some(Instant::now() + started.elapsed() * PAUSE_TIMES);
    if answer.state == State::Refused {
        return Ok(());
    }
    let lead = found.control.as_ref().and_then(LeadOver::of);
    let due_at = due_at(&found, &answer, loaded.has_open_work(now));
    let new = Kept::now(answer, lead, version, due_at, now);
    let kept = Kept::read(before.answer.as_deref());
    let is_known = kept.as_ref().is_some_and(|kept| kept.covers(&new));
    if !is_known && !store(service, loaded, position, (&before, kept), &new).await? {
        seen.not_before = None;
        return read_stored(service, loaded).await;
    }
    *seen = Seen { position, version, at: now, not_before: seen.not_before };
    Ok(())
}

/// When a server has to look again, although nobody asks and no entry comes: an experiment that is
/// in no memory ends by its days, and its alarms fade.
fn due_at(of: &Findings, answer: &Answer, has_open_work: bool) -> Option<i64> {
    if of.is_archived {
        return None;
    }
    let fades = answer.alarms.iter().filter_map(answer_order::fades_at);
    let unwatched = answer_order::unwatched_at(of).filter(|at| *at > of.now);
    let open = has_open_work.then(|| of.now + OPEN_WORK_MS);
    let next = of.days_end.iter().copied().chain(fades).chain(unwatched).chain(open).min();
    // what should have happened by now, and did not, is looked for later
    next.map(|at| if at <= of.now { of.now + AGAIN_AFTER_MS } else { at })
}

/// Store the answer in place of that of `record`, with the notice of it, or say that this was not
/// possible.
///
/// The statement skips a record that feedback has locked, as a busy experiment has it most of the
/// time, so it is tried some times.
async fn store(
    service: &Service,
    loaded: &LoadedExperiment,
    position: u64,
    (record, kept): (&ExperimentRecord, Option<Kept>),
    new: &Kept,
) -> Result<bool, ServiceError> {
    let stored = new
        .to_new(loaded.with_record(|record| record.status))
        .map_err(|error| ServiceError::internal(format!("an answer was not written: {error}")))?;
    let (answer, webhook) = (&new.answer, service.webhook.get());
    let before = kept.map(|kept| kept.answer);
    // another version has told an answer that this one cannot read, and an import is no news
    let is_told = before.is_none() && record.answer.is_some();
    let webhook = webhook.filter(|_| !is_told && answer.is_news_after(before.as_ref()));
    let notice = webhook.map(|webhook| {
        notice(loaded, answer, before.as_ref(), webhook.public_url(), service.now_ms())
    });
    let notice = notice.transpose()?;
    let (known, store) = (record.answer.as_deref(), &service.engine.store);
    let save = || store.save_answer(loaded.id, position, known, &stored, notice.as_ref());
    let mut is_stored = save().await?;
    for _ in 1..STORE_TRIES {
        if is_stored {
            break;
        }
        tokio::time::sleep(STORE_PAUSE).await;
        is_stored = save().await?;
    }
    if !is_stored {
        return Ok(false);
    }
    loaded.set_answer(stored.text);
    webhook.inspect(|webhook| webhook.wake());
    if !before.is_some_and(|before| before.says_the_same_as(answer)) {
        let (experiment, about) = (&loaded.name, answer.about.join(" "));
        let (state, headline) = (answer.state.name(), &answer.headline);
        tracing::info!(experiment, state, about, headline, position, "the answer has changed");
    }
    Ok(true)
}

/// Read the answer that another server may have stored.
async fn read_stored(service: &Service, loaded: &LoadedExperiment) -> Result<(), ServiceError> {
    let record = service.engine.store.experiment(&loaded.name).await?;
    if let Some(answer) = record.filter(|it| it.id == loaded.id).and_then(|it| it.answer) {
        loaded.set_answer(answer);
    }
    Ok(())
}
