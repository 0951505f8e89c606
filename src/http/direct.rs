//! The operations of every page, which are called without the router and its extractors: those
//! would take as long as the operations themselves.

use axum::http::HeaderMap;
use axum::response::Response;

use super::extract::{JsonText, WholeBody};
use super::problem::ApiResult;
use super::state::AppState;
use super::{duels, feedback, pages};

/// An operation that is called without the router.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direct {
    NextDuel,
    Interleave,
    Feedback,
}

impl Direct {
    /// The operation that `POST` is at the path of this template.
    pub fn of(template: &str) -> Option<Self> {
        match template {
            duels::NEXT_DUEL => Some(Self::NextDuel),
            pages::INTERLEAVE => Some(Self::Interleave),
            feedback::FEEDBACK => Some(Self::Feedback),
            _ => None,
        }
    }

    /// The name of the experiment in a path of these operations; `None` if the router must decode
    /// it.
    pub fn name_in(path: &str) -> Option<&str> {
        path.split('/').nth(3).filter(|name| !name.contains('%'))
    }

    /// The response to a request for this experiment.
    pub async fn call(
        self,
        state: &AppState,
        name: &str,
        headers: &HeaderMap,
        body: WholeBody,
    ) -> ApiResult<Response> {
        match self {
            Self::NextDuel => duels::issue(state, name, JsonText::optional(headers, body)?).await,
            Self::Interleave => {
                Box::pin(pages::make(state, name, JsonText::of(headers, body)?)).await
            }
            Self::Feedback => {
                Box::pin(feedback::take(state, name, JsonText::of(headers, body)?)).await
            }
        }
    }
}
