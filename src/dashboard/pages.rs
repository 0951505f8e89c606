//! The routes and pages of the dashboard.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future::join_all;
use serde::Deserialize;
use tower_http::csrf::CsrfLayer;

use super::layout::Tab;
use super::page::{Page, Refusal};
use super::response::{POLICY, TaggedPage};
use super::session::{self, Dashboard, Sessions};
use super::view::{Copied, Pace, Parts, View};
use super::{evidence, list, manage, result, traffic};
use crate::http::AppState;
use crate::http::conditional::TaggedFile;
use crate::http::server::deliver::SharedText;
use crate::service::error::ServiceError;
use crate::service::reports;
use crate::service::reports::verdict::{known_verdict, verdict};
use dueling_bandits::claims::control::{Claim, ControlClaims, Progress};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::Status;

/// The pages, which need the scope `read`. A session opens them, too.
pub(crate) const PAGES: [&str; 4] = ["/", RESULT, EVIDENCE, TRAFFIC];

const RESULT: &str = "/experiments/{name}";
const EVIDENCE: &str = "/experiments/{name}/evidence";
const TRAFFIC: &str = "/experiments/{name}/traffic";

/// The routes that need no key: logging in and out, and the files that the pages load.
pub(crate) const OPEN: [&str; 4] = ["/login", "/logout", "/dashboard.css", "/dashboard.js"];

/// Experiments on one page of the list.
const LIST: usize = 100;
/// How long the list waits for forecasts.
const FORECASTS_WITHIN: Duration = Duration::from_millis(250);

pub(crate) fn routes(state: AppState, sessions: Sessions) -> Router {
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
        .route("/login", get(session::login_page).post(session::login))
        .route("/logout", post(session::logout))
        .merge(manage::routes())
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
    page: Page,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let (state, visitor) = (&page.state, page.visitor());
    let after = query.ok().and_then(|Query(query)| query.after).filter(|name| !name.contains('\0'));
    let list = page.caller.list(&state.service, after.as_deref(), LIST).await;
    let list = list.map_err(|error| page.refuse(error))?;
    let next = list.records.last().filter(|_| list.more).map(|record| record.name.clone());
    let now = state.service.now_ms();
    let loaded: Vec<_> =
        list.records.iter().map(|record| state.service.peek(&record.name)).collect();
    let forecasts = loaded.iter().flatten().map(|loaded| forecast(state, loaded));
    // those that take longer are in the next update
    drop(tokio::time::timeout(FORECASTS_WITHIN, join_all(forecasts)).await);
    let mut rows = Vec::new();
    for (record, loaded) in list.records.into_iter().zip(loaded) {
        let loaded = match loaded {
            Some(loaded) => summary(state, loaded, now).await,
            None => None,
        };
        rows.push(list::Row { record, loaded });
    }
    let render = move || {
        let main = list::page(&rows, next.as_deref(), after.is_none(), now, visitor);
        TaggedPage::new("Experiments", visitor, &main)
    };
    respond(&page, state.service.reports.run(render).await)
}

/// The row of an experiment in memory; `None` while its state is folded again.
async fn summary(
    state: &AppState,
    loaded: Arc<LoadedExperiment>,
    now: i64,
) -> Option<list::Summary> {
    let overview = reports::overview::overview(&state.service.reports, &loaded).await.ok()?;
    let lead = reports::leader::lead(&state.service.reports, &loaded).await.ok()?;
    let (_, alarms) = reports::traffic::traffic(&state.service, &loaded).await.ok()?;
    let alarms = alarms.iter().map(|alarm| alarm.title).collect();
    let (pace, decided_at, control) = {
        let fold = loaded.fold().ok()?;
        let last = fold.race().points().last().map(|point| point.recorded_at);
        let is_better = |held: &ControlClaims| {
            matches!(held.progress(lead.leader, Claim::Better), Progress::Decided { .. })
        };
        let control = fold.claims().and_then(|held| Some((held.control()?, is_better(held))));
        (Pace::of(&fold, &loaded.record(), now), last.filter(|_| !lead.winners.is_empty()), control)
    };
    let verdict = known_verdict(&loaded);
    Some(list::Summary { loaded, overview, lead, alarms, pace, control, decided_at, verdict })
}

/// Compute the forecast of an experiment that runs.
async fn forecast(state: &AppState, loaded: &Arc<LoadedExperiment>) {
    let is_open = |fold: &Fold| fold.verdict().verdict().is_none();
    let runs = loaded.with_record(|record| record.status == Status::Running);
    if runs && loaded.fold().is_ok_and(|fold| is_open(&fold)) {
        // without one, the row has no date
        drop(verdict(&state.service.reports, loaded, loaded.spec.verdict_target()).await);
    }
}

async fn one(page: Page, name: String, tab: Tab) -> Result<Response, Refusal> {
    let (service, visitor) = (&page.state.service, page.visitor());
    let rendered = async {
        let loaded = service.experiment(&name).await?;
        let parts = Parts::of(service, &loaded, tab).await?;
        let (read, now) = (Arc::clone(&loaded), parts.now);
        let render = move |copied| {
            let view = View::new(loaded, parts, copied, visitor);
            let main = match tab {
                Tab::Evidence => evidence::page(&view),
                Tab::Traffic => traffic::page(&view),
                Tab::Result | Tab::Manage => result::page(&view),
            };
            TaggedPage::new(&view.loaded.name, visitor, &main)
        };
        service.reports.compute(move || Copied::of(&read, now), render).await
    };
    respond(&page, rendered.await)
}

fn respond(page: &Page, rendered: Result<TaggedPage, ServiceError>) -> Result<Response, Refusal> {
    let rendered = rendered.map_err(|error| page.refuse(error))?;
    Ok(rendered.respond(&page.headers))
}
