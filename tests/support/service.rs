//! The whole service inside the test, with a store and a clock that the test controls.

use std::sync::Arc;
use std::time::Duration;

use rankduel::http::server::{ConnectionSettings, Drained};
use rankduel::http::{AppState, ShellSettings, app};
use rankduel::service::verify::verify;
use rankduel::service::{Service, ServiceSettings};
use rankduel_engine::access::{Actor, KeyChangeError, KeyRequest, Scope, Scopes, create_key};
use rankduel_engine::clock::ManualClock;
use rankduel_engine::metrics::Metrics;
use rankduel_store::{AuditNote, SharedStore};
use serde_json::Value;

use super::TestDatabase;
use super::client::{Client, PATIENCE};
use super::server::TestServer;

/// The initial time of every server's clock: 2026-09-21T14:13:20Z.
pub const START_MS: i64 = 1_790_000_000_000;

/// A new key of the database: its text and its id.
pub async fn key(
    store: &SharedStore,
    scopes: &[Scope],
    experiments: Option<&[&str]>,
) -> (String, String) {
    let scopes: Scopes = scopes.iter().copied().collect();
    let request = KeyRequest {
        name: format!("of a test, {scopes}"),
        scopes,
        experiments: experiments.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_in_days: None,
    };
    made_key(store, &request).await
}

/// The text and the id of a new key.
pub async fn made_key(store: &SharedStore, request: &KeyRequest) -> (String, String) {
    let shown = |_: &_, _: &_| Ok::<_, KeyChangeError>(());
    let made = create_key(&**store, request, &Actor::command_line(), START_MS, shown).await;
    let (key, record) = made.expect("a key");
    (key.text, record.id)
}

/// The settings that a test may change.
pub struct Settings {
    pub service: ServiceSettings,
    pub shell: ShellSettings,
}

impl Settings {
    /// Rounds of maintenance follow each other quickly.
    pub fn quick() -> Self {
        let mut settings = Self::default();
        settings.service.maintain_every = Duration::from_millis(20);
        settings
    }
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
    store: SharedStore,
    client: Client,
    server: TestServer,
}

impl Server {
    /// A server on this store.
    pub async fn start(store: SharedStore) -> Self {
        Self::with(store, Settings::default()).await
    }

    /// A server on a new database, with this experiment.
    pub async fn running(database: &TestDatabase, experiment: &Value) -> Self {
        let server = Self::start(database.store().await).await;
        server.create(experiment).await;
        server
    }

    /// Two servers on a new database.
    pub async fn two(database: &TestDatabase) -> [Self; 2] {
        [Self::start(database.store().await).await, Self::start(database.connect().await).await]
    }

    /// A server on this store with these settings.
    pub async fn with(store: SharedStore, settings: Settings) -> Self {
        let clock = ManualClock::at(START_MS);
        let metrics = Arc::new(Metrics::new());
        let shared_clock = Arc::new(clock.clone());
        let service =
            Service::start(store.clone(), shared_clock, Arc::clone(&metrics), settings.service)
                .await
                .expect("the service starts");
        let state = AppState { service: Arc::clone(&service), metrics, readiness: Arc::default() };
        let app = app(state, &settings.shell).expect("the API is set up");
        let server = TestServer::start(app, ConnectionSettings::default()).await;
        Self { service, clock, store, client: Client::new(&server.url("")), server }
    }

    /// A client of this server.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Stop, and start a server from a snapshot of an experiment's state here. The snapshot is
    /// kept, and the log verifies with it.
    pub async fn restarted_from_snapshot(self, database: &TestDatabase, name: &str) -> Self {
        let loaded = self.service.experiment(name).await.expect("an experiment");
        let snapshot = loaded.snapshot(0).expect("a state");
        drop(loaded);
        self.stop().await;
        let store = database.connect().await;
        store.save_snapshot(&snapshot).await.expect("it is kept");
        let findings = verify(&*store, name).await.expect("an answer");
        assert_eq!((findings.wrong, findings.snapshots), (Vec::new(), 1));
        Self::start(store).await
    }

    /// Stop, and assert that servers find the same: one that folds the whole log, and one that
    /// starts from a snapshot. Returns the latter.
    pub async fn same_after_restarts<T: PartialEq + std::fmt::Debug>(
        self,
        database: &TestDatabase,
        name: &str,
        find: impl AsyncFn(&Self) -> T,
    ) -> Self {
        let here = find(&self).await;
        self.stop().await;
        database.execute("delete from snapshot").await;
        let folded = Self::start(database.connect().await).await;
        assert_eq!(find(&folded).await, here, "from the log alone");
        let restored = folded.restarted_from_snapshot(database, name).await;
        assert_eq!(find(&restored).await, here, "from the snapshot");
        restored
    }

    /// Prune the log of a concluded experiment up to a position.
    pub async fn prune(&self, name: &str, up_to: u64) {
        let loaded = self.service.experiment(name).await.expect("an experiment");
        let snapshot = loaded.snapshot(0).expect("a state");
        self.store.save_snapshot(&snapshot).await.expect("it is kept");
        let note = AuditNote::of_experiment(&Actor::command_line(), "log-pruned", name, 0);
        let pruned = self.store.prune(loaded.id, up_to, snapshot.format, &note).await;
        assert!(pruned.expect("an answer"), "the log is pruned");
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
