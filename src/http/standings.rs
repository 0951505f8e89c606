//! `/v1/experiments/{name}/standings` and `/regret`.

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
use crate::service::reports::regret::RegretReport;
use crate::service::reports::standings::{Rows, Standings};

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(standings), read, problems).operation(
        routes!(regret),
        read,
        problems,
    )
}

/// Rows of the matrices.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RowsQuery {
    /// Index of the ranker of the first row of `wins` and `ties`; 0 by default.
    #[param(minimum = 0, maximum = 1023, nullable = false)]
    offset: Option<usize>,
    /// Most rows, 1 to 256; 256 by default.
    #[param(minimum = 1, maximum = 256, nullable = false)]
    limit: Option<usize>,
}

impl RowsQuery {
    fn rows(&self, rankers: usize) -> ApiResult<Rows> {
        let rows =
            Rows { offset: self.offset.unwrap_or(0), limit: self.limit.unwrap_or(Rows::MAX) };
        let wrong = |name: &str, detail: String| Err(Problem::invalid(&detail).query(name, detail));
        if rows.offset >= rankers {
            let (offset, last) = (rows.offset, rankers - 1);
            return wrong("offset", format!("`offset` is {offset}; it must be 0 to {last}"));
        }
        if !(1..=Rows::MAX).contains(&rows.limit) {
            let (limit, most) = (rows.limit, Rows::MAX);
            return wrong("limit", format!("`limit` is {limit}; it must be 1 to {most}"));
        }
        Ok(rows)
    }
}

/// Counts, scores and leaders
///
/// The `ETag` has the log position: a request with it in `If-None-Match` gets 304 until the log has
/// a new entry. The matrices have a row for each of at most 256 rankers; for more rankers, select
/// them with `offset` and `limit`.
#[utoipa::path(get, path = "/v1/experiments/{name}/standings", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        RowsQuery,
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = Standings, description = "The standings.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn standings(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    QueryOf(query): QueryOf<RowsQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    let rows = query.rows(loaded.spec.rankers.len())?;
    let tag = |position: u64| match rows {
        Rows::FIRST => position.to_string(),
        Rows { offset, limit } => format!("{position}-{offset}-{limit}"),
    };
    if let Some(unchanged) = unchanged(&headers, &tag(loaded.fold()?.position())) {
        return Ok(unchanged);
    }
    let standings = state.service.standings(&loaded, rows).await?;
    tagged(&state, &headers, &tag(standings.position), standings).await
}

/// Cost of exploration
///
/// The true preferences of a live experiment are unknown, so every number is an estimate of the
/// cost of the logged duels. The plug-in estimate uses the scores of the current win rates. The
/// posterior estimate uses the scores of many draws of the preferences from their posterior, and is
/// given as mean and the range of 95 % of the draws. For comparison, both estimate the cost of
/// uniform pairs over the same number of steps. Duels without feedback are not included.
#[utoipa::path(get, path = "/v1/experiments/{name}/regret", tag = "results",
    params(
        ("name" = String, Path, description = "Name of the experiment."),
        ("if-none-match" = Option<String>, Header, description = "`ETag` of the response that the caller has."),
    ),
    responses(
        (status = 200, body = RegretReport, description = "The estimates.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn regret(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let loaded = state.service.experiment(&name).await?;
    if let Some(unchanged) = unchanged(&headers, &loaded.fold()?.position().to_string()) {
        return Ok(unchanged);
    }
    let regret = state.service.regret_report(&loaded).await?;
    tagged(&state, &headers, &regret.plug_in.position.to_string(), regret).await
}
