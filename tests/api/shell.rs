//! The middleware around every route, tested on routes made for the purpose.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::routing::{get, post};
use rankduel::http::server::{ConnectionSettings, Drained};
use rankduel::http::{Problem, ProblemKind, REQUEST_ID, ShellSettings};
use rankduel_engine::clock::SystemClock;
use rankduel_engine::metrics::{Metrics, RequestLabels};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::client::eventually;
use crate::support::server::Api;
use crate::support::{KINDS, Kind};

/// Timeout for a step of a test; a test that waits longer has failed.
const LONG: Duration = Duration::from_secs(60);

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A route that reports when a request is inside, and holds it until it is released or dropped.
#[derive(Default)]
struct Gate {
    entered: Notify,
    open: Notify,
    left: Notify,
}

struct Leaving(Arc<Gate>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.left.notify_one();
    }
}

struct Shell {
    api: Api,
    gate: Arc<Gate>,
}

async fn shell(settings: &ShellSettings, connections: ConnectionSettings) -> Shell {
    let gate = Arc::new(Gate::default());
    let inside = Arc::clone(&gate);
    let router = Router::new()
        .route("/fine/{id}", get(|| async { "fine" }))
        .route("/large", get(|| async { "all work and no play ".repeat(1000) }))
        .route("/kept", get(|| async { ([("etag", "\"1\"")], "kept") }))
        .route("/bytes", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/never", get(pending::<()>))
        .route("/panics-at-once", get(panics_at_once))
        .route("/panics-later", get(panics_later))
        .route("/fails", get(|| async { Problem::internal("the disk is on fire") }))
        .route("/fails-bare", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "secret cause") }))
        .route(
            "/problem",
            get(|| async {
                Problem::new(ProblemKind::ExperimentPaused, "It is paused.")
                    .field("/rankers/3/id", "is taken")
                    .query("limit", "is too large")
                    .path("name", "is too long")
                    .header(header::RETRY_AFTER, HeaderValue::from_static("7"))
            }),
        )
        .route(
            "/gate",
            get(move || async move {
                let _leaving = Leaving(Arc::clone(&inside));
                inside.entered.notify_one();
                inside.open.notified().await;
                "through"
            }),
        );
    let clock = Arc::new(SystemClock);
    let api = Api::start_with(Kind::Sqlite, settings, clock, connections, router).await;
    Shell { api, gate }
}

async fn panics_at_once() -> &'static str {
    panic!("at once")
}

async fn panics_later() -> &'static str {
    tokio::task::yield_now().await;
    panic!("later")
}

async fn plain_shell() -> Shell {
    shell(&ShellSettings::default(), ConnectionSettings::default()).await
}

/// Check every member of a problem of this kind, and return its body.
async fn problem(response: Response, kind: ProblemKind) -> Value {
    let (status, headers) = (response.status(), response.headers().clone());
    let path = response.url().path().to_owned();
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(status, kind.status(), "{body}");
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["cache-control"], "no-store");
    assert_eq!(body["type"], kind.type_uri());
    assert_eq!(body["title"], kind.title());
    assert_eq!(body["status"], kind.status().as_u16());
    assert_eq!(body["instance"], path);
    assert_eq!(body["request_id"], headers["x-request-id"].to_str().unwrap());
    assert!(body["detail"].as_str().is_some_and(|detail| detail.ends_with('.')), "{body}");
    assert_eq!(
        headers.contains_key("retry-after"),
        kind.retry_after_seconds().is_some(),
        "{headers:?}"
    );
    body
}

fn counted(metrics: &Metrics, method: &'static str, route: &str, status: u16) -> u64 {
    metrics
        .http_requests
        .get_or_create(&RequestLabels { method, route: route.to_owned(), status })
        .get()
}

#[tokio::test]
async fn framework_errors_become_problems() {
    let Shell { api, .. } = plain_shell().await;
    let not_found = problem(api.server.get("/no/such/thing").await, ProblemKind::NotFound).await;
    assert_eq!(not_found["detail"], "There is nothing at /no/such/thing.");

    let response = Client::new().delete(api.server.url("/fine/1")).send().await.unwrap();
    assert_eq!(response.headers()["allow"], "GET,HEAD");
    problem(response, ProblemKind::MethodNotAllowed).await;

    let bare = problem(api.server.get("/fails-bare").await, ProblemKind::Internal).await;
    assert!(!bare.to_string().contains("secret"), "{bare}");

    assert_eq!(counted(&api.metrics, "GET", "unmatched", 404), 1);
    assert_eq!(counted(&api.metrics, "DELETE", "/fine/{id}", 405), 1);
    assert_eq!(counted(&api.metrics, "GET", "/fails-bare", 500), 1);
}

#[tokio::test]
async fn problems_are_sent_in_full_except_internal_causes() {
    let Shell { api, .. } = plain_shell().await;
    let response = api.server.get("/problem").await;
    assert_eq!(response.status(), 409);
    assert_eq!(response.headers()["retry-after"], "7");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["type"], "/problems/experiment-paused");
    assert_eq!(body["detail"], "It is paused.");
    assert_eq!(
        body["errors"],
        json!([
            { "in": "body", "pointer": "/rankers/3/id", "detail": "is taken" },
            { "in": "query", "name": "limit", "detail": "is too large" },
            { "in": "path", "name": "name", "detail": "is too long" },
        ])
    );
    let internal = problem(api.server.get("/fails").await, ProblemKind::Internal).await;
    assert!(!internal.to_string().contains("fire"), "{internal}");
}

#[tokio::test]
async fn a_problem_for_head_has_no_body() {
    let Shell { api, .. } = plain_shell().await;
    let answer =
        api.server.raw("HEAD /nothing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
    assert!(head.contains("application/problem+json"), "{head}");
    assert_eq!(body, "");
}

#[tokio::test]
async fn a_panic_is_answered_and_counted() {
    let Shell { api, .. } = plain_shell().await;
    for path in ["/panics-at-once", "/panics-later"] {
        problem(api.server.get(path).await, ProblemKind::Internal).await;
        assert_eq!(counted(&api.metrics, "GET", path, 500), 1);
    }
    assert_eq!(api.metrics.panics.get(), 2);
    assert_eq!(api.server.get("/fine/1").await.status(), 200);
    assert_eq!(api.metrics.http_requests_in_flight.get(), 0);
}

#[tokio::test]
async fn slow_requests_time_out() {
    let settings =
        ShellSettings { request_timeout: Duration::from_millis(20), ..ShellSettings::default() };
    let Shell { api, .. } = shell(&settings, ConnectionSettings::default()).await;
    problem(api.server.get("/never").await, ProblemKind::Timeout).await;
    assert_eq!(counted(&api.metrics, "GET", "/never", 504), 1);

    // A body that never arrives is as slow as a handler that never responds.
    let mut stream = TcpStream::connect(&api.server.address).await.unwrap();
    stream
        .write_all(b"POST /bytes HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf")
        .await
        .unwrap();
    let mut answer = [0; 12];
    tokio::time::timeout(LONG, stream.read_exact(&mut answer)).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 504");
}

#[tokio::test]
async fn excess_requests_are_refused_except_probes() {
    let settings = ShellSettings { max_concurrent_requests: 1, ..ShellSettings::default() };
    let Shell { api, gate } = shell(&settings, ConnectionSettings::default()).await;
    let url = api.server.url("/gate");
    let first = tokio::spawn(async move { reqwest::get(url).await.unwrap() });
    tokio::time::timeout(LONG, gate.entered.notified()).await.expect("the first request inside");
    assert_eq!(api.metrics.http_requests_in_flight.get(), 1);

    problem(api.server.get("/fine/1").await, ProblemKind::Overloaded).await;
    problem(api.server.get("/no/such/thing").await, ProblemKind::Overloaded).await;
    assert_eq!(api.metrics.http_requests_shed.get(), 2);
    for probe in ["/livez", "/metrics"] {
        assert_eq!(api.server.get(probe).await.status(), 200);
    }

    gate.open.notify_one();
    assert_eq!(first.await.unwrap().text().await.unwrap(), "through");
    assert_eq!(api.server.get("/fine/1").await.status(), 200);
    assert_eq!(api.metrics.http_requests_shed.get(), 2);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit() {
    let settings = ShellSettings { body_limit_bytes: 4096, ..ShellSettings::default() };
    let Shell { api, .. } = shell(&settings, ConnectionSettings::default()).await;
    let send =
        |bytes: usize| Client::new().post(api.server.url("/bytes")).body(vec![b'x'; bytes]).send();
    assert_eq!(send(4096).await.unwrap().text().await.unwrap(), "4096");
    problem(send(4097).await.unwrap(), ProblemKind::PayloadTooLarge).await;

    // A chunked body, whose length is not declared.
    let chunk = "x".repeat(4097);
    let answer = api.server
        .raw(&format!(
            "POST /bytes HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n1001\r\n{chunk}\r\n0\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("/problems/payload-too-large"), "{answer}");
}

#[tokio::test]
async fn the_default_body_limit_is_the_documented_one() {
    let settings = ShellSettings { body_limit_bytes: 3 * 1024 * 1024, ..ShellSettings::default() };
    let Shell { api, .. } = shell(&settings, ConnectionSettings::default()).await;
    let body = vec![b'x'; 3 * 1024 * 1024];
    let answer = Client::new().post(api.server.url("/bytes")).body(body).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "3145728");
    assert_eq!(ShellSettings::default().body_limit_bytes, 2 * 1024 * 1024);
}

#[tokio::test]
async fn large_headers_are_refused_with_a_problem() {
    let Shell { api, .. } = plain_shell().await;
    let send = |bytes: usize| {
        Client::new().get(api.server.url("/fine/1")).header("cookie", "x".repeat(bytes)).send()
    };
    assert_eq!(send(15 * 1024).await.unwrap().status(), 200);
    problem(send(17 * 1024).await.unwrap(), ProblemKind::HeaderFieldsTooLarge).await;
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_any_other_replaced() {
    let Shell { api, .. } = plain_shell().await;
    let id_of = async |sent: Option<&str>| {
        let mut request = Client::new().get(api.server.url("/fine/1"));
        if let Some(sent) = sent {
            request = request.header(REQUEST_ID, sent);
        }
        request.send().await.unwrap().headers()[REQUEST_ID].to_str().unwrap().to_owned()
    };
    let long = "x".repeat(128);
    for sane in ["7", "a-b_c.d:e/f+g=", long.as_str()] {
        assert_eq!(id_of(Some(sane)).await, sane);
    }
    let too_long = "x".repeat(129);
    let mut made = vec![id_of(None).await];
    for insane in ["", "two words", "<script>", "a\"b", too_long.as_str()] {
        made.push(id_of(Some(insane)).await);
        assert_ne!(made.last().map(String::as_str), Some(insane));
    }
    let count = made.len();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), count, "ids are unique");
}

#[tokio::test]
async fn responses_and_problems_name_the_trace() {
    let Shell { api, .. } = plain_shell().await;
    let send = |path: &str, trace: &str| {
        Client::new().get(api.server.url(path)).header("traceparent", trace).send()
    };
    let fine = send("/fine/1", TRACEPARENT).await.unwrap();
    assert_eq!(fine.headers()["traceparent"], TRACEPARENT);
    let body = problem(send("/nothing", TRACEPARENT).await.unwrap(), ProblemKind::NotFound).await;
    assert_eq!(body["trace_id"], TRACE_ID);

    let malformed = send("/nothing", "00-0-0-0").await.unwrap();
    assert!(!malformed.headers().contains_key("traceparent"));
    let body = problem(malformed, ProblemKind::NotFound).await;
    assert_eq!(body.get("trace_id"), None);
}

#[tokio::test]
async fn only_large_bodies_are_compressed_and_only_etags_are_cacheable() {
    let Shell { api, .. } = plain_shell().await;
    let send = |path: &str| {
        Client::new().get(api.server.url(path)).header("accept-encoding", "gzip").send()
    };
    let large = send("/large").await.unwrap();
    assert_eq!(large.headers()["content-encoding"], "gzip");
    assert_eq!(large.headers()["cache-control"], "no-store");
    let small = send("/fine/1").await.unwrap();
    assert!(!small.headers().contains_key("content-encoding"));
    assert_eq!(small.headers()["x-content-type-options"], "nosniff");
    assert_eq!(send("/kept").await.unwrap().headers()["cache-control"], "no-cache");
}

#[tokio::test]
async fn a_disconnected_caller_is_counted_and_holds_no_permit() {
    let settings = ShellSettings { max_concurrent_requests: 1, ..ShellSettings::default() };
    let Shell { api, gate } = shell(&settings, ConnectionSettings::default()).await;
    let mut stream = TcpStream::connect(&api.server.address).await.unwrap();
    stream.write_all(b"GET /gate HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    tokio::time::timeout(LONG, gate.entered.notified()).await.expect("the request inside");
    drop(stream);
    tokio::time::timeout(LONG, gate.left.notified()).await.expect("the request dropped");
    let gone = async {
        while api.metrics.http_requests_in_flight.get() != 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("the request counted");
    assert_eq!(counted(&api.metrics, "GET", "/gate", 499), 1);
    assert_eq!(api.server.get("/fine/1").await.status(), 200);
}

#[tokio::test]
async fn an_incomplete_head_does_not_keep_a_connection() {
    let connections = ConnectionSettings {
        head_within: Duration::from_millis(20),
        ..ConnectionSettings::default()
    };
    let Shell { api, .. } = shell(&ShellSettings::default(), connections).await;
    let answer = tokio::time::timeout(LONG, api.server.raw("GET /fine/1 HTTP/1.1\r\nhos")).await;
    assert!(!answer.expect("the end of the connection").contains("200"));
    // nor does silence after a request
    let answer = tokio::time::timeout(
        LONG,
        api.server.raw("GET /livez HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"),
    )
    .await;
    assert!(answer.expect("the end of the connection").contains("200"));
}

#[tokio::test]
async fn stopping_finishes_running_requests_and_refuses_new_ones() {
    let Shell { api, gate } = plain_shell().await;
    let (url, address) = (api.server.url("/gate"), api.server.address.clone());
    let idle = TcpStream::connect(&address).await.unwrap();
    let first = tokio::spawn(async move { reqwest::get(url).await.unwrap() });
    tokio::time::timeout(LONG, gate.entered.notified()).await.expect("the request inside");

    let stopping = api.server.stop();
    let refused = async { while TcpStream::connect(&address).await.is_ok() {} };
    tokio::time::timeout(LONG, refused).await.expect("new connections to be refused");
    gate.open.notify_one();
    assert_eq!(first.await.unwrap().text().await.unwrap(), "through");
    let drained = tokio::time::timeout(LONG, stopping.stopped()).await;
    assert_eq!(drained.expect("the end"), Drained::Clean);
    drop(idle);
}

#[tokio::test]
async fn stopping_cuts_off_requests_that_do_not_finish() {
    let connections = ConnectionSettings {
        drain_within: Duration::from_millis(20),
        ..ConnectionSettings::default()
    };
    let Shell { api, gate } = shell(&ShellSettings::default(), connections).await;
    let url = api.server.url("/gate");
    let cut_off = tokio::spawn(async move { reqwest::get(url).await });
    tokio::time::timeout(LONG, gate.entered.notified()).await.expect("the request inside");
    assert_eq!(api.server.stop().stopped().await, Drained::CutOff(1));
    assert!(cut_off.await.unwrap().is_err());
}

#[tokio::test]
async fn readiness_follows_the_database_and_the_drain() {
    for kind in KINDS {
        let api = Api::start(kind, &ShellSettings::default()).await;
        let ready = api.server.get("/readyz").await;
        assert_eq!(ready.status(), 200);
        let body: Value = ready.json().await.unwrap();
        assert_eq!(body["status"], "ready");
        assert_eq!(body["checks"]["database"]["status"], "ok");

        api.readiness.drain();
        let body = problem(api.server.get("/readyz").await, ProblemKind::Unavailable).await;
        assert_eq!(body["detail"], "Not ready: the server is shutting down.");
        assert_eq!(api.server.get("/livez").await.text().await.unwrap(), "ok\n");
    }

    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    api.service.shutdown().await;
    let refused = eventually("the server to notice", async || {
        let answer = api.server.get("/readyz").await;
        (answer.status() != 200).then_some(answer)
    });
    let body = problem(refused.await, ProblemKind::Unavailable).await;
    assert!(body["detail"].as_str().unwrap().contains("no experiment is in memory"), "{body}");
    assert_eq!(api.server.get("/livez").await.status(), 200);
}

#[tokio::test]
async fn metrics_exist_from_the_start_with_the_prometheus_content_type() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let response = api.server.get("/metrics").await;
    assert_eq!(
        response.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    let text = response.text().await.unwrap();
    for line in [
        "rankduel_duels_total{kind=\"pair\"} 0",
        "rankduel_feedback_total{status=\"conflict\"} 0",
        "rankduel_http_requests_in_flight 1",
        "rankduel_http_requests_shed_total 0",
        "rankduel_commit_failures_total 0",
        "rankduel_log_regressions_total 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|own| own == line), "{line:?} is missing in\n{text}");
    }
}

/// Every running request returns its permit, also when it ends badly.
#[tokio::test]
async fn every_request_returns_its_permit() {
    let settings = ShellSettings {
        max_concurrent_requests: 2,
        request_timeout: Duration::from_millis(20),
        ..ShellSettings::default()
    };
    let Shell { api, .. } = shell(&settings, ConnectionSettings::default()).await;
    for path in ["/panics-at-once", "/panics-later", "/never", "/fails", "/nothing"].repeat(3) {
        api.server.get(path).await;
    }
    assert_eq!(api.server.get("/fine/1").await.status(), 200);
    assert_eq!(api.metrics.http_requests_shed.get(), 0);
}
