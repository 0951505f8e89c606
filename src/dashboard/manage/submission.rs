//! A submission of a form, and the threads that work on a large one.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::response::{IntoResponse as _, Response};

use super::super::state::Dashboard;
use super::form::{Step, Values};
use super::page::Page;
use crate::http::extract::LargeBody;
use crate::http::problem::{ApiResult, Problem};
use crate::service::threads::LowPriorityThreads;

/// A form that was made for its caller; an extractor. A large one is parsed, checked and shown
/// again on the threads for large bodies.
pub(crate) struct Submission {
    submitted: Arc<Submitted>,
    step: Step,
    threads: Option<Arc<LowPriorityThreads>>,
}

struct Submitted {
    page: Page,
    values: Values,
}

impl FromRequest<Dashboard> for Submission {
    type Rejection = Response;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let threads = parts.extensions.get().map(|LargeBody(threads)| Arc::clone(threads));
        let Ok(page) = Page::from_request_parts(&mut parts, dashboard).await;
        let body = Bytes::from_request(Request::from_parts(parts, body), dashboard)
            .await
            .map_err(|rejection| rejection.into_response())?;
        let read = move || {
            let values = Values::parse(&body);
            page.require_token(&values).map(|()| (values.step(), Submitted { page, values }))
        };
        let read = match &threads {
            None => read(),
            Some(threads) => {
                threads.run(read).await.map_err(|error| Problem::from(error).into_response())?
            }
        };
        let (step, submitted) = read.map_err(|refusal| *refusal)?;
        Ok(Self { submitted: Arc::new(submitted), step, threads })
    }
}

impl Submission {
    pub fn page(&self) -> &Page {
        &self.submitted.page
    }

    pub fn step(&self) -> Step {
        self.step
    }

    /// The result of `read`.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Page, &Values) -> T + Send + 'static,
    ) -> ApiResult<T> {
        let submitted = Arc::clone(&self.submitted);
        let read = move || read(&submitted.page, &submitted.values);
        match &self.threads {
            None => Ok(read()),
            Some(threads) => Ok(threads.run(read).await?),
        }
    }

    /// The page that `write` makes of the values.
    pub async fn show(
        &self,
        write: impl FnOnce(&Page, &Values) -> Response + Send + 'static,
    ) -> Response {
        self.read(write).await.unwrap_or_else(|problem| self.page().problem(&problem))
    }
}
