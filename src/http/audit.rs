//! `/v1/audit`: who did what.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::ProblemDocument;
use super::{ApiResult, AppState, Caller, Problem, ProblemKind, QueryOf, openapi};
use crate::clock::rfc3339;
use crate::store::AuditRecord;

const LIST_DEFAULT: u32 = 50;
const LIST_MAX: u32 = 500;

/// The routes of this file.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(audit))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// How many at most, 1 to 500; 50 unless said otherwise.
    #[param(minimum = 1, maximum = 500, nullable = false)]
    limit: Option<u32>,
    /// `next` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
    /// Only what was done to this experiment.
    #[param(nullable = false)]
    experiment: Option<String>,
}

/// One page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
struct AuditPage {
    /// The newest first.
    entries: Vec<AuditEntry>,
    /// Cursor of the next page, of older entries; `null` on the last one.
    next: Option<String>,
}

/// Something that was done.
#[derive(Debug, Serialize, ToSchema)]
struct AuditEntry {
    /// Its number; a later entry has a larger one.
    id: i64,
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// Who: `key:ID`, `anyone` (a server without keys), `service` (the service itself), or
    /// `command-line`.
    #[schema(example = "key:1f0c9a2e")]
    who: String,
    /// What: `experiment-created`, `experiment-changed`, `experiment-archived`,
    /// `experiment-imported`, `log-pruned`, `experiment-concluded` (by the service itself),
    /// `batch-closed`, `key-created`, `key-rotated`, `key-revoked`, `signing-key-added` or
    /// `signing-key-removed`.
    #[schema(example = "experiment-changed")]
    what: String,
    /// Name of the experiment, or id of the key, that it was done to.
    #[schema(example = "search-ranking")]
    subject: String,
    /// Name of the experiment, where there is one.
    #[schema(example = "search-ranking")]
    experiment: Option<String>,
    /// What was before; `null` where there was nothing.
    #[schema(value_type = Option<Object>)]
    before: Option<Value>,
    /// What is since; `null` where nothing is.
    #[schema(value_type = Option<Object>)]
    after: Option<Value>,
    /// The request that did it, as in the server's log; `null` where it was none.
    request_id: Option<String>,
}

impl From<AuditRecord> for AuditEntry {
    fn from(record: AuditRecord) -> Self {
        Self {
            id: record.id,
            at: rfc3339(record.at),
            who: record.who,
            what: record.what,
            subject: record.subject,
            experiment: record.experiment,
            before: record.before,
            after: record.after,
            request_id: record.request_id,
        }
    }
}

/// Who did what
///
/// Every change of an experiment and of the keys, and what the service did itself, such as closing
/// a batch; the newest first, a page at a time. A change and its entry are written in one
/// transaction. Entries are never changed or removed. A key that is for some experiments only must
/// name one of them.
#[utoipa::path(get, path = "/audit", tag = openapi::OPERATIONS, security(("key" = ["admin"])), params(AuditQuery),
    responses(
        (status = 200, body = AuditPage, description = "A page."),
        (status = 422, body = ProblemDocument, content_type = "application/problem+json", description = "`invalid-request`: a cursor or limit that is none."),
    ))]
async fn audit(
    State(state): State<AppState>,
    caller: Caller,
    QueryOf(query): QueryOf<AuditQuery>,
) -> ApiResult<Json<AuditPage>> {
    match &query.experiment {
        Some(experiment) => caller.require_experiment(experiment)?,
        None => caller.require_all_experiments()?,
    }
    let limit = query.limit.unwrap_or(LIST_DEFAULT);
    if !(1..=LIST_MAX).contains(&limit) {
        let detail = format!("`limit` is {limit}; it must be 1 to {LIST_MAX}");
        return Err(
            Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).query("limit", detail)
        );
    }
    let before = query.cursor.as_deref().map_or(Ok(i64::MAX), read_cursor)?;
    if query.experiment.as_ref().is_some_and(|name| name.contains('\0')) {
        let detail = "`experiment` is not the name of one";
        return Err(Problem::new(ProblemKind::InvalidRequest, format!("{detail}."))
            .query("experiment", detail));
    }
    let mut records =
        state.service.audit_log(query.experiment.as_deref(), before, limit + 1).await?;
    let more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = match records.last() {
        Some(last) if more => Some(URL_SAFE_NO_PAD.encode(last.id.to_be_bytes())),
        _ => None,
    };
    Ok(Json(AuditPage { entries: records.into_iter().map(Into::into).collect(), next }))
}

fn read_cursor(cursor: &str) -> ApiResult<i64> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(i64::from_be_bytes).ok_or_else(|| {
        let detail = "`cursor` is not one that this list gave; use `next` of the page before";
        Problem::new(ProblemKind::InvalidRequest, format!("{detail}.")).query("cursor", detail)
    })
}
