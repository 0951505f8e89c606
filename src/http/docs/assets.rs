//! The files that the pages of the documentation load: Swagger UI, and this project's own script
//! and style sheet.

use crate::http::conditional::TaggedFile;
use crate::http::server::deliver::SharedText;

pub(crate) const BUNDLE: &str = "/docs/swagger-ui-bundle.js";
pub(crate) const THEME: &str = "/docs/swagger-ui.css";
pub(crate) const INITIALIZER: &str = "/docs/initializer.js";
pub(crate) const STYLE: &str = "/docs/style.css";

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

/// A file that the build script unpacks.
macro_rules! unpacked {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name))
    };
}

/// Every file, with its path.
pub(crate) fn assets() -> [(&'static str, TaggedFile); 4] {
    let own =
        |content_type, text: &'static str| TaggedFile::new(content_type, SharedText::new(text));
    // The build has compressed the large ones.
    let large =
        |content_type, text, gzip| TaggedFile::new(content_type, SharedText::with_gzip(text, gzip));
    let bundle = unpacked!("swagger-ui-bundle.js");
    let theme = unpacked!("swagger-ui.css");
    [
        (BUNDLE, large(JAVASCRIPT, bundle, unpacked!("swagger-ui-bundle.js.gz"))),
        (THEME, large(CSS, theme, unpacked!("swagger-ui.css.gz"))),
        (INITIALIZER, own(JAVASCRIPT, include_str!("initializer.js"))),
        (STYLE, own(CSS, include_str!("style.css"))),
    ]
}
