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
use crate::service::answer_order::answer;
use crate::service::error::ServiceError;
use crate::service::notices::notice;
use crate::service::reports::findings::findings;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;

/// Without a new log entry, the alarms and the stored answer are looked at again after this time.
const LOOK_EVERY_MS: i64 = 15_000;
/// The pause after an answer was computed, in times of that: the leader of many rankers takes long.
const PAUSE_TIMES: u32 = 20;
/// Neither a round of maintenance nor a change waits for an answer for longer.
const FOUND_WITHIN: Duration = Duration::from_secs(1);

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

/// The answer that is stored with a record; `None` before the first one, and if another version of
/// the program has written it.
pub(crate) fn stored(record: &ExperimentRecord) -> Option<Answer> {
    serde_json::from_str(record.answer.as_deref()?).ok()
}

/// The answer of a record for a list, which loads no experiment.
pub(crate) fn of_record(service: &Service, record: &ExperimentRecord) -> Answer {
    let is_unreadable = service.engine.registry.refusal(&record.name).is_some();
    let known = stored(record).filter(|_| !is_unreadable);
    known.unwrap_or_else(|| Answer::unknown(record.status, record.updated_at, is_unreadable))
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
    let found = tokio::time::timeout(FOUND_WITHIN, current(service, loaded)).await;
    let Ok(answer) = found else { return Ok(()) };
    let answer = answer?;
    seen.not_before = Some(Instant::now() + started.elapsed() * PAUSE_TIMES);
    let is_known = loaded.with_record(stored).is_some_and(|it| it.says_the_same_as(&answer));
    if answer.state == State::Refused {
        return Ok(());
    }
    if !is_known && !store(service, loaded, position, &before, &answer).await? {
        seen.not_before = None;
        return read_stored(service, loaded).await;
    }
    *seen = Seen { position, version, at: now, not_before: seen.not_before };
    Ok(())
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
    record: &ExperimentRecord,
    answer: &Answer,
) -> Result<bool, ServiceError> {
    let text = serde_json::to_string(answer)
        .map_err(|error| ServiceError::internal(format!("an answer was not written: {error}")))?;
    let (webhook, before) = (service.webhook.get(), stored(record));
    let webhook = webhook.filter(|_| answer.is_news_after(before.as_ref()));
    let notice = webhook.map(|webhook| {
        notice(loaded, answer, before.as_ref(), webhook.public_url(), service.now_ms())
    });
    let notice = notice.transpose()?;
    let (before, store) = (record.answer.as_deref(), &service.engine.store);
    let save = || store.save_answer(loaded.id, position, before, &text, notice.as_ref());
    let mut saved = save().await?;
    for _ in 1..STORE_TRIES {
        if saved {
            break;
        }
        tokio::time::sleep(STORE_PAUSE).await;
        saved = save().await?;
    }
    if saved {
        loaded.set_answer(text);
        webhook.inspect(|webhook| webhook.wake());
        let (experiment, about) = (&loaded.name, answer.about.join(" "));
        let (state, headline) = (answer.state.name(), &answer.headline);
        tracing::info!(experiment, state, about, headline, position, "the answer has changed");
    }
    Ok(saved)
}

/// Read the answer that another server may have stored.
async fn read_stored(service: &Service, loaded: &LoadedExperiment) -> Result<(), ServiceError> {
    let record = service.engine.store.experiment(&loaded.name).await?;
    if let Some(answer) = record.filter(|it| it.id == loaded.id).and_then(|it| it.answer) {
        loaded.set_answer(answer);
    }
    Ok(())
}
