//! Issuing duels.

use std::sync::Arc;

use rand::RngExt as _;
use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::threads::is_long;
use crate::service::units::{NamedAudience, UnitHasher};
use crate::telemetry::duels::{self, RequestDuels};
use dueling_bandits::{PolicyRng, Selection, step_rng};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::experiment_spec::arm_of;
use rankduel_engine::loaded::{LoadedExperiment, Selected};
use rankduel_engine::metrics::DuelKind;
use rankduel_engine::tokens::duel_token::DuelToken;
use rankduel_store::audience::Audience;
use rankduel_store::events::Status;

/// A duel to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Duel)]
pub struct IssuedDuel {
    /// Signed; send it back unchanged with the feedback. Empty if `enrolled` is `false`.
    #[schema(example = "AQAAAAEqAwEBAAD_rQM...")]
    pub duel_id: String,
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// The ranker to show left (first).
    #[schema(example = "bm25-title")]
    pub left: String,
    /// The ranker to show right (second).
    #[schema(example = "bm25")]
    pub right: String,
    /// Whether both are the same ranker. Show its ranking alone; feedback is not needed and teaches
    /// the policy nothing.
    pub self_duel: bool,
    /// `false` if the page takes no part in the experiment: show the ranking of `left`, the
    /// control, and report nothing. Omitted otherwise.
    #[serde(skip_serializing_if = "is_enrolled")]
    #[schema(required = false)]
    pub enrolled: bool,
    /// The ranker of a unit that sees one alone: the `leader` or the `control`. Send feedback as
    /// for a duel. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "control", nullable = false)]
    pub alone: Option<&'static str>,
    /// Feedback after this time is rejected.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// Log position of the state in which the duel was chosen.
    pub state: u64,
    /// `null` outside batches.
    pub batch: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_enrolled(enrolled: &bool) -> bool {
    *enrolled
}

impl IssuedDuel {
    /// The duel as the caller gets it: without its id if the page takes no part.
    pub(super) fn for_caller(self) -> Self {
        match self.enrolled {
            true => self,
            false => Self { duel_id: String::new(), ..self },
        }
    }
}

/// Nanoseconds that it takes to issue a duel of an experiment without rankers, about.
const ISSUE_NANOSECONDS: usize = 2_000;
/// Nanoseconds that each ranker adds.
const RANKER_NANOSECONDS: usize = 75;

impl Service {
    /// Issue a duel. Reads only memory once the experiment is loaded.
    pub async fn next_duel(
        &self,
        name: &str,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        let loaded = self.experiment_for(name, audience.segment).await?;
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
        let choose = move |_| {
            let duel = service.chosen(&loaded, NamedAudience::default(), false);
            duel.map(IssuedDuel::for_caller)
        };
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
        self.chosen(loaded, audience, true).map(IssuedDuel::for_caller)
    }

    /// [`Service::choose`]; a page that takes no part has an id here, to make it with. `is_shown`: a
    /// page is made of it now, while a duel of a stock may never be shown.
    pub(super) fn chosen(
        &self,
        loaded: &LoadedExperiment,
        audience: NamedAudience<'_>,
        is_shown: bool,
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
        if let Some(control) = loaded.spec.shown_outside(audience.unit, || rng.random()) {
            let shown = Selected::alone(control, loaded.fold()?.position());
            loaded.traffic().shown_outside();
            self.engine.metrics.duel(DuelKind::Outside);
            let issued = self.sign(loaded, shown, (audience, false), now, step);
            return Ok(IssuedDuel { enrolled: false, ..issued });
        }
        // of a winner that was enlisted after this experiment was loaded, it knows nothing
        let winner = winner.map(usize::from).filter(|&it| it < loaded.spec.rankers.len());
        let arm = arm_of(loaded.spec.alone, audience.unit);
        if let Some((unit, arm)) = audience.unit.zip(arm)
            && let Some(selected) = loaded.select_alone(unit, arm, winner)?
        {
            let issued = self.issue(loaded, selected, (audience, is_shown), now, step);
            return Ok(IssuedDuel { alone: Some(arm.name()), ..issued });
        }
        let selected = match (status, winner) {
            (Status::Concluded, Some(winner)) => {
                match loaded.select_watch(winner, &mut rng, now)? {
                    Some(selected) => selected,
                    None => Selected::alone(winner, loaded.fold()?.position()),
                }
            }
            _ => match loaded.select_canary(&mut rng, now)? {
                Some(selected) => selected,
                None => {
                    let selected = loaded.select(&mut rng, now)?;
                    let duel = selected.selection.duel;
                    if duel.is_self() {
                        loaded.count_self_duel(duel.first);
                    }
                    selected
                }
            },
        };
        Ok(self.issue(loaded, selected, (audience, is_shown), now, step))
    }

    /// Count a selection as issued and sign it. `audience` says too whether a page is made of it
    /// now.
    pub(super) fn issue(
        &self,
        loaded: &LoadedExperiment,
        selected: Selected,
        audience: (Audience, bool),
        now: i64,
        step: u64,
    ) -> IssuedDuel {
        let Selection { duel, batch, .. } = selected.selection;
        if duel.is_self() {
            loaded.traffic().issued_self_duel();
        }
        self.engine.metrics.duel(match (duel.is_self(), batch) {
            (true, _) => DuelKind::SelfDuel,
            (false, Some(_)) => DuelKind::Batch,
            (false, None) => DuelKind::Pair,
        });
        self.sign(loaded, selected, audience, now, step)
    }

    fn sign(
        &self,
        loaded: &LoadedExperiment,
        Selected { selection, first_left, chosen_at }: Selected,
        (audience, is_shown): (Audience, bool),
        now: i64,
        step: u64,
    ) -> IssuedDuel {
        let duel = selection.duel;
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
        if is_shown {
            loaded.note_issued(&token);
        }
        let (left, right) =
            if first_left { (duel.first, duel.second) } else { (duel.second, duel.first) };
        IssuedDuel {
            duel_id: self.engine.signing_keys.current().sign(&token),
            experiment: loaded.name.clone(),
            left: loaded.spec.rankers[left].id.clone(),
            right: loaded.spec.rankers[right].id.clone(),
            self_duel: duel.is_self(),
            enrolled: true,
            alone: None,
            expires_at: rfc3339(expires_at),
            state: chosen_at,
            batch: selection.batch,
        }
    }

    /// The random generator of a selection, and its number.
    pub(super) fn selection_rng(&self) -> (PolicyRng, u64) {
        let step = self.engine.next_step();
        (step_rng(self.selection_seed, step), step)
    }
}
