//! Conditional requests: `ETag`, `If-None-Match` and `If-Match`.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::problem::{ApiResult, Problem};
use super::server::deliver::{SharedText, counted};
use super::state::AppState;
use crate::service::reports::single_flight::Computed;
use crate::service::threads::blocking;

/// 304, if the caller already has the representation with this tag (RFC 9110 §13.1.2, weak
/// comparison). It repeats the tag as the caller has it, weak or not.
pub(crate) fn unchanged(headers: &HeaderMap, tag: &str) -> Option<Response> {
    let known = headers.get(header::IF_NONE_MATCH)?.to_str().ok()?;
    let current = quoted(tag);
    let mut known = known.split(',').map(str::trim);
    let same = known.find(|known| *known == "*" || strong(known) == current)?;
    let same = if same == "*" { &current } else { same };
    let vary = [(header::VARY, "accept-encoding")];
    Some(with_etag((StatusCode::NOT_MODIFIED, vary).into_response(), same))
}

/// The entity tag of this text.
pub(crate) fn quoted(tag: &str) -> String {
    format!("\"{tag}\"")
}

/// An entity tag without the mark of a weak one. The server and proxies weaken the tag of an answer
/// that they compress, and the representation is the same.
fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// A report as JSON, with this tag. It is written once for all who ask. With `is_old`, the log has
/// newer entries than the report, or another answer holds, and `Age` says how old it is.
pub(crate) async fn tagged<T: Serialize + Send + Sync + 'static>(
    state: &AppState,
    tag: &str,
    report: Arc<Computed<T>>,
    is_old: bool,
) -> ApiResult<Response> {
    let age = is_old.then(|| report.age().as_secs());
    let written = match report.written() {
        Some(written) => written,
        None => {
            let pool = &state.service.reports;
            let written = || {
                let (pool, report) = (Arc::clone(pool), Arc::clone(&report));
                move || report.write(&pool)
            };
            match pool.in_time(pool.threads.run(written())).await? {
                Some(written) => written?,
                // it takes little time
                None => blocking(written()).await??,
            }
        }
    };
    let json = HeaderValue::from_static("application/json");
    let mut response = with_etag(counted(written, [(header::CONTENT_TYPE, json)]), &quoted(tag));
    if let Some(seconds) = age {
        response.headers_mut().insert(header::AGE, HeaderValue::from(seconds));
    }
    Ok(response)
}

/// The response with this entity tag.
pub(crate) fn with_etag(mut response: Response, tag: &str) -> Response {
    // Digits, dots and dashes in quotes are a valid header value.
    if let Ok(value) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

/// A tag derived from the content.
pub(crate) fn tag_of(content: &[u8]) -> String {
    Sha256::digest(content)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file of the program.
#[derive(Debug, Clone)]
pub(crate) struct TaggedFile {
    content_type: &'static str,
    text: SharedText,
    tag: String,
}

impl TaggedFile {
    pub fn new(content_type: &'static str, text: SharedText) -> Self {
        Self { content_type, tag: tag_of(text.plain()), text }
    }

    /// The file, or 304 for a caller that has it.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        unchanged(request, &self.tag).unwrap_or_else(|| {
            let content_type = HeaderValue::from_static(self.content_type);
            let response = self.text.respond(request, [(header::CONTENT_TYPE, content_type)]);
            // two encodings share the tag, so it is a weak one
            with_etag(response, &format!("W/{}", quoted(&self.tag)))
        })
    }
}

/// The version that the caller expects.
pub(crate) enum Expected {
    /// `*`: whichever is current.
    Any,
    Version(u64),
}

impl Expected {
    pub fn version(self) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Version(version) => Some(version),
        }
    }
}

/// The version in `If-Match`, if the request has that header.
pub(crate) fn expected_version(headers: &HeaderMap) -> ApiResult<Option<Expected>> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(Expected::Any));
    }
    let version = strong(text)
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .and_then(|digits| digits.parse().ok());
    match version {
        Some(version) => Ok(Some(Expected::Version(version))),
        None => {
            let detail = "`If-Match` takes one `ETag` as it was received, such as \"3\" with its quotes, or *";
            Err(Problem::invalid(detail).header_field("if-match", detail))
        }
    }
}
