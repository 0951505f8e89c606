//! `rankduel orders`: a file in requests, repeats, resumption, and the lines that are wrong.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;

use rankduel_engine::clock::rfc3339;
use serde_json::{Value, json};

use crate::support::TestDatabase;
use crate::support::client::with;
use crate::support::server::rankduel;
use crate::support::service::{START_MS, Server};

on_both_databases! {
    a_file_is_sent_in_requests_and_again_without_effect
    wrong_lines_are_named_and_the_others_count
    a_line_that_is_no_text_costs_no_other
}

/// The code, standard output and standard error of the command with this standard input.
async fn orders(
    arguments: &[&str],
    key: Option<&str>,
    input: impl AsRef<[u8]>,
) -> (Option<i32>, String, String) {
    let mut command = rankduel(&[&["orders"], arguments].concat());
    command.stdin(Stdio::piped());
    if let Some(key) = key {
        command.env("RANKDUEL_KEY", key);
    }
    let input = input.as_ref().to_owned();
    tokio::task::spawn_blocking(move || run(command, &input)).await.expect("the command ends")
}

fn run(mut command: Command, input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = command.spawn().expect("the program");
    let mut stdin = child.stdin.take().expect("its standard input");
    // a command that does not read it has closed it
    let _ = stdin.write_all(input);
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn shop(name: &str) -> Value {
    json!({
        "name": name, "rankers": ["bm25", "neural"],
        "decide_by": {"event": "order", "window_seconds": 3600},
    })
}

fn order(id: usize) -> String {
    let order = json!({
        "order_id": format!("A-{id}"), "unit": format!("c-{id}"), "at": rfc3339(START_MS),
        "lines": [{"document": "d3", "value": 49.9, "quantity": 2}],
    });
    format!("{order}\n")
}

async fn a_line_that_is_no_text_costs_no_other(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    server.post("/v1/experiments", &shop("first")).await.json(201);
    let url = server.client().base().to_owned();
    let arguments = ["-", "--url", &*url];
    let long = format!("{{\"order_id\": \"{}\"}}\n", "A".repeat(3 << 20));
    for (line, said, expected) in [
        (&b"{\"order_id\": \"\xfc\"}\n"[..], "line 2: invalid: ", "invalid 1\nrecorded 2\n"),
        (long.as_bytes(), "line 2: invalid: The body is larger", "duplicate 2\ninvalid 1\n"),
    ] {
        let input = [order(1).as_bytes(), line, order(2).as_bytes()].concat();
        let (code, counts, why) = orders(&arguments, None, input).await;
        assert_eq!((code, &*counts), (Some(1), expected), "{why}");
        assert!(why.contains(said), "{why}");
    }
    // an export that failed is no success
    for nothing in ["", "\n \r\n", "\u{feff}"] {
        let (code, counts, why) = orders(&arguments, None, nothing).await;
        assert_eq!((code, &*counts), (Some(1), ""), "{nothing:?}");
        assert!(why.contains("the file has no orders"), "{why}");
    }
}

async fn a_file_is_sent_in_requests_and_again_without_effect(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    for name in ["first", "second"] {
        server.post("/v1/experiments", &shop(name)).await.json(201);
    }
    server.create(&json!({"name": "clicks", "rankers": ["bm25", "neural"]})).await;
    let (before, url) = (server.position("first").await, server.client().base().to_owned());
    let all: String = (0..2500).map(order).collect();
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "\u{feff}{}", all.replace('\n', "\r\n\r\n")).expect("a file");
    let path = file.path().to_str().expect("a path");
    let sent = orders(&[path, "--url", &url], None, "").await;
    assert_eq!(sent, (Some(0), "recorded 2500\n".into(), String::new()));
    for name in ["first", "second"] {
        assert_eq!(server.position(name).await, before + 2500, "{name}");
    }
    // a part of it, from standard input, with a slash and with one experiment
    let more: String = (0..1200).chain([2500]).map(order).collect();
    let url = format!("{url}/");
    let arguments = ["-", "--url", &url, "--experiment", "first"];
    let again = orders(&arguments, None, &more).await;
    assert_eq!(again, (Some(0), "duplicate 1200\nrecorded 1\n".into(), String::new()));
    assert_eq!(server.position("second").await, before + 2500);

    let arguments = ["-", "--url", &url, "--experiment", "clicks"];
    let (code, counts, why) = orders(&arguments, None, &order(0)).await;
    assert_eq!((code, &*counts), (Some(1), ""), "{why}");
    for part in ["409 Conflict", "`clicks` has no `decide_by`", "from line 1 on"] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

async fn wrong_lines_are_named_and_the_others_count(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    server.post("/v1/experiments", &shop("shop")).await.json(201);
    let url = server.client().base().to_owned();
    let mut lines = order(1);
    lines += &order(1).replace("49.9", "39.9");
    lines += "\n{\"order_id\": \n";
    lines += &order(2).replace("\"quantity\":2", "\"quantity\":0");
    let old =
        with(serde_json::from_str(&order(3)).expect("JSON"), json!({"at": "2020-01-01T12:00:00Z"}));
    let _ = writeln!(lines, "{old}");
    lines += "{\"order_id\": \"A-1\", \"cancelled\": true}\n";
    let (code, counts, why) = orders(&["-", "--url", &url], None, &lines).await;
    assert_eq!(code, Some(1), "{why}");
    assert_eq!(counts, "conflict 1\ninvalid 2\nlate 1\nrecorded 2\n", "{why}");
    for part in [
        "line 2: conflict: another content has this `order_id`",
        "line 4: invalid: /order_id: EOF while parsing a value",
        "line 5: invalid: /lines/0/quantity: ",
        "2 orders are invalid",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
}

/// A server that gives one answer to each request, and returns the requests.
fn canned(answers: &'static [&'static str]) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serve = move |answer: &&str| {
        let (connection, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(connection);
        let (mut length, mut head) = (0, String::new());
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            head += &line;
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the body");
        reader.get_mut().write_all(answer.as_bytes()).expect("an answer");
        head + &String::from_utf8(body).expect("text")
    };
    (url, thread::spawn(move || answers.iter().map(serve).collect()))
}

const UNAVAILABLE: &str =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{";
const RECORDED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 35\r\nconnection: close\r\n\r\n{\"results\":[{\"status\":\"recorded\"}]}";
const ELSEWHERE: &str = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_repeated_unchanged() {
    let (url, server) = canned(&[UNAVAILABLE, CUT, RECORDED]);
    let (code, counts, why) = orders(&["-", "--url", &url], Some("the-key"), &order(1)).await;
    assert_eq!((code, &*counts), (Some(0), "recorded 1\n"), "{why}");
    assert_eq!(why.matches("; trying again").count(), 2, "{why}");
    let requests = server.join().expect("the requests");
    assert_eq!(requests, vec![requests[0].clone(); 3]);
    for part in ["POST /v1/orders HTTP/1.1", "authorization: Bearer the-key", "A-1"] {
        assert!(requests[0].contains(part), "{part}: {}", requests[0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed() {
    let (url, server) = canned(&[ELSEWHERE]);
    let (code, _, why) = orders(&["-", "--url", &url], Some("the-key"), &order(1)).await;
    assert!(code == Some(1) && why.contains("307"), "{why}");
    server.join().expect("one request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_call_is_a_usage_error() {
    for (arguments, key, part) in [
        (&["-", "--url", "ftp://server"][..], None, "--url is not the address of a server"),
        (&["-", "--url", "http://name:secret@server"], None, "--url is not the address"),
        (&["-"], Some("a\u{7f}key"), "RANKDUEL_KEY"),
        (&["/no/such/file"], None, "/no/such/file"),
        (&[], None, "FILE"),
    ] {
        let (code, _, why) = orders(arguments, key, "").await;
        assert_eq!(code, Some(2), "{arguments:?}: {why}");
        assert!(why.contains(part) && !why.contains("secret"), "{arguments:?}: {why}");
    }
}
