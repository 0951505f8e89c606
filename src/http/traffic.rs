//! `/v1/experiments/{name}/traffic`: what passes through this server, and whether anything looks
//! wrong with it.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::ProblemDocument;
use super::{ApiResult, AppState, PathOf};
use crate::clock::rfc3339;
use crate::service::reports::alarms::Alarm;
use crate::service::reports::traffic::{Delays, FeedbackCounts};

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(traffic))
}

/// What passed through the answering server for an experiment.
#[derive(Debug, Serialize, ToSchema)]
struct Traffic {
    /// The experiment's name.
    experiment: String,
    /// From when on it was counted: when this server loaded the experiment.
    #[schema(format = DateTime)]
    since: String,
    /// Pairs handed out.
    pairs: u64,
    /// Rankers handed out alone.
    self_duels: u64,
    /// Pairs out: neither answered nor expired.
    in_flight: u64,
    /// Pairs that had their time and were not answered.
    unanswered: u64,
    /// Feedback by what came of it.
    feedback: FeedbackCounts,
    /// How long answers take.
    delay: Delays,
    /// Which side of the page wins, over the whole log.
    sides: Sides,
    /// Whether answers come back as often whichever rankers are on the page.
    answers: Answers,
    /// What looks wrong, with the likely cause and what to do.
    alarms: Vec<Alarm>,
}

/// Which side of the page wins. A coin decides which ranker is left, so both should win equally
/// often.
#[derive(Debug, Serialize, ToSchema)]
struct Sides {
    /// Pages on which the left ranker won.
    left: u64,
    /// Pages on which the right ranker won.
    right: u64,
    /// Share of the left among both; `null` before the first.
    left_share: Option<f64>,
}

/// The sample-ratio check for allocation that adapts: shown counts differ on purpose, but a duel
/// that was shown should be answered as often whichever rankers are on it. Of the duels that this
/// server handed out and that had their time.
#[derive(Debug, Serialize, ToSchema)]
struct Answers {
    /// Share of duels that were answered; `null` before the first that had its time.
    answered_share: Option<f64>,
    /// Chance of answers as uneven over pairs if nothing is wrong (Pearson's chi-squared test);
    /// `null` while there is too little to say.
    p_value: Option<f64>,
    /// Ids of the pair whose answers go missing most, where there is a `p_value`.
    worst: Option<[String; 2]>,
    /// Its share of answered duels.
    worst_share: Option<f64>,
}

/// What passes through this server
///
/// Counts of the answering server alone, since it loaded the experiment, and alarms; the sides are
/// of the whole log.
#[utoipa::path(get, path = "/experiments/{name}/traffic", tag = "results", security(("key" = ["read"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Traffic, description = "The traffic."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
    ))]
async fn traffic(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<Traffic>> {
    let loaded = state.service.experiment(&name).await?;
    let (summary, alarms) = state.service.traffic(&loaded)?;
    let [left, right, ..] = loaded.fold()?.counts().shown;
    let id = |ranker: u16| loaded.spec.rankers[usize::from(ranker)].id.clone();
    Ok(Json(Traffic {
        experiment: name,
        since: rfc3339(summary.since_ms),
        pairs: summary.pairs,
        self_duels: summary.self_duels,
        in_flight: summary.in_flight,
        unanswered: summary.unanswered,
        feedback: summary.feedback,
        delay: summary.delay,
        sides: Sides {
            left,
            right,
            left_share: (left + right > 0).then(|| left as f64 / (left + right) as f64),
        },
        answers: Answers {
            answered_share: summary.even.answered_share,
            p_value: summary.even.test.map(|test| test.p_value),
            worst: summary.even.test.map(|test| [id(test.worst.0), id(test.worst.1)]),
            worst_share: summary.even.test.map(|test| test.worst_share),
        },
        alarms,
    }))
}
