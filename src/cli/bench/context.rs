//! The settings and resources that all parts of the bench share.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;

use super::process::Server;
use super::share::Share;
use crate::entropy;
use crate::store::SharedStore;
use dueling_bandits::PolicySpec;

/// The context of all parts.
pub struct Bench {
    pub runtime: tokio::runtime::Runtime,
    pub store: SharedStore,
    pub database_url: String,
    /// Part of the name of every experiment, because a database can be used again.
    pub run: String,
    /// The policy of every experiment.
    pub policy: PolicySpec,
    pub rounds: u64,
    pub round: Duration,
    pub connections: usize,
    pub feedback_connections: usize,
    pub servers: usize,
    /// The limit of processors of each server, if any.
    pub server_cpus: Option<f64>,
    pub slow_flush_ms: Option<f64>,
    pub outcomes: u64,
    pub log: String,
}

impl Bench {
    pub fn experiment(&self, what: &str) -> String {
        format!("bench-{}-{what}", self.run)
    }

    pub fn warm_up(&self) -> Duration {
        self.round / 5
    }

    /// The time limit of load that ends by itself.
    pub fn forever(&self) -> Duration {
        Duration::from_secs(24 * 3600)
    }

    pub fn machine(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let mut text = format!("{cores} processors, including those of the load");
        if let Some(processors) = self.server_cpus {
            text += &format!(", {processors} of them for each server");
        }
        text += &format!("; {}; {}", self.store.kind(), self.policy.kind());
        if let Some(milliseconds) = self.slow_flush_ms {
            text += &format!(", each flush {milliseconds} ms slower");
        }
        text
    }

    /// Starts a server of the API.
    pub fn server(&self, filter: &str, log: Stdio) -> anyhow::Result<Server> {
        Server::start(
            &["serve", "--listen", "127.0.0.1:0", "--log", filter, "--log-format", "json"],
            &[("RANKDUEL_DATABASE_URL", &self.database_url)],
            self.share()?,
            log,
        )
    }

    /// The limit of processors of one server, as a new control group.
    pub fn share(&self) -> anyhow::Result<Option<Share>> {
        let Some(processors) = self.server_cpus else { return Ok(None) };
        let number = entropy::number().context("the system does not provide randomness")?;
        Share::of_processors(processors, &format!("rankduel-bench-{number:016x}")).map(Some)
    }

    pub fn say(&self, what: &str) {
        eprintln!("rankduel bench: {what}");
    }
}
