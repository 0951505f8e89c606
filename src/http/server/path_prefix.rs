//! The path under which a reverse proxy shows this server, such as `/rankduel`.
//!
//! Routes and pages know nothing of it. It is removed from the path of a request, if the proxy has
//! left it there, and put before every link, form, script, style and redirect of a response
//! ([`PathPrefix::put_before`]): pages write `href="/keys"`, and nothing else.

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::http::problem::Problem;

/// Attributes of pages that hold a path.
const LINKS: [&str; 4] = ["href", "action", "formaction", "src"];

/// Path of the server on its host: empty, or with a slash at its start and none at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// Read a prefix such as `/tools/rankduel`. The error says how to write one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let is_word = |word: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            !matches!(word, "" | "." | "..") && word.chars().all(known)
        };
        let words = path.strip_prefix('/').map(|words| words.split('/').all(is_word));
        match (path, words) {
            ("", _) | (_, Some(true)) => Ok(Self(path.to_owned())),
            _ => {
                Err("write it like `/rankduel`: words of letters, digits, `-`, `.`, `_` and `~`, \
                      each after a slash"
                    .into())
            }
        }
    }

    /// The prefix; empty if there is none.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Make the address of a request the one that the routes expect.
    pub(super) fn strip(&self, uri: &mut Uri) {
        if let Some(stripped) = self.stripped(uri) {
            *uri = stripped;
        }
    }

    /// `None` if the path does not begin with the prefix.
    fn stripped(&self, uri: &Uri) -> Option<Uri> {
        let (whole, prefix) = (uri.path_and_query()?.as_str(), self.0.as_str());
        let rest = whole.strip_prefix(prefix).filter(|_| !prefix.is_empty())?;
        let rest = match rest.as_bytes().first() {
            Some(b'/') => rest.to_owned(),
            None | Some(b'?') => format!("/{rest}"),
            Some(_) => return None,
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(rest).ok()?);
        Uri::from_parts(parts).ok()
    }

    /// The page with the prefix in every path. Templates escape the quotes of all other text, so
    /// only attributes match.
    fn in_page(&self, page: &str) -> String {
        let with = |page: String, name: &&str| {
            page.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{}/", self.0))
        };
        LINKS.iter().fold(page.to_owned(), with)
    }

    /// Ask for an uncompressed response, because [`Self::put_before`] changes pages. The files of
    /// the documentation may be compressed: they have no links.
    pub(super) fn require_text(&self, request: &mut Parts) {
        if !self.0.is_empty() && !request.uri.path().starts_with("/docs/") {
            request.headers.remove(header::ACCEPT_ENCODING);
        }
    }

    /// The response with the prefix in its redirect and its page.
    pub(super) async fn put_before(&self, response: Response) -> Response {
        if self.0.is_empty() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        if let Some(to) = parts.headers.get(header::LOCATION)
            && to.as_bytes().starts_with(b"/")
            && let Ok(to) = HeaderValue::from_bytes(&[self.0.as_bytes(), to.as_bytes()].concat())
        {
            parts.headers.insert(header::LOCATION, to);
        }
        if !is_page(&parts.headers) {
            return Response::from_parts(parts, body);
        }
        let page = to_bytes(body, usize::MAX).await.ok();
        let Some(page) = page.and_then(|page| String::from_utf8(page.into()).ok()) else {
            return Problem::internal("a page has no text").into_response();
        };
        if !page.is_empty() {
            // an answer to HEAD keeps its length
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        Response::from_parts(parts, Body::from(self.in_page(&page)))
    }
}

/// Whether the body is a page that can be read here.
fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/html"))
        && !headers.contains_key(header::CONTENT_ENCODING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path_of_plain_words() {
        for (text, path) in [
            ("", ""),
            ("/", ""),
            ("/a", "/a"),
            ("/a/", "/a"),
            ("/tools/rank-duel_2.0~x", "/tools/rank-duel_2.0~x"),
        ] {
            assert_eq!(PathPrefix::parse(text).expect(text).as_str(), path);
        }
        let wrong = [
            "a",
            "//a",
            "/a//b",
            "/a//",
            "/..",
            "/a/./b",
            "/a b",
            "/a\"",
            "/ä",
            "/a?b",
            "/%61",
            "https://a/b",
            "/a\n",
        ];
        for text in wrong {
            assert!(PathPrefix::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_whole_words_are_removed_from_a_path() {
        let prefix = PathPrefix::parse("/a").expect("a prefix");
        let strip = |uri: &str| {
            let mut uri = uri.parse().expect("an address");
            prefix.strip(&mut uri);
            uri.to_string()
        };
        for (uri, stripped) in [
            ("/a", "/"),
            ("/a/", "/"),
            ("/a?b=/a/", "/?b=/a/"),
            ("/a/a/b", "/a/b"),
            ("/ab", "/ab"),
            ("/b/a/", "/b/a/"),
            ("/", "/"),
            ("http://host/a/b?c", "http://host/b?c"),
        ] {
            assert_eq!(strip(uri), stripped, "{uri}");
        }
    }
}
