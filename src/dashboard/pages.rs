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

use super::response::{POLICY, problem_page, show, tagged};
use super::session::{self, Sessions};
use super::view::View;
use super::{experiment, list};
use crate::http::guard::PageSessions as _;
use crate::http::{AppState, Caller};

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
        get(move |headers: HeaderMap| async move { tagged(&headers, kind, text.to_owned()) })
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
    let rows: Vec<_> = records
        .into_iter()
        .map(|record| {
            let loaded = state.service.peek(&record.name).and_then(|loaded| {
                let standings = loaded.standings().ok()?;
                let alarms = state.service.traffic(&loaded).ok()?.1.len();
                Some((Arc::clone(&loaded), standings, alarms))
            });
            list::Row { record, loaded }
        })
        .collect();
    show(&headers, "Experiments", session, &list::page(&rows, next.as_deref(), after.is_none()))
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
    let view = match state.service.experiment(&name).await {
        Ok(loaded) => View::of(&state.service, loaded, chosen.as_deref()).await,
        Err(error) => Err(error),
    };
    match view {
        Ok(view) => show(&headers, &name, session, &experiment::page(&view)),
        Err(error) => problem_page(&error.into(), session),
    }
}
