//! `rankduel demo`: the whole service on real preferences, in one command.
//!
//! Starts a server on a fresh store, creates an experiment of the six arXiv rankers, and lets simulated users search
//! over HTTP; then prices every page that was shown with the true preferences.

mod drive;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use self::drive::{Driven, Field, Traffic, drive};
use super::{CommandError, open_store};
use crate::clock::SystemClock;
use crate::entropy;
use crate::experiment::spec::DEFAULT_DUEL_TTL_SECONDS;
use crate::experiment::{Service, ServiceSettings};
use crate::http::health::Readiness;
use crate::http::middleware::ShellSettings;
use crate::http::server::{ConnectionSettings, serve};
use crate::http::{self, AppState};
use crate::policy::PolicySpec;
use crate::policy::spec::Setup;
use crate::preference::{PreferenceMatrix, Regret};
use crate::telemetry::metrics::Metrics;

const MATRIX: &str = "arxiv-6";

/// What `rankduel demo` can be told.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The preferences are the published ones of six retrieval functions of the arXiv search engine (Yue and Joachims, \
ICML 2011); the first ranker is the best. Users answer late and out of order, some never, some twice. The regret \
that is shown at the end is the true one, of every page that was shown, answered or not.

A policy that runs in batches waits for lost answers until their duels expire. In the demo that is two seconds then, and \
users read the pages that are shown meanwhile (the best ranker so far, alone) for 100 ms.

Examples:
  rankduel demo
  rankduel demo --policy pcomp:horizon=5000 --duels 15000
  rankduel demo --keep            then open the address that it prints")]
pub struct DemoArgs {
    /// Pages that the users look at
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    duels: u64,
    /// Users who search at once
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    users: u32,
    /// The policy, as KIND or KIND:name=value,…
    #[arg(long, default_value = "d-ts-plus", value_name = "POLICY")]
    policy: String,
    /// The database to use; a fresh SQLite file that is deleted afterwards unless given
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Where to listen
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
    /// Leave the server running afterwards, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("it must be a number from 0 to 1".into()),
    }
}

/// Run the demo.
pub(super) fn run(args: DemoArgs) -> Result<(), CommandError> {
    let policy = PolicySpec::from_text(&args.policy)
        .map_err(|error| CommandError::Usage(format!("--policy {}: {error}", args.policy)))?;
    let matrix = PreferenceMatrix::named(MATRIX)
        .context("a built-in matrix is missing")?
        .context("a built-in matrix is malformed")?;
    policy
        .validate(matrix.rankers())
        .map_err(|error| CommandError::Usage(format!("--policy {}: {error}", args.policy)))?;
    if !args.listen.ip().is_loopback() {
        return Err(CommandError::Usage(format!(
            "--listen {}: the demo has no keys, so it listens on loopback only",
            args.listen
        )));
    }
    Ok(super::runtime()?.block_on(demo(args, policy, matrix))?)
}

async fn demo(args: DemoArgs, policy: PolicySpec, matrix: PreferenceMatrix) -> anyhow::Result<()> {
    let rankers: Vec<_> = (1..=matrix.rankers()).map(|number| format!("arxiv-{number}")).collect();
    let directory = tempfile::tempdir().context("no temporary folder for the demo's database")?;
    let database_url = args
        .database_url
        .clone()
        .unwrap_or_else(|| format!("sqlite://{}", directory.path().join("demo.db").display()));
    let server = Server::start(&database_url, args.listen).await?;
    let name = format!("demo-{:012x}", entropy::number().context("the system gives no randomness")? >> 16);
    println!("rankduel serves {name} on {} ({})", server.url, server.database);
    let setup = Setup { rankers: rankers.len(), seed: args.seed };
    let in_batches = policy.start(setup).runs_in_batches();
    let body = json!({
        "name": name,
        "rankers": rankers,
        "policy": policy,
        "seed": args.seed,
        "duel_ttl_seconds": if in_batches { 2 } else { DEFAULT_DUEL_TTL_SECONDS },
    });
    create(&server.url, &body).await?;

    let field =
        Arc::new(Field { experiment_url: format!("{}/v1/experiments/{name}", server.url), rankers, matrix });
    let traffic = Traffic {
        pages: args.duels,
        users: args.users,
        open_pages: 8,
        reading_alone: if in_batches { Duration::from_millis(100) } else { Duration::ZERO },
        lost: args.lost,
        repeated: args.repeated,
        seed: args.seed,
    };
    println!(
        "{} users search {} times over HTTP; {} % of pages are never answered, {} % of answers come twice\n",
        args.users,
        args.duels,
        args.lost * 100.0,
        args.repeated * 100.0
    );
    let progress = progress_bar(args.duels);
    let driven = drive(Arc::clone(&field), traffic, progress.clone()).await?;
    progress.finish_and_clear();
    let standings = get(&format!("{}/standings", field.experiment_url)).await?;
    report(&field, &driven, &standings)?;

    if args.keep {
        println!("\nserving on {} until Ctrl-C; for instance:", server.url);
        println!("  curl {}/standings", field.experiment_url);
        println!("  curl -X POST {}/next-duel", field.experiment_url);
        tokio::signal::ctrl_c().await.context("Ctrl-C cannot be waited for")?;
    }
    server.stop().await
}

/// A server of its own, in this process.
struct Server {
    url: String,
    database: &'static str,
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    async fn start(database_url: &str, listen: SocketAddr) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let store = open_store(database_url).await?;
        store.migrate().await.context("the database's schema cannot be brought up to date")?;
        let database = store.kind();
        let metrics = Arc::new(Metrics::new());
        let service =
            Service::start(store, Arc::new(SystemClock), Arc::clone(&metrics), ServiceSettings::default())
                .await?;
        let state =
            AppState { service: Arc::clone(&service), metrics, readiness: Arc::new(Readiness::default()) };
        let app = http::app(state, &ShellSettings::default())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let until_told = async {
                // an Err is the demo ending early: then stop, too
                let _ = stopped.await;
            };
            serve(listener, app, &ConnectionSettings::default(), until_told).await;
        });
        Ok(Self { url, database, service, stop, task })
    }

    async fn stop(self) -> anyhow::Result<()> {
        // the server may have stopped by itself; then there is nobody to tell
        let _ = self.stop.send(());
        self.task.await.context("the server panicked")?;
        self.service.shutdown().await;
        Ok(())
    }
}

async fn create(url: &str, body: &Value) -> anyhow::Result<()> {
    let response = client()?.post(format!("{url}/v1/experiments")).json(body).send().await?;
    let status = response.status();
    if !status.is_success() {
        bail!("the experiment was not created ({status}): {}", response.text().await?);
    }
    Ok(())
}

async fn get(url: &str) -> anyhow::Result<Value> {
    Ok(client()?.get(url).send().await?.error_for_status()?.json().await?)
}

fn client() -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build().context("the HTTP client cannot be set up")
}

fn progress_bar(duels: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} duels, {per_sec}, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(duels), target).with_style(style)
}

fn report(field: &Field, driven: &Driven, standings: &Value) -> anyhow::Result<()> {
    let regret = Regret::copeland(&field.matrix);
    let cost = regret.of_appearances(&driven.appearances);
    let uniform = regret.of_uniform_pairs(driven.pages);
    let seconds = driven.elapsed.as_secs_f64();
    let in_log = standings["duels"].as_u64().context("the standings have no count of duels")?;
    let ids = |key: &str| -> String {
        let ids = standings[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        ids.collect::<Vec<_>>().join(", ")
    };
    let champion = standings["champion"].as_str().unwrap_or_default();
    let best = &field.rankers[field.matrix.copeland_winners()[0]];

    println!("{:<30} {:>10}", "ranker", "shown");
    for (ranker, shown) in field.rankers.iter().zip(&driven.appearances) {
        println!("{ranker:<30} {shown:>10}");
    }
    println!();
    let row = |label: &str, value: String| println!("{label:<30} {value}");
    row("pages", format!("{} ({} showed one ranker alone)", driven.pages, driven.self_duels));
    row("answers acknowledged", format!("{} once, {} repeats", driven.recorded, driven.duplicates));
    row("answers in the log", in_log.to_string());
    row("pages never answered", format!("{}, and {} too late", driven.lost, driven.expired));
    row("leader", format!("{} (true best: {best}; the policy recommends {champion})", ids("leaders")));
    row(
        "true Copeland regret",
        format!("{cost:.0} ({:.1} % of uniform pairs, {uniform:.0})", 100.0 * cost / uniform),
    );
    row(
        "speed",
        format!(
            "{:.0} duels and {:.0} answers a second over HTTP, each answer durable, in {seconds:.1} s",
            driven.pages as f64 / seconds,
            (driven.recorded + driven.duplicates) as f64 / seconds
        ),
    );
    if driven.retried > 0 {
        row("asked to try again", driven.retried.to_string());
    }
    if in_log != driven.recorded {
        bail!("{} answers were acknowledged and {in_log} are in the log", driven.recorded);
    }
    Ok(())
}
