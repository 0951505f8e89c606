//! The routes and pages of the dashboard.

use std::sync::Arc;

use axum::Router;
use axum::extract::Path;
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
use crate::http::extract::QueryOf;
use crate::http::parameters::{read_cursor, read_filter};
use crate::http::problem::ApiResult;
use crate::http::server::deliver::SharedText;
use crate::http::server::sessions::Sessions;
use crate::service::answers;
use crate::service::listing::grouped;

/// The pages, which need the scope `read`. A session opens them, too.
pub(crate) const PAGES: [&str; 5] = ["/", RESULT, EVIDENCE, TRAFFIC, FIGURES];

const RESULT: &str = "/experiments/{name}";
const EVIDENCE: &str = "/experiments/{name}/evidence";
const TRAFFIC: &str = "/experiments/{name}/traffic";
const FIGURES: &str = "/experiments/{name}/figures/{file}";

/// The pages that need no key.
pub(crate) const OPEN_PAGES: [&str; 2] = ["/login", "/logout"];

/// The files that the pages load, which need no key.
pub(crate) const FILES: [&str; 2] = ["/dashboard.css", "/dashboard.js"];

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
    search: Option<String>,
    state: Option<String>,
    after: Option<String>,
}

async fn experiments(page: Page, QueryOf(query): QueryOf<ListQuery>) -> ApiResult<Response> {
    let (service, visitor) = (&page.state.service, page.visitor());
    // a form sends its empty fields
    let given = |value: Option<String>| value.filter(|value| !value.is_empty());
    let [search, state, after] = [query.search, query.state, query.after].map(given);
    let after = after.as_deref().map(|after| read_cursor(after, list::read_place)).transpose()?;
    let filter = page.caller.may_list(read_filter(search.as_deref(), state.as_deref())?);
    let found = grouped(service, &filter, after.as_ref(), list::PAGE).await?;
    let now = service.now_ms();
    let rows = found.rows.into_iter().map(|listed| {
        let (answer, lead) = answers::of_listed(service, &listed);
        list::Row { listed, answer, lead }
    });
    let mut unreadable = service.engine.registry.refused_names();
    unreadable.retain(|name| page.caller.require_experiment(name).is_ok());
    let shown = list::Shown {
        unreadable,
        rows: rows.collect(),
        size: found.size,
        more: found.more,
        is_first: after.is_none(),
        search,
        state,
    };
    let render = move || TaggedPage::new("Experiments", visitor, &list::page(&shown, now, visitor));
    Ok(service.reports.threads.run(render).await?.respond(&page.headers))
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
