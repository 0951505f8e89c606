//! The representation of an experiment.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use dueling_bandits::claims::control::Goal;
use dueling_bandits::{PolicySpec, TieRule};
use serde::Serialize;
use utoipa::ToSchema;

use super::conclusion::{ConclusionShape, OrNever};
use crate::http::conditional::quoted;
use crate::http::problem::ApiResult;
use crate::http::schemas;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{
    ConcludeAt, Errors, ExperimentSpec, Metric, OnDrift, Shares,
};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::page_rules::CurrentMethod;
use rankduel_store::ExperimentRecord;
use rankduel_store::audience::Segment;
use rankduel_store::events::Status;

/// An experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Experiment {
    /// Name of the experiment.
    #[schema(example = "search-ranking")]
    pub name: String,
    /// Purpose of the experiment; empty if nobody has said.
    pub description: String,
    /// Whom to ask about it; empty if nobody has said.
    pub owner: String,
    /// Whether the experiment issues duels.
    pub status: Status,
    /// Id of the winner, if the experiment is concluded.
    pub winner: Option<String>,
    /// The rankers, in the order of every matrix in the API: the initial rankers, then those added
    /// later.
    pub rankers: Vec<ListedRanker>,
    /// The policy with all its parameters.
    #[schema(value_type = schemas::PolicySchema)]
    pub policy: PolicySpec,
    /// The assumption of the policy's guarantee.
    #[schema(example = "no pair of rankers that are exactly equal")]
    pub policy_assumes: &'static str,
    /// How a tie counts.
    #[schema(value_type = schemas::TieRule)]
    pub ties: TieRule,
    /// Seconds after which a duel without feedback expires.
    pub duel_ttl_seconds: u32,
    /// Seconds within which the answers come that the verdict counts. It counts a duel once this
    /// time has passed since its issue; with 0 it counts every answer as it arrives. Duels issued
    /// before a change keep the window that they had.
    pub answer_window_seconds: u32,
    /// Id of the ranker that people see today; `null` if none was named.
    pub control: Option<String>,
    /// The declared segments, about which claims are made.
    #[schema(value_type = Vec<String>)]
    pub segments: Vec<Segment>,
    /// How its claims divide one minus `confidence`. Omitted if each has that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// The claim that the experiment proves first.
    #[schema(value_type = schemas::Goal)]
    pub goal: Goal,
    /// How two rankings are combined into one page, with all parameters.
    #[schema(value_type = schemas::Interleaving)]
    pub interleaving: interleaving::Spec,
    /// Number of the current `interleaving`, starting at 1 and increased by each change.
    pub interleaving_version: u32,
    /// Weight of each kind of event on a document.
    pub event_weights: BTreeMap<String, u32>,
    /// Seconds after a duel was issued at which clicks sent in parts are settled into an outcome.
    pub settle_after_seconds: u32,
    /// Ids of two entries that are the same ranker. The second takes no part in the tournament if
    /// `canary_share` is above 0.
    pub canary: Option<[String; 2]>,
    /// Share of pages that compare the two ids of `canary`; 0 if the policy selects their duels.
    pub canary_share: f64,
    /// The exclusions of units, in their order. Omitted without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ListedExclusion>,
    /// Seed of every random choice made while folding the log.
    pub seed: u64,
    /// When the experiment concludes automatically.
    #[schema(value_type = ConclusionShape)]
    pub conclude_at: OrNever<ConcludeAt>,
    /// The reaction to changed preferences.
    pub drift: OnDrift,
    /// Share of pages on which the winner of the concluded experiment meets another ranker.
    pub watch: f64,
    /// Share of units that take part; the others see the control.
    pub coverage: f64,
    /// Share of units that see the leader or the control alone.
    pub alone: f64,
    /// Bounds of the share of duels on which a ranker is shown. Omitted without any.
    #[serde(skip_serializing_if = "Shares::is_empty")]
    pub shares: Shares,
    /// The metrics with their limits. Omitted without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Seconds within which the values of a page come. Omitted without metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value_window_seconds: Option<u32>,
    /// Number of the current version, starting at 1 and increased by each change; also the `ETag`.
    pub version: u64,
    /// Time of creation.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change; new log entries do not count.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Time of archiving.
    #[schema(format = DateTime)]
    pub archived_at: Option<String>,
}

/// A ranker of an experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedRanker {
    /// Id of the ranker in the search backend.
    pub id: String,
    /// Description for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `true` if the ranker is retired and never shown again. Omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
}

/// Units that were excluded together.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedExclusion {
    /// Number of units. The audit log and exports have their hashes.
    pub units: usize,
    /// Why they were excluded.
    pub reason: String,
}

impl Experiment {
    pub fn of(loaded: &LoadedExperiment) -> ApiResult<Self> {
        let record = loaded.record();
        Self::of_record(&record, &loaded.spec)
            .map_err(|why| EngineError::Unreadable { name: record.name, why }.into())
    }

    pub fn of_record(record: &ExperimentRecord, spec: &ExperimentSpec) -> Result<Self, String> {
        let current = CurrentMethod::of(record, &spec.pages)?;
        Ok(Self {
            name: record.name.clone(),
            description: spec.description.clone(),
            owner: spec.owner.clone(),
            status: record.status,
            winner: record
                .winner
                .and_then(|winner| spec.rankers.get(usize::from(winner)))
                .map(|ranker| ranker.id.clone()),
            rankers: spec
                .rankers
                .iter()
                .enumerate()
                .map(|(index, ranker)| ListedRanker {
                    id: ranker.id.clone(),
                    description: ranker.description.clone(),
                    retired: spec.is_retired(index),
                })
                .collect(),
            policy: spec.policy.clone(),
            policy_assumes: spec.policy.description().assumes,
            ties: spec.ties,
            duel_ttl_seconds: spec.duel_ttl_seconds,
            control: spec.control.clone(),
            segments: spec.segments.clone(),
            errors: spec.errors,
            goal: spec.goal,
            interleaving: current.method,
            interleaving_version: current.version,
            event_weights: spec.pages.event_weights.clone(),
            settle_after_seconds: spec.settle_after_seconds(),
            answer_window_seconds: spec.answer_window_seconds,
            canary: spec.pages.canary.clone(),
            canary_share: spec.pages.canary_share,
            exclusions: spec
                .exclusions
                .iter()
                .map(|exclusion| ListedExclusion {
                    units: exclusion.units.len(),
                    reason: exclusion.reason.clone(),
                })
                .collect(),
            seed: record.seed,
            conclude_at: OrNever(spec.conclude_at),
            drift: spec.drift,
            watch: spec.watch,
            coverage: spec.coverage,
            alone: spec.alone,
            shares: spec.shares.clone(),
            metrics: spec.metrics.clone(),
            value_window_seconds: (!spec.metrics.is_empty()).then_some(spec.value_window_seconds),
            version: record.version,
            created_at: rfc3339(record.created_at),
            updated_at: rfc3339(record.updated_at),
            archived_at: record.archived_at.map(rfc3339),
        })
    }

    /// The response with this experiment, its `ETag` and these headers.
    pub fn into_response(self, status: StatusCode, headers: &[(HeaderName, String)]) -> Response {
        let mut response = (status, Json(&self)).into_response();
        for (name, value) in
            headers.iter().chain(&[(header::ETAG, quoted(&self.version.to_string()))])
        {
            // Names and numbers are plain ASCII.
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}
