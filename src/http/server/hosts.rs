//! The hosts that a server without keys answers for, and the pages that may use its API.
//!
//! A server without keys trusts everyone who can connect, and listens on the local machine only. A
//! web page elsewhere must not use the visitor's browser to connect: it can let its own name
//! resolve to 127.0.0.1 (DNS rebinding), and the browser then takes the server's answers for the
//! page's own. Such a request still names the page's host, so it is refused. Or the page sends a
//! request to the server's own name. It cannot read the answer, but the server would have done what
//! the request says; browsers mark such a request, so it is refused, too.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::ApiKeySet;
use crate::http::caller::forbidden;
use crate::service::Service;

/// The paths of the API. Pages of other sites may link to the others; those that change something
/// have a check of their own.
const API: &str = "/v1/";
/// Where the page that sent a request comes from, as its browser says.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Which hosts a request may name while the server has no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Only the local machine: `localhost` and loopback addresses.
    Local,
    /// Any: other machines are meant to reach the server without a key.
    Any,
}

/// Checks the hosts and the origins of requests.
pub(crate) struct HostCheck {
    given: Arc<ApiKeySet>,
    service: Arc<Service>,
    hosts: Hosts,
}

impl HostCheck {
    pub fn new(given: Arc<ApiKeySet>, service: Arc<Service>, hosts: Hosts) -> Self {
        Self { given, service, hosts }
    }

    /// Whether a request with this head may be answered.
    pub fn admits<B>(&self, request: &hyper::Request<B>) -> bool {
        let is_admitted =
            (self.hosts == Hosts::Any || names_local_host(request)) && !is_of_another_site(request);
        is_admitted || self.has_keys()
    }

    fn has_keys(&self) -> bool {
        !self.given.is_empty() || !self.service.access().current().is_empty()
    }
}

/// Refuses requests that [`HostCheck`] does not admit.
pub(crate) async fn refuse_other_hosts(
    State(check): State<Arc<HostCheck>>,
    request: Request,
    next: Next,
) -> Response {
    if check.admits(&request) {
        return next.run(request).await;
    }
    let detail = if is_of_another_site(&request) {
        "This server has no API keys and accepts no requests to its API from pages of other sites. \
        Send them from a server, or create a key."
    } else {
        "This server has no API keys and answers only requests to localhost. Connect to \
        localhost, create a key, or start the server with --insecure."
    };
    forbidden(detail.into()).into_response()
}

/// Whether a browser sent this request to the API for a page of another site. Servers and programs
/// send neither of the headers.
fn is_of_another_site<B>(request: &hyper::Request<B>) -> bool {
    if !request.uri().path().starts_with(API) {
        return false;
    }
    let headers = request.headers();
    if headers.contains_key(SEC_FETCH_SITE) {
        // `none`: the visitor typed the address. A proxy may change the host, but not this header.
        let own: [&[u8]; 2] = [b"same-origin", b"none"];
        return !headers.get_all(SEC_FETCH_SITE).iter().all(|site| own.contains(&site.as_bytes()));
    }
    // Old browsers leave it out, and all do where the server is neither local nor behind TLS.
    let host = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let host = host.or_else(|| request.headers().get(header::HOST).map(HeaderValue::as_bytes));
    headers.get_all(header::ORIGIN).iter().any(|origin| {
        let origin = origin.as_bytes();
        // `null` has no host.
        let of_origin = origin.strip_prefix(b"http://").or(origin.strip_prefix(b"https://"));
        let is_own = of_origin.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host));
        !is_own
    })
}

/// Whether every host that the request names is the local machine. Browsers always name one.
fn names_local_host<B>(request: &hyper::Request<B>) -> bool {
    let in_uri = request.uri().host().is_none_or(is_local);
    in_uri
        && request.headers().get_all(header::HOST).iter().all(|host| {
            // without the port
            let name = host.to_str().map(|host| match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
                _ => host,
            });
            name.is_ok_and(is_local)
        })
}

fn is_local(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse().is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_local_machine_are_local() {
        let admits = |uri: &str, hosts: &[&str]| {
            let mut request = hyper::Request::get(uri);
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            names_local_host(&request.body(()).expect("a request"))
        };
        for local in
            ["localhost", "LOCALHOST:7171", "127.0.0.1:7171", "127.8.0.1", "[::1]:7171", "[::1]"]
        {
            assert!(admits("/", &[local]), "{local}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7171",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "localhost:evil",
            "",
            "[]",
        ] {
            assert!(!admits("/", &[other]), "{other:?}");
        }
        assert!(!admits("/", &["localhost", "evil.example"]));
        assert!(!admits("http://evil.example/", &["localhost"]));
        assert!(admits("http://localhost:7171/", &["localhost"]));
        assert!(admits("/", &[]), "no browser leaves it out");
    }

    #[test]
    fn pages_of_other_sites_are_told_by_their_headers() {
        let is_other = |uri: &str, headers: &[(&str, &str)]| {
            let mut request = hyper::Request::post(uri);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            is_of_another_site(&request.body(()).expect("a request"))
        };
        let host = ("host", "localhost:7171");
        let (site, origin) = (|value| (SEC_FETCH_SITE, value), |value| ("origin", value));
        for own in [
            vec![host],
            vec![host, site("same-origin")],
            vec![host, site("none")],
            vec![host, origin("http://localhost:7171")],
            vec![host, origin("https://LOCALHOST:7171")],
            // behind a proxy that changes the host
            vec![host, site("same-origin"), origin("https://shop.example")],
        ] {
            assert!(!is_other("/v1/experiments", &own), "{own:?}");
        }
        for other in [
            vec![host, site("cross-site")],
            vec![host, site("same-site")],
            vec![host, site("")],
            vec![host, site("same-origin"), site("cross-site")],
            vec![host, site("cross-site"), origin("http://localhost:7171")],
            vec![host, origin("https://evil.example")],
            vec![host, origin("http://localhost:3000")],
            vec![host, origin("http://localhost")],
            vec![host, origin("null")],
            vec![host, origin("")],
            vec![origin("https://evil.example")],
        ] {
            assert!(is_other("/v1/experiments", &other), "{other:?}");
            assert!(!is_other("/experiments/search", &other), "{other:?}");
        }
        let own = [origin("http://localhost:7171")];
        assert!(!is_other("http://localhost:7171/v1/experiments", &own));
    }
}
