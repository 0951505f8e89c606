//! `/v1/experiments/{name}/next-duel`: the pair to interleave for the next query.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Object, OptionalBody};
use super::pages::{PageParts, PinBody, Repeats, SlotBody, page_request};
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, PathOf, Problem, ProblemKind};
use crate::clock::rfc3339;
use crate::engine::loaded::LoadedExperiment;
use crate::service::IssuedDuel;
use crate::service::Service;
use interleaving::Note;

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
    /// Whether both are one ranker: show it alone, nothing is to be learned, and no feedback is
    /// needed.
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
            state: issued.chosen_at,
            batch: issued.batch,
        }
    }
}

/// The rankings of all rankers, where the page is wanted with the duel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NextDuelBody {
    /// By ranker, the ids of its documents, best first; of every ranker of the experiment, `[]` for
    /// one that has none. At most 10,000 of 1 to 1024 bytes each.
    #[schema(nullable = false, example = json!({"bm25": ["doc-1", "doc-7"], "bm25-title": ["doc-7", "doc-3"]}))]
    rankings: Option<HashMap<String, Vec<String>>>,
    /// With `rankings`: slots of the page.
    #[schema(minimum = 1, maximum = 1000, example = 10, nullable = false)]
    length: Option<u32>,
    /// With `rankings`: slots before the page; 0 unless said otherwise.
    #[schema(maximum = 999, nullable = false)]
    offset: Option<u32>,
    /// With `rankings`: documents at fixed positions.
    #[schema(value_type = Option<Vec<PinBody>>, max_items = 100, nullable = false)]
    pinned: Option<Vec<Object<PinBody>>>,
}

/// A duel, and its page where rankings were sent.
#[derive(Debug, Serialize, ToSchema)]
struct DuelAnswer {
    /// The duel; with a page, its `duel_id` carries what crediting clicks needs, encrypted.
    #[serde(flatten)]
    duel: Duel,
    /// In the order they are to be shown; none where the list ends before this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    slots: Option<Vec<SlotBody>>,
    /// Slots that all pages together have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<usize>,
    /// Repeats that were dropped from the rankings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    repeats: Option<Repeats>,
    /// Whether clicks on the page can say anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    informative: Option<bool>,
    /// Version of the experiment's `interleaving` that the page was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    interleaving_version: Option<u32>,
    /// Something out of the ordinary, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<super::schemas::Note>, nullable = false)]
    note: Option<Note>,
}

impl DuelAnswer {
    fn with_page(duel: Duel, page: PageParts) -> Self {
        Self {
            duel,
            slots: Some(page.slots),
            total: Some(page.total),
            repeats: Some(page.repeats),
            informative: Some(page.informative),
            interleaving_version: Some(page.interleaving_version),
            note: page.note,
        }
    }
}

/// Ask for a duel
///
/// Chooses the two rankers to interleave for the next query, in random order. Reads memory only:
/// nothing is written, and a duel that is never shown or never answered costs nothing but its time.
/// A concluded experiment answers with a self-duel of its winner. When it is paused or the service
/// cannot be reached, show your control ranking.
///
/// With a body that has the rankings of all rankers, the two that were chosen are interleaved in
/// the same call.
#[utoipa::path(post, path = "/experiments/{name}/next-duel", tag = "duels", security(("key" = ["decide"])),
    params(("name" = String, Path, description = "The experiment's name.")),
    request_body(content = Option<NextDuelBody>),
    responses(
        (status = 200, body = DuelAnswer, description = "A duel; with its page where rankings were sent."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-paused` or `experiment-archived`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: a ranking is missing or too long, a page too far down, pins that cannot be."),
    ))]
async fn next_duel(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    OptionalBody(body): OptionalBody<NextDuelBody>,
) -> ApiResult<Response> {
    let NextDuelBody { rankings, length, offset, pinned } = body.unwrap_or_default();
    let refuse = |pointer, detail: &str| {
        Problem::new(
            ProblemKind::InvalidRequest,
            format!("The request is not as it should be: {detail}."),
        )
        .field(pointer, detail)
    };
    let Some(rankings) = rankings else {
        if length.is_some() || offset.is_some() || pinned.is_some() {
            return Err(refuse(
                "/rankings",
                "`length`, `offset` and `pinned` go with `rankings` only",
            ));
        }
        let issued = state.service.next_duel(&name).await?;
        return Ok(Json(Duel::new(&name, issued)).into_response());
    };
    let length = length
        .ok_or_else(|| refuse("/length", "`length` is missing: how many slots the page has"))?;
    let page = page_request(offset.unwrap_or(0), length, pinned.unwrap_or_default());
    let (issued, page) = state.service.next_page(&name, rankings, page).await?;
    let (duel_id, page) = PageParts::new(page);
    let duel = Duel { duel_id, ..Duel::new(&name, issued) };
    Ok(Json(DuelAnswer::with_page(duel, page)).into_response())
}

/// `next-duel` of an experiment in memory, without a body: it waits for nothing, so it is answered
/// without the way through the layers and the router. Everything else takes that way.
pub(crate) struct InMemoryDuels {
    service: Arc<Service>,
}

impl InMemoryDuels {
    /// What it is in the description of the API.
    pub const ROUTE: &str = "/v1/experiments/{name}/next-duel";

    /// The duels of this service.
    pub fn new(service: Arc<Service>) -> Self {
        Self { service }
    }

    /// Whether this is such a request, and of which experiment.
    pub fn experiment<'a>(&self, request: &'a Request) -> Option<&'a str> {
        if request.method() != Method::POST || request.body().size_hint().upper() != Some(0) {
            return None;
        }
        request.uri().path().strip_prefix("/v1/experiments/")?.strip_suffix("/next-duel")
    }

    /// Its experiment, if it is in memory; who asks keeps it there.
    pub fn in_memory(&self, name: &str) -> Option<Arc<LoadedExperiment>> {
        self.service.in_memory(name)
    }

    /// Its answer.
    pub fn answer(&self, loaded: &LoadedExperiment) -> Response {
        let issued = self.service.choose(loaded);
        issued
            .map_err(Problem::from)
            .map(|issued| Json(Duel::new(&loaded.name, issued)))
            .into_response()
    }
}
