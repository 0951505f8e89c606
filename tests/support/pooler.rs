//! PgBouncer in front of the test server.

use std::fs::{Permissions, set_permissions, write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Child, Command, Stdio};
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::net::UnixStream;

use super::client::eventually;

/// Only names the socket.
const PORT: u16 = 6432;

/// A running pooler, killed when it is dropped.
pub struct Pooler {
    child: Child,
    folder: TempDir,
    database: String,
}

impl Pooler {
    /// Start a pooler with this `pool_mode` for the database of a URL, with fewer server sessions
    /// than one store has connections.
    pub async fn start(url: &str, mode: &str) -> Self {
        let options = PgConnectOptions::from_str(url).expect("a URL");
        let server = match options.get_socket() {
            Some(folder) => folder.display().to_string(),
            None => options.get_host().to_owned(),
        };
        let database = options.get_database().expect("a database").to_owned();
        let folder = tempfile::tempdir().expect("a temporary folder");
        // It does not run as root, and its user must be able to write here.
        set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a folder for all");
        let path = folder.path().display();
        let settings = format!(
            "[databases]\n\
             * = host={server} port={port} user={user}\n\
             [pgbouncer]\n\
             unix_socket_dir = {path}\n\
             listen_port = {PORT}\n\
             auth_type = any\n\
             pool_mode = {mode}\n\
             default_pool_size = 4\n",
            port = options.get_port(),
            user = options.get_username(),
        );
        let file = folder.path().join("pgbouncer.ini");
        write(&file, settings).expect("a file of settings");
        let root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
        let mut command = Command::new("pgbouncer");
        // Debian keeps it in a folder that is not on every user's PATH.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin")).arg("-q");
        if root {
            command.args(["-u", "postgres"]);
        }
        let child = command.arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.expect("PgBouncer; scripts/install-packages installs it");
        let pooler = Self { child, folder, database };
        let socket = pooler.folder.path().join(format!(".s.PGSQL.{PORT}"));
        eventually("the pooler to listen", async || UnixStream::connect(&socket).await.ok()).await;
        pooler
    }

    /// The URL of the database through the pooler, which says nothing of it.
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@localhost:{PORT}/{}?host={}",
            self.database,
            self.folder.path().display()
        )
    }

    /// The URL that says that the pooler shares its sessions.
    pub fn declared_url(&self) -> String {
        format!("{}&pool_mode=transaction", self.url())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Both fail if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
