//! The export of spans, as a collector receives it: the real program, and a collector on a real
//! socket.

#[macro_use]
#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use support::client::{Client, JSON, eventually, steady};
use support::server::{Process, outcome, rankduel};
use support::{Kind, TestDatabase, fresh_database};

const CALLERS_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLERS_SPAN: &str = "00f067aa0ba902b7";
const FEEDBACKS_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// The requests to `/v1/traces`.
type Came = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A collector on a free port, until the test ends.
struct Collector {
    /// `ADDRESS:PORT`.
    address: String,
}

async fn collector(status: StatusCode) -> (Collector, Came) {
    let came = Came::default();
    let kept = Arc::clone(&came);
    let take = async move |headers: HeaderMap, body: Bytes| {
        kept.lock().unwrap().push((headers, body));
        status
    };
    let app = Router::new().route("/v1/traces", post(take));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address").to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (Collector { address }, came)
}

fn serving(database: &TestDatabase, variables: &[(&str, &str)]) -> Process {
    let mut command = rankduel(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    command.args(["--database-url", &database.url]);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50").envs(variables.iter().copied());
    Process::start(command)
}

/// Every span that was received as JSON.
fn spans(came: &Came) -> Vec<Value> {
    let mut spans = Vec::new();
    for (headers, body) in &*came.lock().unwrap() {
        assert_eq!(headers["content-type"], "application/json");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        for resource in body["resourceSpans"].as_array().expect("resources") {
            let name = &attributes(&resource["resource"])["service.name"];
            assert_eq!(name, "rankduel", "{resource}");
            for scope in resource["scopeSpans"].as_array().expect("scopes") {
                spans.extend(scope["spans"].as_array().expect("spans").iter().cloned());
            }
        }
    }
    spans
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let list = of["attributes"].as_array().cloned().unwrap_or_default();
    let value =
        |entry: &Value| entry["value"].as_object().and_then(|value| value.values().next().cloned());
    list.iter()
        .map(|entry| {
            (entry["key"].as_str().expect("a key").to_owned(), value(entry).unwrap_or_default())
        })
        .collect()
}

fn named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

/// Trace and span id.
fn ids(of: &Value) -> (&str, &str) {
    (of["traceId"].as_str().expect("a trace"), of["spanId"].as_str().expect("a span"))
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_join_the_callers_trace_and_name_their_duel() {
    let (collector, came) = collector(StatusCode::OK).await;
    let database = fresh_database(Kind::Sqlite).await;
    let endpoint = format!("http://{}", collector.address);
    let process = serving(
        &database,
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")],
    );
    let client = Client::new(&process.url);
    client.create(&steady("search", &["a", "b"])).await;
    let parent = |trace: &str, flags: &str| format!("00-{trace}-{CALLERS_SPAN}-{flags}");
    let path = "/v1/experiments/search/next-duel";
    let traced = parent(CALLERS_TRACE, "01");
    let duel = client.send("POST", path, &[("traceparent", &traced)], vec![]).await.json(200);
    let feedback = json!({"duel_id": duel["duel_id"], "outcome": "left"}).to_string().into_bytes();
    let traced = parent(FEEDBACKS_TRACE, "01");
    client
        .send(
            "POST",
            "/v1/experiments/search/feedback",
            &[JSON, ("traceparent", &traced)],
            feedback,
        )
        .await
        .json(200);
    // A request that its caller does not sample.
    client
        .send(
            "GET",
            "/v1/experiments/search",
            &[("traceparent", &parent(CALLERS_TRACE, "00"))],
            vec![],
        )
        .await;
    client.get("/nothing/here").await;
    let log = process.stop();
    let spans = spans(&came);

    let next_duel = named(&spans, "POST /v1/experiments/{name}/next-duel")[0];
    assert_eq!(next_duel["parentSpanId"], CALLERS_SPAN);
    assert_eq!(ids(next_duel).0, CALLERS_TRACE);
    assert_eq!(next_duel["kind"], 2, "a server's span: {next_duel}");
    assert_eq!(attributes(next_duel)["http.route"], "/v1/experiments/{name}/next-duel");
    let number = attributes(next_duel)["rankduel.duel"].clone();
    assert!(log.contains(number.as_str().expect("a duel")), "the number is not in the log");

    // The feedback belongs to another trace, and names the same duel.
    let feedback = named(&spans, "POST /v1/experiments/{name}/feedback")[0];
    assert_eq!(
        (ids(feedback).0, &attributes(feedback)["rankduel.duel"]),
        (FEEDBACKS_TRACE, &number)
    );

    // The append belongs to the feedback; a request that only reads has none.
    let appends = named(&spans, "append");
    assert!(appends.iter().any(|span| span["parentSpanId"] == feedback["spanId"]));
    assert!(appends.iter().all(|span| span["parentSpanId"] != next_duel["spanId"]));
    assert!(named(&spans, "GET /v1/experiments/{name}").is_empty(), "its caller does not keep it");
    assert_eq!(named(&spans, "GET unmatched").len(), 1, "a path became a span name");

    // For a request without a trace, the log has the trace of its span.
    let create = named(&spans, "POST /v1/experiments")[0];
    assert!(log.contains(ids(create).0), "{log}");
    assert!(log.contains("spans are exported"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_encoding_is_protobuf() {
    let (collector, came) = collector(StatusCode::OK).await;
    let database = fresh_database(Kind::Sqlite).await;
    let endpoint = format!("http://{}/v1/traces", collector.address);
    let process = serving(
        &database,
        &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint), ("OTEL_SERVICE_NAME", "duels")],
    );
    Client::new(&process.url).get("/v1/experiments").await;
    let (headers, body) = eventually("spans", async || came.lock().unwrap().first().cloned()).await;
    assert_eq!(headers["content-type"], "application/x-protobuf");
    for text in [&b"GET /v1/experiments"[..], b"duels"] {
        assert!(body.windows(text.len()).any(|window| window == text), "{body:?}");
    }
    drop(process);
}

/// Requests succeed as usual, and the log reports lost spans.
#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_collector_does_no_harm() {
    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        listener.local_addr().expect("its address").to_string()
    };
    let (refusing, came) = collector(StatusCode::BAD_REQUEST).await;
    for address in [&gone, &refusing.address] {
        let database = fresh_database(Kind::Sqlite).await;
        let endpoint = format!("http://{address}");
        let process = serving(
            &database,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
                ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
                ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4"),
            ],
        );
        let client = Client::new(&process.url);
        client.create(&steady("search", &["a", "b"])).await;
        for _ in 0..200 {
            let duel = client.pair("search").await;
            client.answer("search", &duel, "left").await;
        }
        let log = process.stop();
        let reports = |line: &&str| line.contains("opentelemetry") && line.contains("xport");
        assert!(log.lines().any(|line| reports(&line)), "{address}: {log}");
    }
    assert!(came.lock().unwrap().len() > 1, "the export was not retried");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_endpoints_are_refused_and_without_one_nothing_is_exported() {
    let database = fresh_database(Kind::Sqlite).await;
    for endpoint in ["https://collector.example:4318", "localhost:4317", "nonsense"] {
        let mut command =
            rankduel(&["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        let (code, _, error) = outcome(command);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("http://") && error.contains(endpoint), "{error}");
    }
    let mut command =
        rankduel(&["serve", "--listen", "127.0.0.1:0", "--database-url", &database.url]);
    command.envs([
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ]);
    let (code, _, error) = outcome(command);
    assert!(code == Some(2) && error.contains("http/protobuf"), "{error}");

    let (collector, came) = collector(StatusCode::OK).await;
    let endpoint = format!("http://{}", collector.address);
    for variables in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_SDK_DISABLED", "true")],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_TRACES_EXPORTER", "none")],
    ] {
        let process = serving(&database, variables);
        Client::new(&process.url).get("/v1/experiments").await;
        process.signal("TERM");
        let (code, log) = process.wait();
        assert_eq!((code, log.contains("spans")), (Some(0), false), "{log}");
    }
    assert!(came.lock().unwrap().is_empty());
}
