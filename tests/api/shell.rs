//! The middleware around every route, tested on routes made for the purpose.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::routing::{get, post};
use rankduel::http::server::{ConnectionSettings, Drained};
use rankduel::http::{Problem, ProblemKind, ShellSettings};
use rankduel_engine::clock::SystemClock;
use rankduel_engine::metrics::{Metrics, RequestLabels};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::client::{Client, eventually};
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
    client: Client,
    gate: Arc<Gate>,
}

async fn shell(settings: &ShellSettings, connections: ConnectionSettings) -> Shell {
    let gate = Arc::new(Gate::default());
    let inside = Arc::clone(&gate);
    let router = vec![
        ("/fine/{id}", get(|| async { "fine" })),
        ("/large", get(|| async { "all work and no play ".repeat(1000) })),
        ("/kept", get(|| async { ([("etag", "\"1\"")], "kept") })),
        ("/bytes", post(|body: Bytes| async move { body.len().to_string() })),
        ("/never", get(pending::<()>)),
        ("/panics-at-once", get(panics_at_once)),
        ("/panics-later", get(panics_later)),
        ("/fails", get(|| async { Problem::internal("the disk is on fire") })),
        ("/fails-bare", get(|| async { (StatusCode::INTERNAL_SERVER_ERROR, "secret cause") })),
        (
            "/problem",
            get(|| async {
                Problem::new(ProblemKind::ExperimentPaused, "It is paused.")
                    .field("/rankers/3/id", "is taken")
                    .query("limit", "is too large")
                    .path("name", "is too long")
                    .header(header::RETRY_AFTER, HeaderValue::from_static("7"))
            }),
        ),
        (
            "/gate",
            get(move || async move {
                let _leaving = Leaving(Arc::clone(&inside));
                inside.entered.notify_one();
                inside.open.notified().await;
                "through"
            }),
        ),
    ];
    let clock = Arc::new(SystemClock);
    let api = Api::start_with(Kind::Sqlite, settings, clock, connections, router).await;
    Shell { client: Client::new(&api.server.url("")), api, gate }
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

fn counted(metrics: &Metrics, method: &'static str, route: &str, status: u16) -> u64 {
    metrics
        .http_requests
        .get_or_create(&RequestLabels { method, route: route.to_owned(), status })
        .get()
}

#[tokio::test]
async fn framework_errors_become_problems() {
    let Shell { api, client, .. } = plain_shell().await;
    let not_found = client.get("/no/such/thing").await.problem(ProblemKind::NotFound);
    assert_eq!(not_found["detail"], "There is nothing at /no/such/thing.");

    let answer = client.send("DELETE", "/fine/1", &[], Vec::new()).await;
    answer.problem(ProblemKind::MethodNotAllowed);
    assert_eq!(answer.header("allow"), Some("GET,HEAD"));

    let bare = client.get("/fails-bare").await.problem(ProblemKind::Internal);
    assert!(!bare.to_string().contains("secret"), "{bare}");

    assert_eq!(counted(&api.metrics, "GET", "unmatched", 404), 1);
    assert_eq!(counted(&api.metrics, "DELETE", "/fine/{id}", 405), 1);
    assert_eq!(counted(&api.metrics, "GET", "/fails-bare", 500), 1);
}

#[tokio::test]
async fn problems_are_sent_in_full_except_internal_causes() {
    let Shell { api: _api, client, .. } = plain_shell().await;
    let answer = client.get("/problem").await;
    assert_eq!((answer.status, answer.header("retry-after")), (409, Some("7")));
    let body: Value = serde_json::from_slice(&answer.bytes).expect("JSON");
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
    let internal = client.get("/fails").await.problem(ProblemKind::Internal);
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
    let Shell { api, client, .. } = plain_shell().await;
    for path in ["/panics-at-once", "/panics-later"] {
        client.get(path).await.problem(ProblemKind::Internal);
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
    let Shell { api, client, .. } = shell(&settings, ConnectionSettings::default()).await;
    client.get("/never").await.problem(ProblemKind::Timeout);
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
    let Shell { api, client, gate } = shell(&settings, ConnectionSettings::default()).await;
    let url = api.server.url("/gate");
    let first = tokio::spawn(async move { reqwest::get(url).await.unwrap() });
    tokio::time::timeout(LONG, gate.entered.notified()).await.expect("the first request inside");
    assert_eq!(api.metrics.http_requests_in_flight.get(), 1);

    client.get("/fine/1").await.problem(ProblemKind::Overloaded);
    client.get("/no/such/thing").await.problem(ProblemKind::Overloaded);
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
    assert_eq!(ShellSettings::default().body_limit_bytes, 2 * 1024 * 1024);
    let limited = async |body_limit_bytes| {
        let settings = ShellSettings { body_limit_bytes, ..ShellSettings::default() };
        let shell = shell(&settings, ConnectionSettings::default()).await;
        let body = vec![b'x'; body_limit_bytes];
        let answer = shell.client.send("POST", "/bytes", &[], body).await;
        assert_eq!(answer.text(), body_limit_bytes.to_string());
        shell
    };
    limited(3 * 1024 * 1024).await;
    let Shell { api, client, .. } = limited(4096).await;
    let large = client.send("POST", "/bytes", &[], vec![b'x'; 4097]).await;
    large.problem(ProblemKind::PayloadTooLarge);

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
async fn a_client_may_send_all_of_a_body_that_is_too_large_before_it_reads() {
    let Shell { api, .. } = plain_shell().await;
    // more than the buffers of the system hold
    let body = "x".repeat(15 * 1024 * 1024);
    let head = "POST /bytes HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ";
    let answer = api.server.raw(&format!("{head}{}\r\n\r\n{body}", body.len())).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // one that asks first is told before it sends
    let expect = format!("{head}{}\r\nexpect: 100-continue\r\n\r\n", body.len());
    let answer = api.server.raw(&expect).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn large_headers_are_refused_with_a_problem() {
    let Shell { api: _api, client, .. } = plain_shell().await;
    let send = async |bytes: usize| {
        client.send("GET", "/fine/1", &[("cookie", &"x".repeat(bytes))], Vec::new()).await
    };
    assert_eq!(send(15 * 1024).await.status, 200);
    send(17 * 1024).await.problem(ProblemKind::HeaderFieldsTooLarge);
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_any_other_replaced() {
    let Shell { api: _api, client, .. } = plain_shell().await;
    let id_of = async |sent: Option<&str>| {
        let headers: Vec<_> = sent.iter().map(|sent| ("x-request-id", *sent)).collect();
        let answer = client.send("GET", "/fine/1", &headers, Vec::new()).await;
        answer.header("x-request-id").expect("an id").to_owned()
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
    let Shell { api: _api, client, .. } = plain_shell().await;
    let send = async |path: &str, trace: &str| {
        client.send("GET", path, &[("traceparent", trace)], Vec::new()).await
    };
    assert_eq!(send("/fine/1", TRACEPARENT).await.header("traceparent"), Some(TRACEPARENT));
    let body = send("/nothing", TRACEPARENT).await.problem(ProblemKind::NotFound);
    assert_eq!(body["trace_id"], TRACE_ID);

    let malformed = send("/nothing", "00-0-0-0").await;
    assert_eq!(malformed.header("traceparent"), None);
    assert_eq!(malformed.problem(ProblemKind::NotFound).get("trace_id"), None);
}

#[tokio::test]
async fn only_large_bodies_are_compressed_and_only_etags_are_cacheable() {
    let Shell { api: _api, client, .. } = plain_shell().await;
    let send = async |path: &str| {
        client.send("GET", path, &[("accept-encoding", "gzip")], Vec::new()).await
    };
    let large = send("/large").await;
    assert_eq!(large.header("content-encoding"), Some("gzip"));
    assert_eq!(large.header("cache-control"), Some("no-store"));
    let small = send("/fine/1").await;
    assert_eq!(small.header("content-encoding"), None);
    assert_eq!(small.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(send("/kept").await.header("cache-control"), Some("no-cache"));
}

#[tokio::test]
async fn a_disconnected_caller_is_counted_and_holds_no_permit() {
    let settings = ShellSettings { max_concurrent_requests: 1, ..ShellSettings::default() };
    let Shell { api, gate, .. } = shell(&settings, ConnectionSettings::default()).await;
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
    let Shell { api, gate, .. } = plain_shell().await;
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
    let Shell { api, gate, .. } = shell(&ShellSettings::default(), connections).await;
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
        let client = Client::new(&api.server.url(""));
        let body = client.get("/readyz").await.json(200);
        assert_eq!(body["status"], "ready");
        assert_eq!(body["checks"]["database"]["status"], "ok");

        api.readiness.drain();
        let body = client.get("/readyz").await.problem(ProblemKind::Unavailable);
        assert_eq!(body["detail"], "Not ready: the server is shutting down.");
        assert_eq!(api.server.get("/livez").await.text().await.unwrap(), "ok\n");
    }

    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let client = Client::new(&api.server.url(""));
    api.service.shutdown().await;
    let refused = eventually("the server to notice", async || {
        let answer = client.get("/readyz").await;
        (answer.status != 200).then_some(answer)
    });
    let body = refused.await.problem(ProblemKind::Unavailable);
    assert!(body["detail"].as_str().unwrap().contains("no experiment is in memory"), "{body}");
    assert_eq!(api.server.get("/livez").await.status(), 200);
}

#[tokio::test]
async fn metrics_exist_from_the_start_with_the_prometheus_content_type() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let response = api.server.get("/metrics").await;
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    for line in [
        "rankduel_duels_total{kind=\"pair\"} 0",
        "rankduel_feedback_total{status=\"conflict\"} 0",
        "rankduel_http_requests_in_flight 1",
        "rankduel_http_requests_shed_total 0",
        "rankduel_commit_failures_total 0",
        "rankduel_log_regressions_total 0",
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
