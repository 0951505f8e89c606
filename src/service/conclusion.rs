//! Experiments that conclude by themselves: as soon as their own evidence makes a winner certain at
//! the confidence that they were created with.
//!
//! Every process looks, and the store lets one of them conclude. The intervals behind a certainty
//! hold at every moment, so it does not matter how often anybody looks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::error::ServiceError;
use crate::engine::loaded::LoadedExperiment;
use crate::events::Status;
use crate::service::Service;
use dueling_bandits::evidence::Certainty;

impl Service {
    /// Conclude an experiment that has become certain.
    pub(crate) async fn conclude_if_certain(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<(), ServiceError> {
        if loaded.spec.conclude_at.is_none() || loaded.is_broken() {
            return Ok(());
        }
        let experiment = Arc::clone(loaded);
        let due = tokio::task::spawn_blocking(move || experiment.conclusion_due()).await.map_err(
            |error| ServiceError::Internal(format!("a look at the evidence failed: {error}")),
        )?;
        if let Some((winner, reason)) = due?
            && self.conclude_by_itself(loaded, winner, reason.clone()).await?
        {
            tracing::info!(
                experiment = loaded.name,
                winner = loaded.spec.rankers[winner].id,
                reason,
                "concluded by itself"
            );
        }
        Ok(())
    }
}

impl LoadedExperiment {
    /// The winner to conclude on now, and why; nothing where the log has not moved since the last
    /// look.
    fn conclusion_due(&self) -> Result<Option<(usize, String)>, ServiceError> {
        let Some(at) = self.spec.conclude_at else { return Ok(None) };
        if self
            .with_record(|record| record.status != Status::Running || record.archived_at.is_some())
        {
            return Ok(None);
        }
        let (position, tally, roster, initial_rankers) = {
            let fold = self.fold()?;
            let looked_at = self.conclusion_checked_at.load(Ordering::Relaxed);
            if fold.concluded_by_itself().is_some() || fold.position() == looked_at {
                return Ok(None);
            }
            (
                fold.position(),
                fold.policy().tally().clone(),
                fold.roster().clone(),
                fold.initial_rankers(),
            )
        };
        let certainty = Certainty::among(&tally, &roster, initial_rankers, at.confidence);
        let certain = certainty.certain();
        if certain.is_empty() {
            self.conclusion_checked_at.store(position, Ordering::Relaxed);
            return Ok(None);
        }
        let winner = tally.copeland_leader_among(&certain);
        let others = roster.active().len() - 1;
        let wins = certainty.certain_wins(winner);
        Ok(Some((
            winner,
            format!(
                "certain at confidence {}, at log position {position}: it beats at least {wins} of {others} others, and none \
                 beats more",
                at.confidence
            ),
        )))
    }
}
