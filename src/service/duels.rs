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

/// The purpose of an issued duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuelPurpose {
    /// A page of the experiment is made of it now. Values of metrics are expected for the page.
    Page,
    /// It may never be shown, or its page takes no part in the experiment.
    Stock,
}

/// Properties of a duel that do not depend on its rankers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issuing {
    pub audience: Audience,
    pub purpose: DuelPurpose,
    /// Unix milliseconds.
    pub now: i64,
    /// Number of the selection.
    pub step: u64,
}

/// Approximate nanoseconds to issue a duel, without those for each ranker.
const ISSUE_NANOSECONDS: usize = 2_000;
/// Approximate nanoseconds that each ranker adds.
const RANKER_NANOSECONDS: usize = 75;

impl Service {
    /// Issue a duel. Reads only memory once the experiment is loaded.
    pub async fn next_duel(
        &self,
        name: &str,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        let loaded = self.experiment_for(name, audience.segment).await?;
        self.issue_one(&loaded, audience)
    }

    /// Issue several duels in a row, for a caller that keeps a stock of them. Each is chosen with
    /// those before it in flight.
    ///
    /// `finish` turns the duels into the result, on the thread that issues them.
    pub async fn next_duels<T: Send + 'static>(
        self: &Arc<Self>,
        name: &str,
        count: usize,
        finish: impl FnOnce(Vec<IssuedDuel>) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let loaded = self.experiment(name).await?;
        let (service, rankers) = (Arc::clone(self), loaded.spec.rankers.len());
        let choose = move |_| {
            let audience = NamedAudience::default();
            let duel = service.select_and_issue(&loaded, audience, DuelPurpose::Stock);
            duel.map(IssuedDuel::for_caller)
        };
        let issue = move || (0..count).map(choose).collect::<Result<_, _>>().map(finish);
        self.select(count, rankers, issue).await?
    }

    /// Run `issue`, which issues `count` duels: on this thread, or on the one for many selections.
    /// That has the priority of the threads that serve requests, because `issue` holds the lock of
    /// the fold.
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
    pub fn issue_one(
        &self,
        loaded: &LoadedExperiment,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        self.select_and_issue(loaded, audience, DuelPurpose::Page).map(IssuedDuel::for_caller)
    }

    /// [`Service::issue_one`], where a page that takes no part has an id too: the id is needed to
    /// make the page.
    pub(super) fn select_and_issue(
        &self,
        loaded: &LoadedExperiment,
        audience: NamedAudience<'_>,
        purpose: DuelPurpose,
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
            let issuing = Issuing { audience, purpose: DuelPurpose::Stock, now, step };
            return Ok(IssuedDuel { enrolled: false, ..self.sign(loaded, shown, issuing) });
        }
        let issuing = Issuing { audience, purpose, now, step };
        // this experiment was loaded before a newer winner was enlisted, and has no data about it
        let winner = winner.map(usize::from).filter(|&it| it < loaded.spec.rankers.len());
        let arm = arm_of(loaded.spec.alone, audience.unit);
        if let Some((unit, arm)) = audience.unit.zip(arm)
            && let Some(selected) = loaded.select_alone(unit, arm, winner)?
        {
            let issued = self.issue(loaded, selected, issuing);
            return Ok(IssuedDuel { alone: Some(arm.name()), ..issued });
        }
        let selected = match (status, winner) {
            (Status::Concluded, Some(winner)) => select_of_winner(loaded, winner, &mut rng, now)?,
            _ => select_of_tournament(loaded, &mut rng, now)?,
        };
        Ok(self.issue(loaded, selected, issuing))
    }

    /// Count a selection as issued and sign it.
    pub(super) fn issue(
        &self,
        loaded: &LoadedExperiment,
        selected: Selected,
        issuing: Issuing,
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
        self.sign(loaded, selected, issuing)
    }

    fn sign(
        &self,
        loaded: &LoadedExperiment,
        Selected { selection, first_left, chosen_at }: Selected,
        Issuing { audience, purpose, now, step }: Issuing,
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
            issued_at: loaded.issued_at(now),
            expires_at,
            nonce: self.engine.nonce(step),
            audience,
        };
        duels::mention(token.nonce);
        if purpose == DuelPurpose::Page {
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

    /// The random generator of a new selection, and the number of that selection.
    pub(super) fn selection_rng(&self) -> (PolicyRng, u64) {
        let step = self.engine.next_step();
        (step_rng(self.selection_seed, step), step)
    }
}

/// The winner of a concluded experiment alone, or now and then a duel that shows whether its
/// verdict is still true.
fn select_of_winner(
    loaded: &LoadedExperiment,
    winner: usize,
    rng: &mut PolicyRng,
    now: i64,
) -> Result<Selected, ServiceError> {
    Ok(match loaded.select_watch(winner, rng, now)? {
        Some(selected) => selected,
        None => Selected::alone(winner, loaded.fold()?.position()),
    })
}

/// A duel of the canary for its share of pages, or else the one that the policy selects.
fn select_of_tournament(
    loaded: &LoadedExperiment,
    rng: &mut PolicyRng,
    now: i64,
) -> Result<Selected, ServiceError> {
    if let Some(selected) = loaded.select_canary(rng, now)? {
        return Ok(selected);
    }
    let selected = loaded.select(rng, now)?;
    let duel = selected.selection.duel;
    if duel.is_self() {
        loaded.count_self_duel(duel.first);
    }
    Ok(selected)
}
