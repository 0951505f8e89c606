//! Servers for tests: a router in this process, or the program itself.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::routing::MethodRouter;
use rankduel::http::server::{ConnectionSettings, Drained, serve};
use rankduel::http::{self, App, AppState, Readiness, ShellSettings};
use rankduel::service::Service;
use rankduel::service::ServiceSettings;
use rankduel_engine::clock::{SharedClock, SystemClock};
use rankduel_engine::metrics::Metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::client::Client;
use super::{Kind, TestDatabase, fresh_database};

/// A router on a real socket.
pub struct TestServer {
    /// `ADDRESS:PORT`.
    pub address: String,
    stop: oneshot::Sender<()>,
    running: tokio::task::JoinHandle<Drained>,
}

impl TestServer {
    /// Serve `app` on a free port.
    pub async fn start(app: App, settings: ConnectionSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            serve(listener, app, &settings, async { drop(stopped.await) }).await
        });
        Self { address, stop, running }
    }

    /// The URL of `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// GET `path`.
    pub async fn get(&self, path: &str) -> reqwest::Response {
        reqwest::get(self.url(path)).await.expect("an answer")
    }

    /// Send `request` unchanged, and read until the server closes the connection.
    pub async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("to send");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        String::from_utf8(answer).expect("text")
    }

    /// Ask the server to stop; [`Stopping::stopped`] waits for it.
    pub fn stop(self) -> Stopping {
        drop(self.stop);
        Stopping(self.running)
    }
}

/// A server that is stopping.
pub struct Stopping(tokio::task::JoinHandle<Drained>);

impl Stopping {
    /// Wait until it has stopped.
    pub async fn stopped(self) -> Drained {
        self.0.await.expect("a server that does not panic")
    }
}

/// The whole API on its own database.
pub struct Api {
    pub server: TestServer,
    pub service: Arc<Service>,
    pub metrics: Arc<Metrics>,
    pub readiness: Arc<Readiness>,
    pub database: TestDatabase,
}

impl Api {
    /// Start the API with the system clock.
    pub async fn start(kind: Kind, settings: &ShellSettings) -> Self {
        Self::start_at(kind, settings, Arc::new(SystemClock)).await
    }

    /// Start the API with this clock.
    pub async fn start_at(kind: Kind, settings: &ShellSettings, clock: SharedClock) -> Self {
        let connections = ConnectionSettings::default();
        Self::start_with(kind, settings, clock, connections, Vec::new()).await
    }

    /// Start the API with these routes in addition to its own.
    pub async fn start_with(
        kind: Kind,
        settings: &ShellSettings,
        clock: SharedClock,
        connections: ConnectionSettings,
        more: Vec<(&str, MethodRouter)>,
    ) -> Self {
        let database = fresh_database(kind).await;
        let store = database.store().await;
        let (metrics, readiness) = (Arc::new(Metrics::new()), Arc::new(Readiness::default()));
        let service =
            Service::start(store, clock, Arc::clone(&metrics), ServiceSettings::default())
                .await
                .expect("a service");
        let state = AppState {
            service: Arc::clone(&service),
            metrics: Arc::clone(&metrics),
            readiness: Arc::clone(&readiness),
        };
        let app = http::app_with(state, settings, more).expect("an app");
        let server = TestServer::start(app, connections).await;
        Self { server, service, metrics, readiness, database }
    }
}

/// The flag for a port that nothing else uses.
pub const FREE_PORT: &str = "--listen=127.0.0.1:0";

/// The `rankduel` command with these arguments, without the caller's environment variables.
pub fn rankduel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rankduel"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("RANKDUEL_") || text.starts_with("OTEL_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    // No load balancer needs time to notice.
    command.env("RANKDUEL_LAME_DUCK_SECONDS", "0");
    command
}

/// The same on the database with this URL.
pub fn rankduel_on(url: &str, arguments: &[&str]) -> Command {
    let mut command = rankduel(arguments);
    command.env("RANKDUEL_DATABASE_URL", url);
    command
}

/// A running server process, killed when it is dropped.
pub struct Process {
    child: Child,
    /// `http://ADDRESS:PORT`, as the program prints it.
    pub url: String,
    log: Option<JoinHandle<String>>,
}

impl Process {
    /// Start the program and wait until it listens. Its log is read if it goes to a pipe.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program");
        let log = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut log = String::new();
                stderr.read_to_string(&mut log).expect("text on standard error");
                log
            })
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its standard output"))
            .read_line(&mut line)
            .expect("a line");
        match line.trim_end().strip_prefix("listening on ") {
            Some(url) => Self { url: url.to_owned(), child, log },
            None => {
                let _ = child.kill();
                let log = log.map(|log| log.join().unwrap_or_default());
                panic!("the server did not start: {line:?}, {log:?}");
            }
        }
    }

    /// Serve this database on a free port, with these flags in addition. Returns a client, too.
    pub fn serving(url: &str, flags: &[&str]) -> (Self, Client) {
        let process = Self::start(rankduel_on(url, &[&["serve", FREE_PORT], flags].concat()));
        let client = Client::new(&process.url);
        (process, client)
    }

    /// Its number, as the system names it.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Send a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Stop the process, which must end well; returns its log.
    #[track_caller]
    pub fn stop(self) -> String {
        self.signal("TERM");
        let (code, log) = self.wait();
        assert_eq!(code, Some(0), "{log}");
        log
    }

    /// Wait for the process to end; returns its exit code and log.
    pub fn wait(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("an exit status");
        let log = self.log.take().map(|log| log.join().expect("its log")).unwrap_or_default();
        (status.code(), log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exit code, standard output and standard error of a command.
pub fn outcome(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}
