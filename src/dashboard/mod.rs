//! The dashboard: `/` and `/experiments/{name}`, for people. Rendered here; a small script of its
//! own only brings it up to date. It asks no other host for anything, which the content security
//! policy enforces.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRef, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{Markup, html};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tower_http::csrf::CsrfLayer;

use crate::http::problem::{Problem, ProblemKind};
use crate::http::{AppState, Caller};
use layout::{Frame, page};
pub(crate) use session::{Sessions, ask_to_log_in};
use view::View;

mod experiment;
mod heat;
mod history;
mod interleaved;
mod layout;
mod list;
mod pairs;
mod plot;
mod session;
mod verdict;
mod view;

/// Pages that a session opens; the scope `read`.
pub(crate) const PAGES: [&str; 2] = ["/", "/experiments/{name}"];
/// What needs no key: logging in, and what pages are drawn with.
pub(crate) const OPEN: [&str; 4] = ["/login", "/logout", "/dashboard.css", "/dashboard.js"];

/// Experiments on one page of the list.
const LIST: u32 = 100;

/// Nothing but this site's own style and script.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

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

/// The routes of the dashboard.
pub(crate) fn routes(state: AppState, sessions: Sessions) -> Router {
    let asset = |kind: &'static str, text: &'static str| {
        get(move |headers: HeaderMap| async move { tagged(&headers, kind, text.to_owned()) })
    };
    Router::new()
        .route("/", get(experiments))
        .route("/experiments/{name}", get(one))
        .route("/login", get(session::login_page).post(session::login))
        .route("/logout", post(session::logout))
        // whoever changes anything comes from a page of this site
        .layer(CsrfLayer::new())
        .route("/dashboard.css", asset("text/css; charset=utf-8", include_str!("style.css")))
        .route("/dashboard.js", asset("text/javascript; charset=utf-8", include_str!("script.js")))
        .layer(map_response(guarded))
        .with_state(Dashboard { state, sessions })
}

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

/// A text with an `ETag` of its content: 304 for who has it already.
fn tagged(headers: &HeaderMap, kind: &'static str, text: String) -> Response {
    let digest = Sha256::digest(&text);
    let tag: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    // compression makes a tag weak on its way
    let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
    let known = known.is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let status = if known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let body = if known { String::new() } else { text };
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::ETAG, tag)];
    (status, headers, body).into_response()
}

/// A problem, for people.
fn wrong(problem: &Problem, session: bool) -> Response {
    let kind = problem.kind();
    let main = html! {
        h1 { (kind.title()) }
        p { (problem.detail()) }
        p { (kind.remedy()) }
        p { a href="/" { "All experiments" } }
    };
    let frame = Frame { title: kind.title(), session, loaded: false };
    let mut response = (kind.status(), page(&frame, &main)).into_response();
    if let Some(seconds) = kind.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn show(headers: &HeaderMap, title: &str, session: bool, main: &Markup) -> Response {
    let frame = Frame { title, session, loaded: true };
    tagged(headers, "text/html; charset=utf-8", page(&frame, main).into_string())
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
    let mut records = match state.service.list(after.as_deref(), LIST + 1).await {
        Ok(records) => records,
        Err(error) => return wrong(&error.into(), session),
    };
    let more = records.len() > LIST as usize;
    records.truncate(LIST as usize);
    let next = if more { records.last().map(|record| record.name.clone()) } else { None };
    let rows: Vec<_> = records
        .into_iter()
        .filter(|record| caller.is_for(&record.name))
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
        Err(error) => wrong(&error.into(), session),
    }
}

/// What a key that may not read is told by a page.
pub(crate) fn forbidden(problem: &Problem) -> Response {
    debug_assert_eq!(problem.kind(), ProblemKind::Forbidden);
    let mut response = wrong(problem, true);
    response
        .headers_mut()
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
