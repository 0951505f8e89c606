//! Concluding an experiment automatically: as soon as its evidence makes a winner certain at the
//! confidence of its spec.
//!
//! Every process checks, and the store lets one of them conclude. The intervals behind a certainty
//! hold at all times at once, so checking often does not make errors more likely.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use crate::access::Actor;
use crate::engine::loaded::LoadedExperiment;
use crate::events::{ControlEvent, Status};
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::lifecycle::audited_status;
use crate::store::{AuditNote, Change, ExperimentRecord, Nonce};
use dueling_bandits::evidence::Certainty;

/// Nonce of the one automatic conclusion of an experiment. No process has it.
const CONCLUSION: Nonce = (u64::MAX as Nonce - 1) << 64;

/// The log position of the last check, if no winner was certain there.
struct CheckedAt(AtomicU64);

impl Default for CheckedAt {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl Service {
    /// Conclude an experiment if a winner is certain.
    pub(super) async fn conclude_if_certain(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), ServiceError> {
        if loaded.spec.conclude_at.is_none() || loaded.is_broken() {
            return Ok(());
        }
        let experiment = Arc::clone(loaded);
        let due = tokio::task::spawn_blocking(move || certain_winner(&experiment)).await.map_err(
            |error| ServiceError::internal(format!("checking for a winner failed: {error}")),
        )?;
        if let Some((winner, reason)) = due?
            && self.conclude_automatically(loaded, winner, reason.clone()).await?
        {
            tracing::info!(
                experiment = loaded.name,
                winner = loaded.spec.rankers[winner].id,
                reason,
                "concluded automatically"
            );
        }
        Ok(())
    }

    /// Conclude a running experiment on `winner` because of `reason`. Returns whether this call did
    /// so. It happens at most once: somebody who sets the experiment running again wants it to run.
    async fn conclude_automatically(
        &self,
        loaded: &Arc<LoadedExperiment>,
        winner: usize,
        reason: String,
    ) -> Result<bool, ServiceError> {
        let (record, spec) = self.newest_record(loaded).await?;
        let found = self.engine.store.find(loaded.id, &[CONCLUSION]).await?;
        let done_before = found.iter().any(Option::is_some);
        // the winner is certain only among the rankers that were compared here
        let other_rankers = spec.roster_changes != loaded.spec.roster_changes;
        if record.status != Status::Running
            || record.archived_at.is_some()
            || done_before
            || other_rankers
        {
            return Ok(false);
        }
        let now = self.now_ms();
        let (status, winner) = (Status::Concluded, Some(winner as u16));
        let concluded = ExperimentRecord { status, winner, ..record.clone() };
        let mut after = audited_status(loaded, &concluded);
        after["reason"] = json!(reason);
        let audit =
            AuditNote::of_experiment(&Actor::service(), "experiment-concluded", &loaded.name, now)
                .changed(Some(audited_status(loaded, &record)), Some(after));
        let change = Change {
            status: Some(status),
            winner: Some(winner),
            audit: Some(audit),
            ..Change::default()
        };
        let event = ControlEvent::Status { status, winner, archived: false, reason: Some(reason) };
        match self.commit_change(CONCLUSION, loaded, &record, change, event, now).await {
            // another change came first; the next round checks again
            Err(ServiceError::Stale { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }
}

/// The winner to conclude on, and why. `None` if no winner is certain, or if the log has not grown
/// since the last check.
fn certain_winner(loaded: &LoadedExperiment) -> Result<Option<(usize, String)>, ServiceError> {
    let Some(at) = loaded.spec.conclude_at else { return Ok(None) };
    let runs = |record: &ExperimentRecord| {
        record.status == Status::Running && record.archived_at.is_none()
    };
    if !loaded.with_record(runs) {
        return Ok(None);
    }
    let checked_at = loaded.extensions().get::<CheckedAt>();
    let (position, tally, roster, initial_rankers) = {
        let fold = loaded.fold()?;
        let checked = checked_at.0.load(Ordering::Relaxed);
        if fold.concluded_by_itself().is_some() || fold.position() == checked {
            return Ok(None);
        }
        let tally = fold.policy().tally().clone();
        (fold.position(), tally, fold.roster().clone(), fold.initial_rankers())
    };
    let certainty = Certainty::among(&tally, &roster, initial_rankers, at.confidence);
    let certain = certainty.certain();
    if certain.is_empty() {
        checked_at.0.store(position, Ordering::Relaxed);
        return Ok(None);
    }
    let winner = tally.copeland_leader_among(&certain);
    let others = roster.active().len() - 1;
    let wins = certainty.certain_wins(winner);
    let reason = format!(
        "certain at confidence {}, at log position {position}: it beats at least {wins} of {others} others, and none beats \
         more",
        at.confidence
    );
    Ok(Some((winner, reason)))
}
