//! The arguments of the demo and its steps.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::drive::{Traffic, drive};
use super::report::report;
use super::searches::{COMPARISONS, Documents, World};
use super::server::{Server, get};
use crate::cli::error::CommandError;
use crate::cli::letor;
use crate::cli::runtime::runtime;
use crate::engine::experiment_spec::DEFAULT_DUEL_TTL_SECONDS;
use crate::entropy;
use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use interleaving::Spec;
use interleaving::click_models::ClickModelSpec;
use lab::estimate::Comparing;

/// Most pages of a demo that ends with the verdict.
const PAGES_MAX: u64 = 100_000;
/// Number of slots of a page of documents.
const PAGE_LENGTH: usize = 10;

const MATRIX: &str = "arxiv-6";
const ARXIV_RANKERS: usize = 6;

/// The arguments of `rankduel demo`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The demo runs until the experiment concludes by itself: until the verdict at 95 %, with a margin of 1 percentage point. \
Then it says what other ways to a verdict would have cost. With --duels it runs for that many pages instead.

The preferences are published: six retrieval functions of the arXiv search engine (Yue and Joachims, ICML 2011). The \
first ranker is the best. Users answer late and out of order, some never, some twice. At the end, the demo reports the \
true regret of every shown page, answered or not.

With --letor, the rankers are the features of a learning-to-rank file, as in `rankduel estimate`. Each search draws a \
query, the server interleaves the rankings of the two rankers that the policy has chosen, and users click on the \
documents of the page. Some users send each click at once. The demo estimates the true preferences of these users from \
pages of each pair, to compute the regret, and compares the winner with the one by NDCG.

A policy that runs in batches waits for lost answers until their duels expire. In the demo, such duels expire after two \
seconds. In the meantime, users read pages with the best ranker so far, alone, for 100 ms each.

Examples:
  rankduel demo
  rankduel demo --policy pcomp:horizon=5000 --duels 15000
  rankduel demo --letor MQ2008-S4.txt --features 39,23,38,37,21 --clicks perfect
  rankduel demo --keep            and open the printed address")]
pub struct DemoArgs {
    /// Number of pages that the users see [default: until the verdict, at most 100,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    duels: Option<u64>,
    /// Number of concurrent users
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
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
    /// A LETOR file (SVMlight with qid) whose documents are searched; its features are the rankers
    #[arg(long, value_name = "FILE")]
    letor: Option<PathBuf>,
    /// Only these features, in this order [default: all]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', requires = "letor")]
    features: Vec<u32>,
    /// Interleaving method, as in `rankduel estimate`
    #[arg(long, default_value = "team-draft", value_name = "METHOD", requires = "letor")]
    method: String,
    /// Click model, as in `rankduel estimate`
    #[arg(long, default_value = "navigational", value_name = "USERS", requires = "letor")]
    clicks: String,
    /// Seed of the users and of the experiment
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Keep the server running afterwards, until Ctrl-C
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
    let wrong_policy = |error: String| {
        CommandError::Usage(format!("--policy {}: {error}", args.policy.as_deref().unwrap_or("")))
    };
    let policy = args.policy.as_deref().map(PolicySpec::from_text).transpose();
    let policy = policy.map_err(|error| wrong_policy(error.to_string()))?;
    let documents = args.letor.is_some().then(|| args.documents()).transpose()?;
    let rankers = match &documents {
        Some(documents) => documents
            .rankers
            .iter()
            .map(|&ranker| format!("feature-{}", documents.data.features[ranker]))
            .collect(),
        None => (1..=ARXIV_RANKERS).map(|number| format!("arxiv-{number}")).collect::<Vec<_>>(),
    };
    if let Some(policy) = &policy {
        policy.validate(rankers.len()).map_err(|error| wrong_policy(error.to_string()))?;
    }
    if !args.listen.ip().is_loopback() {
        return Err(CommandError::Usage(format!(
            "--listen {}: the demo has no keys, so it listens on loopback only",
            args.listen
        )));
    }
    let matrix = match &documents {
        Some(documents) => {
            println!(
                "estimating the preferences from {COMPARISONS} pages of each pair of {} rankers",
                rankers.len()
            );
            documents.estimate()?
        }
        None => PreferenceMatrix::named(MATRIX)
            .context("a built-in matrix is missing")?
            .context("a built-in matrix is malformed")?,
    };
    let world = World { experiment_url: String::new(), rankers, matrix, documents };
    Ok(runtime()?.block_on(demo(args, policy, world))?)
}

impl DemoArgs {
    /// The documents and users of `--letor` and its options.
    fn documents(&self) -> Result<Documents, CommandError> {
        let path = self.letor.clone().unwrap_or_default();
        let method = Spec::from_text(&self.method)
            .map_err(|error| CommandError::Usage(format!("--method {}: {error}", self.method)))?;
        let invalid_model =
            |error| CommandError::Usage(format!("--clicks {}: {error}", self.clicks));
        let click_model = ClickModelSpec::from_text(&self.clicks).map_err(invalid_model)?;
        let (data, _) = letor::read(&path)?;
        let grades = letor::grades(&path, &data, None)?;
        let click_model = click_model.for_grades(grades).map_err(invalid_model)?;
        let rankers = letor::rankers(&data, &self.features)?;
        let comparing = Comparing {
            method,
            click_model,
            length: PAGE_LENGTH,
            comparisons: COMPARISONS,
            seed: self.seed,
        };
        Ok(Documents { data, rankers, comparing })
    }
}

async fn demo(args: DemoArgs, policy: Option<PolicySpec>, mut world: World) -> anyhow::Result<()> {
    let directory =
        tempfile::tempdir().context("a temporary folder for the database cannot be created")?;
    let database_url = args
        .database_url
        .clone()
        .unwrap_or_else(|| format!("sqlite://{}", directory.path().join("demo.db").display()));
    let server = Server::start(&database_url, args.listen).await?;
    let name = format!(
        "demo-{:012x}",
        entropy::number().context("the system does not provide randomness")? >> 16
    );
    println!("rankduel serves {name} on {} ({})", server.url, server.database);
    let setup = Setup { rankers: world.rankers.len(), seed: args.seed };
    let in_batches = policy.as_ref().is_some_and(|policy| policy.start(setup).batches().is_some());
    let mut body = json!({
        "name": name,
        "rankers": world.rankers,
        "seed": args.seed,
        "duel_ttl_seconds": if in_batches { 2 } else { DEFAULT_DUEL_TTL_SECONDS },
        // the simulated users answer at once
        "answer_window_seconds": 0,
    });
    if let Some(policy) = &policy {
        body["policy"] = json!(policy);
    }
    if let Some(documents) = &world.documents {
        body["interleaving"] = json!(documents.comparing.method);
    }
    server.create(&body).await?;

    world.experiment_url = format!("{}/v1/experiments/{name}", server.url);
    let world = Arc::new(world);
    let traffic = Traffic {
        pages: args.duels.unwrap_or(PAGES_MAX),
        until_concluded: args.duels.is_none(),
        users: args.users,
        open_pages: 8,
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
    let progress = progress_bar(traffic.pages);
    let driven = drive(Arc::clone(&world), traffic, progress.clone()).await?;
    progress.finish_and_clear();
    let standings = get(&format!("{}/standings", world.experiment_url)).await?;
    let verdict = get(&format!("{}/verdict", world.experiment_url)).await?;
    report(&world, &driven, &standings, &verdict)?;

    if args.keep {
        println!(
            "\nserving until Ctrl-C. Open {}/experiments/{name} in a browser, or run:",
            server.url
        );
        println!("  curl {}/standings", world.experiment_url);
        println!("  curl -X POST {}/next-duel", world.experiment_url);
        tokio::signal::ctrl_c().await.context("the handler of Ctrl-C cannot be installed")?;
    }
    server.stop().await
}

fn progress_bar(duels: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(
        "{bar:40} {human_pos}/{human_len} duels, {per_sec}, {eta} left",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(duels), target).with_style(style)
}
