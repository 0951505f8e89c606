//! `rankduel bench`: how fast the service is on this machine, beside what the machine allows.

mod answers;
mod disk;
mod duels;
mod feedback;
mod load;
mod process;
mod replicas;
mod report;
mod start;

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;

use self::report::Section;
use super::values::count;
use super::{CommandError, open_store};
use crate::entropy;
use crate::store::SharedStore;

/// Measure the speed of the service on this machine
///
/// Starts servers as processes of their own, puts load on them over HTTP, and puts what they do beside what the machine
/// allows: `next-duel` beside a bare route of the same framework, `feedback` beside the commits that the same disk gives to
/// one connection. Both sides are measured in turn, round after round; the figures are medians. The load comes from one
/// thread on the same machine, which takes its share of the processor: hence requests per CPU-second of the server beside
/// requests per second.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is measured, and from what a latency counts:
  duels      next-duel for 10 and for 100 rankers (D-TS+), closed loop (each connection asks again when it has its answer)
             and open loop (so many a second whether answers come or not; a latency counts from the moment at which the
             request was due)
  feedback   durable outcomes, one a request and 100 a request
  start      an experiment with a long log: appending it, folding it, opening it with and without a snapshot; memory
  replicas   feedback to one server and to two on one PostgreSQL (only there)

Examples:
  rankduel bench duels
  rankduel bench --database-url postgres://…/scratch --rounds 5 --seconds 5 --format json")]
pub(super) struct Arguments {
    /// What to measure [default: all that the database allows]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,

    /// A scratch database: what is written stays. A fresh SQLite file in the folder for temporary files that is deleted
    /// afterwards, unless given
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

    /// Outcomes in the log that is opened; 1e7 is understood
    #[arg(long, value_name = "N", default_value = "1e6", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    outcomes: u64,

    /// What the servers log, to standard error; the default leaves out the line for each request
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,

    /// What goes to standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

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
    /// One server and two
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
        format!("{} processors, the load's included; {}", cores, self.store.kind())
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
        outcomes: arguments.outcomes,
        log: arguments.log,
    };
    bench.runtime.block_on(bench.store.migrate()).context("the database cannot be used")?;
    let parts = if arguments.parts.is_empty() {
        let all = [Part::Duels, Part::Feedback, Part::Start, Part::Replicas];
        all.into_iter().filter(|part| *part != Part::Replicas || bench.store.kind() == "postgres").collect()
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
