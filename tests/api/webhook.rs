//! Notices to a webhook, against a receiver of this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use rankduel::service::transfer::{export, import};
use rankduel::service::{WebhookFormat, WebhookSettings};
use rankduel_engine::metrics::Metrics;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::TestDatabase;
use crate::support::client::{Client, assert_has, assert_verifies, eventually, steady, with};
use crate::support::server::{Process, outcome, rankduel};
use crate::support::service::{Server, Settings};

on_both_databases! {
    a_refused_notice_holds_no_other_back
    a_notice_outlives_its_server_and_its_experiment
    several_servers_send_each_notice_once
}

on_sqlite! {
    each_change_of_an_experiment_is_told_once
    a_withdrawn_result_and_the_next_one_are_told
    what_came_with_an_import_is_no_news_and_keeps_its_time
    the_end_of_an_alarm_is_told
    people_get_messages
}

const SECRET: &str = "a-secret-of-the-webhook";
const TAKEN: &str = "204 No Content";

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

fn read(stream: impl std::io::Read) -> Got {
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
    receive_by(move |number, _| answers[number.min(answers.len() - 1)])
}

/// A receiver whose answers depend on the number of the request, from 0, and on the request.
fn receive_by(
    answer: impl Fn(usize, &Got) -> &'static str + Send + 'static,
) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", listener.local_addr().expect("its address"));
    let (send, got) = channel();
    std::thread::spawn(move || {
        for number in 0.. {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let request = read(&stream);
            let answer = answer(number, &request);
            if send.send(request).is_err() {
                return;
            }
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

/// Send notices of this server to this address, as JSON.
pub fn notify(server: &Server, url: &str) {
    notify_as(server, url, WebhookFormat::Json);
}

fn notify_as(server: &Server, url: &str, format: WebhookFormat) {
    let page = Some("https://ops.example/rankduel/");
    let settings = WebhookSettings::parse(Some(url), Some(SECRET), format, page);
    let settings = settings.expect("valid settings").expect("an address");
    let started = server.service.start_webhook(&settings, Arc::new(Metrics::new()));
    started.expect("a webhook");
}

/// A server that looks at its experiments often.
async fn quick(database: &TestDatabase) -> Server {
    Server::with(database.connect().await, Settings::quick()).await
}

/// Create an experiment, and conclude it without a result: a notice.
async fn stop(server: &Server, name: &str) {
    server.create(&steady(name, &["a", "b"])).await;
    server.patch(name, &json!({"status": "concluded", "winner": "b"})).await.json(200);
}

async fn archive(server: &Server, name: &str) {
    let path = format!("/v1/experiments/{name}");
    assert_eq!(server.send("DELETE", &path, &[], Vec::new()).await.status, 204);
}

/// No notice waits.
async fn all_sent(database: &TestDatabase) {
    eventually("the end of the queue", async || {
        (database.count("select count(*) from webhook_notice").await == 0).then_some(())
    })
    .await;
}

async fn a_refused_notice_holds_no_other_back(database: TestDatabase) {
    let (url, got) = receive_by(|number, request| match request.json()["experiment"] == "bad" {
        true if number % 2 == 0 => "410 Gone",
        true => "400 Bad Request",
        false => TAKEN,
    });
    database.store().await;
    let server = quick(&database).await;
    notify(&server, &url);
    stop(&server, "bad").await;
    let refused = next(&got).json();
    assert_eq!(refused["experiment"], "bad");
    // its pauses are of 1, 2, 4 and 8 s; others come meanwhile
    for (pause, name) in [(1000, "one"), (2000, "two"), (4000, "three"), (8000, "four")] {
        server.clock.advance_ms(pause - 1);
        stop(&server, name).await;
        assert_eq!(next(&got).json()["experiment"], name);
        server.clock.advance_ms(1);
        assert_eq!(next(&got).json(), refused, "after {name}");
    }
    // one that nobody wants ends
    server.clock.advance_ms(7 * 86_400_000);
    assert_eq!(next(&got).json(), refused);
    all_sent(&database).await;
}

async fn a_notice_outlives_its_server_and_its_experiment(database: TestDatabase) {
    let (url, got) = receive_by(|number, _| if number == 0 { "503 Unavailable" } else { TAKEN });
    database.store().await;
    let server = quick(&database).await;
    notify(&server, &url);
    stop(&server, "search").await;
    let refused = next(&got).json();
    archive(&server, "search").await;
    server.stop().await;
    assert_eq!(database.count("select count(*) from webhook_notice").await, 1);

    let restarted = quick(&database).await;
    restarted.clock.advance_ms(60_000);
    notify(&restarted, &url);
    assert_eq!(next(&got).json(), refused);
    assert!(restarted.service.peek("search").is_none(), "it need not be loaded");
    all_sent(&database).await;
    // what was told is not told again
    assert_eq!(restarted.experiment("search").await["answer"]["state"], "archived");
    stop(&restarted, "next").await;
    assert_eq!(next(&got).json()["experiment"], "next");
    assert_verifies(&*database.connect().await, "search").await;
}

async fn several_servers_send_each_notice_once(database: TestDatabase) {
    let (url, got) = receive(&[TAKEN]);
    database.store().await;
    let servers = [quick(&database).await, quick(&database).await];
    servers.iter().for_each(|server| notify(server, &url));
    let names: Vec<_> = (0..10).map(|number| format!("e{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        stop(&servers[number % 2], name).await;
        servers[(number + 1) % 2].experiment(name).await;
    }
    let mut told: Vec<_> = names.iter().map(|_| next(&got).json()["experiment"].clone()).collect();
    told.sort_by_key(ToString::to_string);
    assert_eq!(json!(told), json!(names));
    all_sent(&database).await;
    assert!(got.try_recv().is_err());
}

/// `a` wins so many duels, each shown to another unit.
async fn win(server: &Server, name: &str, unit: &str, duels: usize) {
    for number in 0..duels {
        let path = format!("/v1/experiments/{name}/next-duel");
        let duel = server.post(&path, &json!({"unit": format!("{unit}-{number}")})).await.json(200);
        server.wins(name, &duel, "a").await;
    }
}

/// Status, state and about of the next notice.
fn told(got: &Receiver<Got>) -> [Value; 3] {
    let notice = next(got).json();
    let (status, answer) = (notice["status"].clone(), &notice["answer"]);
    [status, answer["state"].clone(), answer["about"].clone()]
}

async fn each_change_of_an_experiment_is_told_once(database: TestDatabase) {
    let (url, got) = receive(&[TAKEN]);
    database.store().await;
    let server = quick(&database).await;
    notify(&server, &url);
    server.create(&with(steady("search", &["a", "b"]), json!({"watch": 0.0}))).await;
    win(&server, "search", "person", 60).await;
    assert_eq!(told(&got), [json!("running"), json!("result"), json!(["a"])]);
    for status in ["paused", "running"] {
        server.patch("search", &json!({"status": status})).await.json(200);
        assert_eq!(told(&got), [json!(status), json!("result"), json!(["a"])]);
    }
    server.patch("search", &json!({"status": "concluded", "winner": "a"})).await.json(200);
    assert_eq!(told(&got), [json!("concluded"), json!("result"), json!(["a"])]);
    server.clock.advance_ms(2 * 86_400_000);
    // it is not in memory any more
    eventually("the end of the watch", async || {
        let experiment = server.experiment("search").await;
        (experiment["answer"]["state"] == "not-watched").then_some(())
    })
    .await;
    assert_eq!(told(&got), [json!("concluded"), json!("not-watched"), json!(["a"])]);
    server.stop().await;
    // neither a restart nor the archive is news
    let restarted = quick(&database).await;
    restarted.clock.advance_ms(2 * 86_400_000);
    notify(&restarted, &url);
    restarted.verdict("search").await;
    archive(&restarted, "search").await;
    assert_eq!(restarted.experiment("search").await["answer"]["state"], "archived");
    stop(&restarted, "next").await;
    assert_eq!(next(&got).json()["experiment"], "next");
}

async fn a_withdrawn_result_and_the_next_one_are_told(database: TestDatabase) {
    let (url, got) = receive(&[TAKEN]);
    database.store().await;
    let server = quick(&database).await;
    notify(&server, &url);
    server.create(&steady("search", &["a", "b"])).await;
    win(&server, "search", "machine", 40).await;
    let first = next(&got).json();
    assert_has(&first, json!({"event": "answer", "withdrawn": []}));
    assert_eq!(
        (&first["answer"]["state"], &first["answer"]["winners"]),
        (&json!("result"), &json!(["a"]))
    );

    let machines: Vec<_> = (0..40).map(|number| format!("machine-{number}")).collect();
    let exclude = json!({"units": machines, "reason": "clicks on everything"});
    server.patch("search", &json!({"exclude": exclude})).await.json(200);
    let withdrawn = next(&got).json();
    assert_has(&withdrawn, json!({"event": "withdrawn", "withdrawn": ["a"]}));
    assert_has(&withdrawn["answer"], json!({"state": "empty", "winners": []}));

    win(&server, "search", "person", 40).await;
    let second = next(&got).json();
    assert_has(&second, json!({"event": "answer", "withdrawn": []}));
    assert_eq!(second["answer"]["about"], first["answer"]["about"]);
    let ids = [&first["id"], &withdrawn["id"], &second["id"]];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}

async fn what_came_with_an_import_is_no_news_and_keeps_its_time(database: TestDatabase) {
    let store = database.store().await;
    let server = Server::with(store.clone(), Settings::quick()).await;
    let metrics = json!([{"name": "failed", "cap": 1, "limit": 0.1, "on_harm": "tell"}]);
    for (name, members) in [
        ("changed", json!({"policy": {"kind": "uniform"}})),
        ("harmed", json!({"policy": {"kind": "uniform"}, "metrics": metrics})),
    ] {
        server.create(&with(steady(name, &["a", "b"]), members)).await;
    }
    let wins = [["a"; 100], ["b"; 100]].concat();
    for winner in wins {
        server.wins("changed", &server.pair("changed").await, winner).await;
        let duel = server.pair("harmed").await;
        let metrics = json!({"a": {"failed": 1}, "b": {"failed": 0}});
        let body = json!({"duel_id": duel["duel_id"], "metrics": metrics});
        server.feedback("harmed", &body).await.json(200);
    }
    // the windows of the values end
    server.clock.advance_ms(120_000);
    let answer = async |server: &Server, name: &str, state: &str| {
        eventually(name, async || {
            let answer = server.experiment(name).await["answer"].clone();
            (answer["state"] == state).then_some(answer)
        })
        .await
    };
    for (name, state) in [("changed", "alarm"), ("harmed", "harm")] {
        answer(&server, name, state).await;
        let mut file = Vec::new();
        export(&*store, name, &mut file).await.expect("an export");
        import(&*store, &mut &*file, Some(&format!("{name}-copy")), None).await.expect("an import");
    }
    server.stop().await;

    let (url, got) = receive(&[TAKEN]);
    let server = quick(&database).await;
    server.clock.advance_ms(2 * 86_400_000);
    notify(&server, &url);
    for (name, state) in [("changed", "alarm"), ("harmed", "harm")] {
        let own = answer(&server, name, state).await;
        let copy = format!("{name}-copy");
        server.verdict(&copy).await;
        let copy = answer(&server, &copy, state).await;
        let [own, since] = [&own, &copy].map(|it| it["since"].as_i64().expect("a time"));
        assert!((own - since).abs() < 600_000, "{copy}");
    }
    stop(&server, "next").await;
    assert_eq!(next(&got).json()["experiment"], "next");
}

async fn the_end_of_an_alarm_is_told(database: TestDatabase) {
    let (url, got) = receive(&[TAKEN]);
    let server = Server::with(database.store().await, Settings::quick()).await;
    notify_as(&server, &url, WebhookFormat::Slack);
    server.create(&steady("search", &["a", "b"])).await;
    let message = |advance| {
        server.clock.advance_ms(advance);
        let message = got.recv_timeout(Duration::from_secs(90)).expect("a notice").json();
        message["text"].as_str().expect("a text").to_owned()
    };
    for _ in 0..60 {
        server.feedback("search", &json!({"duel_id": "nobody's", "outcome": "left"})).await;
    }
    let begun = message(20_000);
    assert!(begun.contains("Much feedback is refused."), "{begun}");
    server.clock.advance_ms(3_600_000);
    for winner in ["a", "b"].repeat(30) {
        server.wins("search", &server.pair("search").await, winner).await;
    }
    let ended = message(1_200_000);
    let parts = ["\nThe alarm is over.\n`", "` leads: its rival is not ruled out."];
    assert!(parts.iter().all(|part| ended.contains(part)), "{ended}");
}

async fn people_get_messages(database: TestDatabase) {
    let store = database.store().await;
    let page = "https://ops.example/rankduel/experiments/search";
    for (format, number) in [(WebhookFormat::Slack, 0), (WebhookFormat::Teams, 1)] {
        let (url, got) = receive(&[TAKEN]);
        let server = Server::with(store.clone(), Settings::quick()).await;
        notify_as(&server, &url, format);
        let name = ["search", "shop"][number];
        let owner = json!({"owner": "<!channel> & co"});
        server.create(&with(steady(name, &["a", "b"]), owner)).await;
        win(&server, name, "machine", 40).await;
        let message = got.recv_timeout(Duration::from_secs(90)).expect("a notice").json();
        let machines: Vec<_> = (0..40).map(|number| format!("machine-{number}")).collect();
        let exclude = json!({"units": machines, "reason": "clicks on everything"});
        server.patch(name, &json!({"exclude": exclude})).await.json(200);
        let withdrawn = got.recv_timeout(Duration::from_secs(90)).expect("a notice").json();
        if format == WebhookFormat::Slack {
            let text = format!(
                "*<{page}|search>* (&lt;!channel&gt; &amp; co)\nShip `a`.\nFurther pages do not \
                 change the result."
            );
            assert_eq!(message, json!({"text": text}));
            let text = withdrawn["text"].as_str().expect("text");
            assert!(text.contains(
                "\n`a` is no longer proven to be the best.\nAll answers so far are of \
                     excluded units.\n"
            ));
            continue;
        }
        assert_eq!(message["type"], "message");
        let attachment = &message["attachments"][0];
        assert_eq!(attachment["contentType"], "application/vnd.microsoft.card.adaptive");
        let card = &attachment["content"];
        assert_has(card, json!({"type": "AdaptiveCard", "version": "1.2"}));
        let runs = |block: &Value| {
            let runs = block["inlines"].as_array().expect("runs").clone();
            runs.iter()
                .map(|run| run["text"].as_str().expect("text").to_owned())
                .collect::<String>()
        };
        let blocks: Vec<_> = card["body"].as_array().expect("blocks").iter().map(runs).collect();
        let next = "Further pages do not change the result.";
        assert_eq!(blocks, ["shop (<!channel> & co)", "Ship a.", next]);
        assert_eq!(card["body"][1]["inlines"][1]["fontType"], "Monospace");
        assert_eq!(card["actions"][0]["url"], page.replace("search", "shop"));
        assert!(withdrawn.to_string().contains(" is no longer proven to be the best."));
    }
}

/// The certificate of a receiver on localhost, and its key: self-signed, from 2020 to 2998.
const CERTIFICATE: &str = include_str!("../fixtures/tls/receiver.pem");
const KEY: &str = include_str!("../fixtures/tls/receiver.key");

/// A receiver that speaks TLS.
fn receive_encrypted() -> (String, Receiver<Got>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).expect("a certificate")],
            PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key"),
        )
        .expect("a certificate with its key");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let (send, got) = channel();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut tls = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // a client that does not know the certificate hangs up
            if tls.complete_io(&mut stream).is_err() {
                continue;
            }
            let mut stream = rustls::StreamOwned::new(tls, stream);
            if send.send(read(&mut stream)).is_err() {
                return;
            }
            let answer = format!("HTTP/1.1 {TAKEN}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
        }
    });
    (format!("https://localhost:{port}/hook"), got)
}

#[tokio::test]
async fn an_encrypted_receiver_is_checked_against_the_roots_of_the_system() {
    let folder = tempfile::tempdir().expect("a directory");
    let database = format!("sqlite://{}", folder.path().join("tls.db").display());
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("roots.pem"), CERTIFICATE).expect("a file");
    std::fs::write(path("none.pem"), "").expect("a file");
    let (url, got) = receive_encrypted();
    let command = |roots: &str, url: &str| {
        let mut command =
            rankduel(&["serve", "--listen", "127.0.0.1:0", "--database-url", &database]);
        command.env("RANKDUEL_WEBHOOK_URL", url).env("RANKDUEL_WEBHOOK_SECRET", SECRET);
        command.env("SSL_CERT_FILE", path(roots)).env_remove("SSL_CERT_DIR");
        command
    };
    let (code, _, message) = outcome(command("none.pem", &url));
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("install ca-certificates") && !message.contains("/hook"), "{message}");
    // an address without TLS does not read them
    Process::start(command("none.pem", "http://127.0.0.1:9/hook")).stop();

    let server = Process::start(command("roots.pem", &url));
    let client = Client::new(&server.url);
    client.create(&steady("search", &["a", "b"])).await;
    client.patch("search", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    assert_eq!(next(&got).json()["experiment"], "search");
    server.stop();

    // the certificate of the receiver is for another name
    let server = Process::start(command("roots.pem", &url.replace("localhost", "127.0.0.1")));
    let client = Client::new(&server.url);
    client.create(&steady("shop", &["a", "b"])).await;
    client.patch("shop", &json!({"status": "concluded", "winner": "b"})).await.json(200);
    eventually("the refusal", async || {
        let text = client.get("/metrics").await.text();
        (!text.contains("rankduel_webhook_failures_total 0")).then_some(())
    })
    .await;
    let log = server.stop();
    assert!(log.contains("certificate") && !log.contains("/hook"), "{log}");
    assert!(got.try_recv().is_err());
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
        (Some("ftp://hooks.example/token-1234"), Some(SECRET), "https:// nor an http://"),
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
    for (flags, why) in [
        (&["--webhook-format", "xml"][..], "json, slack, teams"),
        (&["--webhook-format", "slack"], "needs --webhook-url"),
        (&["--public-url", "ops.example"], "is no URL"),
        (&["--public-url", "ftp://ops.example"], "is not the address of pages"),
        (&["--public-url", "https://ops.example/?a"], "is not the address of pages"),
    ] {
        let (code, _, message) = outcome(rankduel(&[&["serve"], flags].concat()));
        assert_eq!(code, Some(2), "{message}");
        assert!(message.contains(why), "{message}");
    }
}
