//! The server loop: accepts connections, limits what a slow or hostile client can hold, and drains
//! connections on shutdown.
//!
//! `axum::serve` has neither a time limit for the head of a request nor a deadline for the drain. A
//! client that sends one byte a minute would keep a connection forever, and a request that hangs
//! would keep the process. This loop over hyper has both.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::app::App;

/// Settings of the server loop.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// A connection is closed if the head of its next request does not arrive within this time.
    /// This is also how long an idle connection is kept. It is longer than the common 60 s of load
    /// balancers, so that the load balancer closes the connection first.
    pub head_within: Duration,
    /// Time that running requests have to finish during a shutdown.
    pub drain_within: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self { head_within: Duration::from_secs(75), drain_within: Duration::from_secs(25) }
    }
}

/// Size of a connection's buffer. The head of a request must fit; hyper responds 431 to a larger one.
const BUFFER_MAX_BYTES: usize = 64 * 1024;

/// The result of the drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request was completed.
    Clean,
    /// This many connections were closed at the deadline.
    CutOff(usize),
}

/// Serve `app` on `listener` until `shutdown` is ready. Then stop accepting connections, let running
/// requests finish, and close.
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
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "TCP_NODELAY was refused");
                    }
                    let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), app.clone()));
                    connections.spawn(async move {
                        if let Err(error) = connection.await {
                            tracing::debug!(%peer, %error, "a connection ended early");
                        }
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
    let all_done = async {
        graceful.shutdown().await;
        while connections.join_next().await.is_some() {}
    };
    if tokio::time::timeout(settings.drain_within, all_done).await.is_ok() {
        return Drained::Clean;
    }
    // Connections that ended since, but were not joined yet, were not cut off.
    while connections.try_join_next().is_some() {}
    let cut_off = connections.len();
    connections.shutdown().await;
    Drained::CutOff(cut_off)
}
