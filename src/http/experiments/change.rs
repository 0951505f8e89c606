//! `PATCH /v1/experiments/{name}`: change an experiment.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::conclusion::{ConclusionChangeShape, OrNever};
use super::representation::Experiment;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::conditional::expected_version;
use crate::http::extract::{JsonBody, Object, PathName};
use crate::http::problem::{ApiResult, Problem, ProblemKind};
use crate::http::spec_bodies;
use crate::schemas;
use crate::service::change::Requested;
use crate::service::settings_changes::SettingsChange;
use crate::service::spec_changes::Excluded;
use crate::service::{self, Service};
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::{ConcludeAtChange, Ranker};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::{Status, UnitHash};

/// One change of an experiment. The settings `description`, `owner`, `conclude_at`,
/// `answer_window_seconds` and `coverage` can change together, everything else alone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentChange {
    /// `running` issues duels; `paused` issues none and still accepts feedback; `concluded` shows
    /// only the winner.
    #[schema(nullable = false)]
    status: Option<Status>,
    /// With `concluded`; the leader of `/verdict` by default.
    #[schema(nullable = false)]
    winner: Option<String>,
    /// For duels chosen after the change. The state of the policy is kept; statistics are separate
    /// for each version.
    #[schema(value_type = Option<schemas::Interleaving>, nullable = false)]
    interleaving: Option<Map<String, Value>>,
    /// The ranker that people see today. Claims are made against it, with the answers to duels
    /// issued after the change.
    #[schema(nullable = false)]
    control: Option<String>,
    /// A ranker to add. Adding a ranker that is already in the experiment, with the same
    /// description, changes nothing.
    #[schema(value_type = Option<schemas::RankerBody>, nullable = false)]
    enlist: Option<Ranker>,
    /// A ranker to retire. It is never chosen again; feedback on its duels that were issued before
    /// still counts.
    #[schema(nullable = false)]
    retire: Option<String>,
    /// Purpose of the experiment, on one line.
    #[schema(max_length = 1000, nullable = false)]
    description: Option<String>,
    /// Whom to ask about it.
    #[schema(max_length = 200, nullable = false)]
    owner: Option<String>,
    /// Its limits can change, the target of its verdict cannot.
    #[schema(value_type = Option<ConclusionChangeShape>, nullable = false)]
    conclude_at: Option<OrNever<ConcludeAtChange>>,
    /// Of duels that are issued after the change, counted after those before it. It changes neither
    /// from nor to 0.
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    answer_window_seconds: Option<u32>,
    /// Share of units that take part from now on.
    #[schema(exclusive_minimum = 0.0, maximum = 1.0, nullable = false)]
    coverage: Option<f64>,
    /// Units, such as machines, whose answers do not count, before and after the change.
    #[schema(value_type = Option<ExcludeBody>, nullable = false)]
    exclude: Option<Object<ExcludeBody>>,
}

/// Units to exclude: at least one, as `units`, as `hashes` or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExcludeBody {
    /// As they were sent with duels or feedback.
    #[serde(default)]
    #[schema(example = json!(["u-81f3"]))]
    units: Vec<String>,
    /// As `heaviest_units` of `/verdict` and exports have them.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["7f3a09c1d2e4b586"]))]
    hashes: Vec<UnitHash>,
    /// Why, for people. It must not depend on who won the duels of the units.
    #[schema(example = "clicks on the first result of every page")]
    reason: String,
}

/// Change an experiment
///
/// Pauses, resumes or concludes the experiment, changes its interleaving or settings, names the
/// control, adds or retires a ranker, or excludes units; one change in each request.
///
/// Excluding units folds the log anew without their answers. The policy takes an added or retired
/// ranker into account from the next duel on, and all counts are kept.
#[utoipa::path(patch, path = "/v1/experiments/{name}", tag = "experiments", request_body = ExperimentChange,
    params(
        ("if-match" = String, Header, description = "`ETag` of the experiment as it was read, or `*`."),
    ),
    responses(
        (status = 200, body = Experiment, description = "The experiment after the change.", headers(("etag" = String))),
    ))]
pub(crate) async fn change(
    State(state): State<AppState>,
    PathName(name): PathName,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ExperimentChange>,
) -> ApiResult<Response> {
    let expected = expected_version(&headers)?.ok_or_else(|| {
        Problem::new(
            ProblemKind::PreconditionRequired,
            "Send `If-Match` with the experiment's `ETag` as you read it, or `If-Match: *` to change any version.",
        )
    })?;
    let (version, by) = (expected.version(), caller.actor());
    let loaded = change_experiment(&state.service, &name, version, body, &by).await?;
    Ok(Experiment::of(&loaded)?.into_response(StatusCode::OK))
}

/// Make the change of a body, if the experiment is at `version` (`None` for any version).
pub(crate) async fn change_experiment(
    service: &Service,
    name: &str,
    version: Option<u64>,
    body: ExperimentChange,
    by: &Actor,
) -> ApiResult<Arc<LoadedExperiment>> {
    require_one_change(&body)?;
    Ok(service::change::change(service, name, version, &requested(body)?, by).await?)
}

/// Check a change without making it.
pub(crate) fn check_change(
    service: &Service,
    loaded: &LoadedExperiment,
    body: ExperimentChange,
) -> ApiResult<()> {
    require_one_change(&body)?;
    Ok(service::change::check(service, loaded, &requested(body)?)?)
}

/// The change that a body asks for.
fn requested(body: ExperimentChange) -> ApiResult<Requested> {
    Ok(match body {
        ExperimentChange { control: Some(id), .. } => Requested::Control(id),
        ExperimentChange { enlist: Some(ranker), .. } => Requested::Enlist(ranker),
        ExperimentChange { retire: Some(id), .. } => Requested::Retire { id, reason: None },
        ExperimentChange { exclude: Some(Object(exclude)), .. } => {
            let ExcludeBody { units, hashes, reason } = exclude;
            Requested::Exclude(Excluded { units, hashes, reason })
        }
        ExperimentChange { status: Some(status), winner, .. } => {
            Requested::Status { status, winner }
        }
        ExperimentChange { interleaving: Some(method), .. } => {
            Requested::Interleaving(spec_bodies::interleaving(method)?)
        }
        ExperimentChange {
            description,
            owner,
            conclude_at,
            answer_window_seconds,
            coverage,
            ..
        } => {
            let conclude_at = conclude_at.map(|OrNever(at)| at);
            let change =
                SettingsChange { description, owner, answer_window_seconds, conclude_at, coverage };
            if change.is_empty() {
                let detail = "send `status`, `interleaving`, `control`, `enlist`, `retire`, \
                              `exclude`, or settings: `description`, `owner`, `conclude_at`, \
                              `answer_window_seconds`, `coverage`";
                return Err(invalid("", detail));
            }
            Requested::Settings(change)
        }
    })
}

/// Require that the body has at most one change.
fn require_one_change(body: &ExperimentChange) -> ApiResult<()> {
    if body.interleaving.is_some() && body.status.is_none() && body.winner.is_some() {
        return Err(invalid("/winner", "`winner` goes with the status `concluded` only"));
    }
    let settings = [
        ("/description", body.description.is_some()),
        ("/owner", body.owner.is_some()),
        ("/conclude_at", body.conclude_at.is_some()),
        ("/answer_window_seconds", body.answer_window_seconds.is_some()),
        ("/coverage", body.coverage.is_some()),
    ];
    let others = [
        ("/control", body.control.is_some()),
        ("/enlist", body.enlist.is_some()),
        ("/retire", body.retire.is_some()),
        ("/exclude", body.exclude.is_some()),
        ("/interleaving", body.interleaving.is_some()),
        ("/status", body.status.is_some() || body.winner.is_some()),
    ];
    let setting = settings.into_iter().find(|(_, present)| *present);
    let mut changes = setting.into_iter().chain(others).filter(|(_, present)| *present);
    match (changes.next(), changes.next()) {
        (Some((pointer, _)), Some(_)) => {
            let detail = format!("send `{}` alone, one change at a time", &pointer[1..]);
            Err(invalid(pointer, &detail))
        }
        _ => Ok(()),
    }
}

fn invalid(pointer: &str, detail: &str) -> Problem {
    Problem::invalid_at("change", pointer, detail)
}
