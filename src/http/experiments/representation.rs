//! The representation of an experiment.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use dueling_bandits::claims::control::Goal;
use dueling_bandits::{PolicySpec, TieRule};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::conditional::quoted;
use crate::schemas;
use crate::service::answer::Answer;
use crate::service::answers::stored;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::experiment_spec::{
    ConcludeAt, ConclusionShape, DecideBy, Errors, ExperimentSpec, Metric, OnDrift, OrNever,
};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::audience::Segment;
use rankduel_store::events::Status;

/// An experiment. The settings are those of its creation and changes, with all defaults.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Experiment {
    #[schema(example = "search-ranking")]
    pub name: String,
    pub description: String,
    pub owner: String,
    pub status: Status,
    /// `null` while it is computed: a creation or a change waits for it for a second.
    pub answer: Option<Answer>,
    /// Of a concluded experiment.
    pub winner: Option<String>,
    /// In the order of every matrix in the API: the initial rankers, then those added later.
    pub rankers: Vec<ListedRanker>,
    /// With all parameters.
    #[schema(value_type = schemas::PolicySchema)]
    pub policy: PolicySpec,
    /// The assumption of the policy's guarantee.
    #[schema(example = "no pair of rankers that are exactly equal")]
    pub policy_assumes: &'static str,
    pub ties: TieRule,
    pub duel_ttl_seconds: u32,
    /// Duels issued before a change keep the window that they had.
    pub answer_window_seconds: u32,
    pub control: Option<String>,
    #[schema(value_type = Vec<String>)]
    pub segments: Vec<Segment>,
    /// Omitted if each claim has the error one minus `confidence`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    pub goal: Goal,
    /// With all parameters.
    #[schema(value_type = schemas::Interleaving)]
    pub interleaving: interleaving::Spec,
    /// Number of the current `interleaving`, from 1.
    pub interleaving_version: u32,
    /// This and `settle_after_seconds` are omitted if orders decide.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub event_weights: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub settle_after_seconds: Option<u32>,
    /// Omitted if clicks decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub decide_by: Option<DecideBy>,
    pub canary: Option<[String; 2]>,
    pub canary_share: f64,
    /// In their order. Omitted without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ListedExclusion>,
    pub seed: u64,
    #[schema(value_type = ConclusionShape)]
    pub conclude_at: OrNever<ConcludeAt>,
    pub drift: OnDrift,
    pub watch: f64,
    pub coverage: f64,
    pub alone: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Omitted without metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value_window_seconds: Option<u32>,
    /// From 1, increased by each change; also the `ETag`.
    pub version: u64,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time of the last change; new log entries do not count.
    #[schema(format = DateTime)]
    pub updated_at: String,
    #[schema(format = DateTime)]
    pub archived_at: Option<String>,
}

/// A ranker of an experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedRanker {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is never shown again. Omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
}

/// Units that were excluded together.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedExclusion {
    /// Number of units. The audit log and exports have their hashes.
    pub units: usize,
    pub reason: String,
}

impl Experiment {
    pub fn of(loaded: &LoadedExperiment) -> Self {
        Self::of_record(&loaded.record(), &loaded.spec)
    }

    pub fn of_record(record: &ExperimentRecord, spec: &ExperimentSpec) -> Self {
        Self {
            name: record.name.clone(),
            description: spec.description.clone(),
            owner: spec.owner.clone(),
            status: record.status,
            answer: stored(record),
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
            interleaving: spec.pages.interleaving,
            interleaving_version: spec.pages.interleaving_version,
            event_weights: match spec.decide_by {
                None => spec.pages.event_weights.clone(),
                Some(_) => BTreeMap::new(),
            },
            settle_after_seconds: spec.decide_by.is_none().then(|| spec.settle_after_seconds()),
            decide_by: spec.decide_by.clone(),
            answer_window_seconds: spec.answer_window_seconds,
            canary: spec.pages.canary.clone(),
            canary_share: spec.pages.canary_share,
            exclusions: spec
                .exclusions
                .iter()
                .map(|exclusion| ListedExclusion {
                    units: exclusion.hashes.len(),
                    reason: exclusion.reason.clone(),
                })
                .collect(),
            seed: record.seed,
            conclude_at: OrNever(spec.conclude_at),
            drift: spec.drift,
            watch: spec.watch,
            coverage: spec.coverage,
            alone: spec.alone,
            metrics: spec.metrics.clone(),
            value_window_seconds: (!spec.metrics.is_empty()).then_some(spec.value_window_seconds),
            version: record.version,
            created_at: rfc3339(record.created_at),
            updated_at: rfc3339(record.updated_at),
            archived_at: record.archived_at.map(rfc3339),
        }
    }

    /// The response with this experiment and its `ETag`; with its `Location` if it was created.
    pub fn into_response(self, status: StatusCode) -> Response {
        let location = (status == StatusCode::CREATED)
            .then(|| [(header::LOCATION, format!("/v1/experiments/{}", self.name))]);
        let tag = [(header::ETAG, quoted(&self.version.to_string()))];
        (status, location, tag, Json(self)).into_response()
    }
}
