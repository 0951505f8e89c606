//! Attacks in a short form: what callers without a key, or with slow connections, can hold.
//! `scripts/attack` runs them at their full size and measures them.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use rankduel::http::server::ConnectionSettings;
use rankduel::http::{ProblemKind, ShellSettings};
use rankduel::service::ServiceSettings;
use rankduel_engine::access::ApiKeys;
use rankduel_engine::clock::SystemClock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::client::{JSON, steady};
use crate::support::server::{Api, outcome, rankduel_on};
use crate::support::service::{Server, Settings};
use crate::support::{KINDS, Kind, TestDatabase};

on_both_databases! {
    an_unknown_key_does_not_wait_for_a_database_that_hangs
}

on_sqlite! {
    bodies_that_do_not_arrive_take_no_places
    pages_of_other_sites_cannot_change_anything
    large_answers_have_a_budget_and_duels_do_not_need_it
    large_statistics_are_cut_to_the_pairs_with_most_pages
}

const KEY: &str = "correct-horse-battery-staple";
/// Timeout for a step of a test; a test that waits longer has failed.
const LONG: Duration = Duration::from_secs(60);

fn with_key() -> ShellSettings {
    ShellSettings { keys: ApiKeys::parse(KEY).expect("a key"), ..ShellSettings::default() }
}

async fn start(kind: Kind, shell: &ShellSettings, connections: ConnectionSettings) -> Api {
    let huge = || async { vec![b'x'; 16 << 20] };
    let more = vec![("/huge", get(huge))];
    Api::start_with(kind, shell, Arc::new(SystemClock), connections, more).await
}

async fn status(api: &Api, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let request = reqwest::Client::new().request(method, api.server.url(path));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.expect("an answer").status().as_u16()
}

async fn status_with_key(api: &Api) -> u16 {
    let key = format!("Bearer {KEY}");
    status(api, "GET", "/v1/experiments", &[("authorization", &key)]).await
}

/// A connection on which this was sent.
async fn sent(api: &Api, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&api.server.address).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("to send");
    stream
}

async fn first_line(stream: &mut TcpStream) -> String {
    let mut line = [0; 12];
    tokio::time::timeout(LONG, stream.read_exact(&mut line))
        .await
        .expect("in time")
        .expect("a line");
    String::from_utf8_lossy(&line).into_owned()
}

/// A key has at most seven eighths of the requests that run at once.
#[tokio::test]
async fn no_key_takes_every_permit() {
    let other = "another-key-of-a-caller";
    let shell = ShellSettings {
        keys: ApiKeys::parse(&format!("{KEY},{other}")).expect("keys"),
        max_concurrent_requests: 8,
        ..ShellSettings::default()
    };
    let (held, released) = (Arc::new(tokio::sync::Semaphore::new(0)), Arc::default());
    let release: Arc<tokio::sync::Notify> = Arc::clone(&released);
    let hold = {
        let held = Arc::clone(&held);
        move || async move {
            held.add_permits(1);
            released.notified().await;
        }
    };
    let more = vec![("/hold", get(hold))];
    let (clock, connections) = (Arc::new(SystemClock), ConnectionSettings::default());
    let api = Api::start_with(Kind::Sqlite, &shell, clock, connections, more).await;
    let request = format!("GET /hold HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\n\r\n");
    let mut streams = Vec::new();
    for _ in 0..7 {
        streams.push(sent(&api, &request).await);
    }
    tokio::time::timeout(LONG, held.acquire_many(7))
        .await
        .expect("in time")
        .expect("permits")
        .forget();
    assert_eq!(status_with_key(&api).await, 503, "an eighth request of this key");
    let key = format!("Bearer {other}");
    let authorization = [("authorization", &*key)];
    assert_eq!(status(&api, "GET", "/v1/experiments", &authorization).await, 200);
    release.notify_waiters();
    for stream in &mut streams {
        assert_eq!(first_line(stream).await, "HTTP/1.1 200");
    }
    assert_eq!(status_with_key(&api).await, 200);
}

async fn bodies_that_do_not_arrive_take_no_places(database: TestDatabase) {
    let shell = ShellSettings {
        max_concurrent_requests: 2,
        request_timeout: Duration::from_secs(2),
        open_timeout: Duration::from_millis(500),
        ..with_key()
    };
    let api = start(database.kind, &shell, ConnectionSettings::default()).await;
    let login = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nk";
    let feedback = format!(
        "POST /v1/experiments/any/feedback HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: 9\r\n\r\n{{"
    );
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(sent(&api, login).await);
        slow.push(sent(&api, &feedback).await);
    }
    for _ in 0..5 {
        assert_eq!(status_with_key(&api).await, 200);
        assert_eq!(status(&api, "GET", "/login", &[]).await, 200);
    }
    assert_eq!(api.metrics.http_requests_shed.get(), 0);
    for stream in &mut slow {
        assert_eq!(first_line(stream).await, "HTTP/1.1 504");
    }
}

/// Such a page sends what needs no preflight: a request without a body, or with one of plain text.
async fn pages_of_other_sites_cannot_change_anything(database: TestDatabase) {
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let body = steady("other", &["a", "b"]).to_string().into_bytes();
    let position = server.position("search").await;
    for from in [
        [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")],
        [("sec-fetch-site", "same-site"), ("origin", "http://localhost:3000")],
        [("sec-fetch-mode", "no-cors"), ("origin", "https://evil.example")],
        [("sec-fetch-mode", "no-cors"), ("origin", "null")],
    ] {
        for (method, path) in [
            ("POST", "/v1/experiments/search/next-duel"),
            ("POST", "/v1/experiments/search/feedback"),
            ("POST", "/v1/experiments"),
        ] {
            let headers = [from[0], from[1], JSON];
            let answer = server.send(method, path, &headers, body.clone()).await;
            answer.problem(ProblemKind::Forbidden);
        }
        // Other sites may link to what is read; their scripts get nothing to read.
        for path in ["/experiments/search", "/v1/experiments"] {
            let answer = server.send("GET", path, &from, vec![]).await;
            assert_eq!(answer.status, 200);
            assert!(!answer.headers.contains_key("access-control-allow-origin"));
        }
    }
    assert_eq!(server.position("search").await, position);
    server.get("/v1/experiments/other").await.problem(ProblemKind::ExperimentNotFound);
    let own = [("sec-fetch-site", "same-origin"), ("origin", server.base())];
    for headers in [&own[..], &own[1..], &[("sec-fetch-site", "none")], &[]] {
        let path = "/v1/experiments/search/next-duel";
        assert_eq!(server.send("POST", path, headers, vec![]).await.status, 200, "{headers:?}");
    }
}

#[tokio::test]
async fn a_login_has_a_small_body() {
    let api = start(Kind::Sqlite, &with_key(), ConnectionSettings::default()).await;
    let send = |bytes: usize| {
        reqwest::Client::new().post(api.server.url("/login")).body(vec![b'x'; bytes]).send()
    };
    assert_eq!(send(4096).await.expect("an answer").status(), 401);
    assert_eq!(send(4097).await.expect("an answer").status(), 413);
}

/// The server reads the keys of the database when it does not know one.
async fn an_unknown_key_does_not_wait_for_a_database_that_hangs(database: TestDatabase) {
    let shell = ShellSettings { open_timeout: Duration::from_millis(200), ..with_key() };
    let api = start(database.kind, &shell, ConnectionSettings::default()).await;
    let key = format!("Bearer {KEY}");
    let create = reqwest::Client::new()
        .post(api.server.url("/v1/experiments"))
        .header("authorization", &key)
        .json(&json!({"name": "target", "rankers": ["a", "b"]}));
    assert_eq!(create.send().await.expect("an answer").status(), 201);
    let _held = match database.kind {
        // Nothing can make reading wait in SQLite.
        Kind::Sqlite => api.database.hold("begin immediate").await,
        Kind::Postgres => {
            api.database.hold("begin; lock table api_key in access exclusive mode").await
        }
    };
    let expected = if database.kind == Kind::Sqlite { [401, 401] } else { [503, 504] };
    let path = "/v1/experiments/target/next-duel";
    let unknown = status(&api, "POST", path, &[("authorization", "Bearer no-such-key")]);
    assert_eq!(tokio::time::timeout(LONG, unknown).await.expect("in time"), expected[0]);
    let login = status(&api, "POST", "/login", &[]);
    assert_eq!(tokio::time::timeout(LONG, login).await.expect("in time"), expected[1]);
    assert_eq!(status(&api, "POST", path, &[("authorization", &key)]).await, 200);
}

#[tokio::test]
async fn large_bodies_share_a_budget_that_small_ones_do_not_need() {
    let shell = ShellSettings { bodies_bytes: 64 * 1024, ..with_key() };
    let api = start(Kind::Sqlite, &shell, ConnectionSettings::default()).await;
    let head = |bytes: usize| {
        format!(
            "POST /v1/experiments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
        )
    };
    let slow = sent(&api, &(head(70_000) + &"x".repeat(65_000))).await;
    let large = "x".repeat(70_000);
    let refused = async {
        while !first_line(&mut sent(&api, &(head(large.len()) + &large)).await)
            .await
            .ends_with("503")
        {
            // The first body has not arrived yet.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, refused).await.expect("the budget to be used");
    let small = first_line(&mut sent(&api, &(head(10_000) + &"x".repeat(10_000))).await).await;
    assert_eq!(small, "HTTP/1.1 400");
    drop(slow);
    let accepted = async {
        while !first_line(&mut sent(&api, &(head(large.len()) + &large)).await)
            .await
            .ends_with("400")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, accepted).await.expect("the budget to be free");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let connections = ConnectionSettings {
        write_within: Duration::from_millis(300),
        ..ConnectionSettings::default()
    };
    let api = start(Kind::Sqlite, &ShellSettings::default(), connections).await;
    let request = "GET /huge HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

    let mut reader = sent(&api, request).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(LONG, reader.read_to_end(&mut answer)).await;
    assert!(read.expect("in time").expect("a whole answer") > 16 << 20);

    let mut idle = sent(&api, request).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(LONG, idle.read_to_end(&mut answer)).await.expect("in time");
    assert!(read.is_err() || answer.len() < 16 << 20, "{} bytes", answer.len());
}

/// A request with a key, whose response leaves the connection open.
fn keyed(key: &str) -> String {
    format!("GET /v1/experiments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n")
}

/// The status of a request on this connection; `None` if the server has closed it.
async fn status_on(stream: &mut TcpStream, request: &str) -> Option<u16> {
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = vec![0; 64 * 1024];
    let read = tokio::time::timeout(LONG, stream.read(&mut answer)).await.expect("in time").ok()?;
    let text = String::from_utf8_lossy(&answer[..read]);
    text.strip_prefix("HTTP/1.1 ").map(|rest| rest[..3].parse().expect("a status"))
}

/// Whether the server has closed this connection, on which nothing is under way.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let closed = tokio::time::timeout(LONG, stream.read(&mut [0; 64])).await.expect("in time");
    matches!(closed, Ok(0) | Err(_))
}

#[tokio::test]
async fn neither_a_key_nor_callers_without_one_keep_others_out() {
    const OTHER: &str = "other-other-other-other";
    let connections = ConnectionSettings { max_connections: 32, ..ConnectionSettings::default() };
    let keys = ApiKeys::parse(&format!("{KEY},{OTHER}")).expect("keys");
    let shell = ShellSettings { keys, ..ShellSettings::default() };
    let api = start(Kind::Sqlite, &shell, connections).await;
    let connect = async || TcpStream::connect(&api.server.address).await.expect("a connection");
    let mut victims = Vec::new();
    for _ in 0..5 {
        let mut stream = connect().await;
        assert_eq!(status_on(&mut stream, &keyed(KEY)).await, Some(200));
        victims.push(stream);
    }
    let mut hoarded = Vec::new();
    for _ in 0..100 {
        let mut stream = connect().await;
        assert_eq!(status_on(&mut stream, &keyed(OTHER)).await, Some(200));
        hoarded.push(stream);
        // probes, and callers that come now
        assert_eq!(status(&api, "GET", "/livez", &[]).await, 200);
        assert_eq!(status_with_key(&api).await, 200);
    }
    assert!(is_closed(&mut hoarded[0]).await, "the key that has most gives up the oldest");
    assert_eq!(status_on(&mut hoarded[99], &keyed(OTHER)).await, Some(200));
    for stream in &mut victims {
        assert_eq!(status_on(stream, &keyed(KEY)).await, Some(200), "another key is not affected");
    }
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(connect().await);
        assert_eq!(status_with_key(&api).await, 200);
    }
    assert!(is_closed(&mut idle[0]).await, "those without a key close their own");
    for stream in &mut victims {
        assert_eq!(status_on(stream, &keyed(KEY)).await, Some(200));
    }
    assert!(api.metrics.connections_shed.get() > 100);
}

// The command needs the database, which another thread serves meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn the_connections_of_a_revoked_key_close() {
    let api = start(Kind::Sqlite, &with_key(), ConnectionSettings::default()).await;
    let keys = |arguments: &[&str]| {
        let (code, printed, error) =
            outcome(rankduel_on(&api.database.url, &[&["keys"], arguments].concat()));
        assert_eq!(code, Some(0), "{error}");
        printed
    };
    let printed = keys(&["create", "leaked", "--scope", "read"]);
    let key = printed.split_whitespace().find(|word| word.starts_with("rankduel_")).expect("a key");
    let mut leaked = TcpStream::connect(&api.server.address).await.expect("a connection");
    assert_eq!(status_on(&mut leaked, &keyed(key)).await, Some(200));
    let mut other = TcpStream::connect(&api.server.address).await.expect("a connection");
    assert_eq!(status_on(&mut other, &keyed(KEY)).await, Some(200));
    let list = keys(&["list"]);
    let id = list.lines().find(|line| line.contains("leaked")).expect("the key");
    keys(&["revoke", id.split_whitespace().next().expect("its id")]);
    assert!(is_closed(&mut leaked).await);
    assert_eq!(status_on(&mut other, &keyed(KEY)).await, Some(200));
}

/// An experiment with this many rankers, by this policy.
async fn create(server: &Server, rankers: usize, policy: &str) {
    let ids: Vec<String> = (0..rankers).map(|number| format!("ranker-{number}")).collect();
    let body = json!({"name": "many", "rankers": ids, "policy": {"kind": policy}});
    server.post("/v1/experiments", &body).await.json(201);
}

async fn large_answers_have_a_budget_and_duels_do_not_need_it(database: TestDatabase) {
    let service = ServiceSettings { answer_bytes: 64 * 1024, ..ServiceSettings::default() };
    let settings = Settings { service, ..Settings::default() };
    let server = Server::with(database.store().await, settings).await;
    create(&server, 256, "uniform").await;
    server.get("/v1/experiments/many/standings").await.problem(ProblemKind::Overloaded);
    server.post("/v1/experiments/many/next-duel", &Value::Null).await.json(200);
}

async fn large_statistics_are_cut_to_the_pairs_with_most_pages(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    create(&server, 80, "uniform").await;
    let mut feedback = Vec::new();
    for _ in 0..3000 {
        let duel = server.post("/v1/experiments/many/next-duel", &Value::Null).await.json(200);
        if duel["self_duel"] == json!(false) {
            feedback.push(json!({"duel_id": duel["duel_id"], "outcome": "left"}));
        }
    }
    for items in feedback.chunks(1000) {
        server.post("/v1/experiments/many/feedback", &json!({"feedback": items})).await.json(200);
    }
    let version = async |query: &str| {
        let path = format!("/v1/experiments/many/statistics{query}");
        server.get(&path).await.json(200)["versions"][0].clone()
    };
    let all = version("").await;
    let pages = |pair: &Value| pair["balance"]["pages"].as_u64().expect("a count");
    let pairs = all["pairs"].as_array().expect("pairs");
    let total = all["pairs_total"].as_u64().expect("a number");
    assert_eq!(pairs.len(), 1000);
    assert!(total > 1000, "{total}");
    assert!(pairs.windows(2).all(|two| pages(&two[0]) >= pages(&two[1])));
    assert_eq!(all["pages"]["pages"], json!(feedback.len()));

    let of_one = version("?ranker=ranker-7").await;
    let pairs = of_one["pairs"].as_array().expect("pairs");
    let is_its = |pair: &Value| pair["ranker"] == "ranker-7" || pair["against"] == "ranker-7";
    assert!(!pairs.is_empty() && pairs.iter().all(is_its));
    server
        .get("/v1/experiments/many/statistics?ranker=nobody")
        .await
        .problem(ProblemKind::InvalidRequest);
}

/// A report is the same whether it is compressed or not, and for all who ask at once.
#[tokio::test]
async fn all_who_ask_at_once_get_the_same_report() {
    for kind in KINDS {
        let api = Api::start(kind, &ShellSettings::default()).await;
        let ids: Vec<String> = (0..120).map(|number| format!("ranker-{number}")).collect();
        let create = reqwest::Client::new()
            .post(api.server.url("/v1/experiments"))
            .json(&json!({"name": "many", "rankers": ids}));
        assert_eq!(create.send().await.expect("an answer").status(), 201);
        let ask = |encoding: &'static str| {
            let url = api.server.url("/v1/experiments/many/standings");
            async move {
                let request = reqwest::Client::new().get(url).header("accept-encoding", encoding);
                let response = request.send().await.expect("an answer");
                assert_eq!(response.status(), 200);
                let encoded = response.headers().get("content-encoding").cloned();
                assert_eq!(encoded.is_some(), encoding == "gzip");
                let bytes = response.bytes().await.expect("a body");
                if encoded.is_none() {
                    return bytes.to_vec();
                }
                let mut plain = Vec::new();
                let mut decoder = flate2::read::GzDecoder::new(&*bytes);
                std::io::Read::read_to_end(&mut decoder, &mut plain).expect("gzip");
                plain
            }
        };
        let asked = (0..20).map(|number| ask(if number % 2 == 0 { "gzip" } else { "identity" }));
        let answers = futures_util::future::join_all(asked).await;
        assert!(answers[0].starts_with(b"{\"experiment\":\"many\""));
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }
}
