//! Every operation of the API, called with every kind of key and without a key.

use std::sync::Arc;

use axum::routing::get;
use rankduel::http::server::ConnectionSettings;
use rankduel::http::{ProblemKind, ShellSettings};
use rankduel_engine::access::{Actor, ApiKeys, KeyRequest, Scope, Scopes};
use rankduel_engine::clock::SystemClock;
use rankduel_store::AuditNote;
use serde_json::{Value, json};

use crate::support::client::{Answer, Client, JSON};
use crate::support::server::Api;
use crate::support::service::{START_MS, Server, Settings, key, made_key};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    a_key_ends_when_it_expires_or_is_revoked
    the_last_use_of_a_key_is_recorded
}

/// An operation that needs a key: method, path with names filled in, and its scope.
struct Operation {
    method: String,
    path: String,
    scope: Scope,
}

/// The operations that need a key.
fn closed_operations() -> Vec<Operation> {
    let closed = |operation: rankduel::http::Operation| {
        operation.scope.map(|scope| Operation {
            method: operation.method.to_string(),
            path: operation.path.replace("{name}", "search"),
            scope,
        })
    };
    rankduel::http::operations().into_iter().filter_map(closed).collect()
}

async fn send(
    client: &Client,
    key: Option<&str>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Answer {
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", &**bearer)).collect();
    headers.extend(body.map(|_| JSON));
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    client.send(method, path, &headers, body).await
}

fn search() -> Value {
    json!({"name": "search", "rankers": ["a", "b", "c"]})
}

/// The table and the description have the same operations, with the same access and problems.
#[test]
fn the_description_is_that_of_the_table() {
    let description = serde_json::to_value(rankduel::http::description()).expect("JSON");
    let paths = description["paths"].as_object().expect("paths");
    let operations = rankduel::http::operations();
    let described: usize =
        paths.values().map(|item| item.as_object().expect("methods").len()).sum();
    assert_eq!(described, operations.len());
    for operation in operations {
        let (method, path) = (operation.method.as_str().to_lowercase(), &operation.path);
        let described = &paths[path][&method];
        let security = match operation.scope {
            None => json!([]),
            Some(scope) => json!([{"key": [scope.name()]}, {}]),
        };
        assert_eq!(described["security"], security, "{method} {path}");
        let responses = described["responses"].as_object().expect("responses");
        let of_caller = responses.iter().filter(|(status, _)| *status != "default");
        let references = of_caller.filter_map(|(_, response)| response["$ref"].as_str());
        let mut kinds: Vec<_> = references
            .flat_map(|reference| {
                let response = description.pointer(&reference[1..]).expect("a response");
                let text = response["description"].as_str().expect("a description");
                text.split(", ").filter_map(|problem| problem.split('`').nth(1))
            })
            .collect();
        kinds.sort();
        let of_caller = operation.problems.iter().filter(|kind| {
            let status = kind.status();
            !status.is_server_error() && status != 431
        });
        let mut slugs: Vec<_> = of_caller.map(|kind| kind.slug()).collect();
        slugs.sort_unstable();
        assert_eq!(kinds, slugs, "{method} {path}");
    }
}

#[test]
fn only_probes_need_no_key() {
    let operations = rankduel::http::operations();
    let open = operations.iter().filter(|operation| operation.scope.is_none());
    let open: Vec<_> = open.map(|operation| &*operation.path).collect();
    assert_eq!(open, ["/livez", "/readyz"]);
    assert!(operations.len() >= 20);
}

#[tokio::test]
async fn a_route_outside_the_table_needs_admin() {
    let given = "given-at-the-start-0123456789";
    let shell =
        ShellSettings { keys: ApiKeys::parse(given).expect("a key"), ..ShellSettings::default() };
    let extra = vec![("/extra", get(|| async { "extra" }))];
    let connections = ConnectionSettings::default();
    let api =
        Api::start_with(Kind::Sqlite, &shell, Arc::new(SystemClock), connections, extra).await;
    let store = api.database.connect().await;
    let client = Client::new(&api.server.url(""));
    let call = async |key: Option<&str>| send(&client, key, "GET", "/extra", None).await;
    for scope in [Scope::Decide, Scope::Feedback, Scope::Read] {
        let key = key(&store, &[scope], None).await.0;
        call(Some(&key)).await.problem(ProblemKind::Forbidden);
    }
    call(None).await.problem(ProblemKind::Unauthorized);
    assert_eq!(call(Some(given)).await.status, 200);
}

#[tokio::test]
async fn every_operation_accepts_exactly_the_permitted_keys() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let mut keys = vec![(None, Some("no-such-key-0123456789".to_owned())), (None, None)];
    for scope in Scope::ALL {
        keys.push((Some(scope), Some(key(&store, &[scope], None).await.0)));
    }
    let given = "given-at-the-start-0123456789";
    keys.push((Some(Scope::Admin), Some(given.to_owned())));
    let shell =
        ShellSettings { keys: ApiKeys::parse(given).expect("a key"), ..ShellSettings::default() };
    let server = Server::with(store, Settings { shell, ..Settings::default() }).await;
    let created = send(&server, Some(given), "POST", "/v1/experiments", Some(&search())).await;
    assert_eq!(created.status, 201);

    for Operation { method, path, scope: needed } in closed_operations() {
        for (has, key) in &keys {
            let answer = send(&server, key.as_deref(), &method, &path, None).await;
            match has {
                None => drop(answer.problem(ProblemKind::Unauthorized)),
                Some(has) if *has == needed || *has == Scope::Admin => {
                    assert!(
                        ![401, 403].contains(&answer.status),
                        "{}: {}",
                        answer.request,
                        answer.text()
                    );
                    assert!(answer.status < 500, "{}: {}", answer.request, answer.text());
                }
                Some(has) => {
                    let problem = answer.problem(ProblemKind::Forbidden);
                    let detail = problem["detail"].as_str().unwrap_or_default();
                    assert!(detail.contains(needed.name()), "{has}: {detail}");
                }
            }
        }
    }
    // HEAD needs the scope to read; unknown paths and wrong methods give no access.
    let decide = keys[2].1.as_deref();
    assert_eq!(send(&server, decide, "HEAD", "/v1/experiments", None).await.status, 403);
    assert_eq!(send(&server, decide, "GET", "/v1/no-such-thing", None).await.status, 404);
    assert_eq!(send(&server, decide, "PUT", "/v1/experiments", None).await.status, 405);
    for path in ["/livez", "/readyz", "/openapi.yaml", "/docs", "/problems/timeout"] {
        assert_eq!(send(&server, None, "GET", path, None).await.status, 200, "{path}");
    }
    for path in ["/v1/no-such-thing", "/docs/", "//livez", "/problems"] {
        let answer = send(&server, None, "GET", path, None).await;
        answer.problem(ProblemKind::Unauthorized);
        assert_eq!(answer.header("www-authenticate"), Some("Bearer realm=\"rankduel\""), "{path}");
    }
}

#[tokio::test]
async fn a_key_for_one_experiment_gives_access_to_no_other() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let all = key(&store, &[Scope::Admin], None).await.0;
    let one = key(&store, &[Scope::Admin], Some(&["search", "next"])).await.0;
    let server = Server::start(store).await;
    let call = async |key: &str, method: &str, path: &str, body: Option<&Value>| {
        send(&server, Some(key), method, path, body).await
    };
    for name in ["search", "other"] {
        let body = json!({"name": name, "rankers": ["a", "b"]});
        assert_eq!(call(&all, "POST", "/v1/experiments", Some(&body)).await.status, 201);
    }
    assert_eq!(call(&one, "POST", "/v1/experiments/search/next-duel", None).await.status, 200);
    assert_eq!(call(&one, "GET", "/v1/experiments/search/standings", None).await.status, 200);
    for (method, path) in [
        ("POST", "/v1/experiments/other/next-duel"),
        ("GET", "/v1/experiments/other"),
        ("GET", "/v1/experiments/%6fther"),
        ("GET", "/v1/experiments/no-such"),
        ("GET", "/v1/experiments/search%2f..%2fother"),
        ("GET", "/metrics"),
        ("GET", "/v1/audit"),
        ("GET", "/v1/audit?experiment=other"),
    ] {
        call(&one, method, path, None).await.problem(ProblemKind::Forbidden);
    }
    let page = call(&one, "GET", "/v1/experiments", None).await.json(200);
    let names: Vec<_> =
        page["experiments"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["search"]);
    assert_eq!(call(&one, "GET", "/v1/audit?experiment=search", None).await.status, 200);
    let body = |name| json!({"name": name, "rankers": ["a", "b"]});
    assert_eq!(call(&one, "POST", "/v1/experiments", Some(&body("next"))).await.status, 201);
    call(&one, "POST", "/v1/experiments", Some(&body("another")))
        .await
        .problem(ProblemKind::Forbidden);
}

async fn a_key_ends_when_it_expires_or_is_revoked(database: TestDatabase) {
    let store = database.store().await;
    let (admin, id) = key(&store, &[Scope::Admin], None).await;
    let request = KeyRequest {
        name: "for a day".into(),
        scopes: [Scope::Read].into_iter().collect(),
        experiments: None,
        expires_in_days: Some(1),
    };
    let (reader, reader_id) = made_key(&store, &request).await;
    let server = Server::start(database.connect().await).await;
    let list = async |key: &str| send(&server, Some(key), "GET", "/v1/experiments", None).await;
    assert_eq!(list(&reader).await.status, 200);
    server.clock.advance_ms(24 * 3600 * 1000 - 1);
    assert_eq!(list(&reader).await.status, 200);
    server.clock.advance_ms(1);
    list(&reader).await.problem_saying(ProblemKind::Unauthorized, &reader_id);

    // A key added later works at once; loading it also reveals the end of the other key.
    assert_eq!(list(&admin).await.status, 200);
    let note = AuditNote::new(&Actor::command_line(), "key-revoked", &id, START_MS);
    assert!(store.revoke_api_key(&id, START_MS, &note).await.unwrap());
    let newer = key(&store, &[Scope::Read], None).await.0;
    assert_eq!(list(&newer).await.status, 200);
    list(&admin).await.problem(ProblemKind::Unauthorized);
}

async fn the_last_use_of_a_key_is_recorded(database: TestDatabase) {
    let store = database.store().await;
    let used = key(&store, &[Scope::Read], None).await.0;
    let unused = key(&store, &[Scope::Decide], None).await.0;
    let server = Server::start(database.connect().await).await;
    for _ in 0..3 {
        assert_eq!(send(&server, Some(&used), "GET", "/v1/experiments", None).await.status, 200);
        server.clock.advance_ms(25_000);
    }
    server.stop().await;
    assert_ne!(used, unused);
    let keys = store.api_keys().await.unwrap();
    let of = |scope| {
        keys.iter().find(|key| Scopes::from_names(&key.scopes).allow(scope)).unwrap().last_used_at
    };
    assert_eq!(of(Scope::Read), Some(START_MS), "to the minute");
    assert_eq!(of(Scope::Decide), None);
}
