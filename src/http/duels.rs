//! `/v1/experiments/{name}/next-duel`: the pair to interleave for the next query.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Method;
use axum::response::IntoResponse as _;
use hyper::body::Body as _;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::middleware::AtOnce;
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, PathOf, Problem};
use crate::clock::rfc3339;
use crate::experiment::IssuedDuel;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(next_duel))
}

/// A duel to show.
#[derive(Debug, Serialize, ToSchema)]
pub struct Duel {
    /// Its signed name; send it back with the feedback, unchanged.
    #[schema(example = "AQAAAAEqAwEBAAD_rQM...")]
    pub duel_id: String,
    /// The experiment's name.
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// Id of the ranker to show left (first).
    #[schema(example = "bm25-title")]
    pub left: String,
    /// Id of the ranker to show right (second).
    #[schema(example = "bm25")]
    pub right: String,
    /// Whether both are one ranker: show it alone, nothing is to be learned, and no feedback is needed.
    pub self_duel: bool,
    /// Feedback after that is refused.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// Log position that it was chosen at.
    pub state: u64,
    /// Number of the batch that it belongs to; `null` outside batches.
    pub batch: Option<u32>,
}

impl Duel {
    /// `issued` as the API shows it.
    pub fn new(experiment: &str, issued: IssuedDuel) -> Self {
        Self {
            duel_id: issued.duel_id,
            experiment: experiment.into(),
            left: issued.left,
            right: issued.right,
            self_duel: issued.self_duel,
            expires_at: rfc3339(issued.expires_at),
            state: issued.state,
            batch: issued.batch,
        }
    }
}

/// Ask for a duel
///
/// Chooses the two rankers to interleave for the next query, in random order. Reads memory only: nothing is written,
/// and a duel that is never shown or never answered costs nothing but its time. A concluded experiment answers with a
/// self-duel of its winner. When it is paused or the service cannot be reached, show your control ranking.
#[utoipa::path(post, path = "/experiments/{name}/next-duel", tag = "duels", security(("key" = ["decide"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = Duel, description = "A duel."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-paused` or `experiment-archived`."),
    ))]
async fn next_duel(State(state): State<AppState>, PathOf(name): PathOf<String>) -> ApiResult<Json<Duel>> {
    let issued = state.service.next_duel(&name).await?;
    Ok(Json(Duel::new(&name, issued)))
}

/// `next-duel` of an experiment in memory: it waits for nothing, so it is answered without the way through the layers
/// and the router. Everything else takes that way.
pub(super) fn at_once(state: &AppState) -> AtOnce {
    let service = Arc::clone(&state.service);
    Arc::new(move |request| {
        if request.method() != Method::POST || request.body().size_hint().upper() != Some(0) {
            return None;
        }
        let name = request.uri().path().strip_prefix("/v1/experiments/")?.strip_suffix("/next-duel")?;
        let issued = service.next_duel_from_memory(name)?;
        Some(issued.map_err(Problem::from).map(|issued| Json(Duel::new(name, issued))).into_response())
    })
}
