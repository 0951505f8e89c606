//! `lab bench`: the load of searchers on running servers, and its latencies.
//!
//! `oha` or `wrk` measure `next-duel` alone. Feedback needs the ids of the duels that were issued,
//! and the question of this command is how long `next-duel` takes beside feedback and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::CommandError;
use super::output::Format;
use dueling_bandits::{PolicyRng, PolicySpec};
use lab::values::{between, count};

/// Measure `next-duel` and feedback on running servers, and beside reports
///
/// Creates an experiment, which stays. Each connection requests a duel, then sends its outcome. The
/// servers share a database, and the requests alternate between them. With --report, the same is
/// measured again while one reader of each report requests it over and over.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Example, with a server that runs already:
  lab bench --rankers 100 --rate 300 --report verdict --report standings

`next-duel` alone is measured by a load generator such as oha:
  oha -z 10s -c 64 -m POST http://127.0.0.1:7171/v1/experiments/NAME/next-duel")]
pub struct Arguments {
    /// A server; can be repeated
    #[arg(long = "url", value_name = "URL", default_value = "http://127.0.0.1:7171")]
    urls: Vec<String>,

    /// API key of the servers
    #[arg(long, env = "RANKDUEL_API_KEY", hide_env_values = true)]
    key: Option<String>,

    /// Number of rankers of the experiment
    #[arg(long, value_name = "N", default_value = "10", value_parser = |text: &str| count(text, 2, 1024))]
    rankers: u64,

    /// Policy of the experiment, as in `lab simulate` [default: that of the service]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    /// Pages that are answered before the measurement
    #[arg(long, value_name = "N", default_value = "1000", value_parser = |text: &str| count(text, 0, 1_000_000_000))]
    first: u64,

    /// Seconds of a measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = |text: &str| between(text, 0.01, 86_400.0))]
    seconds: f64,

    /// Number of connections
    #[arg(long, value_name = "N", default_value = "32", value_parser = |text: &str| count(text, 1, 10_000))]
    connections: u64,

    /// Pages a second; the latency of `next-duel` counts from the time at which a page was due
    /// [default: each connection requests a page after each answer]
    #[arg(long, value_name = "PAGES", value_parser = |text: &str| between(text, 0.01, 1e6))]
    rate: Option<f64>,

    /// A report to read beside the load, such as `verdict`: a path of the experiment, or one that
    /// starts with `/`, such as `/experiments/NAME`, where NAME is the experiment; can be repeated
    #[arg(long = "report", value_name = "PATH")]
    reports: Vec<String>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let policy = arguments.policy.as_deref().map(PolicySpec::from_text).transpose();
    let policy = policy.map_err(|error| CommandError::Usage(format!("--policy: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime cannot be started")?;
    let rows = runtime.block_on(measure(arguments, policy.as_ref()))?;
    let found: Vec<Value> = rows.iter().map(Row::json).collect();
    arguments.format.print(&found, || table(&rows))?;
    Ok(())
}

async fn measure(arguments: &Arguments, policy: Option<&PolicySpec>) -> anyhow::Result<Vec<Row>> {
    let servers = Arc::new(Servers::new(arguments)?);
    let rankers: Vec<_> = (0..arguments.rankers).map(|number| number.to_string()).collect();
    let mut body = json!({ "name": servers.name, "rankers": rankers });
    if let Some(policy) = policy {
        body["policy"] = json!(policy);
    }
    servers.post::<Value>("/v1/experiments", &body).await?;

    let load = Load { connections: arguments.connections, rate: arguments.rate };
    let feed = Load { rate: None, ..load };
    servers.load(feed, Limit::Pages(arguments.first)).await?;
    let duration = Duration::from_secs_f64(arguments.seconds);
    let measured = servers.load(load, Limit::Time(duration)).await?;
    let mut rows = measured.rows("");
    if !arguments.reports.is_empty() {
        let until = Instant::now() + duration;
        let mut readers = tokio::task::JoinSet::new();
        for report in &arguments.reports {
            readers.spawn(Arc::clone(&servers).read(report.clone(), until));
        }
        let measured = servers.load(load, Limit::Time(duration)).await?;
        rows.extend(measured.rows(" beside reports"));
        while let Some(reader) = readers.join_next().await {
            let (report, latencies) = reader.context("a reader panicked")??;
            rows.push(Row { name: report, latencies, elapsed: duration });
        }
    }
    Ok(rows)
}

/// How pages are requested.
#[derive(Debug, Clone, Copy)]
struct Load {
    connections: u64,
    /// Pages a second; `None` for a closed loop.
    rate: Option<f64>,
}

/// When a load ends.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Pages(u64),
    Time(Duration),
}

/// Latencies of requests, in any order.
type Latencies = Vec<Duration>;

/// The latencies of a load.
#[derive(Debug, Default)]
struct Measured {
    duels: Latencies,
    feedback: Latencies,
    elapsed: Duration,
}

impl Measured {
    fn rows(self, beside: &str) -> Vec<Row> {
        let Self { duels, feedback, elapsed } = self;
        let row =
            |name: &str, latencies| Row { name: format!("{name}{beside}"), latencies, elapsed };
        vec![row("next-duel", duels), row("feedback", feedback)]
    }
}

#[derive(Debug, Deserialize)]
struct Duel {
    duel_id: String,
    left: String,
    right: String,
    self_duel: bool,
}

/// The measured servers and the experiment.
struct Servers {
    client: reqwest::Client,
    urls: Vec<String>,
    /// The number of requests so far, of which each goes to the next server.
    requests: AtomicUsize,
    key: Option<String>,
    name: String,
    rankers: f64,
}

impl Servers {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(arguments.connections as usize)
            .build()
            .context("the HTTP client cannot be set up")?;
        let number: u64 = rand::make_rng::<PolicyRng>().random();
        Ok(Self {
            client,
            urls: arguments.urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect(),
            requests: AtomicUsize::new(0),
            key: arguments.key.clone(),
            name: format!("bench-{number:016x}"),
            rankers: arguments.rankers as f64,
        })
    }

    fn url(&self, path: &str) -> String {
        let server = self.requests.fetch_add(1, Ordering::Relaxed) % self.urls.len();
        format!("{}{path}", self.urls[server])
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        let text = self.send(self.client.post(self.url(path)).json(body)).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answered {text}"))
    }

    /// Sends a request and returns the whole body of a successful answer.
    async fn send(&self, mut request: reqwest::RequestBuilder) -> anyhow::Result<String> {
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await.context("a server does not answer")?;
        let (status, url) = (answer.status(), answer.url().clone());
        let text = answer.text().await.with_context(|| format!("{url}"))?;
        if !status.is_success() {
            bail!("{url} answered {status}: {text}");
        }
        Ok(text)
    }

    async fn load(self: &Arc<Self>, load: Load, limit: Limit) -> anyhow::Result<Measured> {
        let started = Instant::now();
        let pages = Arc::new(AtomicU64::new(0));
        let mut connections = tokio::task::JoinSet::new();
        for number in 0..load.connections {
            let pages = Arc::clone(&pages);
            connections.spawn(Arc::clone(self).search(load, limit, started, pages, number));
        }
        let mut all = Measured::default();
        while let Some(measured) = connections.join_next().await {
            let measured = measured.context("a connection panicked")??;
            all.duels.extend(measured.duels);
            all.feedback.extend(measured.feedback);
        }
        all.elapsed = started.elapsed();
        Ok(all)
    }

    /// One connection: requests pages and answers them.
    async fn search(
        self: Arc<Self>,
        load: Load,
        limit: Limit,
        started: Instant,
        pages: Arc<AtomicU64>,
        seed: u64,
    ) -> anyhow::Result<Measured> {
        let path = |call: &str| format!("/v1/experiments/{}/{call}", self.name);
        let mut rng = PolicyRng::seed_from_u64(seed);
        let mut measured = Measured::default();
        loop {
            let page = pages.fetch_add(1, Ordering::Relaxed);
            let due = match load.rate {
                Some(rate) => started + Duration::from_secs_f64(page as f64 / rate),
                None => Instant::now(),
            };
            let is_over = match limit {
                Limit::Pages(most) => page >= most,
                Limit::Time(most) => due >= started + most,
            };
            if is_over {
                return Ok(measured);
            }
            sleep_until(due).await;
            let duel: Duel = self.post(&path("next-duel"), &json!({})).await?;
            measured.duels.push(due.elapsed());
            if !duel.self_duel {
                let body = self.answer(&duel, &mut rng)?;
                let sent = Instant::now();
                self.post::<Value>(&path("feedback"), &body).await?;
                measured.feedback.push(sent.elapsed());
            }
        }
    }

    /// The ranker with the lower number wins more often; its lead grows with the distance.
    fn answer(&self, duel: &Duel, rng: &mut PolicyRng) -> anyhow::Result<Value> {
        let number = |id: &str| id.parse::<f64>().context("the server shows an unknown ranker");
        let lead = (number(&duel.right)? - number(&duel.left)?) / self.rankers;
        let outcome = if rng.random_bool(0.5 + 0.4 * lead) { "left" } else { "right" };
        Ok(json!({ "duel_id": duel.duel_id, "outcome": outcome }))
    }

    /// Reads a report over and over.
    async fn read(
        self: Arc<Self>,
        report: String,
        until: Instant,
    ) -> anyhow::Result<(String, Latencies)> {
        let path = match report.strip_prefix('/') {
            Some(_) => report.replace("NAME", &self.name),
            None => format!("/v1/experiments/{}/{report}", self.name),
        };
        let mut latencies = Latencies::new();
        while Instant::now() < until {
            let sent = Instant::now();
            self.send(self.client.get(self.url(&path))).await?;
            latencies.push(sent.elapsed());
        }
        Ok((report, latencies))
    }
}

struct Row {
    name: String,
    latencies: Latencies,
    elapsed: Duration,
}

impl Row {
    fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// Milliseconds at these shares of the requests; 0 without any.
    fn quantiles(&self) -> [f64; 4] {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        [0.5, 0.99, 0.999, 1.0].map(|share| {
            let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
            sorted.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
        })
    }

    fn json(&self) -> Value {
        let [p50, p99, p999, max] = self.quantiles();
        json!({
            "request": self.name,
            "requests": self.latencies.len(),
            "per_second": self.per_second(),
            "p50_ms": p50,
            "p99_ms": p99,
            "p999_ms": p999,
            "max_ms": max,
        })
    }
}

fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let [p50, p99, p999, max] = row.quantiles();
        format!(
            "{:<28}{:>10}{:>10.0}{p50:>10.2}{p99:>10.2}{p999:>10.2}{max:>10.2}\n",
            row.name,
            row.latencies.len(),
            row.per_second()
        )
    };
    let head = format!(
        "{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n",
        "", "requests", "a second", "p50 ms", "p99 ms", "p99.9 ms", "max ms"
    );
    rows.iter().map(line).fold(head, |text, line| text + &line)
}
