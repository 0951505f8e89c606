//! The pages that change something: experiments, API keys, and the audit log of all changes.
//!
//! A page is a plain HTML form. Its submission is turned into the body of the API's operation and
//! goes the way of that operation, so both refuse the same things with the same words. Every change
//! takes two submissions: the first leads to a page that says what will happen, the second makes
//! the change and redirects. Both need the token of the session ([`submission::Submission`]).

mod action;
mod audit;
mod change;
mod create;
mod fields;
mod flow;
mod form;
mod keys;
mod methods;
mod metric_rows;
mod numbers;
mod overview;
mod plan;
mod policies;
mod settings;
mod submission;
mod summary;

use axum::Router;
use axum::routing::get;

use self::change::OfExperiment;
use self::create::NewExperiment;
use self::flow::{show, submit};
use self::keys::{NewApiKey, Revocation};
use super::page::Dashboard;

/// The pages, which need the scope `admin`. A session opens them, too.
pub(crate) const MANAGING_PAGES: [&str; 7] =
    [NEW_EXPERIMENT, EXPERIMENT, CHANGE, KEYS, NEW_KEY, REVOKE_KEY, AUDIT];

const NEW_EXPERIMENT: &str = "/new-experiment";
const EXPERIMENT: &str = "/experiments/{name}/manage";
const CHANGE: &str = "/experiments/{name}/manage/{action}";
const KEYS: &str = "/keys";
const NEW_KEY: &str = "/keys/new";
const REVOKE_KEY: &str = "/keys/{id}/revoke";
const AUDIT: &str = "/audit";

pub(crate) fn routes() -> Router<Dashboard> {
    Router::new()
        .route(NEW_EXPERIMENT, get(show::<NewExperiment>).post(submit::<NewExperiment>))
        .route(EXPERIMENT, get(overview::show))
        .route(CHANGE, get(show::<OfExperiment>).post(submit::<OfExperiment>))
        .route(KEYS, get(keys::list))
        .route(NEW_KEY, get(show::<NewApiKey>).post(submit::<NewApiKey>))
        .route(REVOKE_KEY, get(show::<Revocation>).post(submit::<Revocation>))
        .route(AUDIT, get(audit::show))
}
