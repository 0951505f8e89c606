//! `/v1/audit`: the audit log.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::routes;

use super::caller::Caller;
use super::extract::QueryOf;
use super::openapi;
use super::operations::Routes;
use super::parameters::{read_cursor, read_limit, write_cursor};
use super::problem::{ApiResult, Problem};
use super::state::AppState;
use rankduel_engine::access::Scope;
use rankduel_engine::clock::rfc3339;
use rankduel_store::AuditRecord;

pub(crate) fn routes() -> Routes {
    Routes::new().operation(routes!(audit), Some(Scope::Admin), &[])
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// 50 by default.
    #[param(minimum = 1, maximum = 500, nullable = false)]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[param(nullable = false)]
    cursor: Option<String>,
    /// Return only entries about this experiment.
    #[param(nullable = false)]
    experiment: Option<String>,
}

/// One page of the audit log.
#[derive(Debug, Serialize, ToSchema)]
struct AuditPage {
    /// Newest first.
    entries: Vec<AuditEntry>,
    /// Cursor of the page of older entries; `null` on the last page.
    next: Option<String>,
}

/// One action.
#[derive(Debug, Serialize, ToSchema)]
struct AuditEntry {
    /// A later entry of the same database has a larger number.
    id: i64,
    #[schema(format = DateTime)]
    at: String,
    /// The actor: `key:ID`, `anyone` (a server without keys), `service` or `command-line`.
    #[schema(example = "key:1f0c9a2e")]
    who: String,
    /// The action: `experiment-created`, `experiment-changed`, `experiment-archived`,
    /// `experiment-imported`, `log-pruned`, `experiment-concluded` and `experiment-paused` (by the
    /// service itself), `key-created`, `key-rotated`, `key-revoked`, `signing-key-added` or
    /// `signing-key-removed`.
    #[schema(example = "experiment-changed")]
    what: String,
    /// Name of the experiment, or id of the key.
    #[schema(example = "search-ranking")]
    subject: String,
    #[schema(example = "search-ranking")]
    experiment: Option<String>,
    /// State before the action; `null` if there was none.
    #[schema(value_type = Option<Object>)]
    before: Option<Value>,
    /// State after the action; `null` if there is none.
    #[schema(value_type = Option<Object>)]
    after: Option<Value>,
    /// As in the server's log; `null` if the action was not part of a request.
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

/// Read the audit log
///
/// Every change of an experiment or a key, and every action of the service itself, such as
/// concluding an experiment. A change and its entry are written in one transaction, and entries are
/// never changed or removed. With a key that is restricted to some experiments, `experiment` is
/// required.
#[utoipa::path(get, path = "/v1/audit", tag = openapi::OPERATIONS_TAG, params(AuditQuery),
    responses(
        (status = 200, body = AuditPage, description = "A page."),
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
    let limit = read_limit(query.limit)?;
    let entry = |bytes: Vec<u8>| bytes.try_into().ok().map(i64::from_be_bytes);
    let after = query.cursor.as_deref().map(|cursor| read_cursor(cursor, entry)).transpose()?;
    if query.experiment.as_ref().is_some_and(|name| name.contains('\0')) {
        let detail = "`experiment` is not the name of an experiment";
        return Err(Problem::invalid(detail).query("experiment", detail));
    }
    let store = &state.service.engine.store;
    let page = store.audit_page(query.experiment.as_deref(), after, limit).await?;
    Ok(Json(AuditPage {
        entries: page.records.into_iter().map(Into::into).collect(),
        next: page.next.map(|next| write_cursor(next.to_be_bytes())),
    }))
}
