//! `rankduel demo`: the whole service with simulated users, in one command.
//!
//! The demo starts a server on a fresh store and creates an experiment with the six arXiv rankers.
//! Simulated users then search over HTTP. At the end, the demo computes the regret of every shown
//! page with the true preferences.

mod report;
mod users;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use self::users::{Traffic, World, drive};
use super::database::open_store;
use super::{CommandError, runtime};
use crate::http::server::{ConnectionSettings, serve};
use crate::http::{self, AppState, Hosts, Readiness, ShellSettings};
use crate::service::{Service, ServiceSettings};
use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use rankduel_engine::clock::SystemClock;
use rankduel_engine::experiment_spec::DEFAULT_DUEL_TTL_SECONDS;
use rankduel_engine::metrics::Metrics;
use rankduel_store::entropy;

/// Most pages of a demo that ends with the verdict.
const PAGES_MAX: u64 = 100_000;
/// The time that a user reads a page while somebody watches: 32 users see some 300 pages a second,
/// and the verdict takes a quarter of a minute.
const READING: Duration = Duration::from_millis(100);
/// The published preferences of the rankers.
const MATRIX: &str = "arxiv-6";

/// The arguments of `rankduel demo`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The demo runs until the experiment concludes by itself: until the verdict at 95 %, with a margin of 1 point. \
Then it says what other ways to a verdict would have cost. With --duels it runs for that many pages instead.

The preferences are published: six retrieval functions of the arXiv search engine (Yue and Joachims, ICML 2011). The \
first ranker is the best. Users answer late and out of order, some never, some twice. At the end, the demo reports the \
true regret of every shown page, answered or not.

A policy that runs in batches waits for lost answers until their duels expire. In the demo, such duels expire after two \
seconds. In the meantime, users read pages with the best ranker so far, alone, for 100 ms each.

On a terminal, the users take their time, so that you can watch the dashboard, and the server stays until Ctrl-C.

Examples:
  rankduel demo --policy pcomp:horizon=5000 --duels 15000
  rankduel demo                   and open the printed address
  rankduel demo </dev/null        without a terminal: as fast as it can, and ends")]
pub struct DemoArgs {
    /// Number of pages that the users see [default: until the verdict, at most 100,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    duels: Option<u64>,
    /// Number of concurrent users
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    users: u32,
    /// The policy: KIND or KIND:name=value,… [default: that of the service]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// The database to use [default: a new SQLite file that is deleted afterwards]
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Listening address
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,
    /// Share of pages that are never answered
    #[arg(long, default_value_t = 0.05, value_name = "P", value_parser = share)]
    lost: f64,
    /// Share of answers that are sent twice
    #[arg(long, default_value_t = 0.05, value_name = "P", value_parser = share)]
    repeated: f64,
    /// Seed of the users and of the experiment
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Keep serving until Ctrl-C after the demo has ended. On a terminal, this is always so
    #[arg(long)]
    keep: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a number from 0 to 1".into()),
    }
}

/// Runs the command.
pub fn run(args: DemoArgs) -> Result<(), CommandError> {
    let matrix = PreferenceMatrix::named(MATRIX)
        .context("a built-in matrix is missing")?
        .context("a built-in matrix is malformed")?;
    let policy = args.policy.as_deref().map(|text| policy(text, matrix.rankers())).transpose()?;
    if !args.listen.ip().is_loopback() {
        return Err(CommandError::Usage(format!(
            "--listen {}: the demo has no keys, so it listens on loopback only",
            args.listen
        )));
    }
    Ok(runtime()?.block_on(demo(args, policy, matrix))?)
}

fn policy(text: &str, rankers: usize) -> Result<PolicySpec, CommandError> {
    let wrong = |error: String| CommandError::Usage(format!("--policy {text}: {error}"));
    let policy = PolicySpec::from_text(text).map_err(|error| wrong(error.to_string()))?;
    policy.validate(rankers).map_err(|error| wrong(error.to_string()))?;
    Ok(policy)
}

async fn demo(
    args: DemoArgs,
    policy: Option<PolicySpec>,
    matrix: PreferenceMatrix,
) -> anyhow::Result<()> {
    let directory =
        tempfile::tempdir().context("a temporary folder for the database cannot be created")?;
    let database_url = args
        .database_url
        .clone()
        .unwrap_or_else(|| format!("sqlite://{}", directory.path().join("demo.db").display()));
    let Server { url, database, service } = start(&database_url, args.listen).await?;
    let number = entropy::number().context("the system does not provide randomness")?;
    let name = format!("demo-{:012x}", number >> 16);
    println!("rankduel serves {name} on {url} ({database})");
    let is_watched = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if is_watched {
        println!("watch {url}/experiments/{name} in a browser");
    }

    let setup = Setup { rankers: matrix.rankers(), seed: args.seed };
    let in_batches = policy.as_ref().is_some_and(|policy| policy.start(setup).batches().is_some());
    let duel_ttl_seconds = if in_batches { 2 } else { DEFAULT_DUEL_TTL_SECONDS };
    let world = World::create(&url, &name, matrix, args.seed, policy, duel_ttl_seconds).await?;
    let world = Arc::new(world);
    let traffic = Traffic {
        pages: args.duels.unwrap_or(PAGES_MAX),
        until_concluded: args.duels.is_none(),
        users: args.users,
        reading: if is_watched { READING } else { Duration::ZERO },
        reading_alone: if in_batches { Duration::from_millis(100) } else { Duration::ZERO },
        lost: args.lost,
        repeated: args.repeated,
        seed: args.seed,
    };
    let searches = match args.duels {
        Some(duels) => format!("{duels} times"),
        None => "until the verdict".to_owned(),
    };
    println!(
        "{} users search {searches} over HTTP; {} % of pages are never answered, {} % of answers are sent twice\n",
        args.users,
        args.lost * 100.0,
        args.repeated * 100.0
    );
    let (tally, elapsed) = drive(&world, traffic).await?;
    let standings = world.get("/standings").await?;
    let verdict = world.get("/verdict").await?;
    report::print(&world, &tally, elapsed, &standings, &verdict)?;

    if args.keep || is_watched {
        println!("\nserving until Ctrl-C. Open {url}/experiments/{name} in a browser, or run:");
        println!("  curl {}/standings", world.experiment_url);
        println!("  curl -X POST {}/next-duel", world.experiment_url);
        tokio::signal::ctrl_c().await.context("the handler of Ctrl-C cannot be installed")?;
    }
    service.shutdown().await;
    Ok(())
}

/// A server in this process.
struct Server {
    /// `http://ADDRESS`.
    url: String,
    /// Kind of the database.
    database: &'static str,
    /// Writes what is only in memory when it is shut down.
    service: Arc<Service>,
}

/// Start a server in this process, and create the schema of the database if necessary.
async fn start(database_url: &str, listen: SocketAddr) -> anyhow::Result<Server> {
    let listener =
        TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let url = format!("http://{}", listener.local_addr()?);
    let store = open_store(database_url).await?;
    store.claim().await.context("the database cannot be served from")?;
    store.migrate().await.context("the schema of the database cannot be updated")?;
    let database = store.kind();
    let metrics = Arc::new(Metrics::new());
    let settings = ServiceSettings::default();
    let service =
        Service::start(store, Arc::new(SystemClock), Arc::clone(&metrics), settings).await?;
    let readiness = Arc::new(Readiness::default());
    let state = AppState { service: Arc::clone(&service), metrics, readiness };
    let shell = ShellSettings { hosts: Hosts::Local, ..ShellSettings::default() };
    let app = http::app(state, &shell)?;
    tokio::spawn(async move {
        serve(listener, app, &ConnectionSettings::default(), std::future::pending()).await;
    });
    Ok(Server { url, database, service })
}

impl World {
    /// Create an experiment with a ranker for each row of the matrix.
    async fn create(
        url: &str,
        name: &str,
        matrix: PreferenceMatrix,
        seed: u64,
        policy: Option<PolicySpec>,
        duel_ttl_seconds: u32,
    ) -> anyhow::Result<Self> {
        let rankers: Vec<_> =
            (1..=matrix.rankers()).map(|number| format!("arxiv-{number}")).collect();
        let mut body = json!({
            "name": name,
            "rankers": rankers,
            "seed": seed,
            "duel_ttl_seconds": duel_ttl_seconds,
            // the simulated users answer at once
            "answer_window_seconds": 0,
        });
        if let Some(policy) = &policy {
            body["policy"] = json!(policy);
        }
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(30))
            .build()
            .context("the HTTP client cannot be set up")?;
        let created = client.post(format!("{url}/v1/experiments")).json(&body).send().await?;
        if !created.status().is_success() {
            bail!(
                "the experiment was not created ({}): {}",
                created.status(),
                created.text().await?
            );
        }
        let experiment_url = format!("{url}/v1/experiments/{name}");
        Ok(Self { client, experiment_url, rankers, matrix })
    }

    /// The answer of the experiment's URL with this path.
    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.experiment_url);
        Ok(self.client.get(url).send().await?.error_for_status()?.json().await?)
    }
}
