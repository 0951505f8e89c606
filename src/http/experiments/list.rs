//! `GET /v1/experiments`: list experiments.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::representation::Experiment;
use crate::http::AppState;
use crate::http::caller::Caller;
use crate::http::extract::QueryOf;
use crate::http::parameters::{read_cursor, read_filter, read_limit, write_cursor};
use crate::http::problem::ApiResult;
use crate::service::listing as service;
use rankduel_engine::consistency::sound_spec;

/// Specs of this size together are read on the threads for reports.
const LARGE_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// 50 by default.
    #[param(minimum = 1, maximum = 500, nullable = false)]
    limit: Option<u32>,
    /// `next` of the previous page.
    #[param(nullable = false)]
    cursor: Option<String>,
    /// Only experiments whose name or owner contains this text. The case of A to Z does not matter.
    #[param(max_length = 100, nullable = false)]
    search: Option<String>,
    /// Only experiments whose stored `answer` is in one of these states, or whose status is
    /// `running`, `paused` or `concluded`, separated by commas. Archived experiments are listed only
    /// with `archived`.
    #[param(example = "harm,alarm", nullable = false)]
    state: Option<String>,
}

/// One page of experiments.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExperimentPage {
    /// Ordered by name; without archived experiments if `state` does not name them.
    experiments: Vec<Experiment>,
    /// Cursor of the next page; `null` on the last page.
    next: Option<String>,
    /// How many experiments all pages have.
    total: u64,
    /// Names of the experiments of this page that this server cannot read, such as those of a newer
    /// version. Omitted without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// List experiments
///
/// Ordered by name: an experiment that matches all the time is on one page. A page of large
/// experiments ends after about 1 MiB. Archived experiments are listed only with the state
/// `archived`, and can always be read by name. A key that is restricted to some experiments sees
/// only those.
#[utoipa::path(get, path = "/v1/experiments", tag = "experiments", params(ListQuery),
    responses((status = 200, body = ExperimentPage, description = "A page.")))]
pub(crate) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    QueryOf(query): QueryOf<ListQuery>,
) -> ApiResult<Json<ExperimentPage>> {
    let limit = read_limit(query.limit)?;
    let after = query.cursor.as_deref().map(|cursor| read_cursor(cursor, name)).transpose()?;
    let filter = read_filter(query.search.as_deref(), query.state.as_deref())?;
    let (filter, after) = (caller.may_list(filter), after.unwrap_or_default());
    let page = service::list(&state.service, &filter, &after, limit as usize).await?;
    if page.bytes < LARGE_BYTES {
        return Ok(Json(described(page)));
    }
    Ok(Json(state.service.reports.threads.run(move || described(page)).await?))
}

fn described(page: service::ExperimentPage) -> ExperimentPage {
    let next = page.records.last().filter(|_| page.more).map(|last| write_cursor(&last.name));
    let (mut experiments, mut unreadable) = (Vec::new(), Vec::new());
    for record in page.records {
        let spec = sound_spec(&record);
        match spec {
            Ok(spec) => experiments.push(Experiment::of_record(&record, &spec)),
            Err(_) => unreadable.push(record.name),
        }
    }
    ExperimentPage { experiments, next, total: page.total, unreadable }
}

fn name(key: Vec<u8>) -> Option<String> {
    String::from_utf8(key).ok().filter(|name| !name.contains('\0'))
}
