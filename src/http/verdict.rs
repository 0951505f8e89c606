//! `/v1/experiments/{name}/verdict` and `/winners`: the best ranker.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::etag::{tagged, unchanged};
use super::extract::{PathOf, QueryOf};
use super::operation::Access;
use super::problem::{ApiResult, Problem, ProblemKind};
use super::routes::Routes;
use super::state::AppState;
use crate::access::Scope;
use crate::service::reports::verdict::{Verdict, requested_target};
use crate::service::reports::winners::Winners;

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(verdict), read, problems).operation(
        routes!(winners),
        read,
        problems,
    )
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VerdictQuery {
    /// Confidence of the verdict, 0.5 to 0.9999. The default is the confidence at which the
    /// experiment concludes automatically, else 0.95.
    #[param(minimum = 0.5, maximum = 0.9999, nullable = false)]
    confidence: Option<f64>,
    /// Margin of the verdict, 0 to 0.2. The default is the margin at which the experiment concludes
    /// automatically, else 0.01.
    #[param(minimum = 0.0, maximum = 0.2, nullable = false)]
    margin: Option<f64>,
}

/// The best ranker, with its confidence
///
/// `winners` is correct with the stated confidence however often you read it, and whenever you
/// stop. The probabilities come from the posterior, under a prior over the preferences; they are
/// informative earlier, but give a weaker guarantee. Every replica returns the same verdict for the
/// same log position, except for `duels_to_go`, which is simulated.
#[utoipa::path(get, path = "/v1/experiments/{name}/verdict", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        VerdictQuery,
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Verdict, description = "The verdict.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn verdict(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<VerdictQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    let target = requested_target(&loaded, query.confidence, query.margin)
        .map_err(|(name, detail)| Problem::invalid(&detail).query(name, detail))?;
    let version = loaded.with_record(|record| record.version);
    let tag =
        |position: u64| format!("{position}-{version}-{}-{}", target.confidence, target.margin);
    if let Some(unchanged) = unchanged(&headers, &tag(loaded.fold()?.position())) {
        return Ok(unchanged);
    }
    let verdict = state.service.verdict(&loaded, target).await?;
    tagged(&state, &headers, &tag(verdict.position), verdict).await
}

/// Winners under other definitions of the best ranker
///
/// The Copeland, Condorcet, Borda, random walk and von Neumann winners side by side, from the
/// current win rates, with a note if they disagree. Estimates only; `/verdict` has the certified
/// winners.
#[utoipa::path(get, path = "/v1/experiments/{name}/winners", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Winners, description = "The winners.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn winners(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    if let Some(unchanged) = unchanged(&headers, &loaded.fold()?.position().to_string()) {
        return Ok(unchanged);
    }
    let winners = state.service.winners(&loaded).await?;
    tagged(&state, &headers, &winners.position.to_string(), winners).await
}
