//! The files that the pages of the documentation load: Swagger UI, and this project's own script
//! and style sheet.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use crate::http::conditional::unchanged;
use crate::http::server::deliver::SharedText;

pub(crate) const BUNDLE: &str = "/docs/swagger-ui-bundle.js";
pub(crate) const THEME: &str = "/docs/swagger-ui.css";
pub(crate) const INITIALIZER: &str = "/docs/initializer.js";
pub(crate) const STYLE: &str = "/docs/style.css";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// A file in the program.
#[derive(Debug, Clone)]
pub(crate) struct Asset {
    pub path: &'static str,
    content_type: &'static str,
    text: SharedText,
    /// Derived from the content.
    tag: String,
}

/// A file that the build script unpacks.
macro_rules! unpacked {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

/// Every file.
pub(crate) fn assets() -> [Asset; 4] {
    let asset = |path, content_type, content: &'static [u8], text| Asset {
        path,
        content_type,
        text,
        tag: Sha256::digest(content)[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    let own = |path, content_type, content: &'static [u8]| {
        asset(path, content_type, content, SharedText::new(content))
    };
    // The build has compressed the large ones.
    let large = |path, content_type, content: &'static [u8], gzip| {
        asset(path, content_type, content, SharedText::with_gzip(content, gzip))
    };
    [
        large(
            BUNDLE,
            JAVASCRIPT,
            unpacked!("swagger-ui-bundle.js"),
            unpacked!("swagger-ui-bundle.js.gz"),
        ),
        large(THEME, CSS, unpacked!("swagger-ui.css"), unpacked!("swagger-ui.css.gz")),
        own(INITIALIZER, JAVASCRIPT, include_bytes!("initializer.js")),
        own(STYLE, CSS, include_bytes!("style.css")),
    ]
}

impl Asset {
    /// The file, or 304 for a caller that has it already.
    pub fn respond(&self, request: &HeaderMap) -> Response {
        let mut response = unchanged(request, &self.tag).unwrap_or_else(|| {
            let content_type = HeaderValue::from_static(self.content_type);
            let headers: [(HeaderName, HeaderValue); 1] = [(header::CONTENT_TYPE, content_type)];
            let mut response = self.text.respond(request, headers);
            // Two encodings share the tag, so it is a weak one.
            if let Ok(tag) = HeaderValue::from_str(&format!("W/\"{}\"", self.tag)) {
                response.headers_mut().insert(header::ETAG, tag);
            }
            response
        });
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}
