//! The room of requests that need no key or show an unknown one. They share nothing with the
//! requests of callers that have shown a key, but the processor.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderValue, header};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connections::Peer;
use super::proxies::TrustedProxies;
use super::rates::Rates;
use crate::http::problem::{Problem, ProblemKind};

/// Settings of the requests without a key.
#[derive(Debug, Clone)]
pub struct OpenSettings {
    /// Requests that run at once. Further ones wait.
    pub places: usize,
    /// A request with a larger body gets 413.
    pub body_limit_bytes: usize,
    /// A request that takes longer, with its body and its wait, gets 504.
    pub time_limit: Duration,
    /// Requests per second of each address.
    pub per_second: u32,
    /// Requests that an address may send at once.
    pub burst: u32,
    /// The proxies that name the address of a caller.
    pub proxies: TrustedProxies,
}

impl Default for OpenSettings {
    fn default() -> Self {
        Self {
            places: 64,
            body_limit_bytes: 4 * 1024,
            time_limit: Duration::from_secs(2),
            per_second: 100,
            burst: 500,
            proxies: TrustedProxies::default(),
        }
    }
}

/// The room.
#[derive(Debug)]
pub(crate) struct OpenRoom {
    pub body_limit_bytes: usize,
    pub time_limit: Duration,
    places: Arc<Semaphore>,
    rates: Rates,
    proxies: TrustedProxies,
}

impl OpenRoom {
    pub fn new(settings: &OpenSettings) -> Self {
        Self {
            body_limit_bytes: settings.body_limit_bytes,
            time_limit: settings.time_limit,
            places: Arc::new(Semaphore::new(settings.places.min(Semaphore::MAX_PERMITS))),
            rates: Rates::new(settings.per_second, settings.burst),
            proxies: settings.proxies.clone(),
        }
    }

    /// Count a request against the rate of its address.
    pub fn count(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(peer) = peer else { return Ok(()) };
        let caller: IpAddr = self.proxies.caller(peer.address(), headers);
        self.rates.take(caller, Instant::now()).map_err(|wait| {
            Problem::new(
                ProblemKind::TooManyRequests,
                "This address sends more requests without a valid key than this server accepts.",
            )
            .retry_after(wait.as_secs() as u32 + 1)
            // What the client has already sent on this connection is not read.
            .header(header::CONNECTION, HeaderValue::from_static("close"))
        })
    }

    /// Wait for a place.
    pub async fn enter(&self) -> Place {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.places).acquire_owned().await.ok();
        Place(Arc::new(Mutex::new(permit)))
    }
}

/// A place in the room, until the last clone is dropped or [`Place::leave`] is called.
#[derive(Debug, Clone)]
pub(crate) struct Place(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Place {
    /// Give the place up before a wait that should hold nothing.
    pub fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
