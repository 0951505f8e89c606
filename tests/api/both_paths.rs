//! The two ways to `next-duel`, the fast path and the router, give the same responses and count the
//! same. A request with an empty body of unknown length always takes the router.

use rankduel::http::ShellSettings;
use rankduel_engine::access::ApiKeys;
use serde_json::{Value, json};

use crate::support::Kind;
use crate::support::client::steady;
use crate::support::server::Api;

const KEY: &str = "correct-horse-battery-staple";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Status, headers and body of a response, without its random parts.
type Shape = (String, Vec<String>, Value);

fn shape(answer: &str) -> Shape {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.split("\r\n").map(str::to_owned);
    let status = lines.next().expect("a status");
    let random = ["date:", "content-length:"];
    let mut headers: Vec<_> =
        lines.filter(|line| !random.iter().any(|name| line.starts_with(name))).collect();
    headers.sort();
    let mut body: Value = serde_json::from_str(body).unwrap_or_default();
    let size = status.contains(" 431 ").then_some("detail");
    let random = ["duel_id", "left", "right", "self_duel", "expires_at", "state"];
    for random in random.into_iter().chain(size) {
        if let Some(member) = body.get_mut(random) {
            *member = Value::Null;
        }
    }
    (status, headers, body)
}

#[tokio::test]
async fn both_ways_give_the_same_responses() {
    let keys = ApiKeys::parse(KEY).expect("a key");
    let api = Api::start(Kind::Sqlite, &ShellSettings { keys, ..ShellSettings::default() }).await;
    let call = async |method: reqwest::Method, path: &str, body: Value| {
        let request = reqwest::Client::new()
            .request(method, api.server.url(path))
            .header("authorization", format!("Bearer {KEY}"))
            .header("if-match", "*")
            .json(&body);
        assert!(request.send().await.expect("an answer").status().is_success(), "{path}");
    };
    for (name, status) in
        [("search", None), ("paused", Some("paused")), ("done", Some("concluded"))]
    {
        call(reqwest::Method::POST, "/v1/experiments", steady(name, &["a", "b"])).await;
        if let Some(status) = status {
            let path = format!("/v1/experiments/{name}");
            call(reqwest::Method::PATCH, &path, json!({"status": status})).await;
        }
    }
    let too_large = format!("cookie: {}\r\n", "x".repeat(17 * 1024));
    let key = format!("authorization: Bearer {KEY}\r\n");
    let mut requests: Vec<(&str, String)> = ["search", "paused", "done", "none", "Search", ""]
        .into_iter()
        .map(|name| (name, key.clone()))
        .collect();
    for headers in [
        "",
        "authorization: Bearer no-such-key\r\n",
        "authorization: Basic Zm9vOmJhcg==\r\n",
        "cookie: rankduel-session=AAAA\r\n",
    ] {
        requests.push(("search", headers.to_owned()));
    }
    let traced = format!("traceparent: {TRACEPARENT}\r\n");
    for headers in [
        "accept-encoding: gzip\r\n",
        "content-type: text/plain\r\n",
        "traceparent: 00-0-0-0\r\n",
        &traced,
        "origin: https://evil.example\r\n",
        "origin: http://x\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-origin\r\n",
        &too_large,
    ] {
        requests.push(("search", format!("{key}{headers}")));
    }
    for (name, headers) in &requests {
        let send = async |rest: &str| {
            let request = format!(
                "POST /v1/experiments/{name}/next-duel HTTP/1.1\r\nhost: x\r\n\
                 x-request-id: own\r\nconnection: close\r\n{headers}{rest}"
            );
            shape(&api.server.raw(&request).await)
        };
        let counted = api.metrics.encode().expect("metrics");
        let fast = send("\r\n").await;
        let between = api.metrics.encode().expect("metrics");
        let router = send("transfer-encoding: chunked\r\n\r\n0\r\n\r\n").await;
        assert_eq!(fast, router, "{name} {headers:.80}");
        let after = api.metrics.encode().expect("metrics");
        assert_eq!(
            counts(&between) - counts(&counted),
            counts(&after) - counts(&between),
            "{name} {headers:.80}"
        );
    }
}

/// Number of counted requests and duels.
fn counts(metrics: &str) -> i64 {
    let of = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<i64>().ok());
    metrics
        .lines()
        .filter(|line| {
            line.starts_with("rankduel_http_requests_total")
                || line.starts_with("rankduel_duels_total")
                || line.starts_with("rankduel_http_request_duration_seconds_count")
        })
        .filter_map(of)
        .sum()
}
