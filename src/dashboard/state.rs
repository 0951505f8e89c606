//! The state of the dashboard's pages.

use axum::extract::FromRef;

use super::session::Sessions;
use crate::http::AppState;

/// The state that every page can extract.
#[derive(Clone)]
pub(crate) struct Dashboard {
    pub state: AppState,
    pub sessions: Sessions,
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
