//! `POST /v1/experiments`: create an experiment.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use dueling_bandits::TieRule;
use dueling_bandits::claims::control::Goal;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::representation::Experiment;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::extract::{JsonText, json as read_json};
use crate::http::problem::{ApiResult, Problem};
use crate::http::spec_bodies;
use crate::schemas;
use crate::service::lifecycle::{self, CreatedExperiment};
use rankduel_engine::experiment_spec::{
    ConcludeAt, ConclusionShape, DEFAULT_DUEL_TTL_SECONDS, DEFAULT_VALUE_WINDOW_SECONDS,
    DEFAULT_WATCH, DecideBy, EVENT_WEIGHTS, Errors, ExperimentSpec, Metric, OnDrift, OrNever,
    Ranker, SETTLE_AFTER, WHOLE_COVERAGE, optional_map,
};
use rankduel_engine::page_rules::{CLICK, DEFAULT_CANARY_SHARE, PageRules};
use rankduel_store::audience::Segment;

/// A new experiment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewExperimentBody {
    /// Can be used only once, even after the experiment is archived.
    #[schema(example = "search-ranking", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    name: String,
    #[schema(value_type = Vec<schemas::RankerBody>, example = json!(["bm25", "bm25-title", {"id": "neural", "description": "two towers"}]), min_items = 2, max_items = 256)]
    rankers: Vec<Ranker>,
    /// Purpose of the experiment, on one line.
    #[schema(max_length = 1000, example = "Do synonyms help?", nullable = false)]
    description: Option<String>,
    /// Whom to ask about it.
    #[schema(max_length = 200, example = "search-team@shop.example", nullable = false)]
    owner: Option<String>,
    /// `d-ts-verdict` by default. Its `confidence` and `margin` follow `conclude_at`.
    #[serde(default, deserialize_with = "optional_map")]
    #[schema(value_type = Option<schemas::PolicySchema>, nullable = false)]
    policy: Option<Map<String, Value>>,
    /// `skip` by default.
    #[schema(nullable = false)]
    ties: Option<TieRule>,
    /// Seconds after which a duel without feedback expires; 3600 by default.
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    duel_ttl_seconds: Option<u32>,
    /// Seconds within which the answers come that the verdict counts; `duel_ttl_seconds` by
    /// default, and at most that. Later answers still teach the policy. With 0 every answer counts
    /// as it arrives, which is right only if answers for either side take equally long.
    #[schema(maximum = 2_592_000, nullable = false)]
    answer_window_seconds: Option<u32>,
    /// Seed of every random choice made while folding the log; random by default.
    #[schema(maximum = 9_007_199_254_740_991_i64, nullable = false)]
    seed: Option<u64>,
    /// By default, as soon as a winner is certain at 95 %, with a margin of 0.01.
    #[schema(value_type = Option<ConclusionShape>, nullable = false)]
    conclude_at: Option<OrNever<ConcludeAt>>,
    /// The ranker that people see today. Each other ranker is then also compared with it: better,
    /// not worse, worse, and by how much at least.
    #[schema(example = "bm25", nullable = false)]
    control: Option<String>,
    /// The labels of `segment` about which claims are made. All others count as `other`, about
    /// which nothing is claimed.
    #[schema(value_type = Option<Vec<String>>, max_items = 16, example = json!(["mobile", "desktop"]), nullable = false)]
    segments: Option<Vec<Segment>>,
    /// Without it, the verdict, the claims against the control and those about segments have the
    /// error one minus `confidence` each.
    #[schema(nullable = false)]
    errors: Option<Errors>,
    /// `best` by default. `improve` needs a `control`.
    #[schema(nullable = false)]
    goal: Option<Goal>,
    /// `tell` by default.
    #[schema(nullable = false)]
    drift: Option<OnDrift>,
    /// Share of pages on which the winner of the concluded experiment meets the ranker that came
    /// next, so that `drift` can tell; 0.02 by default, and 0 with `drift: off`.
    #[schema(minimum = 0, maximum = 0.5, nullable = false)]
    watch: Option<f64>,
    /// Share of units that take part; 1 by default. The others see the `control`, always the same
    /// units. Pages without a unit take part by a coin each.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0, nullable = false)]
    coverage: Option<f64>,
    /// Share of units that see one ranker alone, the leader or the `control` by a fair coin of the
    /// unit; 0 by default. Their clicks do not count for preferences.
    #[schema(minimum = 0, maximum = 0.5, nullable = false)]
    alone: Option<f64>,
    /// Orders decide in place of clicks: then clicks link documents to pages, and each unit counts
    /// once, when its window is over. `answer_window_seconds` follows from it, and `event_weights`
    /// and `settle_after_seconds` cannot be sent.
    #[schema(nullable = false)]
    decide_by: Option<DecideBy>,
    /// Metrics of rankers on each page, such as their latency, and the limits above which a ranker
    /// does harm.
    #[serde(default)]
    #[schema(max_items = 8)]
    metrics: Vec<Metric>,
    /// Seconds within which the values of a page come; by default 60, and at most
    /// `duel_ttl_seconds`.
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    value_window_seconds: Option<u32>,
    /// Team draft by default.
    #[serde(default, deserialize_with = "optional_map")]
    #[schema(value_type = Option<schemas::Interleaving>, nullable = false)]
    interleaving: Option<Map<String, Value>>,
    /// Weight of each kind of event on a document.
    #[serde(default, deserialize_with = "optional_map")]
    #[schema(schema_with = event_weights)]
    event_weights: Option<BTreeMap<String, u32>>,
    /// Seconds after a duel was issued at which clicks sent in parts are settled into an outcome;
    /// by default 1800, and at most `duel_ttl_seconds`.
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    settle_after_seconds: Option<u32>,
    /// Two entries of `rankers` that are the same ranker. An apparent difference between them
    /// raises an alarm. The second takes no part in the tournament, unless `canary_share` is 0.
    #[schema(nullable = false)]
    canary: Option<[String; 2]>,
    /// With `canary`: share of pages that compare its two ids; 0.05 by default. Their outcomes
    /// count for the alarm alone. With 0 the second id is a ranker like the others, and there is no
    /// verdict if the two are the best.
    #[schema(minimum = 0, maximum = 0.5, nullable = false)]
    canary_share: Option<f64>,
}

/// Integers by the name of an event.
fn event_weights() -> Object {
    let weight =
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
    let name = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(100))
        .build();
    ObjectBuilder::new()
        .additional_properties(Some(weight))
        .property_names(Some(name))
        .max_properties(Some(32))
        .description(Some(
            "Weight of each kind of event on a document, 1 to 100; at most 32 kinds. `click` has \
             the weight 1 by default. A document counts once on a page, with its heaviest event.",
        ))
        .examples([json!({"click": 1, "add_to_cart": 5, "purchase": 20})])
        .build()
}

/// Create the experiment of a body, if the caller's key includes it.
pub(crate) async fn create_experiment(
    state: &AppState,
    caller: &Caller,
    body: NewExperimentBody,
) -> ApiResult<CreatedExperiment> {
    caller.require_experiment(&body.name)?;
    let (name, spec) = spec_of(body)?;
    Ok(lifecycle::create(&state.service, &name, &spec, &caller.actor()).await?)
}

/// The name and the spec in a body. The service validates both.
pub(crate) fn spec_of(body: NewExperimentBody) -> ApiResult<(String, ExperimentSpec)> {
    let OrNever(conclude_at) = body.conclude_at.unwrap_or(OrNever(Some(ConcludeAt::default())));
    let policy = spec_bodies::policy_of_experiment(body.policy, conclude_at, body.errors)?;
    let interleaving =
        body.interleaving.map(spec_bodies::interleaving).transpose()?.unwrap_or_default();
    let decide_by = body.decide_by.map(DecideBy::with_defaults);
    if decide_by.is_some() {
        let sent = [
            ("event_weights", body.event_weights.is_some(), EVENT_WEIGHTS),
            ("settle_after_seconds", body.settle_after_seconds.is_some(), SETTLE_AFTER),
        ];
        if let Some((name, _, detail)) = sent.into_iter().find(|(_, is_sent, _)| *is_sent) {
            return Err(Problem::invalid_at(name, format!("/{name}"), detail));
        }
    }
    let answers_within = decide_by.as_ref().map(DecideBy::answer_window_seconds);
    let mut event_weights = body.event_weights.unwrap_or_default();
    event_weights.entry(CLICK.to_owned()).or_insert(1);
    let default_canary_share = if body.canary.is_some() { DEFAULT_CANARY_SHARE } else { 0.0 };
    let duel_ttl_seconds = body.duel_ttl_seconds.unwrap_or(DEFAULT_DUEL_TTL_SECONDS);
    let drift = body.drift.unwrap_or_default();
    let spec = ExperimentSpec {
        pages: PageRules {
            interleaving,
            interleaving_version: 1,
            event_weights,
            settle_after_seconds: body.settle_after_seconds,
            canary_share: body.canary_share.unwrap_or(default_canary_share),
            canary: body.canary,
        },
        rankers: body.rankers,
        policy,
        ties: body.ties.unwrap_or_default(),
        duel_ttl_seconds,
        answer_window_seconds: body
            .answer_window_seconds
            .unwrap_or(answers_within.unwrap_or(duel_ttl_seconds)),
        seed: body.seed,
        conclude_at,
        description: body.description.unwrap_or_default(),
        owner: body.owner.unwrap_or_default(),
        control: body.control,
        segments: body.segments.unwrap_or_default(),
        errors: body.errors,
        goal: body.goal.unwrap_or_default(),
        drift,
        watch: body.watch.unwrap_or(if drift == OnDrift::Off { 0.0 } else { DEFAULT_WATCH }),
        coverage: body.coverage.unwrap_or(WHOLE_COVERAGE),
        alone: body.alone.unwrap_or_default(),
        metrics: body.metrics,
        value_window_seconds: body
            .value_window_seconds
            .unwrap_or(DEFAULT_VALUE_WINDOW_SECONDS.min(duel_ttl_seconds.max(1))),
        decide_by,
        retired: Vec::new(),
        exclusions: Vec::new(),
    };
    Ok((body.name, spec))
}

/// Members of an experiment that no request sets, and those of a ranker.
const READ_ONLY: [&str; 11] = [
    "status",
    "answer",
    "winner",
    "policy_assumes",
    "interleaving_version",
    "exclusions",
    "version",
    "created_at",
    "updated_at",
    "archived_at",
    "retired",
];

/// The body of a request. If it is made from an experiment that was read, the error names all
/// members that must be left out.
fn read_body(text: &[u8]) -> ApiResult<NewExperimentBody> {
    read_json(text).map_err(|problem| {
        let Ok(Value::Object(body)) = serde_json::from_slice(text) else { return problem };
        let rankers = body.get("rankers").and_then(Value::as_array).into_iter().flatten();
        let rankers = rankers.enumerate().filter_map(|(at, it)| Some((at, it.as_object()?)));
        let of_rankers = rankers.flat_map(|(at, it)| {
            it.keys().map(move |name| (name.as_str(), format!("/rankers/{at}/{name}")))
        });
        let all = body.keys().map(|name| (name.as_str(), format!("/{name}"))).chain(of_rankers);
        let found: Vec<_> = all.filter(|(name, _)| READ_ONLY.contains(name)).collect();
        if found.is_empty() {
            return problem;
        }
        let names: BTreeSet<_> = found.iter().map(|(name, _)| format!("`{name}`")).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let detail = format!("Invalid body: these are read-only, leave them out: {names}");
        let read_only = |problem: Problem, (name, at): (&str, String)| {
            problem.field(at, format!("`{name}` is read-only: leave it out"))
        };
        found.into_iter().fold(Problem::invalid(&detail), read_only)
    })
}

/// Create an experiment
///
/// Repeating the request is safe: a request with the same body returns 200 with the experiment.
/// To create one like another, leave out the read-only members of that one: an error names them.
#[utoipa::path(post, path = "/v1/experiments", tag = "experiments", request_body = NewExperimentBody,
    responses(
        (status = 201, body = Experiment, description = "Created.", headers(("location" = String), ("etag" = String))),
        (status = 200, body = Experiment, description = "An earlier request with the same body created it.", headers(("etag" = String))),
    ))]
pub(crate) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    text: JsonText,
) -> ApiResult<Response> {
    let body = text.read(read_body).await?;
    let CreatedExperiment { loaded, is_new } = create_experiment(&state, &caller, body).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Experiment::of(&loaded).into_response(status))
}
