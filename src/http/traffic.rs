//! `/v1/experiments/{name}/traffic`: the duels and feedback of this server, and alarms.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::PathName;
use super::operations::Routes;
use super::problem::ApiResult;
use super::state::AppState;
use crate::service::answers::stored;
use crate::service::reports;
use crate::service::reports::alarms::{Alarm, SERVER_EVIDENCE};
use crate::service::reports::traffic::{Delays, FeedbackCounts};
use dueling_bandits::evidence::balance::{Cell, Kind};
use rankduel_engine::access::Scope;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::loaded::LoadedExperiment;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(routes!(traffic), Some(Scope::Read), &[])
}

/// The duels and feedback of one experiment on the responding server.
#[derive(Debug, Serialize, ToSchema)]
struct Traffic {
    experiment: String,
    /// Start of the counts: the time at which this server loaded the experiment.
    #[schema(format = DateTime)]
    since: String,
    /// Duels of two different rankers issued.
    pairs: u64,
    self_duels: u64,
    /// Pages that showed the control to somebody who takes no part.
    outside: u64,
    /// Duels of two different rankers that are neither answered nor expired. Clicks are no answers
    /// where orders decide.
    in_flight: u64,
    /// Duels of two different rankers whose time is over and that have no feedback. Counted a
    /// minute after they expire. `null` where orders decide.
    unanswered: Option<u64>,
    feedback: FeedbackCounts,
    /// When feedback last came to this server, or another one took an answer of a duel of this one.
    #[schema(format = DateTime)]
    last_feedback_at: Option<String>,
    delay: Delays,
    sides: Sides,
    answers: Answers,
    /// `null` without `alone`.
    alone: Option<Alone>,
    /// Those that this server sees, and those of the answer: of other servers, and of this one
    /// before a restart.
    alarms: Vec<Alarm>,
}

/// Units that see one ranker alone, over the whole log, by a fair coin: each arm should have as
/// many.
#[derive(Debug, Serialize, ToSchema)]
struct Alone {
    planned: f64,
    /// Units that got a page: of the leader, and of the control.
    issued: [u64; 2],
    /// Units that answered within the answer window, once it is over.
    answered: [u64; 2],
}

/// Wins of each side of the page. A coin decides which ranker is left, so both sides should win
/// equally often.
#[derive(Debug, Serialize, ToSchema)]
struct Sides {
    left: u64,
    right: u64,
    /// `null` before the first win.
    left_share: Option<f64>,
}

/// The sample-ratio check for adaptive allocation: the share of duels with feedback should be the
/// same for every pair and on both sides. Where this server interleaves pages, `evidence` and
/// `worst` ask for the page in place of feedback, because pages without a click may go unreported.
/// Covers the duels that this server issued and whose time is over.
#[derive(Debug, Serialize, ToSchema)]
struct Answers {
    /// Duels whose time is over.
    ended: u64,
    /// `null` while there are none.
    answered_share: Option<f64>,
    /// The largest evidence so far that feedback is not missing equally often. If nothing is wrong,
    /// it ever reaches `c` with probability 1/`c` at most, however often you look.
    evidence: f64,
    /// The evidence that raises the alarm `uneven-answers`.
    evidence_needed: f64,
    /// `null` while none is missing.
    worst: Option<WorstAnswers>,
}

/// The duels that lack most feedback.
#[derive(Debug, Serialize, ToSchema)]
struct WorstAnswers {
    /// With `by` `side`, the left one first.
    rankers: [String; 2],
    /// `pair`, compared with all other pairs; or `side`, compared with the same pair and its sides
    /// swapped.
    #[schema(example = "pair")]
    by: &'static str,
    /// Share of these duels with feedback, or with a page.
    answered_share: Option<f64>,
    /// Share of the duels that they are compared with; `null` if there are none.
    others_share: Option<f64>,
}

/// Duels and feedback of this server
///
/// Counts of the responding server only, since it loaded the experiment, and alarms. `sides` and
/// `alone` cover the whole log.
#[utoipa::path(get, path = "/v1/experiments/{name}/traffic", tag = "results",
    responses(
        (status = 200, body = Traffic, description = "The traffic."),
    ))]
async fn traffic(
    State(state): State<AppState>,
    PathName(name): PathName,
) -> ApiResult<Json<Traffic>> {
    let loaded = state.service.experiment(&name).await?;
    let (summary, alarms) = reports::alarms::traffic(&state.service, &loaded).await?;
    let [left, right, ..] = loaded.fold()?.state().counts.shown;
    let id = |ranker: u16| loaded.spec.rankers[usize::from(ranker)].id.clone();
    let counts = &summary.counts;
    Ok(Json(Traffic {
        experiment: name,
        since: rfc3339(counts.since_ms),
        pairs: counts.pairs,
        self_duels: counts.self_duels,
        outside: counts.outside,
        in_flight: summary.in_flight,
        unanswered: summary.unanswered(),
        feedback: summary.feedback(),
        last_feedback_at: counts.last_feedback_ms.map(rfc3339),
        delay: summary.delay(),
        sides: Sides {
            left,
            right,
            left_share: (left + right > 0).then(|| left as f64 / (left + right) as f64),
        },
        answers: Answers {
            ended: counts.ended.total.issued,
            answered_share: summary.answered_share(),
            evidence: counts.ended.evidence,
            evidence_needed: SERVER_EVIDENCE,
            worst: counts.ended.worst.map(|worst| WorstAnswers {
                rankers: [id(worst.pair.0), id(worst.pair.1)],
                by: match worst.kind {
                    Kind::Pairs => "pair",
                    Kind::Sides => "side",
                },
                answered_share: share(worst.cell),
                others_share: share(worst.others),
            }),
        },
        alone: summary.alone.map(|[issued, answered]| Alone {
            planned: loaded.spec.alone,
            issued: issued.units(),
            answered: answered.units(),
        }),
        alarms: with_stored(&loaded, alarms),
    }))
}

fn with_stored(loaded: &LoadedExperiment, mut alarms: Vec<Alarm>) -> Vec<Alarm> {
    for seen in loaded.with_record(stored).map(|answer| answer.alarms).unwrap_or_default() {
        // every server sees the others itself
        if let Some(kind) = seen.known().filter(|kind| kind.is_of_one_server())
            && alarms.iter().all(|alarm| alarm.kind != kind.slug)
        {
            alarms.push(kind.alarm(seen.detail));
        }
    }
    alarms
}

fn share(Cell { issued, answered }: Cell) -> Option<f64> {
    (issued > 0).then(|| answered as f64 / issued as f64)
}
