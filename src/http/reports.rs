//! The results of an experiment: standings, cost, statistics, segments, verdict, claims, winners.
//!
//! A report is a function of the log, so its `ETag` is the log position with the parameters of the
//! request: a request with that tag in `If-None-Match` gets 304 until the log has a new entry. If a
//! new report does not come in time, the last one is sent, with its `Age`.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use utoipa_axum::routes;

use super::conditional::{tagged, unchanged};
use super::extract::{PathName, QueryOf};
use super::operations::Routes;
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::answers;
use crate::service::error::ServiceError;
use crate::service::reports::claims::{self, Claims};
use crate::service::reports::pool::ReportPool;
use crate::service::reports::regret::{self, RegretReport};
use crate::service::reports::segments::{self, SegmentsReport};
use crate::service::reports::single_flight::Computed;
use crate::service::reports::standings::{self, Standings};
use crate::service::reports::statistics::{self, Statistics};
use crate::service::reports::verdict::{self, requested_target};
use crate::service::reports::verdict_report::{Verdict, VerdictParameters};
use crate::service::reports::winners::{self, Winners};
use dueling_bandits::evidence::Target;
use rankduel_engine::access::Scope;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::loaded::LoadedExperiment;

const READ: Option<Scope> = Some(Scope::Read);

pub(crate) fn routes() -> Routes {
    Routes::new()
        .operation(routes!(standings), READ, &[])
        .operation(routes!(regret), READ, &[])
        .operation(routes!(statistics), READ, &[])
        .operation(routes!(segments), READ, &[])
        .operation(routes!(verdict), READ, &[])
        .operation(routes!(claims), READ, &[])
        .operation(routes!(winners), READ, &[])
}

/// The experiment that a request asks for a report of; an extractor.
struct Asked {
    state: AppState,
    loaded: Arc<LoadedExperiment>,
    headers: HeaderMap,
}

impl FromRequestParts<AppState> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        let PathName(name) = PathName::from_request_parts(parts, state).await?;
        let loaded = state.service.experiment(&name).await?;
        Ok(Self { state: state.clone(), loaded, headers: parts.headers.clone() })
    }
}

impl Asked {
    /// The response with a report, or 304 if the caller has it. `tag` is a function of the log
    /// position of a report, and of the report if it is not the one of now.
    async fn respond<T: Serialize + Send + Sync + 'static>(
        &self,
        tag: impl Fn(u64, Option<&T>) -> String,
        report: impl AsyncFnOnce(
            &Arc<ReportPool>,
            &Arc<LoadedExperiment>,
        ) -> Result<Arc<Computed<T>>, ServiceError>,
    ) -> ApiResult<Response> {
        let current = self.loaded.fold()?.state().position;
        if let Some(unchanged) = unchanged(&self.headers, &tag(current, None)) {
            return Ok(unchanged);
        }
        let report = report(&self.state.service.reports, &self.loaded).await?;
        let position = report.position;
        let own = tag(position, Some(&report));
        let is_old = position < current || own != tag(position, None);
        tagged(&self.state, &own, report, is_old).await
    }
}

/// The tag of a report without parameters.
fn by_position<T>(position: u64, _: Option<&T>) -> String {
    position.to_string()
}

/// The tag of a report of the ranker with this index, or without one.
fn by_ranker<T>(ranker: Option<usize>) -> impl Fn(u64, Option<&T>) -> String {
    move |position, _| match ranker {
        Some(ranker) => format!("{position}-{ranker}"),
        None => position.to_string(),
    }
}

/// Counts, scores and leaders
#[utoipa::path(get, path = "/v1/experiments/{name}/standings", tag = "results",
    responses(
        (status = 200, body = Standings, description = "The standings.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn standings(asked: Asked) -> ApiResult<Response> {
    asked.respond(by_position, standings::standings).await
}

/// Cost of exploration
///
/// The true preferences of a live experiment are unknown, so every number is an estimate of the
/// cost of the logged duels. The plug-in estimate uses the scores of the current win rates, the
/// posterior estimate those of many draws of the preferences. For comparison, both estimate the
/// cost of uniform pairs over the same number of steps.
#[utoipa::path(get, path = "/v1/experiments/{name}/regret", tag = "results",
    responses(
        (status = 200, body = RegretReport, description = "The estimates.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn regret(asked: Asked) -> ApiResult<Response> {
    asked.respond(by_position, regret::regret).await
}

/// The ranker of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RankerQuery {
    /// Id of a ranker.
    #[param(nullable = false)]
    ranker: Option<String>,
}

/// Results of interleaved pages
///
/// For each version of the method and each pair: wins, losses, ties, pages without a signal, and Δ;
/// and alarms. A version has at most 1000 pairs, those with most pages; `ranker` selects the pairs
/// of one ranker.
#[utoipa::path(get, path = "/v1/experiments/{name}/statistics", tag = "results",
    params(RankerQuery),
    responses(
        (status = 200, body = Statistics, description = "The statistics.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn statistics(QueryOf(query): QueryOf<RankerQuery>, asked: Asked) -> ApiResult<Response> {
    let ranker = queried_ranker(&asked.loaded.spec, query.ranker.as_deref())?;
    let of = async |reports: &_, loaded: &_| statistics::statistics(reports, loaded, ranker).await;
    asked.respond(by_ranker(ranker), of).await
}

/// Results of one ranker in each declared segment
///
/// By default of the winner of a concluded experiment, else of the leader. As for the verdict, only
/// answers of complete cohorts count, and of each unit the first.
#[utoipa::path(get, path = "/v1/experiments/{name}/segments", tag = "results",
    params(RankerQuery),
    responses(
        (status = 200, body = SegmentsReport, description = "The results.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn segments(QueryOf(query): QueryOf<RankerQuery>, asked: Asked) -> ApiResult<Response> {
    let ranker = queried_ranker(&asked.loaded.spec, query.ranker.as_deref())?;
    let of = async |reports: &_, loaded: &_| segments::segments(reports, loaded, ranker).await;
    asked.respond(by_ranker(ranker), of).await
}

/// Index of the ranker that the parameter `ranker` of a query names; an error if the experiment has
/// no such ranker.
fn queried_ranker(spec: &ExperimentSpec, id: Option<&str>) -> ApiResult<Option<usize>> {
    let Some(id) = id else { return Ok(None) };
    match spec.ranker_index(id) {
        Some(index) => Ok(Some(index)),
        None => {
            let detail = format!("`ranker` is {id:?}, and the experiment has no such ranker");
            Err(Problem::invalid(&detail).query("ranker", detail))
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct VerdictQuery {
    /// By default that at which the experiment concludes automatically, else 0.95.
    #[param(minimum = 0.5, maximum = 0.9999, nullable = false)]
    confidence: Option<f64>,
    /// By default that at which the experiment concludes automatically, else 0.01.
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
    params(VerdictQuery),
    responses(
        (status = 200, body = Verdict, description = "The verdict.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn verdict(QueryOf(query): QueryOf<VerdictQuery>, asked: Asked) -> ApiResult<Response> {
    let target = requested_target(&asked.loaded, query.confidence, query.margin)
        .map_err(|(name, detail)| Problem::invalid(&detail).query(name, detail))?;
    let answer = answers::current(&asked.state.service, &asked.loaded).await?;
    let now = VerdictParameters::of(&asked.loaded, target, &answer);
    let tag = |position: u64, verdict: Option<&Verdict>| {
        let of = verdict.map_or(now, |verdict| verdict.of);
        let Target { confidence, margin } = target;
        format!("{position}-{}-{:x}-{confidence}-{margin}", of.version, of.revision)
    };
    let of = async |reports: &_, loaded: &_| verdict::verdict(reports, loaded, now, &answer).await;
    asked.respond(tag, of).await
}

/// Claims, each with its error
///
/// The verdict, and for each other ranker whether it is better, not worse, or worse than the
/// control. A decided claim stays decided.
#[utoipa::path(get, path = "/v1/experiments/{name}/claims", tag = "results",
    responses(
        (status = 200, body = Claims, description = "The claims.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn claims(asked: Asked) -> ApiResult<Response> {
    asked.respond(by_position, claims::claims).await
}

/// Winners under other definitions of the best ranker
///
/// The Copeland, Condorcet, Borda, random walk and von Neumann winners side by side, from the
/// current win rates, with a note if they disagree. Estimates only; `/verdict` has the certified
/// winners.
#[utoipa::path(get, path = "/v1/experiments/{name}/winners", tag = "results",
    responses(
        (status = 200, body = Winners, description = "The winners.", headers(("etag" = String))),
        (status = 304, description = "Unchanged."),
    ))]
async fn winners(asked: Asked) -> ApiResult<Response> {
    asked.respond(by_position, winners::winners).await
}
