//! `/v1/experiments/{name}/next-duel`: the two rankers to interleave for the next query.

use axum::extract::State;
use axum::response::Response;
use interleaving::Note;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use super::extract::{self, JsonText, Object, OptionalText, PathName, UniqueKeys};
use super::json_response::json_response;
use super::operations::Routes;
use super::pages::{PinBody, page_request};
use super::parameters::check_unit;
use super::problem::ProblemKind::{ExperimentArchived, ExperimentPaused};
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use crate::service::IssuedDuel;
use crate::service::pages::{IssuedPage, IssuedSlot, PageParts, Repeats};
use crate::service::units::NamedAudience;
use rankduel_engine::access::Scope;
use rankduel_store::audience::Segment;

/// The path of [`next_duel`].
pub(super) const NEXT_DUEL: &str = "/v1/experiments/{name}/next-duel";

/// Most duels of one request.
const COUNT_MAX: usize = 1000;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(
        routes!(next_duel),
        Some(Scope::Decide),
        &[ExperimentPaused, ExperimentArchived],
    )
}

/// Approximate bytes of a duel as JSON.
const DUEL_BYTES: usize = 320;

/// The rankings of all rankers, to get the page in the same call.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NextDuelBody {
    /// The document ids of each ranker's ranking, best first, by ranker id; `[]` for a ranker
    /// without documents. At most 10,000 ids in each ranking, of 1 to 1024 bytes each.
    #[schema(value_type = Option<HashMap<String, Vec<String>>>, nullable = false, example = json!({"bm25": ["doc-1", "doc-7"], "bm25-title": ["doc-7", "doc-3"]}))]
    rankings: Option<UniqueKeys<Vec<String>>>,
    /// Number of duels to issue at once, for backends that keep a stock of duels. The answer then
    /// has `duels`. Cannot be combined with other fields.
    #[schema(minimum = 1, maximum = 1000, example = 10, nullable = false)]
    count: Option<usize>,
    /// With `rankings`: number of slots on the page.
    #[schema(minimum = 1, maximum = 1000, example = 10, nullable = false)]
    length: Option<u32>,
    /// With `rankings`: number of slots before the page; 0 by default.
    #[schema(maximum = 999, nullable = false)]
    offset: Option<u32>,
    /// An id of the user, session or device that sees the page; the service keeps a keyed hash of
    /// it. The verdict counts one answer of each. Required where orders decide between three
    /// rankers or more.
    #[schema(max_length = 256, nullable = false)]
    unit: Option<String>,
    /// The segment of the page, such as a device, a country or a kind of query: 1 to 32 bytes
    /// without invisible characters. The results can be split by it.
    #[schema(value_type = Option<String>, max_length = 32, example = "mobile", nullable = false)]
    segment: Option<Segment>,
    /// With `rankings`: documents at fixed positions.
    #[schema(value_type = Option<Vec<PinBody>>, max_items = 100, nullable = false)]
    pinned: Option<Vec<Object<PinBody>>>,
}

/// Several duels, if `count` was sent.
#[derive(Debug, Serialize, ToSchema)]
struct DuelStock {
    /// In the order in which they were chosen.
    duels: Vec<IssuedDuel>,
}

/// The response of the endpoint.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "describes the answers")]
enum NextDuelAnswer {
    /// One duel.
    One(DuelAnswer),
    /// Several duels.
    Several(DuelStock),
}

/// A duel, and its page if rankings were sent: then `duel_id` contains the encrypted data needed to
/// credit clicks.
#[derive(Debug, Serialize, ToSchema)]
struct DuelAnswer {
    #[serde(flatten)]
    duel: IssuedDuel,
    /// These are as in the response of `interleave`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    slots: Option<Vec<IssuedSlot>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    repeats: Option<Repeats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    informative: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    interleaving_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::schemas::Note>, nullable = false)]
    note: Option<Note>,
}

impl DuelAnswer {
    fn with_page(duel: IssuedDuel, page: PageParts) -> Self {
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

/// Request a duel
///
/// Chooses the two rankers to interleave for the next query, in random order. Reads only memory and
/// writes nothing, so a duel that is never shown or never answered costs nothing but the call. A
/// concluded experiment issues self-duels of its winner, and with `watch` above 0 now and then a
/// duel that shows whether the result is still true. If the experiment is paused or the service
/// cannot be reached, show your control ranking.
///
/// With the rankings of all rankers, the two chosen ones are interleaved in the same call. With
/// `count`, many duels are issued at once: the policy learns nothing between them.
#[utoipa::path(post, path = NEXT_DUEL, tag = "duels",
    request_body(content = Option<NextDuelBody>),
    responses(
        (status = 200, body = NextDuelAnswer, description = "A duel, with its page if rankings were sent; or several duels."),
    ))]
async fn next_duel(
    State(state): State<AppState>,
    PathName(name): PathName,
    OptionalText(text): OptionalText,
) -> ApiResult<Response> {
    issue(&state, &name, text).await
}

/// [`next_duel`] of the experiment with this name.
pub(super) async fn issue(
    state: &AppState,
    name: &str,
    text: Option<JsonText>,
) -> ApiResult<Response> {
    let service = &state.service;
    let NextDuelBody { rankings, count, length, offset, unit, segment, pinned } = match text {
        Some(text) => text.read(extract::json).await?,
        None => NextDuelBody::default(),
    };
    check_unit(unit.as_deref())?;
    let audience = NamedAudience { unit: unit.as_deref(), segment };
    let refuse = |pointer, detail: &str| Problem::invalid_at("request", pointer, detail);
    if let Some(count) = count {
        let has_others = rankings.is_some()
            || length.is_some()
            || offset.is_some()
            || unit.is_some()
            || segment.is_some()
            || pinned.is_some();
        if has_others {
            let detail = "`count` cannot be combined with other fields: the page, the unit and \
                          the segment of each duel are not known yet; send `unit` and `segment` \
                          with the feedback";
            return Err(refuse("/count", detail));
        }
        if !(1..=COUNT_MAX).contains(&count) {
            let detail = format!("`count` is {count}; it must be 1 to {COUNT_MAX}");
            return Err(refuse("/count", &detail));
        }
        let finish = move |duels| json_response(&DuelStock { duels }, count * DUEL_BYTES);
        return Ok(Box::pin(service.next_duels(name, count, finish)).await?);
    }
    let Some(UniqueKeys(rankings)) = rankings else {
        if length.is_some() || offset.is_some() || pinned.is_some() {
            return Err(refuse(
                "/rankings",
                "`length`, `offset` and `pinned` go with `rankings` only",
            ));
        }
        return Ok(json_response(&service.next_duel(name, audience).await?, DUEL_BYTES));
    };
    let length = length
        .ok_or_else(|| refuse("/length", "`length` is missing: the number of slots on the page"))?;
    let page = page_request(offset.unwrap_or(0), length, pinned.unwrap_or_default());
    let finish = |issued, IssuedPage { page, .. }: IssuedPage| {
        let bytes = DUEL_BYTES + page.bytes();
        json_response(&DuelAnswer::with_page(issued, page), bytes)
    };
    Ok(Box::pin(service.next_page(name, rankings, page, audience, finish)).await?)
}
