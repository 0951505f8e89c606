//! `PATCH /v1/experiments/{name}`: change an experiment.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::de::IgnoredAny;

use super::representation::Experiment;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::conditional::expected_version;
use crate::http::extract::{JsonText, PathName, json};
use crate::http::problem::{ApiResult, Problem, ProblemKind};
use crate::service::{self, Service};
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::Patch;
use rankduel_engine::loaded::LoadedExperiment;

/// Change an experiment
///
/// Pauses, resumes or concludes the experiment, changes its interleaving or settings, names the
/// control, adds or retires a ranker, or excludes units. All members of a request change together.
///
/// Excluding units folds the log anew without their answers. The policy takes an added or retired
/// ranker into account from the next duel on, and all counts are kept.
#[utoipa::path(patch, path = "/v1/experiments/{name}", tag = "experiments", request_body = Patch,
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
    text: JsonText,
) -> ApiResult<Response> {
    let expected = expected_version(&headers)?.ok_or_else(|| {
        Problem::new(
            ProblemKind::PreconditionRequired,
            "Send `If-Match` with the experiment's `ETag` as you read it, or `If-Match: *` to change any version.",
        )
    })?;
    let (version, by) = (expected.version(), caller.actor());
    let patch = text.read(read).await?;
    let loaded = change_experiment(&state.service, &name, version, &patch, &by).await?;
    Ok(Experiment::of(&loaded).into_response(StatusCode::OK))
}

/// Read a change. A `null` beside other members is refused: who sends it wants a setting removed.
fn read(bytes: &[u8]) -> Result<Patch, Problem> {
    let patch = json(bytes)?;
    let members: BTreeMap<String, Option<IgnoredAny>> = json(bytes)?;
    match members.iter().find(|(_, value)| value.is_none()) {
        None => Ok(patch),
        Some((name, _)) => {
            let detail = format!("`{name}` is `null`, which changes nothing; leave it out");
            Err(Problem::invalid_at("change", format!("/{name}"), detail))
        }
    }
}

/// Make the change of a body, if the experiment is at `version` (`None` for any version).
pub(crate) async fn change_experiment(
    service: &Service,
    name: &str,
    version: Option<u64>,
    patch: &Patch,
    by: &Actor,
) -> ApiResult<Arc<LoadedExperiment>> {
    require_change(patch)?;
    Ok(service::change::change(service, name, version, patch, by).await?)
}

/// Check a change without making it.
pub(crate) fn check_change(
    service: &Service,
    loaded: &LoadedExperiment,
    patch: &Patch,
) -> ApiResult<()> {
    require_change(patch)?;
    Ok(service::change::check(service, loaded, patch)?)
}

/// Require that the body asks for something.
fn require_change(patch: &Patch) -> ApiResult<()> {
    if !patch.is_empty() {
        return Ok(());
    }
    let detail = "send `status`, `winner`, `interleaving`, `control`, `enlist`, `retire`, \
                  `exclude`, `description`, `owner`, `conclude_at`, `answer_window_seconds` or \
                  `coverage`";
    Err(Problem::invalid_at("change", "", detail))
}
