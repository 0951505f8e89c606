//! What the program can be told: flags, else environment variables, else defaults; checked once,
//! before anything runs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::access::ApiKeys;
use crate::http::ShellSettings;
use crate::http::server::ConnectionSettings;
use crate::service::ServiceSettings;
use crate::telemetry::logging::LogFormat;

/// The variable that holds the API keys. There is no flag: command lines are visible to every user
/// of a machine.
pub const API_KEYS: &str = "RANKDUEL_API_KEYS";

/// Which database.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The database: sqlite://PATH (a file, made if there is none) or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE (PostgreSQL 14 or later, for any number of
    /// servers). A URL with a password belongs into the variable, not on the command line
    #[arg(
        long,
        value_name = "URL",
        env = "RANKDUEL_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://rankduel.db"
    )]
    pub database_url: String,
}

/// What is logged, and how. Logs go to standard error.
#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// What is logged: a level, or levels by module such as `info,rankduel::access=warn`, which
    /// leaves out the line for every request that went well [default: RUST_LOG, else info]
    #[arg(long, value_name = "FILTER", env = "RANKDUEL_LOG")]
    pub log: Option<String>,
    /// How log lines are written: `auto` is text on a terminal and JSON elsewhere
    #[arg(long, value_name = "FORMAT", env = "RANKDUEL_LOG_FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
}

impl LogArgs {
    /// The filter that holds: the flag or its variable, else `RUST_LOG`, else `info`.
    pub fn filter(&self) -> String {
        self.log
            .clone()
            .or_else(|| std::env::var("RUST_LOG").ok().filter(|filter| !filter.trim().is_empty()))
            .unwrap_or_else(|| "info".to_owned())
    }
}

/// What `rankduel serve` can be told.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "A caller sends an API key as `Authorization: Bearer KEY`. `rankduel keys create` makes keys with \
    scopes and an end; those in RANKDUEL_API_KEYS may do everything: separated by commas, each of at least 16 characters, for \
    instance from `openssl rand -hex 32`. While there is neither, everybody may call.\n\n\
    When it serves, the server prints one line on standard output, `listening on http://ADDRESS:PORT`; logs go to \
    standard error. On SIGTERM /readyz turns 503 at once, and requests are served as before for --lame-duck-seconds, so \
    that load balancers can notice; then no connection is accepted any more, running requests are finished, and the exit \
    code is 0; it is 1 if the drain's time limit cut a request off. SIGINT (Ctrl-C) does the same without the wait. A \
    second signal ends the process at once."
)]
pub struct ServeArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "documented at the type; text here would replace the command's"
    )]
    pub store: StoreArgs,

    /// Where to listen. Port 0 takes any free port; the line `listening on …` on standard output
    /// says which. An address that other machines can reach needs API keys
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "RANKDUEL_LISTEN",
        default_value = "127.0.0.1:7171"
    )]
    pub listen: String,

    /// Do not bring the database's schema up to date; refuse to start if it is not. Run `rankduel
    /// migrate` first
    #[arg(long, env = "RANKDUEL_NO_MIGRATE", value_parser = BoolishValueParser::new())]
    pub no_migrate: bool,

    /// Allow an address that other machines can reach although there are no API keys: everybody who
    /// reaches it may do everything. For a private network, or behind a proxy that checks who calls
    #[arg(long, env = "RANKDUEL_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// Seconds after which a request is given up and answered with 504
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_REQUEST_TIMEOUT_SECONDS", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub request_timeout_seconds: u32,

    /// Largest request body that is accepted, in bytes; a larger one is answered with 413
    #[arg(
        long, value_name = "BYTES", env = "RANKDUEL_BODY_LIMIT_BYTES", default_value_t = 2 * 1024 * 1024,
        value_parser = clap::value_parser!(u32).range(1024..=1024 * 1024 * 1024)
    )]
    pub body_limit_bytes: u32,

    /// Requests that may run at once; one more is answered with 503 at once, so that the others
    /// stay fast. Probes and metrics do not count
    #[arg(
        long, value_name = "N", env = "RANKDUEL_MAX_CONCURRENT_REQUESTS", default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub max_concurrent_requests: u32,

    /// Seconds that requests are still accepted after SIGTERM, while /readyz says 503 already.
    /// Longer than your load balancer takes to notice: its check interval times the failures it
    /// waits for. 0 where whatever sends the signal has taken the server out of rotation before
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_LAME_DUCK_SECONDS", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(0..=600)
    )]
    pub lame_duck_seconds: u32,

    /// Seconds that running requests have to finish after that. Keep the sum of both below what
    /// your orchestrator allows (Kubernetes: 30)
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_DRAIN_SECONDS", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub drain_seconds: u32,

    /// Milliseconds between two looks at what other servers have appended. PostgreSQL also tells,
    /// within milliseconds; this is for what is lost on the way, and for SQLite
    #[arg(
        long, value_name = "MILLISECONDS", env = "RANKDUEL_POLL_MILLISECONDS", default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(10..=3_600_000)
    )]
    pub poll_milliseconds: u32,

    /// Do not listen to what PostgreSQL tells, only look from time to time: saves one connection
    #[arg(long, env = "RANKDUEL_NO_LISTEN", value_parser = BoolishValueParser::new())]
    pub no_listen: bool,

    /// Seconds after which an experiment that nobody asks for is dropped from memory. Nothing is
    /// lost: the next request loads it again
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_IDLE_SECONDS", default_value_t = 3600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub idle_seconds: u32,

    /// Megabytes that the experiments in memory may take together, estimated; beyond that the
    /// longest unused are dropped. 100 rankers take 0.3, 1000 take 32
    #[arg(
        long, value_name = "MEGABYTES", env = "RANKDUEL_MEMORY_MEGABYTES", default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub memory_megabytes: u32,

    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "documented at the type; text here would replace the command's"
    )]
    pub log: LogArgs,
}

/// What a server runs with.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether everybody may call from other machines.
    pub insecure: bool,
    /// Which database.
    pub database_url: String,
    /// Whether to bring its schema up to date.
    pub migrate: bool,
    /// Keys and limits of requests.
    pub shell: ShellSettings,
    /// Limits of connections.
    pub connections: ConnectionSettings,
    /// How long requests are still accepted after SIGTERM.
    pub lame_duck: Duration,
    /// How experiments are followed and kept in memory.
    pub service: ServiceSettings,
}

impl ServeArgs {
    /// Check what was told, with the value of [`API_KEYS`]; the error is a line for the person who
    /// started it.
    pub fn validate(self, api_keys: Option<&str>) -> Result<ServeConfig, String> {
        let keys = ApiKeys::parse(api_keys.unwrap_or_default())
            .map_err(|error| format!("{API_KEYS}: {error}"))?;
        let listen = address(&self.listen)?;
        Ok(ServeConfig {
            listen,
            insecure: self.insecure,
            database_url: self.store.database_url,
            migrate: !self.no_migrate,
            shell: ShellSettings {
                keys,
                request_timeout: Duration::from_secs(self.request_timeout_seconds.into()),
                body_limit_bytes: self.body_limit_bytes as usize,
                max_concurrent_requests: self.max_concurrent_requests as usize,
            },
            connections: ConnectionSettings {
                drain_within: Duration::from_secs(self.drain_seconds.into()),
                ..ConnectionSettings::default()
            },
            lame_duck: Duration::from_secs(self.lame_duck_seconds.into()),
            service: ServiceSettings {
                poll_every: Duration::from_millis(self.poll_milliseconds.into()),
                listen: !self.no_listen,
                idle_after: Duration::from_secs(self.idle_seconds.into()),
                memory_bytes: u64::from(self.memory_megabytes) << 20,
                ..ServiceSettings::default()
            },
        })
    }
}

impl ServeConfig {
    /// What is wrong if there are no keys in the database either: it would be open to other
    /// machines.
    pub fn open_to_others(&self) -> Option<String> {
        let listen = self.listen;
        (!listen.ip().is_loopback() && self.shell.keys.is_empty() && !self.insecure).then(|| {
            format!(
                "{listen} can be reached by other machines, and there are no API keys: make one with `rankduel keys \
                 create`, or set {API_KEYS} (or listen on 127.0.0.1, or say --insecure if everybody who reaches it may \
                 do everything)"
            )
        })
    }
}

/// `ADDRESS:PORT`, where the address may be a name such as `localhost`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("--listen {text:?} is no address to listen on ({error}); write it like 127.0.0.1:7171 or [::1]:7171")
    })?;
    addresses.next().ok_or_else(|| format!("--listen {text:?}: the name has no address"))
}
