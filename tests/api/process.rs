//! Starting and stopping the program.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use rankduel::http::ProblemKind;
use serde_json::{Value, json};

use crate::support::client::{Client, steady, until};
use crate::support::server::{FREE_PORT, Process, outcome, rankduel, rankduel_on};
use crate::support::service::Server;
use crate::support::{KINDS, Kind, fresh_database};

const KEY: &str = "correct-horse-battery-staple";

/// `rankduel serve` on a free port.
fn serve(database: &str, more: &[&str]) -> Command {
    rankduel_on(database, &[&["serve", FREE_PORT, "--log-format", "json"], more].concat())
}

#[tokio::test]
async fn a_signal_stops_the_server_cleanly() {
    for kind in KINDS {
        let database = fresh_database(kind).await;
        for signal in ["TERM", "INT", "HUP"] {
            let (process, client) = Process::serving(&database.url, &["--log-format", "json"]);
            client.get("/readyz").await.json(200);
            process.signal(signal);
            let (code, log) = process.wait();
            assert_eq!(code, Some(0), "{log}");
            assert!(log.contains("every request was answered"), "{log}");
        }
    }
}

#[tokio::test]
async fn a_log_that_nobody_reads_stops_no_request() {
    let database = fresh_database(Kind::Sqlite).await;
    let (log, stderr) = std::io::pipe().expect("a pipe");
    let mut command = serve(&database.url, &[]);
    command.stderr(stderr);
    let process = Process::start(command);
    let client = Client::new(&process.url);
    // far more lines than a pipe takes, and more than may wait
    for _ in 0..11_000 {
        client.get("/v1/experiments/search").await.problem(ProblemKind::ExperimentNotFound);
    }
    let (tell, dropped) = std::sync::mpsc::channel();
    let read = std::thread::spawn(move || {
        let lines = BufReader::new(log).lines().map(|line| line.expect("text"));
        let mut last_words = lines.filter(|line| {
            if line.contains("lines of it were dropped") {
                let _ = tell.send(());
            }
            line.contains("every request was answered")
        });
        last_words.next()
    });
    until("the report", async || dropped.try_recv().is_ok()).await;
    process.signal("TERM");
    assert_eq!(process.wait().0, Some(0));
    assert!(read.join().expect("a reader").is_some(), "the last lines are missing");
}

#[tokio::test]
async fn too_few_open_files_are_refused_in_one_line() {
    let database = fresh_database(Kind::Sqlite).await;
    let mut command = Command::new("sh");
    let serve = serve(&database.url, &[]);
    command
        .args(["-c", "ulimit -n 64; unset RANKDUEL_TEST_POSTGRES_URL; exec \"$0\" \"$@\""])
        .arg(serve.get_program());
    command.args(serve.get_args()).envs(serve.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let (code, _, error) = outcome(command);
    assert_eq!(code, Some(2), "{error}");
    let line = error.trim_end();
    assert!(line.contains("open files is 64") && line.contains("ulimit -n 128"), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
}

#[tokio::test]
async fn connections_open_at_the_deadline_are_cut_off_and_logged() {
    use tokio::io::AsyncWriteExt as _;

    let database = fresh_database(Kind::Sqlite).await;
    let process = Process::start(serve(&database.url, &["--drain-seconds", "1"]));
    let address = process.url.strip_prefix("http://").unwrap().to_owned();
    let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = "POST /v1/experiments HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let client = Client::new(&process.url);
    // The hanging request, and the one for the metrics.
    until("the hanging request", async || {
        let text = client.get("/metrics").await.text();
        text.lines().any(|line| line == "rankduel_http_requests_in_flight 2")
    })
    .await;
    process.signal("TERM");
    let (code, log) = process.wait();
    assert_eq!(code, Some(1), "{log}");
    assert!(
        log.contains("1 connection(s) were still busy 1 s after the signal and were cut off"),
        "{log}"
    );
    drop(stream);
}

#[tokio::test]
async fn the_log_has_requests_and_no_secrets() {
    let database = fresh_database(Kind::Sqlite).await;
    let mut command = serve(&database.url, &[]);
    command.env("RANKDUEL_API_KEYS", KEY);
    let process = Process::start(command);
    let client = reqwest::Client::new();
    let response = client
        .get(format!("{}/v1/experiments?cursor=secret-in-query", process.url))
        .bearer_auth(KEY)
        .header("x-request-id", "the-one")
        .header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    assert_ne!(status, 401);
    client
        .post(format!("{}/v1/experiments", process.url))
        .bearer_auth("wrong-key-wrong-key-wrong")
        .body("{\"secret\": \"in body\"}")
        .send()
        .await
        .unwrap();
    client.get(format!("{}/livez", process.url)).send().await.unwrap();
    process.signal("TERM");
    let (_, log) = process.wait();

    for secret in [KEY, "wrong-key", "in body", "secret-in-query"] {
        assert!(!log.contains(secret), "{log}");
    }
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON lines")).collect();
    let access: Vec<&Value> =
        lines.iter().filter(|line| line["target"] == "rankduel::access").collect();
    assert_eq!(access.len(), 2, "successful probes are not logged: {log}");
    assert_eq!(access[0]["request_id"], "the-one");
    assert_eq!(access[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(access[0]["method"], "GET");
    assert_eq!(access[0]["route"], "/v1/experiments");
    assert_eq!(access[0]["status"], status);
    assert!(access[0]["duration_ms"].is_number());
    assert_eq!(access[0]["key"].as_str().map(str::len), Some(8));
    assert_eq!(access[1]["status"], 401);
    assert_eq!(access[1].get("key"), None);
}

/// The snapshot from before an exclusion is sound, and nobody has to look for damage.
#[tokio::test]
async fn an_exclusion_is_no_reason_for_a_warning() {
    let database = fresh_database(Kind::Sqlite).await;
    let server = Server::running(&database, &steady("search", &["a", "b"])).await;
    let duel = server.pair("search").await;
    server.answer("search", &duel, "left").await;
    server.restarted_from_snapshot(&database, "search").await.stop().await;
    let (process, client) = Process::serving(&database.url, &["--log-format", "json"]);
    let exclude = json!({"units": ["u-1"], "reason": "a machine"});
    client.patch("search", &json!({"exclude": exclude})).await.json(200);
    assert_eq!(client.standings("search").await["duels"], 1);
    process.signal("TERM");
    let (_, log) = process.wait();
    let folded = log.lines().find(|line| line.contains("folding the log from the start"));
    assert!(folded.is_some_and(|line| line.contains("\"level\":\"INFO\"")), "{log}");
    assert!(!log.contains("\"level\":\"WARN\""), "{log}");
}

/// The headers by which server and clients tell each other their version.
#[tokio::test]
async fn versions_are_exchanged_and_old_clients_reported_once() {
    let database = fresh_database(Kind::Sqlite).await;
    let process = Process::start(serve(&database.url, &[]));
    let client = reqwest::Client::new();
    for version in [None, Some("later"), Some("9.0.0"), Some("0.1.0"), Some("0.0.9"), Some("0.0.8")]
    {
        let mut request = client.get(format!("{}/v1/experiments", process.url));
        if let Some(version) = version {
            request = request.header("rankduel-version", version);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{version:?}");
        assert_eq!(response.headers()["rankduel-version"], env!("CARGO_PKG_VERSION"));
    }
    process.signal("TERM");
    let (_, log) = process.wait();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("client is too old")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("0.0.9") && lines[0].contains("0.1 or later"), "{log}");
}

#[test]
fn the_version_names_commit_and_features() {
    let (code, short, _) = outcome(rankduel(&["-V"]));
    assert_eq!((code, &*short), (Some(0), concat!("rankduel ", env!("CARGO_PKG_VERSION"), "\n")));
    let (code, long, _) = outcome(rankduel(&["--version"]));
    let features = if cfg!(feature = "otel") { "otel" } else { "none" };
    let rest = long.strip_prefix(short.trim_end()).expect("the same version");
    let commit = rest
        .strip_prefix(" (commit ")
        .and_then(|rest| rest.strip_suffix(&format!("; features: {features})\n")));
    assert!(code == Some(0) && commit.is_some_and(|commit| !commit.contains(' ')), "{long}");
}

/// A downgrade: nothing is read from a database that a later version has migrated.
#[tokio::test]
async fn a_database_of_a_later_version_is_refused_in_one_line() {
    for kind in KINDS {
        let database = fresh_database(kind).await;
        drop(database.store().await);
        database
            .execute(
                "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                 select 9999, 'another shape', success, checksum, 0 from _sqlx_migrations where version = 1",
            )
            .await;
        let serve = ["serve", "--log", "error", "--listen", "127.0.0.1:0"];
        // systemd does not start a server again that ends with 2: another attempt does not help
        for (command, code) in [(&serve[..], 2), (&["migrate"], 1), (&["verify"], 1)] {
            let (ended, stdout, stderr) = outcome(rankduel_on(&database.url, command));
            assert_eq!((ended, &*stdout), (Some(code), ""), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            let says = "migration 9999, which is newer than this program: upgrade rankduel";
            assert!(stderr.contains(says), "{stderr}");
        }
    }
}

/// Nobody can create a file there, root neither.
#[test]
fn a_database_that_cannot_be_created_is_refused_with_its_path_and_the_right_that_is_missing() {
    let url = "sqlite:///proc/rankduel.db";
    let (code, _, stderr) =
        outcome(rankduel_on(url, &["serve", "--log", "error", "--listen", "127.0.0.1:0"]));
    assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
    let says = "needs the right to write the file and its folder";
    assert!(stderr.contains("/proc/rankduel.db") && stderr.contains(says), "{stderr}");
}

/// Nothing that a caller sends can begin a line of the log, or control a terminal.
#[tokio::test]
async fn no_request_forges_a_line_of_the_log() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const FORGED: &str = "forged";
    for format in ["json", "text"] {
        let database = fresh_database(Kind::Sqlite).await;
        let flags = ["--log", "debug,sqlx=info", "--log-format", format];
        let (process, client) = Process::serving(&database.url, &flags);
        let address = process.url.strip_prefix("http://").unwrap().to_owned();
        let escape = "%0A%0D%1B%5B2J%E2%80%A8%22%7D";
        let odd = "\u{1b}[2J\u{9b}\u{2028}\\n\"}";
        for request in [
            format!("GET /v1/experiments/{escape}{FORGED} HTTP/1.1\r\n"),
            format!("GET /{escape}{FORGED} HTTP/1.1\r\n"),
            format!("{FORGED} /v1/experiments HTTP/1.1\r\n"),
            format!("GET /v1/experiments HTTP/1.1\r\nuser-agent: {odd}{FORGED}\r\n"),
            format!("GET /v1/experiments HTTP/1.1\r\nx-request-id: {odd}{FORGED}\r\n"),
            format!("GET /v1/experiments HTTP/1.1\r\ntraceparent: 00-{odd}{FORGED}\r\n"),
            format!("GET /v1/experiments HTTP/1.1\r\nauthorization: Bearer {odd}{FORGED}\r\n"),
            format!("GET /login?next=/experiments/{escape}{FORGED} HTTP/1.1\r\n"),
            format!("GET /v1/experiments HTTP/1.1\r\nx: \n{FORGED}\r\n"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            let rest = "host: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(format!("{request}{rest}").as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 "), "{request}");
        }
        // A name that is stored: of a ranker, in the log line of an automatic conclusion.
        client.refuses(&steady("search", &[&format!("a\u{1b}{FORGED}"), "b"]), "/rankers/0").await;
        let log = process.stop();
        assert!(log.lines().count() > 9, "{log}");
        for line in log.lines() {
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            if format == "json" {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
            } else {
                assert!(line.starts_with("20"), "{line}");
            }
        }
    }
}

/// A page elsewhere that lets its name resolve to the loopback address (DNS rebinding) gets
/// nothing from a server without keys.
#[tokio::test]
async fn a_server_without_keys_answers_only_requests_to_the_local_machine() {
    let database = fresh_database(Kind::Sqlite).await;
    let status = async |process: &Process, method: reqwest::Method, path: &str, host: &str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = process.url.replace("0.0.0.0", "127.0.0.1");
        let request = client.request(method, format!("{url}{path}")).header("host", host);
        request.send().await.unwrap().status().as_u16()
    };
    let process = Process::start(serve(&database.url, &[]));
    Client::new(&process.url).create(&steady("search", &["a", "b"])).await;
    let (get, post) = (reqwest::Method::GET, reqwest::Method::POST);
    // `next-duel` of a loaded experiment is answered before the router is asked.
    let next_duel = "/v1/experiments/search/next-duel";
    for (method, path) in [
        (&post, next_duel),
        (&get, "/v1/experiments"),
        (&get, "/"),
        (&get, "/experiments/search"),
        (&get, "/metrics"),
        (&get, "/docs"),
        (&get, "/livez"),
    ] {
        for host in [
            "evil.example",
            "evil.example:7171",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
        ] {
            assert_eq!(status(&process, method.clone(), path, host).await, 403, "{path} at {host}");
        }
        for host in ["localhost", "LOCALHOST:7171", "127.8.0.1", "[::1]:7171", "[::1]"] {
            let status = status(&process, method.clone(), path, host).await;
            assert!(status < 400, "{path} at {host}: {status}");
        }
    }
    process.stop();
    // Where everyone may do everything, and where a key decides, every host is served, and other
    // machines are.
    for (variable, value, answer) in
        [("RANKDUEL_INSECURE", "true", 200), ("RANKDUEL_API_KEYS", KEY, 401)]
    {
        let mut command = rankduel_on(&database.url, &["serve", "--listen", "0.0.0.0:0"]);
        command.env(variable, value);
        let process = Process::start(command);
        let host = "rankduel.example";
        assert_eq!(status(&process, post.clone(), next_duel, host).await, answer, "{variable}");
        assert_eq!(status(&process, get.clone(), "/livez", host).await, 200, "{variable}");
    }
}

#[tokio::test]
async fn invalid_arguments_are_refused_before_any_effect() {
    let database = fresh_database(Kind::Sqlite).await;
    /// Arguments, environment variables, and a part of the message.
    type Wrong<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let padded = [
        ("RANKDUEL_WEBHOOK_URL", "http://localhost/"),
        ("RANKDUEL_WEBHOOK_SECRET", "     too-short     "),
    ];
    let wrong: [Wrong; 24] = [
        (&[], &padded, "--webhook-secret must have 16 characters"),
        (&["--listen", "0.0.0.0:0"], &[], "RANKDUEL_API_KEYS"),
        (&["--listen", "[::]:0"], &[], "--insecure"),
        (&["--listen", "somewhere"], &[], "--listen \"somewhere\""),
        (&["--listen", "127.0.0.1:99999"], &[], "--listen"),
        (&[], &[("RANKDUEL_API_KEYS", "tooshort")], "key 1 has 8 characters"),
        (&[], &[("RANKDUEL_API_KEYS", "correct-horse-battery-staple,has a space in it")], "key 2"),
        (&["--database-url", "mysql://there"], &[], "sqlite://PATH"),
        (&["--database-url", "nonsense"], &[], "--database-url"),
        (&["--database-url", "@/no/such/file"], &[], "\"/no/such/file\" cannot be read"),
        (&[], &[("RANKDUEL_API_KEYS", "@/no/such/file")], "\"/no/such/file\" cannot be read"),
        (&[], &[("RANKDUEL_API_KEYS", "@/dev/null")], "\"/dev/null\" is empty"),
        (&["--log", "info,=what=ever"], &[], "log filter"),
        (&["--log", "verbose"], &[], "\"verbose\" is not a level"),
        (&[], &[("RANKDUEL_LOG", "info, chatty")], "is not a level"),
        (&[], &[("RANKDUEL_LOG", "\"info\"")], "RANKDUEL_LOG: its value has quotes"),
        (&[], &[("RANKDUEL_LOG", "info\r")], "RANKDUEL_LOG: its value has a line end"),
        (&[], &[("RANKDUEL_API_KEYS", "\"correct-horse-battery-staple\"")], "RANKDUEL_API_KEYS: "),
        (&[], &[("RANKDUEL_API_KEYS", "“correct-horse-battery-staple”")], "RANKDUEL_API_KEYS: "),
        (&["--database-url", "postgres://h/d?target_session_attrs=standby"], &[], "primary"),
        (&["--database-url", "postgres://h/d?channel_bindin=require"], &[], "unknown parameter"),
        (&["--request-timeout-seconds", "0"], &[], "--request-timeout-seconds"),
        (&[], &[("RANKDUEL_MAX_CONCURRENT_REQUESTS", "many")], "many"),
        (&[], &[("RANKDUEL_INSECURE", "perhaps")], "perhaps"),
    ];
    for (arguments, variables, says) in wrong {
        let mut command = serve(&database.url, arguments);
        command.envs(variables.iter().copied());
        if arguments.first() == Some(&"--listen") {
            command = rankduel(&["serve", "--database-url", &database.url]);
            command.args(arguments);
        }
        let (code, stdout, stderr) = outcome(command);
        assert_eq!(code, Some(2), "{arguments:?} {variables:?}: {stderr}");
        assert_eq!(stdout, "");
        assert!(stderr.contains(says), "{arguments:?} {variables:?}: {stderr}");
        assert!(!stderr.contains("tooshort") && !stderr.contains("staple"), "{stderr}");
    }
    assert!(!database.path().exists(), "a refused start created a database");
}

/// Files of variables have empty ones; an unknown one is probably misspelt.
#[tokio::test]
async fn empty_variables_are_unset_and_unknown_ones_are_reported() {
    let database = fresh_database(Kind::Sqlite).await;
    let mut command = serve(&database.url, &[]);
    for name in ["REQUEST_TIMEOUT_SECONDS", "INSECURE", "LOG", "LOG_FORMAT", "API_KEYS"] {
        command.env(format!("RANKDUEL_{name}"), "");
    }
    command.env("RANKDUEL_API_KEY", KEY).env("RANKDUEL_SERVICE_HOST", "10.0.0.1");
    command.env("RANKDUEL_PROGRAM", "rankduel");
    command.env("RANKDUEL_PORT_7171_TCP", "tcp://10.0.0.1:7171");
    let process = Process::start(command);
    let log = process.stop();
    assert!(log.contains("variable RANKDUEL_API_KEY; is it RANKDUEL_API_KEYS?"), "{log}");
    for silent in ["RANKDUEL_SERVICE_HOST", "RANKDUEL_PROGRAM", KEY] {
        assert!(!log.contains(silent), "{log}");
    }
    assert!(log.contains("\"level\":\"INFO\""), "{log}");
}

/// The message names the encoding, or the right that is missing, and the remedy.
#[tokio::test]
async fn a_database_that_cannot_serve_says_why() {
    let database = fresh_database(Kind::Postgres).await;
    drop(database.store().await);
    let (base, parameters) = database.url.split_once('?').unwrap_or((&database.url, ""));
    let (server, name) = base.rsplit_once('/').expect("a database");
    let (latin, other) = (format!("{name}_latin"), format!("{name}_other"));
    let create = format!("create database {latin} encoding 'LATIN1' locale 'C' template template0");
    database.execute_text(create).await;
    database.execute_text(format!("create role {other}")).await;
    for (url, says) in [
        (format!("{server}/{latin}?{parameters}"), "its encoding is LATIN1"),
        (format!("{base}?{parameters}&options=-c%20role%3D{other}"), "--no-owner --role USER"),
    ] {
        let (code, _, stderr) = outcome(rankduel(&["keys", "list", "--database-url", &url]));
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(says) && stderr.lines().count() == 1, "{stderr}");
    }
    database.execute_text(format!("drop database {latin}")).await;
    database.execute_text(format!("drop role {other}")).await;
}

/// A URL as hosters give it reaches the driver.
#[tokio::test]
async fn parameters_of_hosters_are_accepted() {
    let database = fresh_database(Kind::Postgres).await;
    let joint = if database.url.contains('?') { '&' } else { '?' };
    let more = "channel_binding=prefer&connect_timeout=10&target_session_attrs=read-write";
    let url = format!("{}{joint}{more}", database.url);
    let (code, _, stderr) = outcome(rankduel(&["migrate", "--database-url", &url]));
    assert_eq!(code, Some(0), "{stderr}");
}

#[tokio::test]
async fn a_key_that_nobody_can_read_is_not_added() {
    let database = fresh_database(Kind::Sqlite).await;
    let url = &*database.url;
    outcome(rankduel(&["migrate", "--database-url", url]));
    let create = ["keys", "create", "backend", "--scope", "read", "--database-url", url];
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let mut command = rankduel(&create);
    command.stdout(full());
    let (code, _, stderr) = outcome(command);
    assert_eq!(code, Some(1), "{stderr}");
    let list = || outcome(rankduel(&["keys", "list", "--database-url", url])).1;
    assert!(list().contains("no key"), "{}", list());
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$@\" >&-", "sh", env!("CARGO_BIN_EXE_rankduel")]).args(create);
    let (code, _, stderr) = outcome(command);
    assert!(code == Some(1) && stderr.contains("closed or /dev/null"), "{code:?} {stderr}");
    assert!(list().contains("no key"), "{}", list());
    let (code, key, stderr) =
        outcome(rankduel(&[&create[..], &["--experiment", "no-such"]].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("there is no experiment `no-such` yet"), "{stderr}");
    let before = list();
    let id = before.lines().nth(1).and_then(|line| line.split(' ').next()).expect("a key");
    let mut command = rankduel(&["keys", "rotate", id, "--database-url", url]);
    command.stdout(full());
    assert_eq!(outcome(command).0, Some(1));
    assert_eq!(list(), before);
    assert!(!before.contains(key.trim()));
}

/// `head` closes the pipe before everything is written.
#[tokio::test]
async fn a_reader_that_has_enough_is_no_error() {
    for arguments in [&["openapi"][..], &["policies", "--format", "json"], &["completions", "zsh"]]
    {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = rankduel(arguments);
        command.stdout(writer);
        let (code, _, stderr) = outcome(command);
        assert_eq!((code, &*stderr), (Some(0), ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn startup_failures_are_reported_in_one_line() {
    let database = fresh_database(Kind::Sqlite).await;
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let no_database = fresh_database(Kind::Sqlite).await;
    std::fs::write(no_database.path(), "what somebody else keeps here".repeat(100)).unwrap();
    let no_migrate = ["serve", FREE_PORT, "--no-migrate", "--log", "error"];
    for (url, arguments, ends_with, says) in [
        (&no_database.url, &["serve", FREE_PORT][..], 1, "the database cannot be opened"),
        // the next attempt finds the same schema
        (&database.url, &no_migrate, 2, "rankduel migrate"),
        (&database.url, &["serve", "--listen", &taken], 1, "cannot listen"),
    ] {
        let (code, stdout, stderr) = outcome(rankduel_on(url, arguments));
        assert_eq!(code, Some(ends_with), "{arguments:?}: {stderr}");
        assert_eq!(stdout, "");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(
            stderr.starts_with("rankduel: ") && stderr.contains(says),
            "{arguments:?}: {stderr}"
        );
    }
}

#[tokio::test]
async fn migrating_beforehand_is_sufficient_and_idempotent() {
    for kind in KINDS {
        let database = fresh_database(kind).await;
        let migrate = || outcome(rankduel(&["migrate", "--database-url", &database.url]));
        let (code, first, stderr) = migrate();
        assert_eq!(code, Some(0), "{stderr}");
        assert!(first.contains("now has"), "{first}");
        let (code, second, _) = migrate();
        assert_eq!(code, Some(0));
        assert!(second.contains("already"), "{second}");

        let process = Process::start(serve(&database.url, &["--no-migrate"]));
        process.stop();
    }
}

#[tokio::test]
async fn the_keys_and_the_database_can_be_named_by_files() {
    let database = fresh_database(Kind::Sqlite).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        format!("@{}", path.display())
    };
    let url = file("database-url", &format!("\u{feff}{}\r\n", database.url));
    let other = "another-key-of-a-caller";
    let keys = file("api-keys", &format!("{KEY}\n{other}\n"));
    let mut command = rankduel_on(&url, &["serve", FREE_PORT]);
    command.env("RANKDUEL_API_KEYS", keys);
    let process = Process::start(command);
    let experiments = format!("{}/v1/experiments", process.url);
    for (key, status) in [(KEY, 200), (other, 200), ("not-one-of-the-keys", 401)] {
        let request = reqwest::Client::new().get(&experiments).bearer_auth(key);
        assert_eq!(request.send().await.unwrap().status(), status, "{key}");
    }
    process.stop();
    assert!(database.path().exists());
    let (code, _, stderr) = outcome(rankduel(&["verify", "--database-url", &url]));
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn the_api_description_can_be_printed() {
    let (code, stdout, _) = outcome(rankduel(&["openapi"]));
    assert_eq!(code, Some(0));
    let described = rankduel::http::yaml(&rankduel::http::description());
    assert_eq!(stdout, described.expect("YAML"));
}
