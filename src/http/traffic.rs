//! `/v1/experiments/{name}/traffic`: the duels and feedback of this server, and alarms.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::PathOf;
use super::operation::Access;
use super::problem::{ApiResult, ProblemKind};
use super::routes::Routes;
use super::state::AppState;
use crate::access::Scope;
use crate::clock::rfc3339;
use crate::service::reports::alarms::Alarm;
use crate::service::reports::traffic::{Delays, FeedbackCounts};

pub(crate) fn routes() -> Routes {
    let (read, problems) = (Access::Scope(Scope::Read), &[ProblemKind::ExperimentNotFound]);
    Routes::new().operation(routes!(traffic), read, problems)
}

/// The duels and feedback of one experiment on the responding server.
#[derive(Debug, Serialize, ToSchema)]
struct Traffic {
    /// Name of the experiment.
    experiment: String,
    /// Start of the counts: the time at which this server loaded the experiment.
    #[schema(format = DateTime)]
    since: String,
    /// Duels of two different rankers issued.
    pairs: u64,
    /// Self-duels issued.
    self_duels: u64,
    /// Duels of two different rankers that are neither answered nor expired.
    in_flight: u64,
    /// Duels of two different rankers that expired without feedback.
    unanswered: u64,
    /// Feedback by its result.
    feedback: FeedbackCounts,
    /// Time from issuing a duel to its feedback.
    delay: Delays,
    /// Wins of each side of the page, over the whole log.
    sides: Sides,
    /// Whether the share of duels with feedback is the same for every pair.
    answers: Answers,
    /// Active alarms, each with its likely cause and what to do.
    alarms: Vec<Alarm>,
}

/// Wins of each side of the page. A coin decides which ranker is left, so both sides should win
/// equally often.
#[derive(Debug, Serialize, ToSchema)]
struct Sides {
    /// Pages on which the left ranker won.
    left: u64,
    /// Pages on which the right ranker won.
    right: u64,
    /// Share of the left side's wins; `null` before the first win.
    left_share: Option<f64>,
}

/// The sample-ratio check for adaptive allocation. Pairs are shown differently often on purpose,
/// but the share of duels with feedback should be the same for every pair. Covers the duels issued
/// by this server that have feedback or have expired.
#[derive(Debug, Serialize, ToSchema)]
struct Answers {
    /// Share of duels with feedback; `null` while there are no such duels.
    answered_share: Option<f64>,
    /// Probability of shares at least this uneven if nothing is wrong (Pearson's chi-squared test);
    /// `null` while there is too little data.
    p_value: Option<f64>,
    /// Ids of the pair with the most missing feedback, if there is a `p_value`.
    worst: Option<[String; 2]>,
    /// Share of that pair's duels with feedback.
    worst_share: Option<f64>,
}

/// Duels and feedback of this server
///
/// Counts of the responding server only, since it loaded the experiment, and alarms. `sides` covers
/// the whole log.
#[utoipa::path(get, path = "/v1/experiments/{name}/traffic", tag = "results",
    params(("name" = String, Path, description = "Name of the experiment.")),
    responses(
        (status = 200, body = Traffic, description = "The traffic."),
    ))]
async fn traffic(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
) -> ApiResult<Json<Traffic>> {
    let loaded = state.service.experiment(&name).await?;
    let (summary, alarms) = state.service.traffic(&loaded).await?;
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
