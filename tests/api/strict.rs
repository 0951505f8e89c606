//! Requests that two readers can understand differently are refused, and so are bodies that are
//! compressed. Entity tags survive compression on the way.

use rankduel::http::{ProblemKind, ShellSettings};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::Kind;
use crate::support::client::{Client, JSON, steady};
use crate::support::server::Api;

async fn start() -> (Api, Client) {
    let api = Api::start(Kind::Sqlite, &ShellSettings::default()).await;
    let client = Client::new(&api.server.url(""));
    client.create(&steady("search", &["a", "b"])).await;
    (api, client)
}

/// The statuses of all responses to `text`, which is sent in pieces of this many bytes.
async fn statuses(api: &Api, text: &str, piece: usize) -> Vec<u16> {
    let stream = TcpStream::connect(&api.server.address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let (mut reader, mut writer) = stream.into_split();
    let text = text.to_owned();
    let sending = tokio::spawn(async move {
        for piece in text.as_bytes().chunks(piece) {
            // a server that has refused the rest does not read it
            if writer.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        writer
    });
    let mut answers = Vec::new();
    // the end may be a reset: the server has closed before it has read everything
    let _ = reader.read_to_end(&mut answers).await;
    drop(sending.await);
    let answers = String::from_utf8_lossy(&answers).into_owned();
    let lines = answers.split("HTTP/1.").skip(1);
    lines.map(|line| line[2..5].parse().expect("a status")).collect()
}

#[tokio::test]
async fn heads_that_two_readers_can_understand_differently_get_400() {
    let (api, _) = start().await;
    let chunked = "transfer-encoding: chunked\r\n";
    let refused = [
        "GET /livez HTTP/1.1\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\nhost: x\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\r\n\n".to_owned(),
        "\nGET /livez HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "GET /livez HTTP/1.1\r\nhost: x\r\na: b\nc: d\r\n\r\n".to_owned(),
    ]
    .into_iter()
    .chain(
        ["identity, chunked", "gzip, chunked", "chunked, chunked", "identity", "chunked;q=1", ""]
            .iter()
            .map(|coding| format!("transfer-encoding: {coding}\r\n"))
            .chain([
                format!("transfer-encoding: identity\r\n{chunked}"),
                format!("transfer-encoding: gzip\r\n{chunked}"),
                format!("{chunked}{chunked}"),
            ])
            .map(|codings| format!("GET /livez HTTP/1.1\r\nhost: x\r\n{codings}\r\n0\r\n\r\n")),
    );
    for request in refused {
        for piece in [1, 1000] {
            assert_eq!(statuses(&api, &request, piece).await, [400], "{request:?}");
            // as the second request on a connection, with a body before it
            let body = "a\nb\n";
            let first =
                format!("POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n{body}");
            let after = statuses(&api, &(first + &request), piece).await;
            assert_eq!(after, [401, 400], "{request:?}");
        }
    }
}

#[tokio::test]
async fn bodies_may_have_any_line_ends() {
    let (api, _) = start().await;
    let path =
        "/v1/experiments/search/next-duel HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
    let body = "{\"segment\":\n \n\r\n \"phone\"}";
    let length = body.len();
    let (begin, end) = body.split_at(12);
    let requests = format!(
        "\r\n\r\nPOST {path}\r\ncontent-length: {length}\r\n\r\n{body}\
         POST {path}\r\nTransfer-Encoding: Chunked\r\n\r\n\
         {:X}\r\n{begin}\r\n{:x};a=b\r\n{end}\r\n0\r\nx: y\r\n\r\n\
         GET /livez HTTP/1.0\r\n\r\n",
        begin.len(),
        end.len(),
    );
    for piece in [1, 7, 10_000] {
        assert_eq!(statuses(&api, &requests, piece).await, [200, 200, 200]);
    }
    let bare = requests.replace("0\r\nx: y\r\n", "0\r\nx: y\n");
    assert_eq!(statuses(&api, &bare, 10_000).await, [200, 400], "trailers are headers, too");
}

#[tokio::test]
async fn a_compressed_body_is_refused_by_its_coding() {
    let (_api, client) = start().await;
    let path = "/v1/experiments/search/feedback";
    for coding in ["gzip", "br", "identity, deflate"] {
        let answer = client
            .send("POST", path, &[JSON, ("content-encoding", coding)], b"\x1f\x8b\x08".to_vec())
            .await;
        let problem = answer.problem(ProblemKind::UnsupportedMediaType);
        let detail = format!("The Content-Encoding is {coding:?}; send the body without one.");
        assert_eq!(problem["detail"], detail.as_str());
    }
    let duel = client.pair("search").await;
    let body = json!({"duel_id": duel["duel_id"], "outcome": "left"}).to_string().into_bytes();
    client.send("POST", path, &[JSON, ("content-encoding", "identity")], body).await.json(200);
}

#[tokio::test]
async fn an_unchanged_answer_is_not_sent_again_compressed_or_not() {
    let (_api, client) = start().await;
    let rankers: Vec<String> = (0..250).map(|number| format!("ranker-{number}")).collect();
    client.create(&json!({"name": "large", "rankers": rankers})).await;
    let path = "/v1/experiments/large";
    let gzip = ("accept-encoding", "gzip");
    let plain = client.get(path).await;
    let packed = client.send("GET", path, &[gzip], vec![]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let (strong, weak) = (plain.header("etag").unwrap(), packed.header("etag").unwrap());
    assert_eq!((strong, weak), ("\"1\"", "W/\"1\""));
    let standings = "/v1/experiments/large/standings";
    let known_to_caller = async |path: &str, tags: &str| {
        client.send("GET", path, &[("if-none-match", tags)], vec![]).await
    };
    for path in [standings, "/v1/experiments/large/regret"] {
        let tag = client.get(path).await.header("etag").expect("a tag").to_owned();
        let weak = format!("W/{tag}");
        for known in [&tag, &weak, "*", &format!("\"x\", {weak}"), &format!("W/\"x\",{tag}")] {
            let answer = known_to_caller(path, known).await;
            assert_eq!((answer.status, answer.bytes.len()), (304, 0), "{path} {known}");
            let sent = answer.header("etag").expect("a tag");
            assert!(known == "*" || known.ends_with(sent), "{known}: {sent}");
            assert_eq!(sent.trim_start_matches("W/"), tag, "as the caller holds it");
        }
        for other in ["\"77\"", "W/\"77\"", "1", "", "\"1", "nonsense"] {
            assert_eq!(known_to_caller(path, other).await.status, 200, "{path} {other}");
        }
    }
    let before = client.get(standings).await.header("etag").expect("a tag").to_owned();
    let duel = client.pair("large").await;
    let position = client.answer("large", &duel, "left").await;
    let grown = known_to_caller(standings, &before).await;
    assert_eq!(grown.header("etag"), Some(&*format!("\"{position}\"")));
    assert_eq!(grown.json(200)["position"], position);
    for (tag, expected) in [("W/\"2\"", 412), ("W/\"1\"", 200), ("\"2\"", 200), ("W/2", 422)] {
        let status = if expected == 200 && tag == "\"2\"" { "running" } else { "paused" };
        let body = json!({"status": status}).to_string().into_bytes();
        let answer = client.send("PATCH", path, &[JSON, ("if-match", tag)], body).await;
        assert_eq!(answer.status, expected, "{tag}: {}", answer.text());
    }
}
