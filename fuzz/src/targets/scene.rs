//! A whole service on its own database, except the socket, and the check that every response is one
//! that the API promises.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use rankduel::http::{App, AppState, ShellSettings, app};
use rankduel::service::Service;
use rankduel::service::ServiceSettings;
use rankduel_engine::clock::ManualClock;
use rankduel_engine::metrics::Metrics;
use rankduel_store::{SharedStore, connect};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const NOW_MS: i64 = 1_790_000_000_000;

/// A running service.
pub struct Scene {
    pub runtime: Runtime,
    /// A second connection to its database.
    pub store: SharedStore,
    folder: TempDir,
    service: Arc<Service>,
    app: App,
}

/// A GET request.
pub fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

/// A request with a JSON body.
pub fn send(method: Method, path: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.header(header::IF_MATCH, "*").body(Body::from(body.to_string())).expect("a request")
}

impl Scene {
    /// A service on an empty database.
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = match PathBuf::from("/dev/shm") {
            memory if memory.is_dir() => tempfile::tempdir_in(memory),
            _ => tempfile::tempdir(),
        }
        .expect("a folder");
        let url = format!("sqlite://{}/rankduel.db", folder.path().display());
        let (service, app, store) = runtime.block_on(async {
            let store = connect(&url).await.expect("a store");
            store.migrate().await.expect("a schema");
            let metrics = Arc::new(Metrics::new());
            let clock = Arc::new(ManualClock::at(NOW_MS));
            let settings = ServiceSettings::default();
            let service =
                Service::start(Arc::clone(&store), clock, Arc::clone(&metrics), settings).await;
            let service = service.expect("a service");
            let state =
                AppState { service: Arc::clone(&service), metrics, readiness: Arc::default() };
            // On a busy machine, a time limit would end a request before the server has failed it.
            let shell = ShellSettings {
                request_timeout: Duration::from_secs(60),
                ..ShellSettings::default()
            };
            (service, app(state, &shell).expect("the API"), store)
        });
        Self { runtime, store, folder, service, app }
    }

    /// The body of a response that must be a success.
    pub fn succeeds(&self, request: Request<Body>) -> Value {
        let (status, body) = self.answer(request);
        assert!(status == 200 || status == 201, "{status}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Send a request and return the status and body of the response, which must be one that the
    /// API promises.
    pub fn answer(&self, request: Request<Body>) -> (u16, String) {
        let what = format!("{} {}", request.method(), request.uri());
        let head = request.method() == Method::HEAD;
        self.runtime.block_on(async {
            let response = self.app.respond(request).await.expect("an answer");
            let status = response.status().as_u16();
            let of_type = |kind: &str| {
                let header = response.headers().get(header::CONTENT_TYPE);
                header
                    .and_then(|value| value.to_str().ok())
                    .is_some_and(|value| value.starts_with(kind))
            };
            let (problem, json) =
                (of_type("application/problem+json"), of_type("application/json"));
            let page = of_type("text/html");
            assert!(
                response.headers().contains_key("x-request-id"),
                "{what}: {status} without a request id"
            );
            let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("memory");
            let body = String::from_utf8_lossy(&bytes).into_owned();
            assert!(status < 500, "{what}: {status} {body}");
            assert!(
                status < 400 || problem || page,
                "{what}: {status} without a problem document: {body}"
            );
            if (problem || json) && !head {
                let read: Value =
                    serde_json::from_str(&body).unwrap_or_else(|_| panic!("{what}: {body}"));
                if problem {
                    assert_eq!(read["status"], status, "{what}: {body}");
                    assert!(
                        read["detail"].as_str().is_some_and(|text| text.len() > 10),
                        "{what}: {body}"
                    );
                }
            }
            (status, body)
        })
    }

    /// Stop the service and remove its database.
    pub fn stop(self) {
        self.runtime.block_on(self.service.shutdown());
        drop((self.app, self.service, self.store, self.runtime));
        self.folder.close().expect("the folder can be removed");
    }
}
