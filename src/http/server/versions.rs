//! Server and clients tell each other their version, so that each can say if the other is too old.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The version of the sender, in requests of a client and in every response.
const VERSION: HeaderName = HeaderName::from_static("rankduel-version");

/// The oldest clients that this server supports, as major and minor version.
const OLDEST_CLIENT: (u32, u32) = (0, 1);

/// Warns in the log that a client is too old, once in the life of a server.
#[derive(Debug, Default)]
pub(crate) struct OldClients {
    has_warned: AtomicBool,
}

impl OldClients {
    /// Look at the headers of a request. Callers without a version are no clients of rankduel.
    pub fn note(&self, headers: &HeaderMap) {
        let Some(version) = headers.get(VERSION).and_then(|version| version.to_str().ok()) else {
            return;
        };
        let is_old = major_and_minor(version).is_some_and(|version| version < OLDEST_CLIENT);
        if is_old && !self.has_warned.swap(true, Ordering::Relaxed) {
            let (major, minor) = OLDEST_CLIENT;
            tracing::warn!(
                client = version,
                "a client is too old for this server: upgrade it to {major}.{minor} or later"
            );
        }
    }
}

/// Put the version of this server into the headers of a response.
pub(super) fn add_version(headers: &mut HeaderMap) {
    headers.insert(VERSION, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}
