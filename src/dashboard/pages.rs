//! The routes and pages of the dashboard.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use tower_http::csrf::CsrfLayer;

use super::figures::File;
use super::layout::Tab;
use super::page::{Dashboard, POLICY, Page, TaggedPage, missing, problems_as_pages};
use super::view::{FoldData, PageReports, View};
use super::{evidence, list, login, manage, result, traffic};
use crate::http::AppState;
use crate::http::conditional::TaggedFile;
use crate::http::problem::ApiResult;
use crate::http::server::deliver::SharedText;
use crate::http::server::sessions::Sessions;
use crate::service::answers;

/// The pages, which need the scope `read`. A session opens them, too.
pub(crate) const PAGES: [&str; 5] = ["/", RESULT, EVIDENCE, TRAFFIC, FIGURES];

const RESULT: &str = "/experiments/{name}";
const EVIDENCE: &str = "/experiments/{name}/evidence";
const TRAFFIC: &str = "/experiments/{name}/traffic";
const FIGURES: &str = "/experiments/{name}/figures/{file}";

/// The routes that need no key: logging in and out, and the files that the pages load.
pub(crate) const OPEN: [&str; 4] = ["/login", "/logout", "/dashboard.css", "/dashboard.js"];

const LIST: usize = 100;

pub(crate) fn routes(state: AppState, sessions: Sessions) -> Router {
    let dashboard = Dashboard { state, sessions };
    let asset = |kind: &'static str, text: &'static str| {
        let file = TaggedFile::new(kind, SharedText::new(text));
        get(async move |headers: HeaderMap| file.respond(&headers))
    };
    let of_experiment =
        |tab| get(async move |page: Page, Path(name): Path<String>| one(page, name, tab).await);
    Router::new()
        .route("/", get(experiments))
        .route(RESULT, of_experiment(Tab::Result))
        .route(EVIDENCE, of_experiment(Tab::Evidence))
        .route(TRAFFIC, of_experiment(Tab::Traffic))
        .route(FIGURES, get(figure))
        .route("/login", get(login::login_page).post(login::login))
        .route("/logout", post(login::logout))
        .merge(manage::routes())
        // Only pages of this site may send requests that change anything.
        .layer(CsrfLayer::new())
        .route("/dashboard.css", asset("text/css; charset=utf-8", include_str!("style.css")))
        .route("/dashboard.js", asset("text/javascript; charset=utf-8", include_str!("script.js")))
        .layer(from_fn_with_state(dashboard.clone(), problems_as_pages))
        .layer(map_response(add_security_headers))
        .with_state(dashboard)
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
    page: Page,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> ApiResult<Response> {
    let (state, visitor) = (&page.state, page.visitor());
    let after = query.ok().and_then(|Query(query)| query.after).filter(|name| !name.contains('\0'));
    let list = page.caller.list(&state.service, after.as_deref(), LIST).await?;
    let next = list.records.last().filter(|_| list.more).map(|record| record.name.clone());
    let now = state.service.now_ms();
    let row = |record| list::Row { answer: answers::of_record(&state.service, &record), record };
    let rows: Vec<_> = list.records.into_iter().map(row).collect();
    let render = move || {
        let main = list::page(&rows, next.as_deref(), after.is_none(), now, visitor);
        TaggedPage::new("Experiments", visitor, &main)
    };
    Ok(state.service.reports.threads.run(render).await?.respond(&page.headers))
}

async fn figure(page: Page, Path((name, file)): Path<(String, String)>) -> ApiResult<Response> {
    let file = File::of_name(&file).ok_or_else(missing)?;
    let (service, visitor) = (&page.state.service, page.visitor());
    let loaded = service.experiment(&name).await?;
    let reports = PageReports::of(service, &loaded, file.tab()).await?;
    let (read, now) = (Arc::clone(&loaded), reports.now);
    let render = move |copied| file.of(&View::new(loaded, reports, copied, visitor));
    let made = service.reports.compute(move || FoldData::of(&read, now), render).await?;
    made.ok_or_else(missing)
}

async fn one(page: Page, name: String, tab: Tab) -> ApiResult<Response> {
    let (service, visitor) = (&page.state.service, page.visitor());
    let loaded = service.experiment(&name).await?;
    let reports = PageReports::of(service, &loaded, tab).await?;
    let (read, now) = (Arc::clone(&loaded), reports.now);
    let render = move |copied| {
        let view = View::new(loaded, reports, copied, visitor);
        let main = match tab {
            Tab::Evidence => evidence::page(&view),
            Tab::Traffic => traffic::page(&view),
            Tab::Result | Tab::Manage => result::page(&view),
        };
        TaggedPage::new(&view.loaded.name, visitor, &main)
    };
    let rendered = service.reports.compute(move || FoldData::of(&read, now), render).await?;
    Ok(rendered.respond(&page.headers))
}
