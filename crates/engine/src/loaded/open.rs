//! How an experiment is loaded: the newest readable snapshot, then the log from there.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use tokio::sync::mpsc;

use super::folding::fold_off_worker;
use super::issued::Issued;
use super::{LoadedExperiment, Process};
use crate::answered_in_time::AnsweredInTime;
use crate::condition::{Condition, ConditionCell};
use crate::consistency::{beyond_head, short_log, sound_spec, state_errors};
use crate::error::EngineError;
use crate::experiment_spec::ExperimentSpec;
use crate::extensions::Extensions;
use crate::fold::Fold;
use crate::log_regression;
use crate::metrics::Metrics;
use crate::open_duels::OpenDuels;
use crate::traffic::Traffic;
use crate::unlogged::Unlogged;
use rankduel_store::{ExperimentId, ExperimentRecord, Store, in_time};

impl LoadedExperiment {
    /// Load an experiment, which sends its id to `due` when it may conclude, and goes on with what
    /// this process has issued of it `before`. A snapshot beyond the end of the log shows that the
    /// log has regressed; it is replaced.
    pub async fn open(
        store: &dyn Store,
        record: ExperimentRecord,
        process: Process,
        metrics: &Metrics,
        due: mpsc::UnboundedSender<ExperimentId>,
        now_ms: i64,
        before: Option<&Self>,
    ) -> Result<Arc<Self>, EngineError> {
        let unreadable = |why| EngineError::Unreadable { name: record.name.clone(), why };
        let spec = sound_spec(&record).map_err(unreadable)?;
        let NewestState { fold, log_regressed } =
            newest_state(store, &record, &spec, metrics).await?;
        let issued = before.map(|before| Arc::clone(&before.issued)).unwrap_or_else(|| {
            let duels =
                OpenDuels::new(i64::from(spec.duel_ttl_seconds) * 1000, answered_in_time(&fold));
            let traffic = Traffic::new(now_ms, metrics.feedback_delay_seconds.clone());
            let is_first = record.created_at >= process.since_ms && record.head <= 1;
            Arc::new(Issued::new(duels, traffic, is_first, record.head))
        });
        if before.is_some_and(|before| before.spec.coverage != spec.coverage) {
            issued.traffic.coverage_changed();
        }
        let loaded = Arc::new(Self {
            id: record.id,
            name: record.name.clone(),
            initial_rankers: fold.state().initial_rankers,
            version: record.version,
            issued,
            unlogged: Unlogged::new(spec.rankers.len()),
            catching_up: Arc::default(),
            process: process.id,
            condition: ConditionCell::serving(),
            extensions: Extensions::default(),
            due,
            was_due: AtomicBool::new(false),
            doubted: Mutex::default(),
            appending: tokio::sync::RwLock::default(),
            snapshot_at: AtomicU64::new(fold.state().position),
            last_used_ms: AtomicI64::new(i64::MIN),
            record: RwLock::new(record),
            fold: RwLock::new(fold),
            spec,
        });
        loaded.fold_whole_log(store).await?;
        let wrong = {
            let fold = loaded.fold()?;
            // the change may be one of the answer window
            loaded.open_duels().align(answered_in_time(&fold));
            loaded.with_record(|record| state_errors(record, &loaded.spec, &fold))
        };
        if let (Condition::Serving, Some(error)) = (loaded.condition(), wrong.first()) {
            return Err(loaded.unreadable(error));
        }
        if log_regressed {
            let snapshot = loaded.snapshot(loaded.with_record(|record| record.updated_at))?;
            in_time(store.save_snapshot(&snapshot)).await?;
            loaded.snapshot_saved(&snapshot);
        }
        Ok(loaded)
    }

    /// Fold the log up to its end, and refuse it if the head in the record is another position: the
    /// next append would leave a gap, or take a position that the log has.
    async fn fold_whole_log(self: &Arc<Self>, store: &dyn Store) -> Result<(), EngineError> {
        let (mut head, mut pruned_to) = self.with_record(|it| (it.head, it.pruned_to));
        // with the entry of the snapshot, which the log must have too
        let mut after = self.position();
        if after > pruned_to {
            after -= 1;
        }
        for is_second_look in [false, true] {
            let turn = Arc::clone(&self.catching_up).lock_owned().await;
            let end = self.fold_after(store, after, turn).await?.max(pruned_to);
            if self.condition() != Condition::Serving || end == head {
                return Ok(());
            }
            if end > head {
                // others append: a head that is read after the log tells
                let heads = in_time(store.heads(&[self.id])).await?;
                return match heads.first() {
                    Some(newest) if newest.head < end => {
                        Err(self.unreadable(&beyond_head(newest.head + 1, newest.head)))
                    }
                    _ => Ok(()),
                };
            }
            if is_second_look {
                return Err(self.unreadable(&short_log(head, end)));
            }
            // it may have been pruned or moved since the record was read
            let record = in_time(store.experiment(&self.name)).await?;
            let record = record.ok_or_else(|| EngineError::NotFound(self.name.clone()))?;
            (head, pruned_to) = (record.head, record.pruned_to);
        }
        Ok(())
    }
}

/// The cohorts in which the verdict counts duels from now on, without duels.
fn answered_in_time(fold: &Fold) -> AnsweredInTime {
    // far in the future the newest answer window holds
    let cohort_start_ms = fold.run().cohorts().start_of_cohort(i64::MAX / 2);
    AnsweredInTime::new(cohort_start_ms, fold.run().cohorts().width_ms())
}

/// The state to start folding from.
struct NewestState {
    fold: Fold,
    /// Whether a snapshot shows that the log has regressed.
    log_regressed: bool,
}

async fn newest_state(
    store: &dyn Store,
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
    metrics: &Metrics,
) -> Result<NewestState, EngineError> {
    // with many rankers, starting and restoring take long
    let (rankers, seed) = (spec.rankers.len(), record.seed);
    let pairs = rankers * rankers.saturating_sub(1) / 2;
    let format = Fold::format_of(spec);
    let mut log_regressed = false;
    if let Some(snapshot) = in_time(store.newest_snapshot(record.id, format)).await? {
        let mut head = record.head;
        if snapshot.position > head {
            // the log may have grown since the record was read
            let heads = in_time(store.heads(&[record.id])).await?;
            head = heads.first().map_or(0, |head| head.head);
        }
        log_regressed = snapshot.position > head;
        if log_regressed {
            let sign = "the log is shorter than a snapshot of it";
            log_regression::report(metrics, &record.name, head, snapshot.position, sign);
        } else {
            let (position, own_spec) = (snapshot.position, spec.clone());
            let restore = move || {
                let state = &snapshot.state;
                Fold::restore(&own_spec, seed, state).ok_or_else(|| Fold::is_readable(state))
            };
            match fold_off_worker(pairs, restore).await? {
                Ok(fold) if fold.state().position == position => {
                    return Ok(NewestState { fold, log_regressed });
                }
                Err(true) => tracing::info!(
                    experiment = record.name,
                    position,
                    "snapshot counts units that are excluded now; folding the log from the start"
                ),
                _ => tracing::warn!(
                    experiment = record.name,
                    position,
                    "snapshot cannot be read; folding the log from the start"
                ),
            }
        }
    }
    let first = in_time(store.read(record.id, 0, 1)).await?.into_iter().next();
    let (own_spec, created_at, is_empty) = (spec.clone(), record.created_at, first.is_none());
    let start = move || Fold::created(first.as_ref(), &own_spec, seed, created_at);
    let fold = fold_off_worker(pairs, start).await?.map_err(|error| EngineError::Unreadable {
        name: record.name.clone(),
        why: match record.pruned_to {
            0 if is_empty => short_log(record.head, 0),
            0 => error.to_string(),
            pruned_to => format!(
                "its log was pruned up to position {pruned_to}, and there is no later snapshot in \
                 the layout that this version reads ({format})"
            ),
        },
    })?;
    Ok(NewestState { fold, log_regressed })
}
