//! Issuing duels.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::threads::is_long;
use crate::service::units::{NamedAudience, UnitHasher};
use crate::telemetry::duels::{self, RequestDuels};
use dueling_bandits::{PolicyRng, Selection, step_rng};
use rankduel_engine::choose::Rule;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::loaded::{Chosen, LoadedExperiment};
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
    /// It may never be shown.
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

/// Why a page without a unit is refused.
const NO_UNIT: &str = "`unit` is missing: orders decide between three rankers or more, and all \
                       pages of a unit show the same two; send the id that orders have";
const NO_STOCK: &str = "orders decide between three rankers or more, and all pages of a unit show \
                        the same two: request one duel at a time, with its `unit`";

impl Service {
    /// Issue a duel. Reads only memory once the experiment is loaded.
    pub async fn next_duel(
        &self,
        name: &str,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedDuel, ServiceError> {
        let loaded = self.experiment(name).await?;
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
        if loaded.needs_unit() {
            return Err(ServiceError::field("/count", NO_STOCK));
        }
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
        let (status, archived) =
            loaded.with_record(|record| (record.status, record.archived_at.is_some()));
        if archived {
            return Err(ServiceError::Archived(name.clone()));
        }
        if status == Status::Paused {
            return Err(ServiceError::Paused(name.clone()));
        }
        let audience = UnitHasher::of(loaded).audience(audience);
        if audience.unit.is_none() && loaded.needs_unit() {
            return Err(ServiceError::field("/unit", NO_UNIT));
        }
        let (mut rng, step) = self.selection_rng();
        let now = self.now_ms();
        let chosen = loaded.choose(audience.unit, &mut rng, now)?;
        Ok(self.issue(loaded, chosen, Issuing { audience, purpose, now, step }))
    }

    /// Count chosen rankers as issued and sign them.
    pub(super) fn issue(
        &self,
        loaded: &LoadedExperiment,
        Chosen { rule, selection, first_left, chosen_at }: Chosen,
        Issuing { audience, purpose, now, step }: Issuing,
    ) -> IssuedDuel {
        let Selection { duel, batch, .. } = selection;
        let enrolled = rule != Rule::Outside;
        if enrolled && duel.is_self() {
            loaded.traffic().issued_self_duel();
        }
        self.engine.metrics.duel(match (rule, duel.is_self(), batch) {
            (Rule::Outside, ..) => DuelKind::Outside,
            (_, true, _) => DuelKind::SelfDuel,
            (_, false, Some(_)) => DuelKind::Batch,
            (_, false, None) => DuelKind::Pair,
        });
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
        if enrolled && purpose == DuelPurpose::Page {
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
            enrolled,
            alone: match rule {
                Rule::Alone(arm) => Some(arm.name()),
                _ => None,
            },
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
