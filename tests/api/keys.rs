//! API keys.

use rankduel::http::ShellSettings;
use rankduel::http::auth::ApiKeys;
use reqwest::{Client, Method};
use serde_json::Value;

use crate::support::Kind;
use crate::support::server::Api;

const KEY: &str = "correct-horse-battery-staple";
const OTHER_KEY: &str = "hunter2-hunter2-hunter2";

/// What needs no key.
const OPEN: [&str; 5] = ["/livez", "/readyz", "/openapi.yaml", "/docs", "/problems/timeout"];

async fn guarded() -> Api {
    let keys = ApiKeys::parse(&format!("{KEY},{OTHER_KEY}")).expect("keys");
    Api::start(Kind::Sqlite, &ShellSettings { keys, ..ShellSettings::default() }).await
}

#[tokio::test]
async fn with_keys_everything_but_probes_and_documentation_needs_one() {
    let api = guarded().await;
    for path in OPEN {
        assert_eq!(api.server.get(path).await.status(), 200, "{path}");
    }
    let closed = [
        (Method::GET, "/metrics"),
        (Method::GET, "/v1/experiments"),
        (Method::POST, "/v1/experiments"),
        (Method::POST, "/v1/experiments/any/next-duel"),
        (Method::GET, "/no/such/thing"),
        (Method::GET, "/"),
        (Method::GET, "/docs/"),
        (Method::GET, "//livez"),
        (Method::GET, "/problems"),
    ];
    for (method, path) in closed {
        let response = Client::new().request(method.clone(), api.server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 401, "{method} {path}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer realm=\"rankduel\"");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["type"], "/problems/unauthorized");
    }
}

#[tokio::test]
async fn any_of_the_keys_will_do_and_nothing_else() {
    let api = guarded().await;
    let send = async |authorization: &str| {
        let request = Client::new().get(api.server.url("/v1/experiments"));
        request.header("authorization", authorization).send().await.unwrap()
    };
    for fine in [format!("Bearer {KEY}"), format!("bearer {OTHER_KEY}"), format!("BEARER   {KEY}")] {
        assert_eq!(send(&fine).await.status(), 200, "{fine}");
    }
    let wrong = [
        format!("Bearer {KEY}x"),
        format!("Bearer {}", &KEY[1..]),
        format!("Bearer {KEY},{OTHER_KEY}"),
        format!("Basic {KEY}"),
        format!("Bearer{KEY}"),
        KEY.to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        String::new(),
    ];
    for wrong in wrong {
        let response = send(&wrong).await;
        assert_eq!(response.status(), 401, "{wrong:?}");
        assert!(response.headers().contains_key("www-authenticate"));
    }
    let unknown = send("Bearer no-such-key-0123456789").await;
    assert_eq!(unknown.headers()["www-authenticate"], "Bearer realm=\"rankduel\", error=\"invalid_token\"");
}

#[tokio::test]
async fn without_keys_everybody_may_call() {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    for path in OPEN.into_iter().chain(["/metrics", "/v1/experiments"]) {
        assert_eq!(api.server.get(path).await.status(), 200, "{path}");
    }
}
