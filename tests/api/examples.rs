//! Sends every example of `docs/api.md` in order and compares the responses with the documentation.
//!
//! A block of ```` ```http ```` holds a request (`GET /path`) and mostly the response to it
//! (`HTTP/1.1 200 OK`), each with headers, an empty line, and JSON. The actual response may have
//! more members than the documented one. In a response, `…` in a text matches any text, `"…"` at the
//! end of a list matches the remaining items, and a number matches any number. In a request, a text
//! with `…` stands for the latest value of that member in a response, and `If-Match` is the latest
//! `ETag`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use rankduel::http;
use serde_json::Value;

use crate::support::TestDatabase;
use crate::support::client::{Answer, Client};
use crate::support::service::Server;

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md");
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
});

/// A request or a response of the page.
struct Message<'a> {
    line: usize,
    first: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<Value>,
}

fn messages() -> Vec<Message<'static>> {
    let mut messages = Vec::new();
    let mut lines = TEXT.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line != "```http" {
            continue;
        }
        let inside: Vec<_> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let response = inside.iter().position(|line| line.starts_with("HTTP/1.1 "));
        let (request, response) = inside.split_at(response.unwrap_or(inside.len()));
        messages.push(message(at + 2, request));
        if !response.is_empty() {
            messages.push(message(at + 2 + request.len(), response));
        }
    }
    messages
}

fn message(line: usize, lines: &[&'static str]) -> Message<'static> {
    let (head, body) = match lines.iter().position(|line| line.is_empty()) {
        Some(empty) => (&lines[..empty], lines[empty + 1..].join("\n")),
        None => (lines, String::new()),
    };
    let body = (!body.trim().is_empty()).then(|| {
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("docs/api.md:{line}: {error}"))
    });
    let headers = head[1..].iter().map(|line| line.split_once(": ").expect("a header")).collect();
    Message { line, first: head[0], headers, body }
}

/// The latest value of each member in the responses so far.
#[derive(Default)]
struct Seen {
    texts: BTreeMap<String, String>,
    etag: Option<String>,
}

impl Seen {
    fn remember(&mut self, answer: &Answer, value: &Value) {
        self.etag = answer.header("etag").map(str::to_owned).or(self.etag.take());
        self.remember_texts(value);
    }

    fn remember_texts(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    if let Value::String(text) = member {
                        self.texts.insert(name.clone(), text.clone());
                    }
                    self.remember_texts(member);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.remember_texts(item)),
            _ => {}
        }
    }

    /// A request's body with the values that `…` stands for.
    fn fill(&self, value: &Value, name: &str, line: usize) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| (name.clone(), self.fill(member, name, line)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.fill(item, name, line)).collect(),
            Value::String(text) if text.contains('…') => {
                // A slot is named by the `token` in its response.
                let name = if name == "slot" { "token" } else { name };
                let seen = self.texts.get(name);
                seen.unwrap_or_else(|| panic!("docs/api.md:{line}: no answer had a `{name}` yet"))
                    .clone()
                    .into()
            }
            value => value.clone(),
        }
    }
}

/// Check that `found` matches the documentation; panics with both values otherwise.
fn check(documented: &Value, found: &Value, at: &str) {
    match (documented, found) {
        (Value::Object(documented), Value::Object(found)) => {
            for (name, documented) in documented {
                let found = found
                    .get(name)
                    .unwrap_or_else(|| panic!("{at}/{name} is missing from {found:?}"));
                check(documented, found, &format!("{at}/{name}"));
            }
        }
        (Value::Array(documented), Value::Array(found)) => {
            let open = documented.last().is_some_and(|last| last == "…");
            let given = &documented[..documented.len() - usize::from(open)];
            assert!(
                if open { found.len() >= given.len() } else { found.len() == given.len() },
                "{at} has {} items",
                found.len()
            );
            for (place, (documented, found)) in given.iter().zip(found).enumerate() {
                check(documented, found, &format!("{at}/{place}"));
            }
        }
        (Value::String(text), Value::String(_)) if text.contains('…') => {}
        (Value::Number(_), Value::Number(_)) => {}
        (documented, found) => assert_eq!(documented, found, "{at}"),
    }
}

async fn send(client: &Client, message: &Message<'_>, seen: &Seen) -> Answer {
    let (method, path) = message.first.split_once(' ').expect("a method and a path");
    let mut headers = message.headers.clone();
    for (name, value) in &mut headers {
        if name.eq_ignore_ascii_case("if-match") && value.contains('…') {
            *value = seen.etag.as_deref().expect("an ETag so far");
        }
    }
    let body = message.body.as_ref().map(|body| seen.fill(body, "", message.line).to_string());
    if body.is_some() {
        headers.push(("content-type", "application/json"));
    }
    client.send(method, path, &headers, body.unwrap_or_default().into_bytes()).await
}

on_sqlite! {
    every_example_gets_the_documented_response
}

async fn every_example_gets_the_documented_response(database: TestDatabase) {
    let server = Server::start(database.store().await).await;
    let mut seen = Seen::default();
    let mut answer: Option<Answer> = None;
    for message in messages() {
        let Some(status) = message.first.strip_prefix("HTTP/1.1 ") else {
            answer = Some(send(&server, &message, &seen).await);
            continue;
        };
        let answer = answer.take().unwrap_or_else(|| {
            panic!("docs/api.md:{}: a response without a request", message.line)
        });
        let at = format!("docs/api.md:{}: {}", message.line, answer.request);
        let documented_status: u16 = status[..3].parse().expect("a status");
        assert_eq!(
            answer.status,
            documented_status,
            "{at}: {}",
            String::from_utf8_lossy(&answer.bytes)
        );
        for (name, value) in &message.headers {
            let found = answer.header(name).unwrap_or_else(|| panic!("{at}: no {name}"));
            assert!(value.contains('…') || found == *value, "{at}: {name}: {found}");
        }
        let found = serde_json::from_slice(&answer.bytes).unwrap_or(Value::Null);
        if let Some(documented) = &message.body {
            check(documented, &found, &at);
        }
        seen.remember(&answer, &found);
    }
}

#[test]
fn every_operation_has_an_example() {
    let document = serde_json::to_value(http::description()).expect("JSON");
    let asked: BTreeSet<(String, Vec<String>)> = messages()
        .iter()
        .filter(|message| !message.first.starts_with("HTTP/"))
        .map(|message| {
            let (method, path) = message.first.split_once(' ').expect("a method and a path");
            let path = path.split('?').next().unwrap_or_default();
            (method.to_lowercase(), path.split('/').map(str::to_owned).collect())
        })
        .collect();
    let has_example = |method: &str, path: &str| {
        asked.iter().any(|(asked_method, asked_path)| {
            let parts: Vec<_> = path.split('/').collect();
            asked_method == method
                && parts.len() == asked_path.len()
                && parts
                    .iter()
                    .zip(asked_path)
                    .all(|(part, asked)| part.starts_with('{') || part == asked)
        })
    };
    let mut missing = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("operations").keys() {
            if !has_example(method, path) {
                missing.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    assert!(missing.is_empty(), "docs/api.md has no example of {missing:#?}");
}
