//! A proxy between rankduel and PostgreSQL that simulates network faults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// The behaviour of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Works.
    Pass,
    /// Connections break, and new ones are refused.
    Cut,
    /// Nothing goes through, and connections stay open.
    Stall,
    /// Everything is delayed by this number of milliseconds.
    Slow(u64),
    /// A connection breaks when it sends a commit, so the database never receives it.
    CutBeforeCommit,
    /// A connection breaks when the database confirms a commit, so the client never learns of it.
    CutAfterCommit,
}

struct Shared {
    target: watch::Sender<PathBuf>,
    mode: watch::Sender<Mode>,
    /// Connections that were broken at a commit.
    cut: AtomicU64,
}

/// A proxy from a TCP port to a Unix socket.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// A proxy to this socket.
    pub async fn to(socket: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared {
            target: watch::Sender::new(socket),
            mode: watch::Sender::new(Mode::Pass),
            cut: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// The URL of a database behind it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}?sslmode=disable", self.address)
    }

    /// Set the behaviour of the network from now on.
    pub fn set(&self, mode: Mode) {
        self.shared.mode.send_replace(mode);
    }

    /// Send new connections to this socket from now on, and break the existing ones.
    pub fn switch_to(&self, socket: PathBuf) {
        self.shared.target.send_replace(socket);
        self.set(Mode::Pass);
    }

    /// Number of connections that were broken at a commit.
    pub fn cut_at_commits(&self) -> u64 {
        self.shared.cut.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.set(Mode::Cut);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // Subscribe here, so that a cut before the first byte is not missed.
            let (mode, mut moved) = (shared.mode.subscribe(), shared.target.subscribe());
            let target = moved.borrow_and_update().clone();
            if *mode.borrow() == Mode::Cut {
                return;
            }
            let Ok(server) = UnixStream::connect(target).await else { return };
            converse(client, server, mode, moved, &shared.cut).await;
        });
    }
}

/// The messages with which a client commits: `COMMIT`, or an append of a few entries, which is one
/// statement with a list of nonces (no nulls, type 2950: `uuid`).
const ASKED: [&[u8]; 2] = [b"COMMIT", b"\0\0\0\0\0\0\x0b\x86"];
/// The command tags that confirm these messages.
const DONE: [&[u8]; 2] = [b"COMMIT\0", b"UPDATE 1\0"];

/// Run until one side closes, or the mode breaks the connection.
async fn converse(
    client: TcpStream,
    server: UnixStream,
    mode: watch::Receiver<Mode>,
    mut moved: watch::Receiver<PathBuf>,
    cut: &AtomicU64,
) {
    let _ = client.set_nodelay(true);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let broken = async |mut mode: watch::Receiver<Mode>| {
        mode.wait_for(|mode| *mode == Mode::Cut).await.is_ok()
    };
    tokio::select! {
        () = pump(&mut from_client, &mut to_server, mode.clone(), Mode::CutBeforeCommit, &ASKED, cut) => {}
        () = pump(&mut from_server, &mut to_client, mode.clone(), Mode::CutAfterCommit, &DONE, cut) => {}
        _ = broken(mode.clone()) => {}
        _ = moved.changed() => {}
    }
}

/// Copy bytes from one side to the other as the mode demands. Returns when the connection must
/// break: in mode `cut_at`, when one of the `commits` is seen.
async fn pump(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    mut mode: watch::Receiver<Mode>,
    cut_at: Mode,
    commits: &[&[u8]],
    cut: &AtomicU64,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let now = *mode.borrow_and_update();
        if now == Mode::Stall && mode.wait_for(|mode| *mode != Mode::Stall).await.is_err() {
            return;
        }
        if let Mode::Slow(milliseconds) = now {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        let comes_by =
            |commit: &&[u8]| bytes[..length].windows(commit.len()).any(|window| window == *commit);
        if now == cut_at && commits.iter().any(comes_by) {
            cut.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
