//! The two paths of `next-duel`, without the router and through it, give the same responses, log
//! lines and metrics.
//!
//! Each scenario runs on two servers. One gets requests without a body, which may take the fast
//! path. The other gets the same requests with an empty body of unknown length, which always take
//! the router's path.

use std::cell::RefCell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::routing::post;
use futures_util::future::Either;
use futures_util::stream;
use rankduel::access::{Actor, ApiKeys, Scope};
use rankduel::clock::{Clock, ManualClock};
use rankduel::http::{App, AppState, Readiness, ShellSettings, app_with};
use rankduel::service::{Service, ServiceSettings};
use rankduel::store::{ApiKeyRecord, AuditNote, SharedStore};
use rankduel::telemetry::metrics::Metrics;
use serde_json::{Value, json};

use crate::support::client::steady;
use crate::support::service::START_MS;
use crate::support::{Kind, TestDatabase, fresh_database};

const ADMIN: &str = "given-at-the-start-0123456789";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The path of requests that the fast path can answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Fast,
    Router,
}

/// A clock that stands still, and can be made to panic.
#[derive(Debug)]
struct TestClock {
    clock: ManualClock,
    panics: AtomicBool,
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        assert!(!self.panics.load(Ordering::SeqCst), "the clock panics as the test wants");
        self.clock.now_ms()
    }
}

thread_local! {
    /// The log lines of this thread, while a test records them.
    static LINES: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to [`LINES`].
struct Recorder;

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LINES.with_borrow_mut(|lines| {
            if let Some(lines) = lines {
                lines.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Record the log lines of this thread. The subscriber is global, because those of single threads
/// can miss lines while other threads set theirs.
fn record_lines() {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::INFO)
            .with_writer(|| Recorder)
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    });
    LINES.set(Some(Vec::new()));
}

/// A server without sockets, and a transcript of everything it sends, logs and counts.
struct World {
    way: Way,
    app: App,
    service: Arc<Service>,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    clock: Arc<TestClock>,
    transcript: Vec<String>,
    /// Do not check which path a request takes.
    any_path: bool,
    database: TestDatabase,
}

impl World {
    /// A server on a database with keys and experiments, none of them loaded.
    async fn start(way: Way, settings: &ShellSettings) -> Self {
        let database = fresh_database(Kind::Sqlite).await;
        let store = database.store().await;
        if !settings.keys.is_empty() {
            keys(&store).await;
        }
        experiments(store).await;

        record_lines();
        let clock =
            Arc::new(TestClock { clock: ManualClock::at(START_MS), panics: AtomicBool::default() });
        let (metrics, readiness) = (Arc::new(Metrics::new()), Arc::new(Readiness::default()));
        let service = service(database.connect().await, clock.clone(), &metrics).await;
        let state = AppState {
            service: Arc::clone(&service),
            metrics: Arc::clone(&metrics),
            readiness: Arc::clone(&readiness),
        };
        let hang = post(std::future::pending::<()>);
        let app = app_with(state, settings, Router::new().route("/hang", hang)).expect("an app");
        Self {
            way,
            app,
            service,
            metrics,
            readiness,
            clock,
            transcript: Vec::new(),
            any_path: false,
            database,
        }
    }

    /// Send a request without content, and record the response. `fast`: whether it must take the
    /// fast path, if that exists on this server.
    async fn send(&mut self, fast: bool, method: &str, target: &str, headers: &[(&str, &str)]) {
        let body = match self.way {
            Way::Fast => Body::empty(),
            Way::Router => Body::from_stream(stream::empty::<Result<Bytes, std::io::Error>>()),
        };
        self.send_body(fast && self.way == Way::Fast, method, target, headers, body).await;
    }

    async fn send_body(
        &mut self,
        fast: bool,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) {
        let request = headers
            .iter()
            .fold(Request::builder().method(method).uri(target), |request, (name, value)| {
                request.header(*name, *value)
            })
            .body(body)
            .expect("a request");
        let what = format!("{method} {target} {headers:?}");
        let response = self.app.respond(request);
        assert!(self.any_path || matches!(response, Either::Left(_)) == fast, "{what}");
        let response = response.await.expect("a response");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        let headers = described(&parts.headers, bytes.len());
        let body = describe_body(&bytes);
        self.transcript.push(format!("{what}\n{} {headers:?}\n{body}", parts.status));
        self.transcript.extend(self.access_lines());
        assert_eq!(self.metrics.http_requests_in_flight.get(), 0, "{what}");
    }

    /// Request a duel of this experiment with this key.
    async fn duel(&mut self, fast: bool, name: &str, key: &str) {
        let bearer = format!("Bearer {key}");
        let target = format!("/v1/experiments/{name}/next-duel");
        self.send(fast, "POST", &target, &[("authorization", &bearer)]).await;
    }

    /// The access log since the last call, without times and random ids.
    fn access_lines(&self) -> Vec<String> {
        let bytes = LINES.replace(Some(Vec::new())).expect("a recording");
        let text = String::from_utf8(bytes).expect("text");
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines
            .filter(|line| line["target"] == "rankduel::access")
            .map(|mut line| {
                for timing in ["/timestamp", "/fields/duration_ms"] {
                    *line.pointer_mut(timing).expect(timing) = Value::Null;
                }
                hide_request_id(&mut line["fields"]["request_id"]);
                if let Some(duel) = line.pointer_mut("/fields/duel") {
                    assert_eq!(duel.as_str().map(str::len), Some(32));
                    *duel = json!("DUEL");
                }
                line.to_string()
            })
            .collect()
    }

    /// The transcript, with the metrics at its end.
    fn end(mut self) -> Vec<String> {
        let metrics = self.metrics.encode().expect("metrics");
        let is_timing = |line: &&str| {
            line.contains("_seconds_sum")
                || line.contains("_bucket")
                // a background task sets it
                || line.starts_with("rankduel_followed_timestamp_seconds")
        };
        let mut metrics: Vec<_> = metrics.lines().filter(|line| !is_timing(line)).collect();
        metrics.sort_unstable();
        self.transcript.extend(metrics.into_iter().map(String::from));
        self.transcript
    }
}

async fn service(
    store: SharedStore,
    clock: Arc<TestClock>,
    metrics: &Arc<Metrics>,
) -> Arc<Service> {
    Service::start(store, clock, Arc::clone(metrics), ServiceSettings::default())
        .await
        .expect("a service")
}

/// The text of the key with this name.
fn key_text(name: &str) -> String {
    format!("stored-{name}-0123456789")
}

/// Add valid keys, and keys that are invalid in different ways.
async fn keys(store: &SharedStore) {
    let search = Some(vec!["search".to_owned()]);
    let other = Some(vec!["other".to_owned()]);
    for (name, scope, experiments, expires_at, revoked_at) in [
        ("decide", Scope::Decide, None, None, None),
        ("read", Scope::Read, None, None, None),
        ("search", Scope::Decide, search, None, None),
        ("other", Scope::Decide, other, None, None),
        ("expired", Scope::Decide, None, Some(START_MS), None),
        ("revoked", Scope::Decide, None, None, Some(START_MS - 1)),
    ] {
        let digest = rankduel::access::digest_of(key_text(name).as_bytes());
        let record = ApiKeyRecord {
            id: rankduel::access::KeyId::of(&digest).as_str().into(),
            digest,
            name: name.into(),
            scopes: scope.name().into(),
            experiments,
            replaces: None,
            created_at: START_MS - 1000,
            expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        let note = AuditNote::new(&Actor::command_line(), "key-created", &record.id, START_MS);
        store.add_api_key(&record, None, &note).await.expect("a key");
        if let Some(at) = revoked_at {
            assert!(store.revoke_api_key(&record.id, at, &note).await.expect("a key"));
        }
    }
}

/// Create one experiment for each state.
async fn experiments(store: SharedStore) {
    let clock =
        Arc::new(TestClock { clock: ManualClock::at(START_MS), panics: AtomicBool::default() });
    let metrics = Arc::new(Metrics::new());
    let service = service(store, clock, &metrics).await;
    let state = AppState { service: Arc::clone(&service), metrics, readiness: Arc::default() };
    let keys = ApiKeys::parse(ADMIN).expect("a key");
    let settings = ShellSettings { keys, ..ShellSettings::default() };
    let app = app_with(state, &settings, Router::new()).expect("an app");
    let call = async |method: &str, path: String, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {ADMIN}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::IF_MATCH, "*")
            .body(Body::from(body.to_string()))
            .expect("a request");
        let response = app.respond(request).await.expect("a response");
        assert!(response.status().is_success(), "{response:?}");
    };
    for name in ["search", "other", "paused", "concluded", "archived"] {
        call("POST", "/v1/experiments".into(), steady(name, &["a", "b"])).await;
    }
    for (name, status) in
        [("paused", "paused"), ("concluded", "concluded"), ("archived", "concluded")]
    {
        call("PATCH", format!("/v1/experiments/{name}"), json!({"status": status})).await;
    }
    call("DELETE", "/v1/experiments/archived".into(), Value::Null).await;
    service.shutdown().await;
}

/// Hide the random part of a generated request id; the rest counts requests.
fn hide_request_id(id: &mut Value) {
    let text = id.as_str().expect("an id");
    if let Some((process, number)) = text.split_once('-')
        && process.len() == 16
        && process.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        *id = json!(format!("PROCESS-{number}"));
    }
}

/// The headers, as a client would receive them.
fn described(headers: &HeaderMap, bytes: usize) -> Vec<(String, String)> {
    let mut headers = headers.clone();
    // the router sets it; on the wire hyper adds it where it is missing
    let length = headers.remove(header::CONTENT_LENGTH);
    assert!(length.is_none_or(|length| length == HeaderValue::from(bytes) || bytes == 0));
    let mut headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| {
            let mut value = json!(value.to_str().expect("ASCII"));
            if name == "x-request-id" {
                hide_request_id(&mut value);
            }
            (name.to_string(), value.as_str().expect("text").to_owned())
        })
        .collect();
    headers.sort();
    headers
}

/// The body, without its random parts.
fn describe_body(bytes: &[u8]) -> String {
    let Ok(mut body) = serde_json::from_slice::<Value>(bytes) else {
        return String::from_utf8(bytes.to_vec()).expect("text");
    };
    if body.get("duel_id").is_some() {
        let (left, right) = (body["left"].take(), body["right"].take());
        assert!([&left, &right].iter().all(|side| **side == "a" || **side == "b"));
        assert_eq!(body["self_duel"], json!(left == right));
        body["duel_id"] = json!("DUEL");
    }
    if let Some(id) = body.get_mut("request_id") {
        hide_request_id(id);
    }
    body.to_string()
}

/// Run a scenario over both paths, and compare the transcripts.
async fn over_both_paths(settings: ShellSettings, scenario: impl AsyncFn(&mut World)) {
    let mut transcripts = Vec::new();
    for way in [Way::Fast, Way::Router] {
        let mut world = World::start(way, &settings).await;
        scenario(&mut world).await;
        transcripts.push(world.end());
    }
    let [fast, router] = &transcripts[..] else { unreachable!() };
    for (fast, router) in fast.iter().zip(router) {
        assert_eq!(fast, router);
    }
    assert_eq!(fast.len(), router.len());
    assert!(fast.iter().any(|line| line.contains("http_requests_total")));
}

fn with_keys() -> ShellSettings {
    ShellSettings { keys: ApiKeys::parse(ADMIN).expect("a key"), ..ShellSettings::default() }
}

#[tokio::test]
async fn every_state_of_an_experiment() {
    over_both_paths(with_keys(), async |world| {
        // the first request loads the experiment
        for fast in [false, true] {
            for name in ["search", "paused", "concluded", "archived"] {
                world.duel(fast, name, ADMIN).await;
            }
            let missing = ["none", "Search", "search%20", "%73earch", "a/b", "%00", ""];
            for name in missing.into_iter().chain([&*"a".repeat(65)]) {
                world.duel(false, name, ADMIN).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_key() {
    over_both_paths(with_keys(), async |world| {
        world.duel(false, "search", ADMIN).await;
        for (fast, name) in [
            (true, "decide"),
            (true, "search"),
            (false, "read"),
            (false, "other"),
            (false, "expired"),
            (false, "revoked"),
            (false, "unknown"),
        ] {
            world.duel(fast, "search", &key_text(name)).await;
        }
        let target = "/v1/experiments/search/next-duel";
        let admin = format!("Bearer {ADMIN}");
        for (fast, authorization) in [
            (false, ADMIN.to_owned()),
            (false, "Basic Zm9vOmJhcg==".to_owned()),
            (false, String::new()),
            (false, "Bearer ".to_owned()),
            (true, format!("bearer   {ADMIN} ")),
        ] {
            world.send(fast, "POST", target, &[("authorization", &authorization)]).await;
        }
        world.send(false, "POST", target, &[]).await;
        let twice = [("authorization", &*admin), ("authorization", "Bearer no-such-key")];
        world.send(true, "POST", target, &twice).await;
        // a session opens pages only
        world.send(false, "POST", target, &[("cookie", "rankduel-session=AAAA")]).await;
    })
    .await;
}

#[tokio::test]
async fn a_key_made_later_is_found() {
    over_both_paths(with_keys(), async |world| {
        world.duel(false, "search", ADMIN).await;
        let record = ApiKeyRecord {
            id: "0badcafe".into(),
            digest: rankduel::access::digest_of(key_text("later").as_bytes()),
            name: "later".into(),
            scopes: Scope::Decide.name().into(),
            experiments: None,
            replaces: None,
            created_at: START_MS,
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        };
        let note = AuditNote::new(&Actor::command_line(), "key-created", &record.id, START_MS);
        let store = world.database.connect().await;
        store.add_api_key(&record, None, &note).await.expect("a key");
        // the router's path reads the keys again, unless the service just did that in the
        // background
        world.any_path = true;
        world.duel(false, "search", &key_text("later")).await;
        world.any_path = false;
        world.duel(true, "search", &key_text("later")).await;
    })
    .await;
}

#[tokio::test]
async fn every_form_of_a_request() {
    over_both_paths(with_keys(), async |world| {
        world.duel(false, "search", ADMIN).await;
        let bearer = format!("Bearer {ADMIN}");
        let key = ("authorization", &*bearer);
        let target = "/v1/experiments/search/next-duel";
        let (fits, too_large) = ("x".repeat(15 * 1024), "x".repeat(17 * 1024));
        let (id, long_id) = ("x".repeat(128), "x".repeat(129));
        for (fast, header) in [
            (true, ("x-request-id", "sent-by-the-caller")),
            (true, ("x-request-id", &*id)),
            (true, ("x-request-id", &*long_id)),
            (true, ("x-request-id", "two words")),
            (true, ("x-request-id", "")),
            (true, ("traceparent", TRACEPARENT)),
            (true, ("traceparent", "00-0-0-0")),
            (true, ("accept-encoding", "gzip, br")),
            (true, ("accept", "text/html")),
            (true, ("if-none-match", "*")),
            (true, ("content-type", "text/plain")),
            (true, ("content-type", "application/json")),
            (true, ("origin", "https://elsewhere.example")),
            (true, ("cookie", &*fits)),
            (false, ("cookie", &*too_large)),
        ] {
            world.send(fast, "POST", target, &[key, header]).await;
        }
        let twice = [key, ("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)];
        world.send(true, "POST", target, &twice).await;
        for query in ["?", "?limit=1", "?name=other", "?%00"] {
            world.send(true, "POST", &format!("{target}{query}"), &[key]).await;
        }
        for other in [
            "/v1/experiments/search/next-duel/",
            "/v1/experiments//next-duel",
            "//v1/experiments/search/next-duel",
            "/v1/experiments/search/next-duels",
            "/v1/experiments/search/Next-Duel",
            "/v1/experiments/search/next-duel%20",
            "/v2/experiments/search/next-duel",
        ] {
            world.send(false, "POST", other, &[key]).await;
        }
        for method in ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"] {
            world.send(false, method, target, &[key]).await;
            world.send(false, method, target, &[]).await;
        }
        let json = ("content-type", "application/json");
        for body in ["{}", "null", " ", "{", "[]", r#"{"length": 3}"#, r#"{"x": 1}"#] {
            world.send_body(false, "POST", target, &[key, json], body.into()).await;
            world.send_body(false, "POST", target, &[key], body.into()).await;
        }
    })
    .await;
}

#[tokio::test]
async fn requests_of_pages_of_other_sites() {
    let target = "/v1/experiments/search/next-duel";
    let (host, own) = (("host", "localhost:7171"), ("origin", "http://localhost:7171"));
    let evil = ("origin", "https://evil.example");
    let site = |site| ("sec-fetch-site", site);
    over_both_paths(ShellSettings::default(), async |world| {
        world.send(false, "POST", target, &[host]).await;
        for headers in [
            vec![host],
            vec![host, own],
            vec![host, own, site("same-origin")],
            vec![host, site("none")],
        ] {
            world.send(true, "POST", target, &headers).await;
        }
        for headers in [
            vec![host, evil],
            vec![host, ("origin", "null")],
            vec![host, ("origin", "http://localhost:3000")],
            vec![host, evil, site("cross-site")],
            vec![host, site("same-site")],
            vec![host, own, site("cross-site"), ("content-type", "text/plain")],
        ] {
            world.send(false, "POST", target, &headers).await;
            let refused = world.transcript.iter().rev().find(|line| line.starts_with("POST"));
            assert!(refused.is_some_and(|answer| answer.contains("\n403 ")), "{headers:?}");
        }
    })
    .await;
    // A page of another site does not know a key, so whoever sends one may.
    over_both_paths(with_keys(), async |world| {
        let bearer = format!("Bearer {ADMIN}");
        let key = ("authorization", &*bearer);
        world.send(false, "POST", target, &[key]).await;
        world.send(true, "POST", target, &[key, host, evil, site("cross-site")]).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_without_keys_and_a_panic() {
    over_both_paths(ShellSettings::default(), async |world| {
        let target = "/v1/experiments/search/next-duel";
        world.send(false, "POST", target, &[]).await;
        world.send(true, "POST", target, &[]).await;
        world.send(true, "POST", target, &[("authorization", "Bearer any-key-at-all")]).await;

        world.clock.panics.store(true, Ordering::SeqCst);
        world.send(true, "POST", target, &[]).await;
        world.clock.panics.store(false, Ordering::SeqCst);
        assert_eq!(world.metrics.panics.get(), 1);
        world.send(true, "POST", target, &[]).await;
    })
    .await;
}

#[tokio::test]
async fn an_overloaded_server() {
    let settings = ShellSettings { max_concurrent_requests: 1, ..with_keys() };
    over_both_paths(settings, async |world| {
        world.duel(false, "search", ADMIN).await;
        world.duel(true, "search", ADMIN).await;
        let hangs = Request::post("/hang")
            .header(header::AUTHORIZATION, format!("Bearer {ADMIN}"))
            .body(Body::empty())
            .expect("a request");
        let hangs = tokio::spawn(world.app.respond(hangs));
        while world.metrics.http_requests_in_flight.get() == 0 {
            tokio::task::yield_now().await;
        }
        // it holds the only permit; the requests below check that no other request runs
        world.metrics.http_requests_in_flight.dec();
        world.duel(false, "search", ADMIN).await;
        world.duel(false, "search", &key_text("decide")).await;
        world.duel(false, "search", "no-such-key-0123456789").await;
        world.duel(false, "none", ADMIN).await;
        assert_eq!(world.metrics.http_requests_shed.get(), 3);
        world.metrics.http_requests_in_flight.inc();
        hangs.abort();
        drop(hangs.await);
        drop(world.access_lines());
        world.duel(true, "search", ADMIN).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_that_drains_and_one_that_has_stopped() {
    over_both_paths(with_keys(), async |world| {
        world.duel(false, "search", ADMIN).await;
        world.readiness.drain();
        world.duel(true, "search", ADMIN).await;
        world.service.shutdown().await;
        world.duel(true, "search", ADMIN).await;
        world.duel(false, "other", ADMIN).await;
    })
    .await;
}

/// The responses are the same after hyper has written them.
#[tokio::test]
async fn the_bytes_on_the_wire() {
    use crate::support::server::Api;

    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let created = reqwest::Client::new()
        .post(api.server.url("/v1/experiments"))
        .json(&steady("search", &["a", "b"]))
        .send();
    assert_eq!(created.await.expect("an answer").status(), 201);
    let send = async |rest: &str| {
        let request = format!(
            "POST /v1/experiments/search/next-duel HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{rest}"
        );
        let answer = api.server.raw(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let mut head: Vec<String> = head
            .split("\r\n")
            .filter(|line| !line.starts_with("date:") && !line.starts_with("x-request-id:"))
            .map(str::to_owned)
            .collect();
        head.sort();
        // the lengths of two duel ids may differ
        let length = format!("content-length: {}", body.len());
        let at = head.iter().position(|line| *line == length).expect("the length of the body");
        head.remove(at);
        head
    };
    let fast = send("\r\n").await;
    assert_eq!(fast, send("content-length: 0\r\n\r\n").await);
    assert_eq!(fast, send("transfer-encoding: chunked\r\n\r\n0\r\n\r\n").await);
}
