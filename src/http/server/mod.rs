//! The server loop: accepts connections, limits what a slow or hostile client can hold, and drains
//! connections on shutdown.
//!
//! `axum::serve` has neither a time limit for the head of a request nor a deadline for the drain. A
//! client that sends one byte a minute would keep a connection forever, and a request that hangs
//! would keep the process. This loop over hyper has both.

pub(crate) mod connections;
pub(crate) mod deliver;
pub(crate) mod guard;
pub(crate) mod hosts;
pub(crate) mod keys;
mod pace;
pub(crate) mod path_prefix;
mod request_body;
pub(crate) mod routes;
pub(crate) mod running_request;
pub(crate) mod sessions;
pub(crate) mod shell;
mod strict;
mod trace;
mod versions;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{Join, join};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutWriter;

use self::connections::{Connections, Peer};
use self::strict::Strict;
use super::app::App;

/// Settings of the server loop.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// A connection is closed if the head of its next request does not arrive within this time.
    /// This is also how long an idle connection is kept. It is longer than the common 60 s of load
    /// balancers, so that the load balancer closes the connection first.
    pub head_within: Duration,
    /// A connection is closed if responses wait for this long without room in the system's buffer:
    /// the client does not read them.
    pub write_within: Duration,
    /// Most connections.
    pub max_connections: usize,
    /// Time that running requests have to finish during a shutdown.
    pub drain_within: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            head_within: Duration::from_secs(75),
            write_within: Duration::from_secs(10),
            max_connections: 4096,
            drain_within: Duration::from_secs(25),
        }
    }
}

/// Size of a connection's buffer. The head of a request must fit; hyper responds 431 to a larger
/// one.
const BUFFER_MAX_BYTES: usize = 32 * 1024;

/// Size of the system's buffer for what is sent on a connection. By default it would grow to
/// megabytes for each client that does not read. The system reports room in it once a third is
/// free, so a client that reads takes as much in each [`ConnectionSettings::write_within`].
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// Open files that are not connections of callers: those of the database, logs and the program.
const OTHER_FILES: u64 = 100;
/// With fewer open files there is room for a handful of connections only.
const FILES_MIN: u64 = 128;

/// Time between two checks for connections whose key was revoked. The server learns of a revocation
/// within ten seconds.
const KEYS_CHECKED_EVERY: Duration = Duration::from_secs(1);

/// The result of the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request was completed.
    Clean,
    /// This many connections were closed at the deadline.
    CutOff(usize),
}

/// Serve `app` on `listener` until `shutdown` is ready. Then stop accepting connections, let
/// running requests finish for up to `drain_within`, and close what is left.
pub async fn serve(
    listener: TcpListener,
    app: App,
    settings: &ConnectionSettings,
    shutdown: impl Future<Output = ()>,
) -> Drained {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(settings.head_within)
        .max_buf_size(BUFFER_MAX_BYTES);
    if let Err(error) = set_socket_send_buffer_size(&listener, SEND_BUFFER_BYTES) {
        tracing::debug!(%error, "the size of send buffers was not set");
    }
    let counts = Connections::new(settings.max_connections, app.metrics().connections_shed.clone());
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    let mut keys_checked = tokio::time::interval(KEYS_CHECKED_EVERY);

    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = keys_checked.tick() => counts.close_without(|key| app.is_valid(key)),
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let peer = Arc::new(Peer::default());
                    let stream = prepared(stream, settings.write_within);
                    let (app, own) = (app.clone(), Arc::clone(&peer));
                    let respond = service_fn(move |request| app.respond_to(request, Some(&own)));
                    let connection = graceful.watch(http.serve_connection(stream, respond));
                    counts.admit(peer, |counted| {
                        connections.spawn(async move {
                            let _counted = counted;
                            if let Err(error) = connection.await {
                                tracing::debug!(%address, %error, "a connection ended early");
                            }
                        })
                    });
                }
                // One failed connection does not matter. If the process has too many open files,
                // retrying without a pause would only keep a core busy.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    drop(listener);
    drain(graceful, connections, settings.drain_within).await
}

/// Let running requests finish for this time, then close the connections that are left.
async fn drain(
    graceful: GracefulShutdown,
    mut connections: JoinSet<()>,
    within: Duration,
) -> Drained {
    let all_done = async {
        graceful.shutdown().await;
        while connections.join_next().await.is_some() {}
    };
    if tokio::time::timeout(within, all_done).await.is_ok() {
        return Drained::Clean;
    }
    // Connections that ended since, but were not joined yet, were not cut off.
    while connections.try_join_next().is_some() {}
    let cut_off = connections.len();
    connections.shutdown().await;
    Drained::CutOff(cut_off)
}

/// Requests that are [`Strict`], and responses whose writing has a time limit.
type Stream = Join<Strict<OwnedReadHalf>, TimeoutWriter<OwnedWriteHalf>>;

/// The stream of a connection, which fails if a write waits for longer than `write_within`.
fn prepared(stream: TcpStream, write_within: Duration) -> TokioIo<Pin<Box<Stream>>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY was refused");
    }
    let (reader, writer) = stream.into_split();
    let mut writer = TimeoutWriter::new(writer);
    writer.set_timeout(Some(write_within));
    TokioIo::new(Box::pin(join(Strict::new(reader), writer)))
}

/// At most `wanted` connections, within the open files that the system allows. The error is a line
/// for the person who started the server.
pub fn connections_within_files(wanted: usize) -> Result<usize, String> {
    let Some(files) = open_files() else { return Ok(wanted) };
    if files < FILES_MIN {
        return Err(format!(
            "the limit of open files is {files}, and the server needs {FILES_MIN} or more: raise it \
             (ulimit -n {FILES_MIN}; LimitNOFILE of systemd)"
        ));
    }
    let most = wanted.min(usize::try_from(files - OTHER_FILES).unwrap_or(usize::MAX));
    if most < wanted {
        tracing::warn!(
            connections = most,
            "the limit of open files allows fewer connections than --max-connections; raise it (ulimit -n)"
        );
    }
    Ok(most)
}

/// The limit of open files, raised as far as the system lets this process; `None` without a limit.
fn open_files() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if raised.is_ok() { maximum } else { current }
}
