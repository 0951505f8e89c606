//! No request hides in the body of another one behind the shipped proxy configuration
//! (`deploy/haproxy.cfg`): the proxy and the server find the same ends of requests.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::haproxy::Haproxy;
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::support::{Kind, fresh_database};

const KEY: &str = "correct-horse-battery-staple";

/// Requests whose end two readers may find at different places. `{hidden}` is a request that only a
/// reader finds that takes the wrong end.
const AMBIGUOUS: [&str; 18] = [
    "content-length: {all}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
    "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n{chunk}\r\n{hidden}\r\n0\r\n\r\n",
    "content-length: 0\r\ncontent-length: {length}\r\n\r\n{hidden}",
    "content-length: {length}\r\ncontent-length: 0\r\n\r\n{hidden}",
    "content-length: 0, {length}\r\n\r\n{hidden}",
    "content-length: +0\r\n\r\n{hidden}",
    "content-length : {length}\r\n\r\n{hidden}",
    " content-length: {length}\r\n\r\n{hidden}",
    "transfer-encoding: xchunked\r\ncontent-length: {length}\r\n\r\n{hidden}",
    "transfer-encoding : chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\n{hidden}",
    "transfer-encoding:\tchunked\r\n\r\n0\r\n\r\n{hidden}",
    "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n{hidden}",
    "transfer-encoding: identity, chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n{hidden}",
    "x: y\r\n transfer-encoding: chunked\r\ncontent-length: {length}\r\n\r\n{hidden}",
    "x: y\ntransfer-encoding: chunked\r\ncontent-length: {all}\r\n\r\n0\r\n\r\n{hidden}",
    "transfer-encoding: chunked\r\n\r\n0;\n\r\n\r\n{hidden}",
    "transfer-encoding: chunked\r\n\r\n00000000000000000\r\n\r\n{hidden}",
    "content-length: 0\r\nconnection: content-length\r\n\r\n{hidden}",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_request_hides_in_the_body_of_another_one() {
    let database = fresh_database(Kind::Sqlite).await;
    let mut command = rankduel_on(&database.url, &["serve", FREE_PORT, "--log-format", "json"]);
    command.env("RANKDUEL_API_KEYS", KEY);
    let process = Process::start(command);
    let server = process.url.strip_prefix("http://").expect("an address").to_owned();
    let proxy = Haproxy::start(&[&server]).await;
    let proxy = proxy.address();

    // A connection that is still open after a second waits for a further request.
    let send = async |to: &str, request: &str| {
        let mut stream = TcpStream::connect(to).await.expect("a connection");
        // a reader that closes early has refused the rest
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(Duration::from_secs(1), read).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let key = format!("host: rankduel\r\nauthorization: Bearer {KEY}\r\n");
    // Without ambiguity two requests in a row get two responses, and the log has both.
    let plain = |id: &str| format!("GET /v1/experiments HTTP/1.1\r\n{key}x-request-id: {id}\r\n");
    let both = format!("{}\r\n{}connection: close\r\n\r\n", plain("first"), plain("second"));
    let answer = send(proxy, &both).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    // The hidden requests that the proxy found too: it passed their responses on.
    let mut answered = Vec::new();
    for (number, ambiguous) in AMBIGUOUS.iter().enumerate() {
        let hidden_id = format!("hidden-{number}");
        let hidden = format!("{}\r\n", plain(&hidden_id));
        let rest = ambiguous
            .replace("{length}", &hidden.len().to_string())
            .replace("{all}", &(hidden.len() + 5).to_string())
            .replace("{chunk}", &format!("{:x}", hidden.len()))
            .replace("{hidden}", &hidden);
        let request = format!(
            "POST /v1/experiments HTTP/1.1\r\n{key}content-type: application/json\r\n\
             x-request-id: outer-{number}\r\n{rest}"
        );
        let answer = send(proxy, &request).await;
        assert!(answer.starts_with("HTTP/1."), "{ambiguous:?}: {answer}");
        if answer.contains(&format!("x-request-id: {hidden_id}")) {
            answered.push(hidden_id);
        }
        // The next request on the proxy's connections gets its own response.
        let after = send(proxy, &format!("{}connection: close\r\n\r\n", plain("after"))).await;
        assert!(after.starts_with("HTTP/1.1 200"), "{ambiguous:?}: {after}");
        assert!(after.contains("x-request-id: after"), "{ambiguous:?}: {after}");
        assert_eq!(after.matches("HTTP/1.1 ").count(), 1, "{ambiguous:?}: {after}");
    }
    process.signal("TERM");
    let (_, log) = process.wait();
    let logged: Vec<(String, u64)> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line["target"] == "rankduel::access")
        .map(|line| {
            let id = line["request_id"].as_str().expect("an id").to_owned();
            (id, line["status"].as_u64().expect("a status"))
        })
        .collect();
    for id in ["first", "second", "after"] {
        assert!(logged.iter().any(|(own, status)| own == id && *status == 200), "{id}: {log}");
    }
    let reached: Vec<_> = logged.iter().filter(|(id, _)| id.starts_with("hidden-")).collect();
    for (id, _) in reached {
        assert!(answered.contains(id), "{id} reached the server and not the proxy: {AMBIGUOUS:?}");
    }
}
