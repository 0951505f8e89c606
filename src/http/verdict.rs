//! `/v1/experiments/{name}/verdict` and `/winners`: who is best, and how sure that is.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::ProblemDocument;
use super::standings::{tagged, unchanged};
use super::{ApiResult, AppState, PathOf, Problem, ProblemKind, QueryOf};
use crate::service::reports::verdict::Verdict;
use crate::service::reports::winners::Winners;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(verdict)).routes(routes!(winners))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VerdictQuery {
    /// How sure the verdict must be, 0.5 to 0.9999; unless said otherwise the confidence at which
    /// the experiment concludes by itself, else 0.95.
    #[param(minimum = 0.5, maximum = 0.9999, nullable = false)]
    confidence: Option<f64>,
}

/// Who is best, and how sure that is
///
/// `winners` and `possible` rest on confidence intervals that hold at every moment at once: look as
/// often as you like, and stop when you like. The probabilities are the posterior's, which assumes
/// that every preference is equally likely beforehand; they say more, earlier, and promise less.
/// The same for the same log position on every replica.
#[utoipa::path(get, path = "/experiments/{name}/verdict", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        VerdictQuery,
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = Verdict, description = "The verdict.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: a confidence out of its range."),
    ))]
async fn verdict(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<VerdictQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    let confidence = loaded.verdict_confidence(query.confidence).map_err(|detail| {
        Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).query("confidence", detail)
    })?;
    let version = loaded.with_record(|record| record.version);
    let tag = |position: u64| format!("{position}-{version}-{confidence}");
    if let Some(unchanged) = unchanged(&headers, &tag(loaded.fold()?.position())) {
        return Ok(unchanged);
    }
    let verdict = state.service.verdict(&loaded, confidence).await?;
    Ok(tagged(&tag(verdict.position), &*verdict))
}

/// Who is best under other notions of best
///
/// Copeland, Condorcet, Borda, random walk and von Neumann side by side, from today's win rates,
/// with a note where they disagree. Estimates: who is certain is the verdict's business.
#[utoipa::path(get, path = "/experiments/{name}/winners", tag = "results", security(("key" = ["read"])),
    params(
        ("name" = String, Path, description = "The experiment's name."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the answer that the caller has."),
    ),
    responses(
        (status = 200, body = Winners, description = "The winners.", headers(("etag" = String))),
        (status = 304, description = "Nothing new."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
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
    Ok(tagged(&winners.position.to_string(), &*winners))
}
