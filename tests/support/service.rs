//! The whole service inside the test, with a store and a clock that the test controls.

use std::sync::Arc;

use rankduel::http::server::{ConnectionSettings, Drained};
use rankduel::http::{AppState, ShellSettings, app};
use rankduel::service::Service;
use rankduel::service::ServiceSettings;
use rankduel_engine::clock::ManualClock;
use rankduel_engine::metrics::Metrics;
use rankduel_store::SharedStore;

use super::client::{Client, PATIENCE};
use super::server::TestServer;

/// The initial time of every server's clock: 2026-09-21T14:13:20Z.
pub const START_MS: i64 = 1_790_000_000_000;

/// The settings that a test may change.
pub struct Settings {
    pub service: ServiceSettings,
    pub shell: ShellSettings,
}

impl Default for Settings {
    /// The defaults of the service, but no request or report times out: reports run at a low
    /// priority, and take long when other tests keep the processors busy.
    fn default() -> Self {
        let shell = ShellSettings { request_timeout: PATIENCE, ..ShellSettings::default() };
        let service = ServiceSettings { reports_within: PATIENCE, ..ServiceSettings::default() };
        Self { service, shell }
    }
}

/// A running server, which is also its own client.
pub struct Server {
    pub service: Arc<Service>,
    /// Its clock, which only the test advances.
    pub clock: ManualClock,
    client: Client,
    server: TestServer,
}

impl Server {
    /// A server on this store.
    pub async fn start(store: SharedStore) -> Self {
        Self::with(store, Settings::default()).await
    }

    /// A server on this store with these settings.
    pub async fn with(store: SharedStore, settings: Settings) -> Self {
        let clock = ManualClock::at(START_MS);
        let metrics = Arc::new(Metrics::new());
        let shared_clock = Arc::new(clock.clone());
        let service = Service::start(store, shared_clock, Arc::clone(&metrics), settings.service)
            .await
            .expect("the service starts");
        let state = AppState { service: Arc::clone(&service), metrics, readiness: Arc::default() };
        let app = app(state, &settings.shell).expect("the API is set up");
        let server = TestServer::start(app, ConnectionSettings::default()).await;
        Self { service, clock, client: Client::new(&server.url("")), server }
    }

    /// A client of this server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Stop as after a signal: finish running requests, then write the entries that are only in
    /// memory.
    pub async fn stop(self) {
        let Self { service, client, server, .. } = self;
        drop(client); // closes its idle connections
        assert_eq!(server.stop().stopped().await, Drained::Clean);
        service.shutdown().await;
    }
}

impl std::ops::Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}
