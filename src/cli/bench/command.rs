//! The arguments of the bench, and its parts.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::context::Bench;
use super::report::Section;
use super::{duels, feedback, replicas, reports, start, stock};
use crate::cli::database::open_store;
use crate::cli::error::CommandError;
use crate::cli::runtime::runtime;
use crate::cli::values::count;
use crate::engine::experiment_spec::ConcludeAt;
use crate::entropy;
use dueling_bandits::PolicySpec;

/// Measure the speed of the service on this machine
///
/// Starts servers as separate processes, generates load over HTTP, and compares the results with
/// the limits of the machine: `next-duel` with a bare route of the same framework, and `feedback`
/// with the commits of one connection on the same disk. Each round measures both sides in turn; the
/// figures are medians. The load comes from one thread on the same machine, which uses some of the
/// processor. The report therefore has requests per CPU-second of the server in addition to
/// requests per second.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Parts:
  duels      next-duel for 10 and for 100 rankers, in a closed loop (each connection sends a
             request after each answer) and in an open loop (a fixed number of requests per
             second; a latency counts from the time at which the request was due)
  stock      next-duel for 10 and for 100 rankers, with 1, 10 and 100 duels a request
             (`count`), in a closed loop
  feedback   durable outcomes, one per request and 100 per request
  start      an experiment with a long log: appending, folding, opening with and without a
             snapshot; memory
  reports    next-duel for 100 and for 1024 rankers, in an open loop, while feedback arrives and
             others read reports and the dashboard, compared with the same without readers
  replicas   feedback and duels of one server, two servers and so on, on one PostgreSQL (only
             there): the busy processors of servers, PostgreSQL and load, and the mean number of
             waiting connections of PostgreSQL. Servers share the processors of the machine unless
             --server-cpus limits each of them

Examples:
  rankduel bench duels
  rankduel bench reports --policy d-ts-verdict
  rankduel bench replicas --database-url postgres://…/scratch --servers 4 --server-cpus 0.2
  rankduel bench --database-url postgres://…/scratch --rounds 5 --seconds 5 --format json")]
pub struct Arguments {
    /// The parts to measure [default: all that the database supports, without stock
    /// and reports]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,

    /// A scratch database; the data stays in it [default: a new SQLite file in the folder for
    /// temporary files, deleted afterwards]
    #[arg(long, value_name = "URL", env = "RANKDUEL_BENCH_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,

    /// Policy of the experiments, as in `rankduel simulate`
    #[arg(long, value_name = "POLICY", default_value = "d-ts-plus", value_parser = policy)]
    policy: PolicySpec,

    /// Number of rounds; each round measures every side once
    #[arg(long, value_name = "N", default_value = "5", value_parser = |text: &str| count(text, 1, 1000))]
    rounds: u64,

    /// Seconds of one measurement of a round
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    seconds: f64,

    /// Number of connections that request duels
    #[arg(long, value_name = "N", default_value = "64", value_parser = |text: &str| count(text, 1, 1000))]
    connections: u64,

    /// Number of connections that send feedback
    #[arg(long, value_name = "N", default_value = "512", value_parser = |text: &str| count(text, 1, 1000))]
    feedback_connections: u64,

    /// Largest number of servers that share a database in `replicas`; smaller numbers are measured
    /// too
    #[arg(long, value_name = "N", default_value = "2", value_parser = |text: &str| count(text, 2, 8))]
    servers: u64,

    /// Limit each server to this number of processors by a control group; requires root
    #[arg(long, value_name = "PROCESSORS", value_parser = processors)]
    server_cpus: Option<f64>,

    /// Number of outcomes in the long log; the form 1e7 is accepted
    #[arg(long, value_name = "N", default_value = "1e6", value_parser = |text: &str| count(text, 1, 1_000_000_000))]
    outcomes: u64,

    /// Log filter of the servers, which log to standard error; the default omits the line per
    /// request
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// A delay that was added to each flush, for the report
    #[arg(long, value_name = "MILLISECONDS", env = "RANKDUEL_SLOW_FLUSH_MS", hide = true)]
    slow_flush_ms: Option<f64>,

    /// Serve the bare route with answers of this number of bytes
    #[arg(long, value_name = "BYTES", hide = true)]
    constant_server: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// next-duel, compared with a bare route
    Duels,
    /// next-duel, with several duels a request
    Stock,
    /// Feedback, compared with the disk
    Feedback,
    /// Opening an experiment with a long log; memory
    Start,
    /// next-duel while others read reports
    Reports,
    /// One server, two servers, and so on
    Replicas,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text to read
    Table,
    /// JSON object
    Json,
}

/// The policy, which aims at the same verdict as a new experiment.
fn policy(text: &str) -> Result<PolicySpec, String> {
    let goal = ConcludeAt::default();
    let fallbacks = [("confidence", goal.confidence.into()), ("margin", goal.margin.into())];
    PolicySpec::from_text_with(text, &fallbacks).map_err(|error| error.to_string())
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

/// Runs the command.
pub fn run(arguments: Arguments) -> Result<(), CommandError> {
    let runtime = runtime()?;
    if let Some(bytes) = arguments.constant_server {
        return Ok(runtime.block_on(duels::serve_constant(bytes))?);
    }
    let folder =
        tempfile::tempdir().context("a temporary folder for the database cannot be created")?;
    let database_url = arguments
        .database_url
        .unwrap_or_else(|| format!("sqlite://{}", folder.path().join("bench.db").display()));
    let store = runtime.block_on(open_store(&database_url))?;
    let run = entropy::number().context("the system does not provide randomness")?;
    let bench = Bench {
        runtime,
        store,
        database_url,
        run: format!("{run:016x}"),
        policy: arguments.policy,
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
            Part::Stock => stock::run(&bench),
            Part::Feedback => feedback::run(&bench),
            Part::Start => start::run(&bench),
            Part::Reports => reports::run(&bench),
            Part::Replicas => replicas::run(&bench),
        }?;
        sections.push(section);
    }
    let text = match arguments.format {
        Format::Table => sections.iter().map(Section::table).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let sections: Vec<_> = sections.iter().map(Section::json).collect();
            let report = json!({ "version": env!("CARGO_PKG_VERSION"), "sections": sections });
            serde_json::to_string_pretty(&report).context("the JSON cannot be written")? + "\n"
        }
    };
    std::io::stdout().write_all(text.as_bytes()).context("the result cannot be written")?;
    bench.runtime.block_on(bench.store.close());
    Ok(())
}
