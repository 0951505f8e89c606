//! The hosts that a server without keys answers for.
//!
//! A server without keys trusts everyone who can connect, and listens on the local machine only. A
//! web page elsewhere must not use the visitor's browser to connect: it can let its own name
//! resolve to 127.0.0.1 (DNS rebinding), and the browser then takes the server's answers for the
//! page's own. Such a request still names the page's host, so it is refused.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};

use crate::http::caller::forbidden;
use crate::http::problem::Problem;

/// Which hosts a request may name while the server has no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// Only the local machine: `localhost` and loopback addresses.
    Local,
    /// Any: other machines are meant to reach the server without a key.
    Any,
}

impl Hosts {
    /// Whether a server without keys may answer a request with this head.
    pub(crate) fn admit(self, request: &Parts) -> bool {
        self == Self::Any
            || request.uri.host().is_none_or(is_local) && names_local_host(&request.headers)
    }
}

/// The problem of a request that a server without keys does not admit.
pub(super) fn other_host() -> Problem {
    let detail = "This server has no API keys and answers only requests to localhost. Connect to \
        localhost, create a key, or start the server with --insecure.";
    forbidden(detail.into())
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
