//! The input that the extractors refuse, and how they report the place of the error.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use rankduel::clock::SystemClock;
use rankduel::http::server::ConnectionSettings;
use rankduel::http::{JsonBody, PathOf, QueryOf, ShellSettings};
use reqwest::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Kind;
use crate::support::server::Api;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tournament {
    rankers: Vec<Ranker>,
    #[serde(default)]
    #[expect(dead_code, reason = "the tests only parse it")]
    horizon: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "the tests only parse it")]
struct Ranker {
    id: String,
    #[serde(rename = "a/b~c", default)]
    odd: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<u8>,
}

async fn server() -> Api {
    let router =
        Router::new()
            .route(
                "/body",
                post(|JsonBody(body): JsonBody<Tournament>| async move {
                    body.rankers.len().to_string()
                }),
            )
            .route(
                "/query",
                get(|QueryOf(page): QueryOf<Page>| async move { format!("{:?}", page.limit) }),
            )
            .route(
                "/path/{number}",
                get(|PathOf(number): PathOf<u8>| async move { number.to_string() }),
            );
    let (settings, connections) = (ShellSettings::default(), ConnectionSettings::default());
    Api::start_with(Kind::Sqlite, &settings, Arc::new(SystemClock), connections, router).await
}

async fn refusal(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    (status, response.json().await.expect("JSON"))
}

#[tokio::test]
async fn an_invalid_body_is_refused_with_a_pointer() {
    let api = server().await;
    let send = |body: &'static str| {
        Client::new()
            .post(api.server.url("/body"))
            .header("content-type", "application/json")
            .body(body)
            .send()
    };
    assert_eq!(send(r#"{"rankers": [{"id": "a"}]}"#).await.unwrap().text().await.unwrap(), "1");

    let invalid = [
        (r#"{"rankers": [{"id": "a"}, {"id": 7}]}"#, "/rankers/1/id", "integer `7`"),
        (r#"{"rankers": [{"id": "a", "a/b~c": 1}]}"#, "/rankers/0/a~1b~0c", "expected a boolean"),
        (r#"{"rankers": [{"name": "a"}]}"#, "/rankers/0/name", "unknown field `name`"),
        (r#"{"rankers": [{}]}"#, "/rankers/0", "missing field `id`"),
        (r#"{"rankers": [], "horizon": -1}"#, "/horizon", "`-1`"),
        ("{}", "", "missing field `rankers`"),
        ("[]", "", ""),
        (r#"{"rankers": [], "rankers": []}"#, "", "duplicate field"),
    ];
    for (body, pointer, what) in invalid {
        let (status, problem) = refusal(send(body).await.unwrap()).await;
        assert_eq!(
            (status, problem["type"].as_str()),
            (422, Some("/problems/invalid-request")),
            "{body}"
        );
        assert_eq!(problem["errors"][0]["in"], "body", "{body}");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(what), "{body}: {problem}");
        assert!(!detail.contains("line"), "the pointer replaces the line number: {problem}");
    }

    let malformed = [
        ("", "empty"),
        ("{\n  \"rankers\": [,]}", "line 2, column 15"),
        (r#"{"rankers": ["#, "line 1"),
        (r#"{"rankers": []} {}"#, "trailing characters"),
        ("\"\u{1}\"", "line 1"),
    ];
    for (body, what) in malformed {
        let (status, problem) = refusal(send(body).await.unwrap()).await;
        assert_eq!(
            (status, problem["type"].as_str()),
            (400, Some("/problems/malformed-json")),
            "{body}: {problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(what), "{body}: {problem}");
    }
    let deep = Client::new()
        .post(api.server.url("/body"))
        .header("content-type", "application/json")
        .body(format!("{{\"rankers\": {}", "[".repeat(100_000)))
        .send();
    let (status, _) = refusal(deep.await.unwrap()).await;
    assert!(status == 400 || status == 422, "{status}");
    let not_text = Client::new()
        .post(api.server.url("/body"))
        .header("content-type", "application/json")
        .body(b"{\"rankers\": [{\"id\": \"\xff\"}]}".to_vec());
    assert_eq!(refusal(not_text.send().await.unwrap()).await.0, 400);
}

#[tokio::test]
async fn a_body_needs_the_json_content_type() {
    let api = server().await;
    let send = async |content_type: Option<&'static str>| {
        let mut request = Client::new().post(api.server.url("/body")).body(r#"{"rankers": []}"#);
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        request.send().await.unwrap()
    };
    for fine in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/foo+json",
    ] {
        assert_eq!(send(Some(fine)).await.status(), 200, "{fine}");
    }
    for wrong in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/jsonp"),
        Some(""),
    ] {
        let (status, problem) = refusal(send(wrong).await).await;
        assert_eq!(
            (status, problem["type"].as_str()),
            (415, Some("/problems/unsupported-media-type")),
            "{wrong:?}"
        );
    }
}

#[tokio::test]
async fn an_invalid_query_or_path_is_refused_with_the_parameter() {
    let api = server().await;
    assert_eq!(api.server.get("/query").await.text().await.unwrap(), "None");
    assert_eq!(api.server.get("/query?limit=5").await.text().await.unwrap(), "Some(5)");
    let cases = [
        ("/query?limit=300", "query", "limit"),
        ("/query?limit=", "query", "limit"),
        ("/query?limit=x", "query", "limit"),
        ("/query?limitt=5", "query", "limitt"),
        ("/query?limit=5&limit=6", "query", ""),
    ];
    for (path, place, name) in cases {
        let (status, problem) = refusal(api.server.get(path).await).await;
        assert_eq!(
            (status, problem["type"].as_str()),
            (422, Some("/problems/invalid-request")),
            "{path}"
        );
        assert_eq!(problem["errors"][0]["in"], place, "{path}");
        assert_eq!(problem["errors"][0]["name"], name, "{path}: {problem}");
    }
    assert_eq!(api.server.get("/path/7").await.text().await.unwrap(), "7");
    for path in ["/path/300", "/path/x", "/path/%ff"] {
        let (status, problem) = refusal(api.server.get(path).await).await;
        assert_eq!(
            (status, &problem["errors"][0]["in"]),
            (422, &json!("path")),
            "{path}: {problem}"
        );
    }
}
