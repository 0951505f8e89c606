//! Callers that hang up while the server works for them. What they leave behind must not change the
//! answer to anybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rankduel::http::operations;
use rankduel_engine::access::Scope;
use rankduel_store::{connect, entropy};
use reqwest::Method;
use serde_json::json;
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::proxy::{Mode, Proxy};
use crate::rounds;
use crate::scene::{NAMES, Scene};
use crate::support::client::{Client, JSON, steady};
use crate::support::service::key;
use crate::verify::verify;

/// The experiment that a key is valid for alone.
const OWN: &str = "own";
const HANG_UPS: u64 = 400;
const AT_ONCE: u64 = 4;

/// Send a request and hang up after a random time of at most `within_ms`.
async fn hang_up(client: &Client, method: &Method, path: &str, within_ms: u64) {
    let headers: &[_] = &[JSON, ("if-match", "*")];
    let body = match path.rsplit('/').next() {
        Some("next-duel") => json!({}),
        Some("feedback") => json!({"duel_id": "none", "outcome": "left"}),
        _ => json!({"description": "changed by a caller who hung up"}),
    };
    let body = if *method == Method::GET { Vec::new() } else { body.to_string().into_bytes() };
    let drawn = entropy::number().expect("randomness");
    let request = client.try_send(method.as_str(), path, headers, body);
    let _ = tokio::time::timeout(Duration::from_micros(drawn % (within_ms * 1000)), request).await;
}

/// The view of others meanwhile: a caller without a key, one whose key is valid for one experiment,
/// and one whose key is valid for all.
async fn watch(nobody: Client, limited: Client, all: Client, over: Arc<AtomicBool>) -> u64 {
    let mut rounds = 0;
    while !over.load(Ordering::SeqCst) {
        for path in ["/v1/experiments", "/v1/experiments/pair", "/v1/keys"] {
            let answer = nobody.get(path).await;
            assert_eq!(answer.status, 401, "{path} without a key: {}", answer.text());
        }
        let answer = nobody.patch("pair", &json!({"description": "by nobody"})).await;
        assert_eq!(answer.status, 401, "a change without a key: {}", answer.text());
        for name in NAMES.into_iter().chain([OWN]) {
            let path = format!("/v1/experiments/{name}");
            let answer = limited.get(&path).await;
            let allowed: &[u16] = if name == OWN { &[200, 503, 504] } else { &[403, 404] };
            assert!(allowed.contains(&answer.status), "{path}: {}", answer.text());
            let answer = all.get(&path).await;
            assert!([200, 503, 504].contains(&answer.status), "{path}: {}", answer.text());
            if answer.status == 200 {
                assert_eq!(answer.json(200)["name"], name);
            }
        }
        rounds += 1;
    }
    rounds
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_hang_up_on_every_route() {
    let cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let store = connect(&url).await.expect("a store");
    store.migrate().await.expect("a schema");
    let (admin, _) = key(&store, &[Scope::Admin], None).await;
    let (limited, _) = key(&store, &[Scope::Read], Some(&[OWN])).await;
    // The answers of the database take their time, so that many calls are cut off half-way.
    let proxy = Proxy::to(cluster.socket()).await;
    let behind = proxy.url("rankduel");
    let mut scene = Scene::set_with(&behind, 2, &[], Some(admin.clone())).await;
    scene.client(0).create(&steady(OWN, &["a", "b", "c", "d"])).await;
    let base = scene.client(0).base().to_owned();
    let client = |key: Option<&str>| Client::with_key(&base, key);
    let over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn(watch(
        client(None),
        client(Some(&limited)),
        client(Some(&admin)),
        Arc::clone(&over),
    ));
    scene.open();
    proxy.set(Mode::Slow(2));
    let routes: Arc<Vec<_>> = Arc::new(
        operations()
            .into_iter()
            .filter(|operation| operation.method != Method::DELETE)
            .filter(|operation| operation.path != "/v1/keys" || operation.method == Method::GET)
            .map(|operation| (operation.method, operation.path.replace("{name}", OWN)))
            .collect(),
    );
    let times = rounds(HANG_UPS);
    let mut callers = JoinSet::new();
    for caller in 0..AT_ONCE {
        let (routes, limited, admin) = (Arc::clone(&routes), limited.clone(), admin.clone());
        let base = base.clone();
        callers.spawn(async move {
            for time in (caller..times).step_by(AT_ONCE as usize) {
                // the key of one experiment, and that of all
                let key = if time % 8 < 4 { &limited } else { &admin };
                let client = Client::with_key(&base, Some(key));
                let (method, path) = &routes[time as usize % routes.len()];
                hang_up(&client, method, path, 30).await;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.expect("a caller");
    }
    proxy.set(Mode::Pass);
    scene.acknowledges(20).await;
    over.store(true, Ordering::SeqCst);
    assert!(watching.await.expect("every answer was right") > 0);
    for replica in 0..scene.places() {
        let metrics = scene.client(replica).get("/metrics").await.text();
        assert!(metrics.contains("rankduel_database_foreign_answers_total 0"), "{metrics}");
    }
    verify(scene, &url, "callers hang up", times).await;
}
