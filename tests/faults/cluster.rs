//! A PostgreSQL server for one test, which may kill it, fill its disk and replace it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, PgConnection};
use tempfile::TempDir;

use crate::support::POSTGRES_URL;
use crate::support::client::PATIENCE;

/// How to end a server abruptly.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// SIGQUIT, as `pg_ctl stop -m immediate` sends it. No checkpoint; the next start recovers from
    /// the write-ahead log.
    Immediate,
    /// SIGKILL of the postmaster, which cannot notify its child processes.
    Kill,
}

/// A server with its data in a folder, on a Unix socket in the same folder.
pub struct Cluster {
    folder: PathBuf,
    _owned: Option<TempDir>,
    running: Option<Child>,
}

impl Cluster {
    /// A new running server in a temporary folder. Commits are synced to disk.
    pub async fn start() -> Self {
        let owned = temporary_folder();
        let mut cluster = Self::in_folder(owned.path().to_owned());
        cluster._owned = Some(owned);
        cluster.start_again().await;
        cluster
    }

    /// A new server in this folder, not yet running. It is a copy of a template, because initdb
    /// takes as long as the test itself.
    pub fn in_folder(folder: PathBuf) -> Self {
        static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
        let template = TEMPLATE.get_or_init(make_template);
        let cluster = Self { folder, _owned: None, running: None };
        give_away(&cluster.folder);
        let status = Command::new("cp")
            .arg("--archive")
            .arg(template)
            .arg(cluster.data())
            .status()
            .expect("cp");
        assert!(status.success(), "{} cannot be copied", template.display());
        cluster
    }

    /// A running synchronous standby of this server: each commit waits for it.
    pub async fn standby(&self) -> Self {
        let owned = temporary_folder();
        let mut standby =
            Self { folder: owned.path().to_owned(), _owned: Some(owned), running: None };
        give_away(&standby.folder);
        let made = program("pg_basebackup", &standby.folder)
            .args([
                "--write-recovery-conf",
                "--wal-method=stream",
                "--checkpoint=fast",
                "--no-sync",
                "--pgdata",
            ])
            .arg(standby.data())
            .arg("--dbname")
            .arg(format!("host={} user=postgres application_name=standby", self.folder.display()))
            .output()
            .expect("pg_basebackup");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        configure(&standby.data(), "synchronous_standby_names = ''\n");
        standby.start_again().await;
        self.execute("alter system set synchronous_standby_names = 'standby'").await;
        self.execute("select pg_reload_conf()").await;
        self.until("select exists (select 1 from pg_stat_replication where sync_state = 'sync')")
            .await;
        standby
    }

    /// Promote this standby to a primary.
    pub async fn promote(&self) {
        self.execute("alter system set synchronous_standby_names = ''").await;
        self.execute("select pg_promote()").await;
        self.until("select not pg_is_in_recovery()").await;
    }

    /// Start the server, and wait until it accepts connections.
    pub async fn start_again(&mut self) {
        assert!(self.running.is_none(), "the server is running");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if self.try_start().await {
                return;
            }
            // Child processes of a killed server may hold its resources until they exit.
            assert!(Instant::now() < deadline, "the server does not start: {}", self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn try_start(&mut self) -> bool {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join("server.log"))
            .expect("a log");
        let mut child = program("postgres", &self.folder)
            .arg("-D")
            .arg(self.data())
            .args(["-c", "listen_addresses=", "-c"])
            .arg(format!("unix_socket_directories={}", self.folder.display()))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres");
        loop {
            if child.try_wait().expect("its state").is_some() {
                return false;
            }
            if self.options("postgres").connect().await.is_ok() {
                self.running = Some(child);
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// End the server, and wait for its exit.
    pub fn end(&mut self, how: End) {
        let mut child = self.running.take().expect("it is running");
        match how {
            End::Kill => child.kill().expect("SIGKILL"),
            End::Immediate => signal("QUIT", child.id()),
        }
        child.wait().expect("an exit status");
    }

    /// Restart the server cleanly, despite its connections.
    pub async fn restart(&mut self) {
        let mut child = self.running.take().expect("it is running");
        signal("INT", child.id());
        child.wait().expect("an exit status");
        self.start_again().await;
    }

    /// Whether the server has exited on its own. It can then be started again.
    pub fn has_ended(&mut self) -> bool {
        let ended = self
            .running
            .as_mut()
            .is_none_or(|child| child.try_wait().expect("its state").is_some());
        if ended {
            self.running = None;
        }
        ended
    }

    /// Create a database, and return its URL.
    pub async fn database(&self, name: &str) -> String {
        self.execute_text(format!("create database {name}")).await;
        self.url(name)
    }

    /// The URL of a database, over the socket.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.folder.display())
    }

    /// The path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(".s.PGSQL.5432")
    }

    /// Run a statement in the database `postgres`.
    pub async fn execute(&self, statement: &'static str) {
        self.execute_text(statement.to_owned()).await;
    }

    async fn execute_text(&self, statement: String) {
        let mut connection = self.connection().await;
        connection.execute(AssertSqlSafe(statement)).await.expect("a statement");
    }

    /// Wait until this condition is true.
    pub async fn until(&self, condition: &'static str) {
        let mut connection = self.connection().await;
        let deadline = Instant::now() + PATIENCE;
        while !sqlx::query_scalar::<_, bool>(condition)
            .fetch_one(&mut connection)
            .await
            .expect("an answer")
        {
            assert!(Instant::now() < deadline, "timed out waiting for {condition}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn connection(&self) -> PgConnection {
        self.options("postgres").connect().await.expect("a connection")
    }

    fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::from_str(&self.url(database)).expect("a URL")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
        log.lines().rev().take(20).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            signal("QUIT", child.id());
            let _ = child.wait();
        }
    }
}

/// A data folder that no server has used. It is next to the folder of the test run's server, and is
/// removed with it.
fn make_template() -> PathBuf {
    let url = std::env::var(POSTGRES_URL)
        .unwrap_or_else(|_| panic!("{POSTGRES_URL} is not set: run scripts/test"));
    let (_, beside) = url.split_once("host=").expect("a server on a Unix socket: run scripts/test");
    let data = Path::new(beside).join("template");
    let made = program("initdb", Path::new(beside))
        .args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ])
        .args(["--wal-segsize=1", "--pgdata"])
        .arg(&data)
        .output()
        .expect("initdb");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    configure(
        &data,
        "max_connections = 60\nshared_buffers = 8MB\nmin_wal_size = 2MB\nmax_wal_size = 8MB\n",
    );
    data
}

fn temporary_folder() -> TempDir {
    tempfile::Builder::new().prefix("rd-pg").tempdir().expect("a folder")
}

fn configure(data: &Path, settings: &str) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).open(data.join("postgresql.conf"));
    file.expect("its settings").write_all(settings.as_bytes()).expect("to write");
}

/// PostgreSQL does not run as root, so a root user runs it as `postgres`.
fn program(name: &str, folder: &Path) -> Command {
    let program = bin().join(name);
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Make the server's user the owner of this folder.
fn give_away(folder: &Path) {
    if is_root() {
        let status = Command::new("chown").arg("postgres:").arg(folder).status().expect("chown");
        assert!(status.success(), "there is no user postgres: run scripts/install-packages");
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("its mode");
}

/// Send a signal to a process.
pub fn signal(name: &str, id: u32) {
    let status =
        Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status().expect("kill");
    assert!(status.success(), "SIG{name}");
}

/// Whether tests run as root.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").expect("/proc").uid() == 0
}

/// Where the newest installed PostgreSQL has its programs; Debian keeps them off the PATH.
fn bin() -> PathBuf {
    if let Ok(bin) = std::env::var("POSTGRES_BIN") {
        return bin.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| Path::new(&format!("/usr/lib/postgresql/{version}/bin/initdb")).exists())
        .max()
        .expect("PostgreSQL is not installed (or set POSTGRES_BIN): run scripts/install-packages");
    format!("/usr/lib/postgresql/{newest}/bin").into()
}
