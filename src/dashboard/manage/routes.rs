//! The routes of the pages that change something.

use axum::Router;
use axum::routing::get;

use super::super::state::Dashboard;
use super::{audit, change, create, keys, overview};

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
        .route(NEW_EXPERIMENT, get(create::show).post(create::submit))
        .route(EXPERIMENT, get(overview::show))
        .route(CHANGE, get(change::show).post(change::submit))
        .route(KEYS, get(keys::list))
        .route(NEW_KEY, get(keys::show_new).post(keys::submit_new))
        .route(REVOKE_KEY, get(keys::show_revoke).post(keys::submit_revoke))
        .route(AUDIT, get(audit::show))
}
