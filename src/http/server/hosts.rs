//! The hosts that a server without keys answers for.
//!
//! A server without keys trusts everyone who can connect, and listens on the local machine only. A
//! web page elsewhere must not use the visitor's browser to connect: it can let its own name
//! resolve to 127.0.0.1 (DNS rebinding), and the browser then takes the server's answers for the
//! page's own. Such a request still names the page's host, so it is refused.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::keys::Keys;
use crate::http::caller::forbidden;

/// Which hosts a request may name while the server has no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Only the local machine: `localhost` and loopback addresses.
    Local,
    /// Any: other machines are meant to reach the server without a key.
    Any,
}

/// Checks the hosts of requests.
pub(crate) struct HostCheck {
    keys: Keys,
    hosts: Hosts,
}

impl HostCheck {
    pub fn new(keys: Keys, hosts: Hosts) -> Self {
        Self { keys, hosts }
    }

    /// Whether a request with this head may be answered.
    pub fn admits<B>(&self, request: &hyper::Request<B>) -> bool {
        let is_local = request.uri().host().is_none_or(is_local);
        self.hosts == Hosts::Any
            || is_local && names_local_host(request.headers())
            || !self.keys.are_none()
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
    let detail = "This server has no API keys and answers only requests to localhost. Connect to \
        localhost, create a key, or start the server with --insecure.";
    forbidden(detail.into()).into_response()
}

/// Whether every host that the headers name is the local machine. Browsers always name one.
pub(super) fn names_local_host(headers: &HeaderMap) -> bool {
    headers.get_all(header::HOST).iter().all(|host| {
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
            let request = request.body(()).expect("a request");
            request.uri().host().is_none_or(is_local) && names_local_host(request.headers())
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
}
