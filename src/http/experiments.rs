//! `/v1/experiments`: create, list, read, change, archive.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::methods::Interleaving;
use super::problem::{FieldError, ProblemDocument};
use super::schemas;
use super::{ApiResult, AppState, Caller, JsonBody, PathOf, Problem, ProblemKind, QueryOf};
use crate::clock::rfc3339;
use crate::engine::error::EngineError;
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::experiment_spec::Ranker;
use crate::engine::experiment_spec::{ConcludeAt, DEFAULT_DUEL_TTL_SECONDS};
use crate::engine::loaded::LoadedExperiment;
use crate::engine::page_rules::{CLICK, CurrentMethod, PageRules};
use crate::events::Status;
use crate::store::ExperimentRecord;
use dueling_bandits::parameters::InvalidPolicy;
use dueling_bandits::{PolicySpec, TieRule};
use interleaving::{self, InvalidSpec};

const LIST_DEFAULT: u32 = 50;
const LIST_MAX: u32 = 500;
/// The policy of an experiment that names none.
pub(crate) const DEFAULT_POLICY: &str = "d-ts-plus";

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(create, list)).routes(routes!(read, change, archive))
}

/// What an experiment is created from.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewExperimentBody {
    /// `[a-z0-9][a-z0-9._-]{0,63}`, unique for ever.
    #[schema(example = "search-ranking", pattern = "^[a-z0-9][a-z0-9._-]{0,63}$")]
    name: String,
    /// 2 to 1024 rankers, each its id or an object.
    #[schema(value_type = Vec<RankerBody>, example = json!(["bm25", "bm25-title", {"id": "neural", "description": "two towers"}]), min_items = 2, max_items = 1024)]
    rankers: Vec<Ranker>,
    /// Which policy chooses the duels; `d-ts-plus` unless said otherwise.
    #[schema(value_type = Option<schemas::PolicySchema>, nullable = false)]
    policy: Option<Map<String, Value>>,
    /// What a tie counts; `skip` unless said otherwise.
    #[serde(default)]
    #[schema(value_type = schemas::TieRule)]
    ties: TieRule,
    /// How long a duel may stay unanswered; 3600 unless said otherwise.
    #[serde(default = "default_ttl")]
    #[schema(default = 3600, minimum = 1, maximum = 2_592_000)]
    duel_ttl_seconds: u32,
    /// Seed of everything that is drawn while folding the log; drawn unless given.
    #[schema(nullable = false)]
    seed: Option<u64>,
    /// Conclude by itself as soon as the winner is certain; never unless given.
    #[schema(value_type = Option<ConcludeAt>, nullable = false)]
    conclude_at: Option<super::extract::Object<ConcludeAt>>,
    /// How two rankings become one page; team draft unless said otherwise.
    #[schema(value_type = Option<Interleaving>, nullable = false)]
    interleaving: Option<Map<String, Value>>,
    /// What each kind of event on a document weighs.
    #[schema(schema_with = event_weights)]
    event_weights: Option<BTreeMap<String, u32>>,
    /// How long after a duel was handed out clicks that came in pieces become an outcome, at most
    /// `duel_ttl_seconds`; 1800 unless said otherwise, or `duel_ttl_seconds` where that is shorter.
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    settle_after_seconds: Option<u32>,
    /// Ids of two of the rankers that are one: what looks like a difference between them is an
    /// alarm.
    #[schema(nullable = false)]
    canary: Option<[String; 2]>,
}

/// A ranker: its id, or an object.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "says in the description of the API what `Ranker` reads")]
enum RankerBody {
    /// Its id.
    Id(String),
    /// Its id and more.
    Object(Ranker),
}

/// Whole numbers by the name of an event.
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
            "What each kind of event on a document weighs, 1 to 100; at most 32 kinds. `click` weighs 1 superseded_by said \
             otherwise. A document counts once on a page, with its heaviest event.",
        ))
        .examples([json!({"click": 1, "add_to_cart": 5, "purchase": 20})])
        .build()
}

fn default_ttl() -> u32 {
    DEFAULT_DUEL_TTL_SECONDS
}

/// An experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Experiment {
    /// Its name.
    #[schema(example = "search-ranking")]
    pub name: String,
    /// Whether it hands out duels.
    pub status: Status,
    /// Id of the ranker that it was concluded on.
    pub winner: Option<String>,
    /// Its rankers, in the order that every matrix of the API has: those that it was created with,
    /// then those that were enlisted.
    pub rankers: Vec<ListedRanker>,
    /// Its policy with all parameters.
    #[schema(value_type = schemas::PolicySchema)]
    pub policy: PolicySpec,
    /// What must hold for the policy's guarantee.
    #[schema(example = "no pair of rankers that are exactly equal")]
    pub policy_assumes: &'static str,
    /// What a tie counts.
    #[schema(value_type = schemas::TieRule)]
    pub ties: TieRule,
    /// How long a duel may stay unanswered.
    pub duel_ttl_seconds: u32,
    /// How two rankings become one page, with all parameters.
    #[schema(value_type = Interleaving)]
    pub interleaving: interleaving::Spec,
    /// Counts the changes of `interleaving`, from 1.
    pub interleaving_version: u32,
    /// What each kind of event on a document weighs.
    pub event_weights: BTreeMap<String, u32>,
    /// How long after a duel was handed out clicks that came in pieces become an outcome.
    pub settle_after_seconds: u32,
    /// Ids of two of the rankers that are one.
    pub canary: Option<[String; 2]>,
    /// Seed of everything that is drawn while folding the log.
    pub seed: u64,
    /// When it concludes by itself; `null` for never.
    pub conclude_at: Option<ConcludeAt>,
    /// Counts its changes, from 1; also its `ETag`.
    pub version: u64,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed (its log apart).
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it was archived.
    #[schema(format = DateTime)]
    pub archived_at: Option<String>,
}

/// A ranker of an experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ListedRanker {
    /// What the search backend calls it.
    pub id: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `true` for one that was retired: it is never shown again. Left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub retired: bool,
}

impl Experiment {
    fn of(loaded: &LoadedExperiment) -> ApiResult<Self> {
        let record = loaded.record();
        Self::read(&record, &loaded.spec)
            .map_err(|why| EngineError::Unreadable { name: record.name, why }.into())
    }

    fn read(record: &ExperimentRecord, spec: &ExperimentSpec) -> Result<Self, String> {
        let current = CurrentMethod::of(record, &spec.pages)?;
        Ok(Self {
            name: record.name.clone(),
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
            interleaving: current.method,
            interleaving_version: current.version,
            event_weights: spec.pages.event_weights.clone(),
            settle_after_seconds: spec.pages.settle_after_seconds(spec.duel_ttl_seconds),
            canary: spec.pages.canary.clone(),
            seed: record.seed,
            conclude_at: spec.conclude_at,
            version: record.version,
            created_at: rfc3339(record.created_at),
            updated_at: rfc3339(record.updated_at),
            archived_at: record.archived_at.map(rfc3339),
        })
    }

    fn into_response(self, status: StatusCode, headers: &[(HeaderName, String)]) -> Response {
        let mut response = (status, Json(&self)).into_response();
        for (name, value) in
            headers.iter().chain(&[(header::ETAG, format!("\"{}\"", self.version))])
        {
            // names and numbers are plain ASCII
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Create an experiment
///
/// The same body again answers 200 with the experiment: creating may be repeated safely.
#[utoipa::path(post, path = "/experiments", tag = "experiments", security(("key" = ["admin"])), request_body = NewExperimentBody,
    responses(
        (status = 201, body = Experiment, description = "Created.", headers(("location" = String), ("etag" = String))),
        (status = 200, body = Experiment, description = "The same request created it before.", headers(("etag" = String))),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-exists`: the name is taken by an experiment that was asked for differently. `experiment-archived`: by an archived one."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: `errors` says what is wrong where."),
    ))]
async fn create(
    State(state): State<AppState>,
    caller: Caller,
    JsonBody(body): JsonBody<NewExperimentBody>,
) -> ApiResult<Response> {
    caller.require_experiment(&body.name)?;
    let policy = match body.policy {
        Some(object) => PolicySpec::from_json(object),
        None => PolicySpec::from_parameters(DEFAULT_POLICY, Map::new()),
    }
    .map_err(invalid_policy)?;
    let interleaving = match body.interleaving {
        Some(object) => interleaving::Spec::from_json(object).map_err(invalid_interleaving)?,
        None => interleaving::Spec::default(),
    };
    let mut event_weights = body.event_weights.unwrap_or_default();
    event_weights.entry(CLICK.to_owned()).or_insert(1);
    let spec = ExperimentSpec {
        pages: PageRules {
            interleaving,
            event_weights,
            settle_after_seconds: body.settle_after_seconds,
            canary: body.canary,
        },
        rankers: body.rankers,
        policy,
        ties: body.ties,
        duel_ttl_seconds: body.duel_ttl_seconds,
        seed: body.seed,
        conclude_at: body.conclude_at.map(|super::extract::Object(at)| at),
        former_policies: Vec::new(),
        roster_changes: Default::default(),
    };
    let (loaded, is_new) = state.service.create(&body.name, &spec, &caller.actor()).await?;
    let experiment = Experiment::of(&loaded)?;
    Ok(if is_new {
        let location = (header::LOCATION, format!("/v1/experiments/{}", experiment.name));
        experiment.into_response(StatusCode::CREATED, &[location])
    } else {
        experiment.into_response(StatusCode::OK, &[])
    })
}

pub(crate) fn invalid_policy(error: InvalidPolicy) -> Problem {
    let pointer = match error.parameter.as_str() {
        "" => "/policy".to_string(),
        parameter => format!("/policy/{}", parameter.replace('~', "~0").replace('/', "~1")),
    };
    Problem::new(
        ProblemKind::InvalidRequest,
        format!("The policy is not as it should be: {}.", error.detail),
    )
    .field(pointer, error.detail)
}

fn invalid_interleaving(error: InvalidSpec) -> Problem {
    let pointer = match error.parameter.as_str() {
        "" => "/interleaving".to_string(),
        parameter => format!("/interleaving/{}", parameter.replace('~', "~0").replace('/', "~1")),
    };
    let detail = format!("The interleaving is not as it should be: {}.", error.detail);
    Problem::new(ProblemKind::InvalidRequest, detail).field(pointer, error.detail)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// How many at most, 1 to 500; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 500, nullable = false)]
    limit: Option<u32>,
    /// `next` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// One page of experiments.
#[derive(Debug, Serialize, ToSchema)]
struct ExperimentPage {
    /// By name; archived ones are left out.
    experiments: Vec<Experiment>,
    /// Cursor of the next page; `null` on the last one.
    next: Option<String>,
    /// Names of this page whose experiments this server cannot read, as those of a newer version
    /// during an upgrade; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// List experiments
///
/// By name, a page at a time. Archived experiments are left out; each can still be read under its
/// name. A key that is for some experiments only sees those; a page may then have fewer than
/// `limit`.
#[utoipa::path(get, path = "/experiments", tag = "experiments", security(("key" = ["read"])), params(ListQuery),
    responses(
        (status = 200, body = ExperimentPage, description = "A page."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: a cursor or limit that is none."),
    ))]
async fn list(
    State(state): State<AppState>,
    caller: Caller,
    QueryOf(query): QueryOf<ListQuery>,
) -> ApiResult<Json<ExperimentPage>> {
    let limit = query.limit.unwrap_or(LIST_DEFAULT);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("`limit` is {limit}; it must be 1 to {LIST_MAX}");
        return Err(
            Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).query("limit", detail)
        );
    }
    let after = query.cursor.as_deref().map(read_cursor).transpose()?;
    let mut records = state.service.list(after.as_deref(), limit + 1).await?;
    let more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = match records.last() {
        Some(last) if more => Some(URL_SAFE_NO_PAD.encode(&last.name)),
        _ => None,
    };
    let (mut experiments, mut unreadable) = (Vec::new(), Vec::new());
    for record in records.into_iter().filter(|record| caller.is_for(&record.name)) {
        match ExperimentSpec::read(&record.spec).and_then(|spec| Experiment::read(&record, &spec)) {
            Ok(experiment) => experiments.push(experiment),
            Err(_) => unreadable.push(record.name),
        }
    }
    Ok(Json(ExperimentPage { experiments, next, unreadable }))
}

fn read_cursor(cursor: &str) -> ApiResult<String> {
    URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|name| !name.contains('\0'))
        .ok_or_else(|| {
            let detail = "`cursor` is not one that this list gave; use `next` of the page before";
            Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).query("cursor", detail)
        })
}

/// Read an experiment
#[utoipa::path(get, path = "/experiments/{name}", tag = "experiments", security(("key" = ["read"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Experiment, description = "The experiment.", headers(("etag" = String))),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
    ))]
async fn read(State(state): State<AppState>, PathOf(name): PathOf<String>) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    Ok(Experiment::of(&loaded)?.into_response(StatusCode::OK, &[]))
}

/// What can be changed of an experiment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExperimentChange {
    /// `paused` hands out no duels and still takes feedback; `concluded` shows the winner alone;
    /// `running` goes on.
    #[schema(nullable = false)]
    status: Option<Status>,
    /// With `concluded`: id of the winner; the policy's champion unless given.
    #[schema(nullable = false)]
    winner: Option<String>,
    /// Instead of `status`: how two rankings become one page from here on, for duels that are
    /// chosen after the change. What the policy has learnt stays; statistics are kept apart.
    #[schema(value_type = Option<Interleaving>, nullable = false)]
    interleaving: Option<Map<String, Value>>,
    /// Instead of `status`: which policy chooses from here on. Its state is the log, folded under
    /// it from the beginning.
    #[schema(value_type = Option<schemas::PolicySchema>, nullable = false)]
    policy: Option<Map<String, Value>>,
    /// Instead of `status`: one more ranker takes part from here on, its id or an object. One that
    /// takes part already, as it is described, changes nothing.
    #[schema(value_type = Option<RankerBody>, nullable = false)]
    enlist: Option<Ranker>,
    /// Instead of `status`: id of a ranker that takes part no more. It is never chosen again;
    /// answers of its duels that are out still count. One that was retired before changes nothing.
    #[schema(nullable = false)]
    retire: Option<String>,
}

/// Pause, continue or conclude an experiment, change its interleaving or its policy, or let a
/// ranker come or go
///
/// One change at a time. A new policy has learnt from every comparison in the log; duels of the old
/// one that are out count when they are answered. Who comes or goes is judged with the others from
/// the next duel on, and all that was counted stays. `If-Match` carries the `ETag` that the
/// decision was made on, or `*` for whatever it is now.
#[utoipa::path(patch, path = "/experiments/{name}", tag = "experiments", security(("key" = ["admin"])), request_body = ExperimentChange,
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-match" = String, Header, description = "`ETag` of the experiment as it was read, or `*`."),
    ),
    responses(
        (status = 200, body = Experiment, description = "Changed, or as it was asked for already.", headers(("etag" = String))),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-archived`, `cannot-replay`: a new policy needs the whole log, and it was pruned, or `rankers-fixed`: the policy cannot let rankers come or go, or this ranker cannot; the detail says why."),
        (status = 412, body = ProblemDocument, content_type = "application/problem+json", description = "`precondition-failed`: somebody else has changed it."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`."),
        (status = 428, body = ProblemDocument, content_type = "application/problem+json", description = "`precondition-required`: send `If-Match`."),
    ))]
async fn change(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ExperimentChange>,
) -> ApiResult<Response> {
    let version = expected_version(&headers)?.ok_or_else(|| {
        Problem::new(
            ProblemKind::PreconditionRequired,
            "Send `If-Match` with the experiment's `ETag` as you read it, or `If-Match: *` to change it whatever it is now.",
        )
    })?;
    let by = caller.actor();
    let refuse = |pointer: &str, detail: &str| {
        let problem = format!("The change is not as it should be: {detail}.");
        Problem::new(ProblemKind::InvalidRequest, problem).field(pointer, detail)
    };
    let changes = [
        ("/policy", body.policy.is_some()),
        ("/enlist", body.enlist.is_some()),
        ("/retire", body.retire.is_some()),
    ];
    let others = body.status.is_some() || body.interleaving.is_some() || body.winner.is_some();
    let asked = changes.iter().filter(|(_, asked)| *asked).count() + usize::from(others);
    if let (true, Some((pointer, _))) = (asked > 1, changes.iter().find(|(_, asked)| *asked)) {
        return Err(refuse(
            pointer,
            &format!("send `{}` alone, one change at a time", &pointer[1..]),
        ));
    }
    let changed = match (body.policy, body.enlist, body.retire) {
        (Some(object), _, _) => {
            let policy = PolicySpec::from_json(object).map_err(invalid_policy)?;
            Some(state.service.set_policy(&name, version.0, policy, &by).await?)
        }
        (_, Some(ranker), _) => Some(state.service.enlist(&name, version.0, ranker, &by).await?),
        (_, _, Some(id)) => Some(state.service.retire(&name, version.0, &id, &by).await?),
        _ => None,
    };
    if let Some(loaded) = changed {
        return Ok(Experiment::of(&loaded)?.into_response(StatusCode::OK, &[]));
    }
    let loaded = match (body.status, body.interleaving) {
        (Some(status), None) => {
            state.service.set_status(&name, version.0, status, body.winner.as_deref(), &by).await?
        }
        (None, Some(_)) if body.winner.is_some() => {
            return Err(refuse("/winner", "`winner` goes with the status `concluded` only"));
        }
        (None, Some(object)) => {
            let method = interleaving::Spec::from_json(object).map_err(invalid_interleaving)?;
            state.service.set_interleaving(&name, version.0, method, &by).await?
        }
        (Some(_), Some(_)) => {
            return Err(refuse(
                "/interleaving",
                "send `status` or `interleaving`, one change at a time",
            ));
        }
        (None, None) => {
            return Err(refuse(
                "",
                "send `status`, `interleaving`, `policy`, `enlist` or `retire`",
            ));
        }
    };
    Ok(Experiment::of(&loaded)?.into_response(StatusCode::OK, &[]))
}

/// Archive an experiment
///
/// Only a concluded one. It is listed no more and takes nothing in; its log is kept, and its name
/// stays taken. Done twice is done.
#[utoipa::path(delete, path = "/experiments/{name}", tag = "experiments", security(("key" = ["admin"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-match" = Option<String>, Header, description = "`ETag` of the experiment as it was read."),
    ),
    responses(
        (status = 204, description = "Archived."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`not-concluded`: conclude it first."),
        (status = 412, body = ProblemDocument, content_type = "application/problem+json", description = "`precondition-failed`: somebody else has changed it."),
    ))]
async fn archive(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    caller: Caller,
    headers: HeaderMap,
) -> ApiResult<StatusCode> {
    let version = expected_version(&headers)?.and_then(|expected| expected.0);
    state.service.archive(&name, version, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A version that the caller insists on; `None` inside for `*`.
struct Expected(Option<u64>);

fn expected_version(headers: &HeaderMap) -> ApiResult<Option<Expected>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(Expected(None)));
    }
    let version = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .and_then(|digits| digits.parse().ok());
    match version {
        Some(version) => Ok(Some(Expected(Some(version)))),
        None => {
            let detail =
                "`If-Match` takes one `ETag` as it was given, such as \"3\" with its quotes, or *";
            Err(Problem::new(ProblemKind::InvalidRequest, format!("{detail}."))
                .error(FieldError::Header { name: "if-match".into(), detail: detail.into() }))
        }
    }
}
