//! The files that the pages of the documentation load: Swagger UI, and this project's own script
//! and style sheet.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use crate::http::etag::unchanged;

pub(crate) const BUNDLE: &str = "/docs/swagger-ui-bundle.js";
pub(crate) const THEME: &str = "/docs/swagger-ui.css";
pub(crate) const INITIALIZER: &str = "/docs/initializer.js";
pub(crate) const STYLE: &str = "/docs/style.css";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// A file in the program.
pub(crate) struct Asset {
    pub path: &'static str,
    content_type: &'static str,
    content: &'static [u8],
    /// The content compressed by the build, for a file that is too large to compress for each
    /// request.
    gzip: Option<&'static [u8]>,
    /// Derived from the content.
    tag: LazyLock<String>,
}

macro_rules! asset {
    ($path:expr, $content_type:expr, $content:expr, $gzip:expr) => {
        Asset {
            path: $path,
            content_type: $content_type,
            content: $content,
            gzip: $gzip,
            tag: LazyLock::new(|| tag_of($content)),
        }
    };
}

/// A file that the build script unpacks.
macro_rules! unpacked {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

pub(crate) static ASSETS: [Asset; 4] = [
    asset!(
        BUNDLE,
        JAVASCRIPT,
        unpacked!("swagger-ui-bundle.js"),
        Some(unpacked!("swagger-ui-bundle.js.gz"))
    ),
    asset!(THEME, CSS, unpacked!("swagger-ui.css"), Some(unpacked!("swagger-ui.css.gz"))),
    asset!(INITIALIZER, JAVASCRIPT, include_bytes!("initializer.js"), None),
    asset!(STYLE, CSS, include_bytes!("style.css"), None),
];

fn tag_of(content: &[u8]) -> String {
    Sha256::digest(content)[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Asset {
    /// The file, or 304 for a caller that has it already.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let mut response = unchanged(request, &self.tag).unwrap_or_else(|| self.whole(request));
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }

    fn whole(&self, request: &HeaderMap) -> Response {
        // Two encodings share the tag, so it is a weak one.
        let headers: [(HeaderName, String); 2] = [
            (header::CONTENT_TYPE, self.content_type.to_owned()),
            (header::ETAG, format!("W/\"{}\"", *self.tag)),
        ];
        match self.gzip {
            Some(gzip) if accepts_gzip(request) => {
                let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (headers, encoding, Bytes::from_static(gzip)).into_response()
            }
            _ => (headers, Bytes::from_static(self.content)).into_response(),
        }
    }
}

/// Whether the caller can read gzip (RFC 9110 §12.5.3).
fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted =
        request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}
