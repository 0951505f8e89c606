//! Connections: accepting them, bounding what a slow or hostile client can hold, and letting them
//! finish.
//!
//! `axum::serve` has neither a time limit for a request's head nor a deadline for the drain, so a
//! client that sends one byte a minute keeps a connection for ever, and a request that hangs keeps
//! the process. Hence this loop over hyper.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::front::App;

/// What the loop can be tuned by.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// A connection whose next request's head is not there by then is closed. That is also how long
    /// an idle connection is kept: longer than the common 60 s of load balancers, so that they are
    /// the ones to close it.
    pub head_within: Duration,
    /// When shutting down, running requests have this long.
    pub drain_within: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self { head_within: Duration::from_secs(75), drain_within: Duration::from_secs(25) }
    }
}

/// Bytes that a connection may buffer. A request's head must fit; beyond it hyper answers 431 by
/// itself.
const BUFFER_MAX_BYTES: usize = 64 * 1024;

/// How the drain went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every request was answered.
    Clean,
    /// The deadline cut off this many connections.
    CutOff(usize),
}

/// Serve `app` on `listener` until `shutdown` is ready, then stop accepting, let running requests
/// finish, and close.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<App>,
    settings: &ConnectionSettings,
    shutdown: impl Future<Output = ()>,
) -> Drained {
    let app = app.into();
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
                // One connection that failed while it was made is no trouble; too many open files
                // is, and trying again at once would only keep a core busy.
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
    // Those that ended, but were not collected yet, were not cut off.
    while connections.try_join_next().is_some() {}
    let cut_off = connections.len();
    connections.shutdown().await;
    Drained::CutOff(cut_off)
}
