//! The header `If-Match`.

use axum::http::{HeaderMap, header};

use crate::http::problem::{ApiResult, Problem};

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
    let version = text
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
