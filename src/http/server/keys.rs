//! The keys that a server knows.

use std::sync::Arc;

use crate::service::Service;
use rankduel_engine::access::{ApiKeySet, Digest, KnownKey};

/// The keys given at the start of the server, and those in its database.
#[derive(Clone)]
pub(crate) struct Keys {
    given: Arc<ApiKeySet>,
    pub service: Arc<Service>,
}

impl Keys {
    pub fn new(given: ApiKeySet, service: Arc<Service>) -> Self {
        Self { given: Arc::new(given), service }
    }

    /// Whether there are none, so that every request is admitted.
    pub fn are_none(&self) -> bool {
        self.given.is_empty() && self.service.access.current().is_empty()
    }

    /// The key with this digest; `None` if this process knows none. It may be in the database.
    pub fn find(&self, digest: &Digest) -> Option<Arc<KnownKey>> {
        self.given.find(digest).or_else(|| self.service.access.current().find(digest))
    }
}
