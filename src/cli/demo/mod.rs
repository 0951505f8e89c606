//! `rankduel demo`: the whole service on real preferences, in one command.
//!
//! Starts a server on a fresh store, creates an experiment of the six arXiv rankers, or of the
//! features of a learning-to-rank file, and lets simulated users search over HTTP; then prices
//! every page that was shown with the true preferences.

mod drive;
mod searches;
mod server;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use self::drive::{Driven, Traffic, drive};
use self::searches::{COMPARISONS, Documents, Field};
use self::server::{Server, get};
use super::{CommandError, letor};
use crate::engine::experiment_spec::DEFAULT_DUEL_TTL_SECONDS;
use crate::entropy;
use dueling_bandits::PolicySpec;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use interleaving::Spec;
use interleaving::click_models::Users;
use lab::estimate::Comparing;

/// Slots of a page of documents.
const PAGE_LENGTH: usize = 10;

const MATRIX: &str = "arxiv-6";
const ARXIV_RANKERS: usize = 6;

/// What `rankduel demo` can be told.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The preferences are the published ones of six retrieval functions of the arXiv search engine (Yue and Joachims, \
ICML 2011); the first ranker is the best. Users answer late and out of order, some never, some twice. The regret \
that is shown at the end is the true one, of every page that was shown, answered or not.

With --letor the rankers are the features of a learning-to-rank file, as in `rankduel estimate`: for each search a query is drawn, \
the two rankings that the policy has chosen are interleaved by the server, and users click on the documents of the page, some \
of them click by click. Who beats whom for these users is then estimated from pages of each pair, to price what was \
shown, and the winner is compared with the one by NDCG.

A policy that runs in batches waits for lost answers until their duels expire. In the demo that is two seconds then, and \
users read the pages that are shown meanwhile (the best ranker so far, alone) for 100 ms.

Examples:
  rankduel demo
  rankduel demo --policy pcomp:horizon=5000 --duels 15000
  rankduel demo --letor MQ2008-S4.txt --features 39,23,38,37,21 --clicks perfect
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
    /// A LETOR file (SVMlight with qid): search its documents, with its features as rankers
    #[arg(long, value_name = "FILE")]
    letor: Option<PathBuf>,
    /// Only these features, in this order [default: all]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', requires = "letor")]
    features: Vec<u32>,
    /// How two rankings become a page, as in `rankduel estimate`
    #[arg(long, default_value = "team-draft", value_name = "METHOD", requires = "letor")]
    method: String,
    /// Who clicks, as in `rankduel estimate`
    #[arg(long, default_value = "navigational", value_name = "USERS", requires = "letor")]
    clicks: String,
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
    let documents = args.letor.is_some().then(|| args.documents()).transpose()?;
    let rankers = match &documents {
        Some(documents) => documents
            .rankers
            .iter()
            .map(|&ranker| format!("feature-{}", documents.data.features[ranker]))
            .collect(),
        None => (1..=ARXIV_RANKERS).map(|number| format!("arxiv-{number}")).collect::<Vec<_>>(),
    };
    policy
        .validate(rankers.len())
        .map_err(|error| CommandError::Usage(format!("--policy {}: {error}", args.policy)))?;
    if !args.listen.ip().is_loopback() {
        return Err(CommandError::Usage(format!(
            "--listen {}: the demo has no keys, so it listens on loopback only",
            args.listen
        )));
    }
    let matrix = match &documents {
        Some(documents) => {
            println!(
                "who beats whom, by {COMPARISONS} pages of each pair of {} rankers",
                rankers.len()
            );
            documents.estimate()?
        }
        None => PreferenceMatrix::named(MATRIX)
            .context("a built-in matrix is missing")?
            .context("a built-in matrix is malformed")?,
    };
    let field = Field { experiment_url: String::new(), rankers, matrix, documents };
    Ok(super::runtime()?.block_on(demo(args, policy, field))?)
}

impl DemoArgs {
    /// What `--letor` and the options with it say.
    fn documents(&self) -> Result<Documents, CommandError> {
        let path = self.letor.clone().unwrap_or_default();
        let method = Spec::from_text(&self.method)
            .map_err(|error| CommandError::Usage(format!("--method {}: {error}", self.method)))?;
        let wrong_users = |error| CommandError::Usage(format!("--clicks {}: {error}", self.clicks));
        let users = Users::from_text(&self.clicks).map_err(wrong_users)?;
        let (data, _) = letor::read(&path)?;
        let users = users.reading(letor::grades(&path, &data, None)?).map_err(wrong_users)?;
        let rankers = letor::rankers(&data, &self.features)?;
        let comparing = Comparing {
            method,
            users,
            length: PAGE_LENGTH,
            comparisons: COMPARISONS,
            seed: self.seed,
        };
        Ok(Documents { data, rankers, comparing })
    }
}

async fn demo(args: DemoArgs, policy: PolicySpec, mut field: Field) -> anyhow::Result<()> {
    let directory = tempfile::tempdir().context("no temporary folder for the demo's database")?;
    let database_url = args
        .database_url
        .clone()
        .unwrap_or_else(|| format!("sqlite://{}", directory.path().join("demo.db").display()));
    let server = Server::start(&database_url, args.listen).await?;
    let name =
        format!("demo-{:012x}", entropy::number().context("the system gives no randomness")? >> 16);
    println!("rankduel serves {name} on {} ({})", server.url, server.database);
    let setup = Setup { rankers: field.rankers.len(), seed: args.seed };
    let in_batches = policy.start(setup).batches().is_some();
    let mut body = json!({
        "name": name,
        "rankers": field.rankers,
        "policy": policy,
        "seed": args.seed,
        "duel_ttl_seconds": if in_batches { 2 } else { DEFAULT_DUEL_TTL_SECONDS },
    });
    if let Some(documents) = &field.documents {
        body["interleaving"] = json!(documents.comparing.method);
    }
    server.create(&body).await?;

    field.experiment_url = format!("{}/v1/experiments/{name}", server.url);
    let field = Arc::new(field);
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
        println!(
            "\nserving until Ctrl-C. Open {}/experiments/{name} in a browser, or:",
            server.url
        );
        println!("  curl {}/standings", field.experiment_url);
        println!("  curl -X POST {}/next-duel", field.experiment_url);
        tokio::signal::ctrl_c().await.context("Ctrl-C cannot be waited for")?;
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
    let winners = field.matrix.copeland_winners();
    let best =
        winners.iter().map(|&winner| field.rankers[winner].as_str()).collect::<Vec<_>>().join(", ");

    let ndcg: Vec<_> = (0..field.rankers.len()).map_while(|ranker| field.ndcg(ranker)).collect();
    let of_documents = if ndcg.is_empty() { "" } else { "   NDCG@10" };
    println!("{:<30} {:>10}{of_documents}", "ranker", "shown");
    for (at, (ranker, shown)) in field.rankers.iter().zip(&driven.appearances).enumerate() {
        let quality = ndcg.get(at).map(|ndcg| format!("{ndcg:>10.3}")).unwrap_or_default();
        println!("{ranker:<30} {shown:>10}{quality}");
    }
    println!();
    let row = |label: &str, value: String| println!("{label:<30} {value}");
    row("pages", format!("{} ({} showed one ranker alone)", driven.pages, driven.self_duels));
    row("answers acknowledged", format!("{} once, {} repeats", driven.recorded, driven.duplicates));
    row("answers in the log", in_log.to_string());
    row("pages never answered", format!("{}, and {} too late", driven.lost, driven.expired));
    row(
        "leader",
        format!("{} (true best: {best}; the policy recommends {champion})", ids("leaders")),
    );
    if let Some(most) = ndcg.iter().copied().max_by(f64::total_cmp) {
        let found: Vec<_> = field.rankers.iter().zip(&ndcg).collect();
        let of = |id: &str| {
            found.iter().find(|(ranker, _)| *ranker == id).map_or(f64::NAN, |(_, ndcg)| **ndcg)
        };
        let place = 1 + ndcg.iter().filter(|&&ndcg| ndcg > of(champion)).count();
        row(
            "NDCG@10 of the champion",
            format!("{:.3}, place {place} of {}; the best has {most:.3}", of(champion), ndcg.len()),
        );
        row("clicks sent ahead", format!("{} pieces", driven.pieces));
    }
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
