//! The whole API except the socket: every response is one that the API promises, and the service
//! keeps running.
//!
//! An input is one or more requests, separated by a line `%%`. A request is `METHOD PATH`, headers,
//! an empty line and a body. `$duel` and `$page` are replaced with issued duel ids, without and
//! with a page, because the fuzzer cannot guess a signed id.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, header};
use rankduel::clock::ManualClock;
use rankduel::http::{App, AppState, ShellSettings, app};
use rankduel::service::Service;
use rankduel::service::ServiceSettings;
use rankduel::store::connect;
use rankduel::telemetry::metrics::Metrics;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Largest number of requests in one input.
const REQUESTS_MAX: usize = 8;
/// Number of requests with an effect after which the service restarts on an empty database.
const CHANGES_MAX: u32 = 500;
const NOW_MS: i64 = 1_790_000_000_000;

/// A running service, and the duels that it issued.
struct Scene {
    runtime: Runtime,
    folder: TempDir,
    service: Arc<Service>,
    app: App,
    duel: String,
    page: String,
    changes: u32,
}

thread_local! {
    static SCENE: RefCell<Option<Scene>> = const { RefCell::new(None) };
}

/// The input is a list of requests.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    SCENE.with_borrow_mut(|kept| {
        let mut scene = kept.take().unwrap_or_else(Scene::start);
        for request in text.split("\n%%\n").take(REQUESTS_MAX) {
            scene.send(request);
        }
        // the service still runs, and still has its experiment
        let (status, _) = scene.answer(get("/v1/experiments/search/statistics"));
        assert_eq!(status, 200, "the experiment is gone");
        if scene.changes < CHANGES_MAX {
            *kept = Some(scene);
        } else {
            scene.stop();
        }
    });
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).expect("a request")
}

fn post(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_string())).expect("a request")
}

impl Scene {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let folder = match PathBuf::from("/dev/shm") {
            memory if memory.is_dir() => tempfile::tempdir_in(memory),
            _ => tempfile::tempdir(),
        }
        .expect("a folder");
        let url = format!("sqlite://{}/rankduel.db", folder.path().display());
        let (service, app) = runtime.block_on(async {
            let store = connect(&url).await.expect("a store");
            store.migrate().await.expect("a schema");
            let metrics = Arc::new(Metrics::new());
            let clock = Arc::new(ManualClock::at(NOW_MS));
            let service =
                Service::start(store, clock, Arc::clone(&metrics), ServiceSettings::default())
                    .await;
            let service = service.expect("a service");
            let state =
                AppState { service: Arc::clone(&service), metrics, readiness: Arc::default() };
            (service, app(state, &ShellSettings::default()).expect("the API"))
        });
        let mut scene = Self {
            runtime,
            folder,
            service,
            app,
            duel: String::new(),
            page: String::new(),
            changes: 0,
        };
        let batches = json!({"kind": "pcomp", "horizon": 1000, "batches": 2});
        for (name, policy) in [("search", json!({"kind": "d-ts"})), ("batches", batches)] {
            let body =
                json!({"name": name, "rankers": ["a", "b", "c"], "policy": policy, "seed": 1});
            scene.created(post("/v1/experiments", &body));
        }
        scene.duel = scene.issued_duel_id(&json!({}));
        let rankings = json!({"a": ["1", "2", "3"], "b": ["3", "2", "4"], "c": ["2", "1"]});
        scene.page = scene.issued_duel_id(&json!({"rankings": rankings, "length": 3}));
        scene
    }

    fn created(&self, request: Request<Body>) -> Value {
        let (status, body) = self.answer(request);
        assert!(status == 200 || status == 201, "{status}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// The `duel_id` of a new duel that is not a self-duel.
    fn issued_duel_id(&self, body: &Value) -> String {
        loop {
            let duel = self.created(post("/v1/experiments/search/next-duel", body));
            if duel["self_duel"] == false {
                return duel["duel_id"].as_str().expect("an id").to_owned();
            }
        }
    }

    /// Send the request in `text`, if it is one.
    fn send(&mut self, text: &str) {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else {
            return;
        };
        let fill = |text: &str| text.replace("$duel", &self.duel).replace("$page", &self.page);
        let mut request = Request::builder().method(method).uri(fill(path));
        let mut typed = false;
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            typed |= name.eq_ignore_ascii_case("content-type");
            request = request.header(name, value);
        }
        if !typed {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let Ok(request) = request.body(Body::from(fill(body))) else { return };
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let (status, _) = self.answer(request);
        if !reads && status < 300 {
            self.changes += 1;
        }
    }

    /// Send a request and return the status and body of the response, which must be one that the
    /// API promises.
    fn answer(&self, request: Request<Body>) -> (u16, String) {
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

    fn stop(self) {
        self.runtime.block_on(self.service.shutdown());
        drop((self.app, self.service, self.runtime));
        self.folder.close().expect("the folder can be removed");
    }
}
