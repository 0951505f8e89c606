//! `rankduel serve`: runs the server.

use std::io::Write as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::database::{has_api_keys, open_store_with};
use super::{CommandError, runtime};
use crate::config::{API_KEYS, ServeArgs, ServeConfig};
use crate::http::server::{Drained, connections_within_files, serve};
use crate::http::{self, App, AppState, Readiness};
use crate::service::Service;
use crate::telemetry::export::Export;
use crate::telemetry::logging;
use rankduel_engine::database_clock::shared_clock;
use rankduel_engine::metrics::Metrics;
use rankduel_store::StoreError;

/// Validates the arguments, then serves until a signal arrives.
pub(super) fn run(args: ServeArgs) -> Result<(), CommandError> {
    let keys = match std::env::var(API_KEYS) {
        Ok(keys) => Some(keys),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(CommandError::Usage(format!("{API_KEYS} is not UTF-8")));
        }
    };
    let (filter, format) = (args.log_filter(), args.log_format);
    let config = args.validate(keys.as_deref()).map_err(CommandError::Usage)?;
    let export = Export::start().map_err(CommandError::Usage)?;
    let log = logging::init(&filter, format, Some(&export)).map_err(CommandError::Usage)?;
    let runtime = runtime()?;
    runtime.spawn(log.report_dropped());
    let served = runtime.block_on(until_signal(config));
    // Everything is written. Dropping the runtime would wait for blocking calls, and a start that
    // was stopped may have left one: a name that is being resolved.
    runtime.shutdown_background();
    export.stop();
    served
}

/// Connections that the kernel keeps until they are accepted, if its own limit allows as many. A
/// burst of new ones beyond it waits for a second and more.
const BACKLOG: u32 = 4096;

/// Listen at this address.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // a server that starts again takes the port over from connections that are still closing
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Time to write the last line of the log.
const TO_LOG: Duration = Duration::from_millis(100);

/// A step that takes longer than this is reported.
const SILENT_FOR: Duration = Duration::from_secs(2);
/// How often it is reported again.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Run one step of a start. `what` completes the sentence "waiting for …".
async fn step<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let started = Instant::now();
    let mut reports = interval_at(started + SILENT_FOR, REPORT_EVERY);
    reports.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = reports.tick() => tracing::warn!(
                seconds = started.elapsed().as_secs(),
                "not serving yet: waiting for {what}"
            ),
        }
    }
}

/// A server that is ready to serve.
struct Started {
    listener: TcpListener,
    service: Arc<Service>,
    readiness: Arc<Readiness>,
    app: App,
    database: &'static str,
    /// Whether there is no key.
    open: bool,
}

/// The error of a start that this error of the store ends. Another attempt does not mend the schema
/// of another version, so its exit code is that of a wrong setting.
fn refused(error: StoreError, context: &'static str) -> CommandError {
    match error {
        StoreError::Schema(_) => CommandError::Usage(format!("{context}: {error}")),
        error => CommandError::Failed(anyhow::Error::new(error).context(context)),
    }
}

async fn start(config: &ServeConfig) -> Result<Started, CommandError> {
    if let Some(open) = config.open_to_others()
        && !step("the API keys in the database", has_api_keys(&config.database_url)).await?
    {
        return Err(CommandError::Usage(open));
    }
    // Bind the port first: a second server, started by mistake, must not touch the database.
    let listener = bind(config.listen).with_context(|| {
        format!("cannot listen on {}; choose another address with --listen", config.listen)
    })?;
    let store = step(
        "the database to open",
        open_store_with(&config.database_url, config.listen_database_url.as_deref()),
    )
    .await?;
    step("the database to be claimed", store.claim())
        .await
        .context("the database cannot be served from")?;
    if config.migrate {
        let migrated = step("the migration of the database's schema", store.migrate()).await;
        migrated.map_err(|error| refused(error, "the schema of the database cannot be updated"))?;
    }
    let checked = step("the database to answer", store.check()).await;
    checked.map_err(|error| refused(error, "the database cannot be served from"))?;
    let database = store.kind();
    let metrics = Arc::new(Metrics::new());
    let clock = step("the time of the database", shared_clock(&store, Arc::clone(&metrics)))
        .await
        .context("the database cannot be served from")?;
    let starting = Service::start(store, clock, Arc::clone(&metrics), config.service.clone());
    let service = step("the keys in the database", starting)
        .await
        .context("the service cannot be started")?;
    if let Some(webhook) = &config.webhook {
        let started = service.start_webhook(webhook, Arc::clone(&metrics));
        started.context("the webhook cannot be set up")?;
    }
    let readiness = Arc::new(Readiness::default());
    let state =
        AppState { service: Arc::clone(&service), metrics, readiness: Arc::clone(&readiness) };
    let open = config.shell.keys.is_empty() && service.access.current().is_empty();
    let app = http::app(state, &config.shell).context("the API cannot be set up")?;
    Ok(Started { listener, service, readiness, app, database, open })
}

/// The signals that stop a server.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl StopSignals {
    fn install() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Wait for a signal; returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => "SIGHUP",
        }
    }
}

/// Start the server, and serve until a signal arrives.
async fn until_signal(mut config: ServeConfig) -> Result<(), CommandError> {
    // Install the handlers before the server is announced, so that no signal is missed.
    let mut signals =
        StopSignals::install().context("the handlers of signals cannot be installed")?;
    config.connections.max_connections =
        connections_within_files(config.connections.max_connections)
            .map_err(CommandError::Usage)?;
    // A migration can take long. Each one is a transaction, so stopping leaves none half done.
    let started = tokio::select! {
        biased;
        name = signals.next() => {
            tracing::info!(signal = name, "stopped while starting");
            return Ok(());
        }
        started = start(&config) => started?,
    };
    let Started { listener, service, readiness, app, database, open } = started;
    let address = listener.local_addr().context("the listening address cannot be read")?;
    announce(address, database, open);
    let drain_within = config.connections.drain_within;
    let shutdown = shutdown_begins(signals, readiness, config.lame_duck, drain_within);
    // In a task of its own, on a thread that serves: a connection starts on the thread that
    // accepted it, and this thread would have to wake another one for each.
    let accepting = async move { serve(listener, app, &config.connections, shutdown).await };
    let drained = tokio::spawn(accepting).await.context("the server loop failed")?;
    service.shutdown().await;
    match drained {
        Drained::Clean => {
            tracing::info!("every request was answered");
            Ok(())
        }
        Drained::CutOff(connections) => Err(CommandError::Failed(anyhow!(
            "{connections} connection(s) were still busy {} s after the signal and were cut off",
            drain_within.as_secs()
        ))),
    }
}

/// Say on standard output and in the log output that the server serves at this address. `open` says
/// whether the server has no keys.
fn announce(address: SocketAddr, database: &str, open: bool) {
    tracing::info!(%address, database, api_keys = !open, version = env!("CARGO_PKG_VERSION"), "serving");
    if open && !address.ip().is_loopback() {
        tracing::warn!(%address, "there are no API keys: anyone who can reach this address has full access");
    }
    // Ignore errors: the server works without a reader of its standard output.
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "listening on http://{address}").and_then(|()| stdout.flush());
}

/// Wait for a signal. Then report that the server is not ready, while it goes on to serve for the
/// time of a lame duck, so that load balancers can notice. A SIGINT after it ends the process; the
/// other signals may come twice, to the process and to its group.
async fn shutdown_begins(
    mut signals: StopSignals,
    readiness: Arc<Readiness>,
    lame_duck: Duration,
    drain_within: Duration,
) {
    let name = signals.next().await;
    // after Ctrl-C, there is no lame-duck period
    let lame_duck = if name == "SIGINT" { Duration::ZERO } else { lame_duck };
    tracing::info!(
        signal = name,
        lame_duck_seconds = lame_duck.as_secs(),
        drain_seconds = drain_within.as_secs(),
        "shutting down"
    );
    readiness.drain();
    tokio::spawn(async move {
        while signals.next().await != "SIGINT" {}
        tracing::warn!("SIGINT: exiting at once");
        tokio::time::sleep(TO_LOG).await;
        std::process::exit(1);
    });
    tokio::time::sleep(lame_duck).await;
}
