//! Issuing duels.

use std::sync::Arc;

use rand::RngExt;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::threads::is_long;
use crate::service::units::{NamedAudience, UnitHasher};
use crate::telemetry::duels::{self, RequestDuels};
use dueling_bandits::{PolicyRng, Selection, step_rng};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::metrics::DuelKind;
use rankduel_engine::tokens::duel_token::DuelToken;
use rankduel_store::audience::Audience;
use rankduel_store::events::Status;

/// An issued duel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedDuel {
    /// Its signed token.
    pub duel_id: String,
    /// Id of the ranker to show on the left.
    pub left: String,
    /// Id of the ranker to show on the right.
    pub right: String,
    /// Whether both are the same ranker.
    pub self_duel: bool,
    /// Unix milliseconds.
    pub expires_at: i64,
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// The batch it belongs to.
    pub batch: Option<u32>,
}

/// Nanoseconds that it takes to issue a duel of an experiment without rankers, about.
const ISSUE_NANOSECONDS: usize = 2_000;
/// Nanoseconds that each ranker adds.
const RANKER_NANOSECONDS: usize = 75;

/// When a duel is issued.
#[derive(Debug, Clone, Copy)]
pub(super) struct IssueTime {
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// Unix milliseconds.
    pub now: i64,
}

impl Service {
    /// Issue a duel. Reads only memory once the experiment is loaded.
    pub async fn next_duel(
        &self,
        name: &str,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        let loaded = self.experiment(name).await?;
        self.choose(&loaded, audience)
    }

    /// Issue several duels in a row, for a caller that keeps a stock of them. Each is chosen with
    /// those before it in flight.
    ///
    /// `finish` makes the result, where the duels are issued.
    pub async fn next_duels<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        count: usize,
        finish: impl FnOnce(Vec<IssuedDuel>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let loaded = self.experiment(name).await?;
        let (service, rankers) = (Arc::clone(self), loaded.spec.rankers.len());
        let choose = move |_| service.choose(&loaded, NamedAudience::default());
        let issue = move || (0..count).map(choose).collect::<Result<_, _>>().map(finish);
        self.select(count, rankers, issue).await?
    }

    /// Run `issue`, which issues so many duels: here, or on the thread for selections. It has the
    /// priority of the others, because it holds the lock of the fold.
    pub(super) async fn select<T: Send + 'static>(
        &self,
        count: usize,
        rankers: usize,
        issue: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        if !is_long(count.saturating_sub(1) * (ISSUE_NANOSECONDS + rankers * RANKER_NANOSECONDS)) {
            return Ok(issue());
        }
        let duels = RequestDuels::current();
        self.selections.run(move || duels.within_now(issue)).await
    }

    /// Issue a duel of an experiment that is in memory, for the page of this audience.
    pub fn choose(
        &self,
        loaded: &LoadedExperiment,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        let name = &loaded.name;
        let (status, winner, archived) = loaded
            .with_record(|record| (record.status, record.winner, record.archived_at.is_some()));
        if archived {
            return Err(ServiceError::Archived(name.clone()));
        }
        if status == Status::Paused {
            return Err(ServiceError::Paused(name.clone()));
        }
        let audience = UnitHasher::of(loaded).audience(audience);
        let (mut rng, step) = self.selection_rng();
        let now = self.now_ms();
        let (selection, chosen_at) = match (status, winner) {
            // of a winner that was enlisted after this experiment was loaded, it knows nothing
            (Status::Concluded, Some(winner))
                if usize::from(winner) < loaded.spec.rankers.len() =>
            {
                (Selection::of(winner.into(), winner.into()), loaded.fold()?.position())
            }
            _ => match loaded.select_canary(&mut rng, now)? {
                Some(selected) => selected,
                None => {
                    let (selection, chosen_at) = loaded.select(&mut rng, now)?;
                    if selection.duel.is_self() {
                        loaded.count_self_duel(selection.duel.first);
                    }
                    (selection, chosen_at)
                }
            },
        };
        let time = IssueTime { chosen_at, now };
        Ok(self.issue(loaded, &selection, audience, time, step, &mut rng))
    }

    /// Sign a selection.
    pub(super) fn issue(
        &self,
        loaded: &LoadedExperiment,
        selection: &Selection,
        audience: Audience,
        IssueTime { chosen_at, now }: IssueTime,
        step: u64,
        rng: &mut PolicyRng,
    ) -> IssuedDuel {
        let duel = selection.duel;
        let first_left = rng.random::<bool>();
        let expires_at = now + i64::from(loaded.spec.duel_ttl_seconds) * 1000;
        let token = DuelToken {
            experiment: loaded.id,
            first: duel.first as u16,
            second: duel.second as u16,
            first_left,
            batch: selection.batch,
            ticket: selection.ticket,
            chosen_at,
            issued_at: now,
            expires_at,
            nonce: self.engine.nonce(step),
            audience,
        };
        duels::about(token.nonce);
        let (left, right) =
            if first_left { (duel.first, duel.second) } else { (duel.second, duel.first) };
        if duel.is_self() {
            loaded.traffic().issued_self_duel();
        } else {
            loaded.traffic().issued((left as u16, right as u16), now);
        }
        self.engine.metrics.duel(match (duel.is_self(), selection.batch) {
            (true, _) => DuelKind::SelfDuel,
            (false, Some(_)) => DuelKind::Batch,
            (false, None) => DuelKind::Pair,
        });
        IssuedDuel {
            duel_id: self.engine.signing_keys.sign(&token),
            left: loaded.spec.rankers[left].id.clone(),
            right: loaded.spec.rankers[right].id.clone(),
            self_duel: duel.is_self(),
            expires_at,
            chosen_at,
            batch: selection.batch,
        }
    }

    /// The random generator of a selection, and its number.
    pub(super) fn selection_rng(&self) -> (PolicyRng, u64) {
        let step = self.engine.next_step();
        (step_rng(self.selection_seed, step), step)
    }

    /// Duels of an experiment that this process issued and that are neither answered nor expired.
    pub fn in_flight(&self, loaded: &LoadedExperiment) -> Result<u64, ServiceError> {
        Ok(loaded.outstanding(self.now_ms(), |in_flight| in_flight.total())?)
    }
}
