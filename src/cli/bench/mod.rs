//! `rankduel bench`: how fast the service is on this machine, beside what the machine allows.

mod answers;
mod disk;
mod duels;
mod feedback;
mod load;
mod postgres;
mod process;
mod replicas;
mod report;
mod share;
mod start;

use std::io::Write as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;

use self::process::Server;
use self::report::Section;
use self::share::Share;
use super::values::count;
use super::{CommandError, open_store};
use crate::entropy;
use crate::store::SharedStore;

/// Measure the speed of the service on this machine
///
/// Starts servers as processes of their own, puts load on them over HTTP, and puts what they do
/// beside what the machine allows: `next-duel` beside a bare route of the same framework,
/// `feedback` beside the commits that the same disk gives to one connection. Both sides are
/// measured in turn, round after round; the figures are medians. The load comes from one thread on
/// the same machine, which takes its share of the processor: hence requests per CPU-second of the
/// server beside requests per second.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is measured, and from what a latency counts:
  duels      next-duel for 10 and for 100 rankers (D-TS+), closed loop (each connection asks again when it has its answer)
             and open loop (so many a second whether answers come or not; a latency counts from the moment at which the
             request was due)
  feedback   durable outcomes, one a request and 100 a request
  start      an experiment with a long log: appending it, folding it, opening it with and without a snapshot; memory
  replicas   feedback and duels of one server, of two and so on, on one PostgreSQL (only there): the processors that
             servers, PostgreSQL and load keep busy, and how many of PostgreSQL's connections wait, on average. Servers
             share the machine's processors unless --server-cpus gives each its own

Examples:
  rankduel bench duels
  rankduel bench replicas --database-url postgres://…/scratch --servers 4 --server-cpus 0.2
  rankduel bench --database-url postgres://…/scratch --rounds 5 --seconds 5 --format json")]
pub(super) struct Arguments {
    /// What to measure [default: all that the database allows]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,

    /// A scratch database: what is written stays. A fresh SQLite file in the folder for temporary
    /// files that is deleted afterwards, unless given
    #[arg(long, value_name = "URL", env = "RANKDUEL_BENCH_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,

    /// Rounds; each measures every side once
    #[arg(long, value_name = "N", default_value = "5", value_parser = |text: &str| count(text, 1, 1000))]
    rounds: u64,

    /// Seconds that one measurement of a round takes
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// Connections that ask for duels
    #[arg(long, value_name = "N", default_value = "64", value_parser = |text: &str| count(text, 1, 1000))]
    connections: u64,

    /// Connections that send feedback
    #[arg(long, value_name = "N", default_value = "512", value_parser = |text: &str| count(text, 1, 1000))]
    feedback_connections: u64,

    /// Servers that share a database in `replicas`: each number up to this one is measured
    #[arg(long, value_name = "N", default_value = "2", value_parser = |text: &str| count(text, 2, 8))]
    servers: u64,

    /// Hold each server to so many processors by a control group; needs root
    #[arg(long, value_name = "PROCESSORS", value_parser = processors)]
    server_cpus: Option<f64>,

    /// Outcomes in the log that is opened; 1e7 is understood
    #[arg(long, value_name = "N", default_value = "1e6", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    outcomes: u64,

    /// What the servers log, to standard error; the default leaves out the line for each request
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,

    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// By how much `scripts/with-slow-flush` lengthens a flush, for the report
    #[arg(long, value_name = "MILLISECONDS", env = "RANKDUEL_SLOW_FLUSH_MS", hide = true)]
    slow_flush_ms: Option<f64>,

    /// Be the bare route of so many bytes
    #[arg(long, value_name = "BYTES", hide = true)]
    constant_server: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// next-duel beside a bare route
    Duels,
    /// Feedback beside the disk
    Feedback,
    /// Opening an experiment with a long log; memory
    Start,
    /// One server, two, and so on
    Replicas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One object
    Json,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("it must be a number from 0.01 to 3600".into()),
    }
}

fn processors(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(processors) if (0.05..=1000.0).contains(&processors) => Ok(processors),
        _ => Err("it must be a number from 0.05 to 1000".into()),
    }
}

/// What every part needs.
struct Bench {
    runtime: tokio::runtime::Runtime,
    store: SharedStore,
    database_url: String,
    /// In every experiment's name: a database may be used again.
    run: String,
    rounds: u64,
    round: Duration,
    connections: usize,
    feedback_connections: usize,
    servers: usize,
    /// Each server's share, if it is held to one.
    server_cpus: Option<f64>,
    slow_flush_ms: Option<f64>,
    outcomes: u64,
    log: String,
}

impl Bench {
    fn experiment(&self, what: &str) -> String {
        format!("bench-{}-{what}", self.run)
    }

    fn warm_up(&self) -> Duration {
        self.round / 5
    }

    /// For what ends by itself.
    fn forever(&self) -> Duration {
        Duration::from_secs(24 * 3600)
    }

    fn machine(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let mut text = format!("{cores} processors, the load's included");
        if let Some(processors) = self.server_cpus {
            text += &format!(", {processors} of them for each server");
        }
        text += &format!("; {}", self.store.kind());
        if let Some(milliseconds) = self.slow_flush_ms {
            text += &format!(", each flush {milliseconds} ms slower");
        }
        text
    }

    /// A server of the API.
    fn server(&self, filter: &str, log: Stdio) -> anyhow::Result<Server> {
        Server::start(
            &["serve", "--listen", "127.0.0.1:0", "--log", filter, "--log-format", "json"],
            &[("RANKDUEL_DATABASE_URL", &self.database_url)],
            self.share()?,
            log,
        )
    }

    /// The share that one server is held to.
    fn share(&self) -> anyhow::Result<Option<Share>> {
        let Some(processors) = self.server_cpus else { return Ok(None) };
        let number = entropy::number().context("the system gives no randomness")?;
        Share::of_processors(processors, &format!("rankduel-bench-{number:016x}")).map(Some)
    }

    fn say(&self, what: &str) {
        eprintln!("rankduel bench: {what}");
    }
}

/// Run the command.
pub(super) fn run(arguments: Arguments) -> Result<(), CommandError> {
    let runtime = super::runtime()?;
    if let Some(bytes) = arguments.constant_server {
        return Ok(runtime.block_on(duels::serve_constant(bytes))?);
    }
    let folder = tempfile::tempdir().context("no temporary folder for the bench's database")?;
    let database_url = arguments
        .database_url
        .unwrap_or_else(|| format!("sqlite://{}", folder.path().join("bench.db").display()));
    let store = runtime.block_on(open_store(&database_url))?;
    let run = entropy::number().context("the system gives no randomness")?;
    let bench = Bench {
        runtime,
        store,
        database_url,
        run: format!("{run:016x}"),
        rounds: arguments.rounds,
        round: Duration::from_secs_f64(arguments.seconds),
        connections: arguments.connections as usize,
        feedback_connections: arguments.feedback_connections as usize,
        servers: arguments.servers as usize,
        server_cpus: arguments.server_cpus,
        slow_flush_ms: arguments.slow_flush_ms,
        outcomes: arguments.outcomes,
        log: arguments.log,
    };
    bench.runtime.block_on(bench.store.migrate()).context("the database cannot be used")?;
    let parts = if arguments.parts.is_empty() {
        let all = [Part::Duels, Part::Feedback, Part::Start, Part::Replicas];
        all.into_iter()
            .filter(|part| *part != Part::Replicas || bench.store.kind() == "postgres")
            .collect()
    } else {
        arguments.parts
    };
    let mut sections = Vec::new();
    for part in parts {
        let section = match part {
            Part::Duels => duels::run(&bench),
            Part::Feedback => feedback::run(&bench),
            Part::Start => start::run(&bench),
            Part::Replicas => replicas::run(&bench),
        }?;
        sections.push(section);
    }
    let text = match arguments.format {
        Format::Table => sections.iter().map(Section::table).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let sections: Vec<_> = sections.iter().map(Section::json).collect();
            let report = json!({ "version": env!("CARGO_PKG_VERSION"), "sections": sections });
            serde_json::to_string_pretty(&report).context("writing JSON")? + "\n"
        }
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the result")?;
    bench.runtime.block_on(bench.store.close());
    Ok(())
}
