//! `/v1/experiments/{name}/interleave`: two rankings become one page.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Object;
use super::problem::ProblemDocument;
use super::{ApiResult, AppState, JsonBody, PathOf};
use crate::clock::rfc3339;
use crate::service::pages::IssuedPage;
use crate::service::pages::PageRequest;
use interleaving::{Note, Pin};

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(interleave))
}

/// Two rankings to interleave.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct InterleaveBody {
    /// As `next-duel` gave it; for later pages, as the first page gave it.
    duel_id: String,
    /// Ids of the left ranker's documents, best first, at most 10,000 of 1 to 1024 bytes. Of an id
    /// that comes twice the first counts.
    #[schema(max_items = 10_000)]
    left: Vec<String>,
    /// The right ranker's. Of a self-duel only the left ranking is shown, and this one may be left
    /// out.
    #[schema(max_items = 10_000, nullable = false)]
    right: Option<Vec<String>>,
    /// Slots of this page; `offset` and `length` together reach 1000 at most.
    #[schema(minimum = 1, maximum = 1000, example = 10)]
    length: u32,
    /// Slots before this page; 0 unless said otherwise.
    #[serde(default)]
    #[schema(maximum = 999)]
    offset: u32,
    /// Documents at fixed positions, such as advertisements: at most 100.
    #[serde(default)]
    #[schema(value_type = Vec<PinBody>, max_items = 100)]
    pinned: Vec<Object<PinBody>>,
}

/// A document at a fixed position. It is taken out of both rankings and earns nobody credit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PinBody {
    /// Its id; it need not be in the rankings.
    document: String,
    /// Position in the shown list, from 0 on the first page.
    #[schema(maximum = 999)]
    position: u32,
}

/// Part of the shown list, as it is asked for.
pub(crate) fn page_request(offset: u32, length: u32, pinned: Vec<Object<PinBody>>) -> PageRequest {
    let wide = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let pin = |Object(PinBody { document, position })| Pin { document, position: wide(position) };
    PageRequest {
        offset: wide(offset),
        length: wide(length),
        pinned: pinned.into_iter().map(pin).collect(),
    }
}

/// One slot of a page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SlotBody {
    /// Position in the shown list, from 0 on the first page.
    position: usize,
    /// The document's id.
    #[schema(example = "doc-7")]
    document: String,
    /// Names the slot in feedback. It says nothing about whose slot it is.
    #[schema(example = "q3hX0cJmTt2b")]
    token: String,
}

/// What a page says of itself.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageParts {
    /// In the order they are to be shown; none where the list ends before this page.
    pub slots: Vec<SlotBody>,
    /// Slots that all pages together have.
    pub total: usize,
    /// Repeats that were dropped from the rankings.
    pub repeats: Repeats,
    /// Whether clicks on the page can say anything: not where both rankings are the same down to
    /// its end, or one ranker is shown alone.
    pub informative: bool,
    /// Version of the experiment's `interleaving` that the page was made with.
    pub interleaving_version: u32,
    /// Something out of the ordinary, where there is something.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<super::schemas::Note>, nullable = false)]
    pub note: Option<Note>,
}

/// Documents that a ranking named again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Repeats {
    /// In the left ranking.
    left: usize,
    /// In the right ranking.
    right: usize,
}

impl PageParts {
    /// `issued` as the API shows it, and its name.
    pub fn new(issued: IssuedPage) -> (String, Self) {
        let slots = issued.slots.into_iter().map(|slot| SlotBody {
            position: slot.position,
            document: slot.document,
            token: slot.token,
        });
        let [left, right] = issued.repeats;
        let parts = Self {
            slots: slots.collect(),
            total: issued.total,
            repeats: Repeats { left, right },
            informative: issued.informative,
            interleaving_version: issued.method,
            note: issued.note,
        };
        (issued.duel_id, parts)
    }
}

/// A page to show.
#[derive(Debug, Serialize, ToSchema)]
struct InterleavedPage {
    /// The duel's signed name, with all that crediting clicks needs, encrypted; send it back with
    /// the clicks.
    #[schema(example = "AgAAAAEqAwEBAAD_rQM...")]
    duel_id: String,
    /// The experiment's name.
    #[schema(example = "search-ranking")]
    experiment: String,
    /// Whether one ranker is shown alone.
    self_duel: bool,
    /// Feedback after that is refused.
    #[schema(format = DateTime)]
    expires_at: String,
    /// The page.
    #[serde(flatten)]
    page: PageParts,
}

/// Interleave two rankings
///
/// Of the two rankers that `next-duel` chose, with the experiment's method. Neither the slots nor
/// the new `duel_id` say whose document is whose. The same duel, rankings and pins give the same
/// list on every server and for every page of it. Nothing is written.
#[utoipa::path(post, path = "/experiments/{name}/interleave", tag = "duels", security(("key" = ["decide"])), request_body = InterleaveBody,
    params(("name" = String, Path, description = "The experiment's name.")),
    responses(
        (status = 200, body = InterleavedPage, description = "The page."),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-not-found`."),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json", description = "`experiment-archived`."),
        (status = 410, body = ProblemDocument, content_type = "application/problem+json", description = "`duel-expired`."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-duel`: forged, changed, or of another experiment. `invalid-request`: too many documents, a page too far down, pins that cannot be."),
    ))]
async fn interleave(
    State(state): State<AppState>,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<InterleaveBody>,
) -> ApiResult<Json<InterleavedPage>> {
    let InterleaveBody { duel_id, left, right, length, offset, pinned } = body;
    let page = page_request(offset, length, pinned);
    let issued = state.service.interleave(&name, &duel_id, left, right, page).await?;
    let (self_duel, expires_at) = (issued.self_duel, rfc3339(issued.expires_at));
    let (duel_id, page) = PageParts::new(issued);
    Ok(Json(InterleavedPage { duel_id, experiment: name, self_duel, expires_at, page }))
}
