//! The routes and pages of the dashboard.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRef, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use tower_http::csrf::CsrfLayer;

use super::response::{POLICY, TaggedFile, TaggedPage, problem_page};
use super::session::{self, Sessions};
use super::view::{Copied, Parts, View};
use super::{experiment, list};
use crate::engine::loaded::LoadedExperiment;
use crate::http::guard::PageSessions as _;
use crate::http::{AppState, Caller};
use crate::service::error::ServiceError;

/// The pages, which need the scope `read`. A session opens them, too.
pub(crate) const PAGES: [&str; 2] = ["/", "/experiments/{name}"];

/// The routes that need no key: logging in and out, and the files that the pages load.
pub(crate) const OPEN: [&str; 4] = ["/login", "/logout", "/dashboard.css", "/dashboard.js"];

/// Experiments on one page of the list.
const LIST: u32 = 100;

#[derive(Clone)]
struct Dashboard {
    state: AppState,
    sessions: Sessions,
}

impl FromRef<Dashboard> for AppState {
    fn from_ref(dashboard: &Dashboard) -> Self {
        dashboard.state.clone()
    }
}

impl FromRef<Dashboard> for Sessions {
    fn from_ref(dashboard: &Dashboard) -> Self {
        dashboard.sessions.clone()
    }
}

pub(crate) fn routes(state: AppState, sessions: Sessions) -> Router {
    let asset = |kind: &'static str, text: &'static str| {
        let file = TaggedFile::new(kind, text);
        get(async move |headers: HeaderMap| file.respond(&headers))
    };
    Router::new()
        .route("/", get(experiments))
        .route("/experiments/{name}", get(one))
        .route("/login", get(session::login_page).post(session::login))
        .route("/logout", post(session::logout))
        // Only pages of this site may send requests that change anything.
        .layer(CsrfLayer::new())
        .route("/dashboard.css", asset("text/css; charset=utf-8", include_str!("style.css")))
        .route("/dashboard.js", asset("text/javascript; charset=utf-8", include_str!("script.js")))
        .layer(map_response(add_security_headers))
        .with_state(Dashboard { state, sessions })
}

async fn add_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

#[derive(Deserialize)]
struct ListQuery {
    after: Option<String>,
}

async fn experiments(
    State(state): State<AppState>,
    State(sessions): State<Sessions>,
    caller: Caller,
    headers: HeaderMap,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Response {
    let session = sessions.key_of(&headers).is_some();
    let after = query.ok().and_then(|Query(query)| query.after).filter(|name| !name.contains('\0'));
    let mut records = match caller.list(&state.service, after.as_deref(), LIST + 1).await {
        Ok(records) => records,
        Err(error) => return problem_page(&error.into(), session),
    };
    let more = records.len() > LIST as usize;
    records.truncate(LIST as usize);
    let next = if more { records.last().map(|record| record.name.clone()) } else { None };
    let mut rows = Vec::new();
    for record in records {
        let loaded = match state.service.peek(&record.name) {
            Some(loaded) => summary(&state, loaded).await,
            None => None,
        };
        rows.push(list::Row { record, loaded });
    }
    let render = move || {
        let main = list::page(&rows, next.as_deref(), after.is_none());
        TaggedPage::new("Experiments", session, &main)
    };
    match state.service.reports.run(render).await {
        Ok(page) => page.respond(&headers),
        Err(error) => problem_page(&error.into(), session),
    }
}

/// The row of an experiment in memory; `None` while its state is folded again.
async fn summary(state: &AppState, loaded: Arc<LoadedExperiment>) -> Option<list::Summary> {
    let overview = state.service.overview(&loaded).await.ok()?;
    let alarms = state.service.traffic(&loaded).await.ok()?.1.len();
    Some(list::Summary { loaded, overview, alarms })
}

#[derive(Deserialize)]
struct OneQuery {
    ranker: Option<String>,
}

async fn one(
    State(state): State<AppState>,
    State(sessions): State<Sessions>,
    Path(name): Path<String>,
    headers: HeaderMap,
    query: Result<Query<OneQuery>, QueryRejection>,
) -> Response {
    let session = sessions.key_of(&headers).is_some();
    let chosen = query.ok().and_then(|Query(query)| query.ranker);
    let rendered = match state.service.experiment(&name).await {
        Ok(loaded) => render(&state, loaded, chosen, session).await,
        Err(error) => Err(error),
    };
    match rendered {
        Ok(page) => page.respond(&headers),
        Err(error) => problem_page(&error.into(), session),
    }
}

async fn render(
    state: &AppState,
    loaded: Arc<LoadedExperiment>,
    chosen: Option<String>,
    session: bool,
) -> Result<TaggedPage, ServiceError> {
    let parts = Parts::of(&state.service, &loaded).await?;
    let read = Arc::clone(&loaded);
    let render = move |copied| {
        let view = View::new(loaded, parts, copied, chosen.as_deref());
        TaggedPage::new(&view.loaded.name, session, &experiment::page(&view))
    };
    state.service.reports.compute(move || Copied::of(&read), render).await
}
