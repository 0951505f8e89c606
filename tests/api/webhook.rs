//! Notices to a webhook, against a receiver of this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::client::{Client, assert_has, eventually, steady, with};
use crate::support::server::{Process, outcome, rankduel};

pub const SECRET: &str = "a-secret-of-the-webhook";

/// A request that the receiver got.
pub struct Got {
    path: String,
    signature: String,
    event: String,
    body: String,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Whether the signature is that of the body.
    fn is_signed(&self) -> bool {
        let (time, tag) = self.signature.split_once(',').expect("two parts");
        let time = time.strip_prefix("t=").expect("a time");
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a secret");
        mac.update(format!("{time}.{}", self.body).as_bytes());
        let tag = tag.strip_prefix("v1=").expect("a tag");
        let bytes: Vec<u8> = (0..tag.len() / 2)
            .map(|at| u8::from_str_radix(&tag[2 * at..2 * at + 2], 16).expect("hexadecimal"))
            .collect();
        mac.verify_slice(&bytes).is_ok()
    }
}

fn read(stream: &TcpStream) -> Got {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request line");
    let path = line.split(' ').nth(1).expect("a path").to_owned();
    let (mut signature, mut event, mut length) = (String::new(), String::new(), 0);
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "rankduel-signature" => value.clone_into(&mut signature),
            "rankduel-event" => value.clone_into(&mut event),
            "content-length" => length = value.parse().expect("a length"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    Got { path, signature, event, body: String::from_utf8(body).expect("text") }
}

/// A receiver that gives these answers, one after the other, and the last of them from then on.
pub fn receive(answers: &'static [&'static str]) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("its address"));
    let (send, got) = channel();
    std::thread::spawn(move || {
        for number in 0.. {
            let Ok((mut stream, _)) = listener.accept() else { return };
            if send.send(read(&stream)).is_err() {
                return;
            }
            let answer = answers[number.min(answers.len() - 1)];
            if answer == "silent" {
                // until its time is over
                std::thread::sleep(Duration::from_secs(11));
                continue;
            }
            let text =
                format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            // a test that has ended does not listen
            let _ = stream.write_all(text.as_bytes());
        }
    });
    (url, got)
}

fn next(got: &Receiver<Got>) -> Got {
    let found = got.recv_timeout(Duration::from_secs(90)).expect("a notice");
    assert!(found.path == "/hook" && found.is_signed(), "{} {}", found.path, found.signature);
    assert_eq!(found.json()["event"], *found.event);
    found
}

fn serve(database: &str, url: &str) -> Process {
    let mut command = rankduel(&["serve", "--listen", "127.0.0.1:0", "--database-url", database]);
    command.env("RANKDUEL_WEBHOOK_URL", url).env("RANKDUEL_WEBHOOK_SECRET", SECRET);
    Process::start(command)
}

/// `a` wins every duel until the experiment is concluded.
async fn play(client: &Client, name: &str) {
    eventually("the conclusion", async || {
        let path = format!("/v1/experiments/{name}");
        if client.get(&path).await.json(200)["status"] == "concluded" {
            return Some(());
        }
        for _ in 0..20 {
            let duel = client.next_duel(name).await;
            if duel["self_duel"] == false && duel["left"] != duel["right"] {
                client.wins(name, &duel, "a").await;
            }
        }
        None
    })
    .await;
}

async fn create(client: &Client, name: &str) {
    let body = with(steady(name, &["a", "b"]), json!({"owner": "search-team", "conclude_at": {}}));
    client.create(&body).await;
}

#[tokio::test]
async fn a_notice_is_sent_until_it_is_taken_and_not_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let database = format!("sqlite://{}", folder.path().join("webhook.db").display());
    // it is not followed to another address
    let redirect = "307 Temporary Redirect\r\nlocation: /elsewhere";
    let answers: &[&str] = Box::leak(Box::new(["500 Oops", redirect, "204 No Content"]));
    let (url, got) = receive(answers);
    let server = serve(&database, &url);
    let client = Client::new(&server.url);
    create(&client, "search").await;
    play(&client, "search").await;

    // two attempts failed; the result may be told before the conclusion
    let mut notices = Vec::new();
    while notices.len() < 3 || notices.last().is_some_and(|it: &Value| it["status"] == "running") {
        notices.push(next(&got).json());
    }
    let first = notices.iter().filter(|it| it["id"] == notices[0]["id"]);
    assert!(first.count() > 1, "{notices:?}");
    let notice = notices.last().expect("a notice");
    assert_eq!((&notice["event"], &notice["experiment"]), (&json!("answer"), &json!("search")));
    assert_eq!((&notice["owner"], &notice["status"]), (&json!("search-team"), &json!("concluded")));
    assert_has(&notice["answer"], json!({"state": "result", "headline": "Ship `a`."}));

    let sent = eventually("the metrics", async || {
        let text = client.get("/metrics").await.text();
        text.contains("rankduel_webhook_queue 0").then_some(text)
    })
    .await;
    assert!(sent.contains("rankduel_webhook_failures_total 2"), "{sent}");
    server.stop();

    // after a restart only what is new is sent
    let again = serve(&database, &url);
    let client = Client::new(&again.url);
    client.experiment("search").await;
    client.patch("search", &json!({"status": "running"})).await.json(200);
    client.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    let nevertheless = eventually("the notice", async || {
        let notice = next(&got).json();
        (notice["status"] == "concluded").then_some(notice)
    })
    .await;
    let headline = "The experiment ended on `b`, but the result is `a`.";
    assert_has(&nevertheless["answer"], json!({"state": "result", "headline": headline}));
    // a hundred duels without an answer raise an alarm
    client.create(&with(steady("silent", &["a", "b"]), json!({"answer_window_seconds": 0}))).await;
    for _ in 0..120 {
        client.pair("silent").await;
    }
    let alarm = next(&got).json();
    assert_has(&alarm["answer"], json!({"state": "alarm", "about": ["no-feedback"]}));
    drop(again);
    let verified = outcome(rankduel(&["verify", "--database-url", &database]));
    assert_eq!(verified.0, Some(0), "{}{}", verified.1, verified.2);
}

#[tokio::test]
async fn a_receiver_that_is_down_or_silent_slows_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    for (file, url) in
        [("down.db", "http://127.0.0.1:9/hook".to_owned()), ("silent.db", receive(&["silent"]).0)]
    {
        let database = format!("sqlite://{}", folder.path().join(file).display());
        let server = serve(&database, &url);
        let client = Client::new(&server.url);
        create(&client, "search").await;
        play(&client, "search").await;
        let started = Instant::now();
        for _ in 0..50 {
            client.next_duel("search").await;
        }
        // far less than one attempt would take
        assert!(started.elapsed() < Duration::from_secs(9));
        let log = server.stop();
        assert!(!log.contains(SECRET) && !log.contains("/hook"), "{log}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_without_repeating_them() {
    for (url, secret, why) in [
        (Some("http://127.0.0.1:9/token-1234"), None, "needs --webhook-secret"),
        (None, Some(SECRET), "needs --webhook-url"),
        (Some("https://hooks.example/token-1234"), Some(SECRET), "without TLS"),
        (Some("file:///token-1234"), Some(SECRET), "http://"),
        (Some("hooks.example/token-1234"), Some(SECRET), "no URL"),
        (Some("http://user:token-1234@127.0.0.1:9/"), Some(SECRET), "a name or a password"),
        (Some("http://127.0.0.1:9/token-1234"), Some("token-1234"), "16 characters"),
        (Some("http://127.0.0.1:9/token-1234"), Some("token-1234\ntoken-1234"), "control"),
    ] {
        let mut command = rankduel(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(["--database-url", "sqlite://unused.db"]);
        url.map(|url| command.env("RANKDUEL_WEBHOOK_URL", url));
        secret.map(|secret| command.env("RANKDUEL_WEBHOOK_SECRET", secret));
        let (code, _, message) = outcome(command);
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(why) && !message.contains("token-1234"), "{message}");
        assert!(!message.contains(SECRET), "{message}");
    }
}
