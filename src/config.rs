//! Settings of the program: flags, else environment variables, else defaults. They are checked
//! once, before anything runs.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::http::server::ConnectionSettings;
use crate::http::{Hosts, PathPrefix, ShellSettings};
use crate::service::{ServiceSettings, WebhookFormat, WebhookSettings};
use crate::telemetry::logging::LogFormat;
use rankduel_engine::access::ApiKeys;

/// The environment variable with the API keys. There is no flag for them: every user of a machine
/// can see command lines.
pub const API_KEYS: &str = "RANKDUEL_API_KEYS";

/// Settings of the database.
#[derive(Debug, Clone, Args)]
pub struct StoreArgs {
    /// The database: sqlite://PATH (a file, which only `serve`, `migrate` and `import` create) or
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE (PostgreSQL 14 or later, for any number of
    /// servers); with ?pool_mode=transaction if a pooler in that mode is in between. Put a URL with
    /// a password into the variable, not on the command line. @PATH reads the URL from the file
    /// PATH
    #[arg(
        long,
        value_name = "URL",
        env = "RANKDUEL_DATABASE_URL",
        hide_env_values = true,
        value_parser = text_or_file,
        default_value = "sqlite://rankduel.db"
    )]
    pub database_url: String,
}

/// Arguments of `rankduel serve`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "A caller sends an API key as `Authorization: Bearer KEY`. `rankduel keys \
    create` creates keys with scopes and an expiry. The keys in RANKDUEL_API_KEYS allow \
    everything; they are separated by commas and have at least 16 characters each, for instance \
    from `openssl rand -hex 32`. `@PATH` in their place reads them from the file PATH, one a line. \
    Without any key, everybody may call.\n\n\
    Once it serves, the server prints one line on standard output, `listening on \
    http://ADDRESS:PORT`; logs go to standard error. On SIGTERM, /readyz turns 503 at once, and \
    requests are served as before for --lame-duck-seconds, so that load balancers can notice. Then \
    the server accepts no more connections, finishes the running requests, and exits with code 0, \
    or 1 if the drain's time limit cut a request off. SIGHUP does the same, and SIGINT (Ctrl-C) \
    without the wait. A SIGINT after any of them ends the process at once."
)]
pub struct ServeArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "documented at the type; text here would replace the command's"
    )]
    pub store: StoreArgs,

    /// Address to listen on. Port 0 takes any free port; the line `listening on …` on standard
    /// output shows it. An address that other machines can reach needs API keys
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        env = "RANKDUEL_LISTEN",
        default_value = "127.0.0.1:7171"
    )]
    pub listen: String,

    /// Do not migrate the database's schema; refuse to start if it is not up to date. Run `rankduel
    /// migrate` first
    #[arg(long, env = "RANKDUEL_NO_MIGRATE", value_parser = BoolishValueParser::new())]
    pub no_migrate: bool,

    /// Allow an address that other machines can reach even without API keys: every caller may do
    /// everything. For a private network, or behind a proxy that authenticates callers
    #[arg(long, env = "RANKDUEL_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,

    /// Time limit of a request in seconds; after it, the answer is 504
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_REQUEST_TIMEOUT_SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub request_timeout_seconds: u32,

    /// Largest request body in bytes; a larger one is answered with 413
    #[arg(
        long, value_name = "BYTES", env = "RANKDUEL_BODY_LIMIT_BYTES",
        default_value_t = 2 * 1024 * 1024,
        value_parser = clap::value_parser!(u32).range(1024..=1024 * 1024 * 1024)
    )]
    pub body_limit_bytes: u32,

    /// Most requests with a key that run at once. Further ones are answered with 503 immediately,
    /// so that the others stay fast. Probes and metrics do not count, nor do requests whose body
    /// has not arrived, nor requests without a key
    #[arg(
        long, value_name = "N", env = "RANKDUEL_MAX_CONCURRENT_REQUESTS",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub max_concurrent_requests: u32,

    /// Most open connections. The limit of open files can lower it. When there are more, one
    /// is closed: the oldest that has shown no key, or the one that is idle for longest of the key
    /// that has most
    #[arg(
        long, value_name = "N", env = "RANKDUEL_MAX_CONNECTIONS",
        default_value_t = 4096,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub max_connections: u32,

    /// Seconds for which requests are still accepted after SIGTERM, while /readyz already answers
    /// 503. Set it longer than your load balancer takes to notice: its check interval times the
    /// failures it waits for. Use 0 if the server is out of rotation before the signal
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_LAME_DUCK_SECONDS",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(0..=600)
    )]
    pub lame_duck_seconds: u32,

    /// Seconds for running requests to finish after that. Keep the sum of both below the limit of
    /// your orchestrator (Kubernetes: 30)
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_DRAIN_SECONDS",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub drain_seconds: u32,

    /// Milliseconds between two polls for entries that other servers appended. PostgreSQL also
    /// notifies within milliseconds; polling covers lost notifications, and SQLite
    #[arg(
        long, value_name = "MILLISECONDS", env = "RANKDUEL_POLL_MILLISECONDS",
        default_value_t = 500,
        value_parser = clap::value_parser!(u32).range(10..=3_600_000)
    )]
    pub poll_milliseconds: u32,

    /// The PostgreSQL database of --database-url without the pooler that --database-url leads to.
    /// Notifications and migrations use it, since a pooler that shares its connections can do
    /// neither
    #[arg(
        long, value_name = "URL", env = "RANKDUEL_LISTEN_DATABASE_URL", hide_env_values = true,
        value_parser = text_or_file
    )]
    listen_database_url: Option<String>,

    /// Do not listen to notifications of PostgreSQL, only poll: saves one connection
    #[arg(long, env = "RANKDUEL_NO_LISTEN", value_parser = BoolishValueParser::new())]
    pub no_listen: bool,

    /// Seconds after which an unused experiment is dropped from memory. Nothing is lost: the next
    /// request loads it again
    #[arg(
        long, value_name = "SECONDS", env = "RANKDUEL_IDLE_SECONDS",
        default_value_t = 3600,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub idle_seconds: u32,

    /// Estimated megabytes that all experiments in memory may take; beyond that, the least recently
    /// used are dropped. 100 rankers take 0.5, 1000 take 43
    #[arg(
        long, value_name = "MEGABYTES", env = "RANKDUEL_MEMORY_MEGABYTES",
        default_value_t = 1024,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub memory_megabytes: u32,

    /// Megabytes that large answers may take while they are kept for all who ask, or wait for
    /// clients that read slowly; beyond that, further large answers are refused with 503
    #[arg(
        long, value_name = "MEGABYTES", env = "RANKDUEL_ANSWER_MEMORY_MEGABYTES",
        default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(16..=65_536)
    )]
    pub answer_memory_megabytes: u32,

    /// https:// or http:// URL to which notices are posted: an experiment has a verdict or lost it,
    /// it was concluded, a ranker does harm, an alarm is on. @PATH reads it from the file PATH
    #[arg(
        long, value_name = "URL", env = "RANKDUEL_WEBHOOK_URL", hide_env_values = true,
        value_parser = text_or_file
    )]
    webhook_url: Option<String>,

    /// Secret with which notices are signed, of at least 16 characters; Slack and Teams need none.
    /// Put it into the variable or a file, not on the command line: @PATH reads it from the file
    /// PATH
    #[arg(
        long, value_name = "SECRET", env = "RANKDUEL_WEBHOOK_SECRET", hide_env_values = true,
        value_parser = text_or_file
    )]
    webhook_secret: Option<String>,

    /// Form of notices
    #[arg(long, value_name = "FORMAT", env = "RANKDUEL_WEBHOOK_FORMAT", default_value = "json")]
    webhook_format: WebhookFormat,

    /// Address of the pages for people, with the path if there is one: notices link to it
    #[arg(long, value_name = "URL", env = "RANKDUEL_PUBLIC_URL")]
    public_url: Option<String>,

    /// Path under which a reverse proxy shows the server, such as /rankduel. Every link, form and
    /// redirect of the pages gets it; requests may come with it or without it
    #[arg(long, value_name = "PATH", env = "RANKDUEL_PATH_PREFIX", default_value = "")]
    pub path_prefix: String,

    /// Filter of log lines: a level, or levels by module such as `info,rankduel::access=warn`,
    /// which drops the line of every successful request [default: RUST_LOG, else info]
    #[arg(long, value_name = "FILTER", env = "RANKDUEL_LOG")]
    pub log: Option<String>,

    /// Format of log lines: `auto` is text on a terminal and JSON elsewhere
    #[arg(long, value_name = "FORMAT", env = "RANKDUEL_LOG_FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
}

/// Checked settings of a server.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The database.
    pub database_url: String,
    /// The same database without a pooler, if one is in between.
    pub listen_database_url: Option<String>,
    /// Whether to migrate its schema.
    pub migrate: bool,
    /// Keys and limits of requests.
    pub shell: ShellSettings,
    /// Limits of connections.
    pub connections: ConnectionSettings,
    /// For how long requests are still accepted after SIGTERM.
    pub lame_duck: Duration,
    /// Where notices go, if anywhere.
    pub webhook: Option<WebhookSettings>,
    /// How experiments are replicated and kept in memory.
    pub service: ServiceSettings,
}

impl ServeArgs {
    /// The effective filter of log lines: the flag or its variable, else `RUST_LOG`, else `info`.
    pub fn log_filter(&self) -> String {
        self.log
            .clone()
            .or_else(|| std::env::var("RUST_LOG").ok().filter(|filter| !filter.trim().is_empty()))
            .unwrap_or_else(|| "info".to_owned())
    }

    /// Check the arguments and the value of [`API_KEYS`]. The error is one line for the person who
    /// started the server.
    pub fn validate(self, api_keys: Option<&str>) -> Result<ServeConfig, String> {
        let keys = text_or_file(api_keys.unwrap_or_default())
            .and_then(|keys| {
                let keys = keys.lines().collect::<Vec<_>>().join(",");
                ApiKeys::parse(&keys).map_err(|error| error.to_string())
            })
            .map_err(|error| format!("{API_KEYS}: {error}"))?;
        let listen = address(&self.listen)?;
        let path_prefix = PathPrefix::parse(&self.path_prefix)
            .map_err(|error| format!("--path-prefix {:?}: {error}", self.path_prefix))?;
        let webhook = WebhookSettings::parse(
            self.webhook_url.as_deref(),
            self.webhook_secret.as_deref(),
            self.webhook_format,
            self.public_url.as_deref(),
        )?;
        Ok(ServeConfig {
            listen,
            webhook,
            database_url: self.store.database_url,
            listen_database_url: self.listen_database_url,
            migrate: !self.no_migrate,
            shell: ShellSettings {
                keys,
                request_timeout: Duration::from_secs(self.request_timeout_seconds.into()),
                body_limit_bytes: self.body_limit_bytes as usize,
                max_concurrent_requests: self.max_concurrent_requests as usize,
                path_prefix,
                hosts: if self.insecure { Hosts::Any } else { Hosts::Local },
                ..ShellSettings::default()
            },
            connections: ConnectionSettings {
                max_connections: self.max_connections as usize,
                drain_within: Duration::from_secs(self.drain_seconds.into()),
                ..ConnectionSettings::default()
            },
            lame_duck: Duration::from_secs(self.lame_duck_seconds.into()),
            service: ServiceSettings {
                poll_every: Duration::from_millis(self.poll_milliseconds.into()),
                listen: !self.no_listen,
                idle_after: Duration::from_secs(self.idle_seconds.into()),
                memory_bytes: u64::from(self.memory_megabytes) << 20,
                answer_bytes: (self.answer_memory_megabytes as usize) << 20,
                reports_within: Duration::from_secs(self.request_timeout_seconds.into()) / 2,
                ..ServiceSettings::default()
            },
        })
    }
}

impl ServeConfig {
    /// An error message if the server would be open to other machines when the database has no keys
    /// either.
    pub fn open_to_others(&self) -> Option<String> {
        let listen = self.listen;
        let needs_keys = !listen.ip().is_loopback() && self.shell.hosts == Hosts::Local;
        (needs_keys && self.shell.keys.is_empty()).then(|| {
            format!(
                "other machines can reach {listen}, and there are no API keys: create one with \
                 `rankduel keys create`, or set {API_KEYS} (or listen on 127.0.0.1, or pass \
                 --insecure if every caller may do everything)"
            )
        })
    }
}

/// An error if the value of a setting has quotes around it. A shell removes them; files of
/// variables, such as those of containers, keep them.
pub fn without_quotes(value: &str) -> Result<(), String> {
    match value.trim().starts_with(['"', '\'', '“', '”', '‘', '’']) {
        true => Err("its value has quotes around it; write it without them".to_owned()),
        false => Ok(()),
    }
}

/// The value of a setting that may be a secret: the text itself, or the content of the file PATH if
/// the text is `@PATH`. Service managers pass secrets as files, because other processes of the user
/// can read environment variables.
pub fn text_or_file(text: &str) -> Result<String, String> {
    let text = text.trim();
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let content = std::fs::read_to_string(path)
        .map_err(|error| format!("the file {path:?} cannot be read: {error}"))?;
    let value = content.trim_start_matches('\u{feff}').trim();
    without_quotes(value).map_err(|why| format!("the file {path:?}: {why}"))?;
    match value {
        "" => Err(format!("the file {path:?} is empty")),
        value => Ok(value.to_owned()),
    }
}

/// Resolve `ADDRESS:PORT`; the address may be a name such as `localhost`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!(
            "--listen {text:?} is not an address to listen on ({error}); write it like \
             127.0.0.1:7171 or [::1]:7171"
        )
    })?;
    addresses.next().ok_or_else(|| format!("--listen {text:?}: the name resolves to no address"))
}
