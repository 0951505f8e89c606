//! `rankduel health`, as an orchestrator runs it, against servers with a fixed response.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};

/// A server for one request: it responds with `answer` and returns the request line.
struct Canned {
    address: SocketAddr,
    thread: JoinHandle<String>,
}

impl Canned {
    fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            connection.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head).unwrap().lines().next().unwrap().to_owned()
        });
        Self { address, thread }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn was_asked(self) -> String {
        self.thread.join().unwrap()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 13\r\nconnection: close\r\n\r\nshutting down";
const ELSEWHERE: &str = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

fn health(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rankduel"))
        .arg("health")
        .args(arguments)
        .env_remove("RANKDUEL_LISTEN")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A result that cannot be written is an error, and a reader that has gone is none.
#[test]
fn where_the_result_goes() {
    for (to, code) in [("> /dev/full", 1), ("| head -c 0", 0)] {
        let server = Canned::answering(OK);
        let program = env!("CARGO_BIN_EXE_rankduel");
        let line = format!("set -o pipefail; {program} health --url {} {to}", server.url());
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        server.was_asked();
    }
}

#[test]
fn a_server_that_answers_200_is_healthy() {
    for (ready, environment) in [
        (false, None),
        (true, None),
        (false, Some(("RANKDUEL_LISTEN", "[::1]:1"))), // the URL prevails
        (false, Some(("http_proxy", "http://127.0.0.1:1"))), // proxies are ignored
    ] {
        let server = Canned::answering(OK);
        let url = server.url();
        let mut arguments = vec!["--url", &*url];
        arguments.extend(ready.then_some("--ready"));
        let output = health(&arguments, environment.as_slice());
        assert_eq!(output.status.code(), Some(0), "{environment:?}: {}", stderr(&output));
        assert_eq!(output.stdout, b"ok\n");
        let path = if ready { "/readyz" } else { "/livez" };
        assert_eq!(server.was_asked(), format!("GET {path} HTTP/1.1"));
    }
}

#[test]
fn the_server_of_the_environment_is_checked_on_loopback() {
    let server = Canned::answering(OK);
    let listen = format!("0.0.0.0:{}", server.address.port());
    let output = health(&[], &[("RANKDUEL_LISTEN", &listen)]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    server.was_asked();
}

#[test]
fn only_status_200_is_healthy() {
    for (answer, expected) in [(UNAVAILABLE, ["503", "shutting down"]), (ELSEWHERE, ["307", ""])] {
        let server = Canned::answering(answer);
        let output = health(&["--url", &server.url()], &[]);
        assert_eq!(output.status.code(), Some(1));
        for text in expected {
            assert!(stderr(&output).contains(text), "{}", stderr(&output));
        }
        server.was_asked();
    }
}

#[test]
fn a_closed_port_is_unhealthy() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = health(&["--url", &url], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&url), "{}", stderr(&output));
}

#[test]
fn an_invalid_address_is_a_usage_error() {
    for arguments in [
        ["--url", "https://127.0.0.1"],
        ["--url", "127.0.0.1"],
        ["--listen", "127.0.0.1:0"],
        ["--listen", "7171"],
    ] {
        let output = health(&arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(arguments[1]), "{arguments:?}: {}", stderr(&output));
    }
}
