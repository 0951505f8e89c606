//! Simulated users over HTTP. They search, click, answer late, never, or twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use rand::{RngExt, SeedableRng};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::searches::{Page, World};
use super::server::get;
use dueling_bandits::PolicyRng;

/// Time between two looks at whether the experiment has concluded.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The behaviour of the users.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// Most pages shown, over all users.
    pub pages: u64,
    /// Whether to stop as soon as the experiment has concluded.
    pub until_concluded: bool,
    /// Number of concurrent users.
    pub users: u32,
    /// Mean number of pages that a user sees before answering one, so that answers are late and out
    /// of order.
    pub open_pages: usize,
    /// The time that a user reads a page with one ranker alone.
    pub reading_alone: Duration,
    /// Share of pages that are never answered.
    pub lost: f64,
    /// Share of answers that are sent twice.
    pub repeated: f64,
    /// The seed of all users.
    pub seed: u64,
}

/// Counts of the users while they run.
#[derive(Debug, Default)]
pub struct Tally {
    /// Pages that a user has set out to see.
    pages: AtomicU64,
    shown: AtomicU64,
    self_duels: AtomicU64,
    lost: AtomicU64,
    recorded: AtomicU64,
    pieces: AtomicU64,
    duplicates: AtomicU64,
    expired: AtomicU64,
    retried: AtomicU64,
    appearances: Vec<AtomicU64>,
}

/// The final counts of the users.
#[derive(Debug, Clone)]
pub struct Driven {
    /// Number of shown pages.
    pub pages: u64,
    /// Number of pages with one ranker alone.
    pub self_duels: u64,
    /// Number of pages without an answer.
    pub lost: u64,
    /// Number of answers acknowledged as recorded.
    pub recorded: u64,
    /// Number of clicks sent before the final answer of their page, and acknowledged as recorded.
    pub pieces: u64,
    /// Number of answers acknowledged as repeats.
    pub duplicates: u64,
    /// Number of answers after the expiry of their duel.
    pub expired: u64,
    /// Number of requests that were answered with "try again" and repeated.
    pub retried: u64,
    /// How often each ranker was shown.
    pub appearances: Vec<u64>,
    /// The total time.
    pub elapsed: Duration,
}

#[derive(Debug, Deserialize)]
struct Duel {
    duel_id: String,
    left: String,
    right: String,
    self_duel: bool,
}

#[derive(Debug, Deserialize)]
struct Receipt {
    status: String,
}

/// Runs the users until all pages are shown and answered.
pub async fn drive(
    world: Arc<World>,
    traffic: Traffic,
    progress: ProgressBar,
) -> anyhow::Result<Driven> {
    let tally = Arc::new(Tally {
        appearances: world.rankers.iter().map(|_| AtomicU64::new(0)).collect(),
        ..Tally::default()
    });
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(traffic.users as usize)
        .timeout(Duration::from_secs(30))
        .build()
        .context("the HTTP client cannot be set up")?;
    let started = Instant::now();
    let concluded = Arc::new(AtomicBool::new(false));
    let watch = traffic
        .until_concluded
        .then(|| tokio::spawn(watch(world.experiment_url.clone(), Arc::clone(&concluded))));
    let mut users = tokio::task::JoinSet::new();
    for user in 0..traffic.users {
        let user = User {
            client: client.clone(),
            world: Arc::clone(&world),
            tally: Arc::clone(&tally),
            progress: progress.clone(),
            traffic,
            concluded: Arc::clone(&concluded),
            rng: PolicyRng::seed_from_u64(traffic.seed.wrapping_add(u64::from(user) << 32)),
        };
        users.spawn(user.search());
    }
    while let Some(user) = users.join_next().await {
        user.context("a simulated user panicked")??;
    }
    if let Some(watch) = watch {
        watch.abort();
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Driven {
        pages: count(&tally.shown),
        self_duels: count(&tally.self_duels),
        lost: count(&tally.lost),
        recorded: count(&tally.recorded),
        pieces: count(&tally.pieces),
        duplicates: count(&tally.duplicates),
        expired: count(&tally.expired),
        retried: count(&tally.retried),
        appearances: tally.appearances.iter().map(count).collect(),
        elapsed: started.elapsed(),
    })
}

/// Looks at the experiment until it has concluded.
async fn watch(experiment_url: String, concluded: Arc<AtomicBool>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // an error is of no consequence: look again
        if let Ok(experiment) = get(&experiment_url).await
            && experiment["status"] == "concluded"
        {
            concluded.store(true, Ordering::Relaxed);
            return;
        }
    }
}

struct User {
    client: reqwest::Client,
    concluded: Arc<AtomicBool>,
    world: Arc<World>,
    tally: Arc<Tally>,
    progress: ProgressBar,
    traffic: Traffic,
    rng: PolicyRng,
}

impl User {
    async fn search(mut self) -> anyhow::Result<()> {
        let mut open: Vec<Vec<Value>> = Vec::new();
        while !self.concluded.load(Ordering::Relaxed)
            && self.tally.pages.fetch_add(1, Ordering::Relaxed) < self.traffic.pages
        {
            let (status, text) = self.post("next-duel", &json!({})).await?;
            let duel: Duel = read(status, &text)?;
            self.progress.inc(1);
            self.tally.shown.fetch_add(1, Ordering::Relaxed);
            let alone = duel.self_duel;
            open.extend(self.look_at(duel).await?);
            if alone && !self.traffic.reading_alone.is_zero() {
                tokio::time::sleep(self.traffic.reading_alone).await;
            }
            if self.rng.random_range(0..self.traffic.open_pages) < open.len() {
                let any = self.rng.random_range(0..open.len());
                let answer = open.swap_remove(any);
                self.answer(answer).await?;
            }
        }
        for answer in open {
            self.answer(answer).await?;
        }
        Ok(())
    }

    /// Reads a page. Returns the feedback that the user will send, if any.
    async fn look_at(&mut self, duel: Duel) -> anyhow::Result<Option<Vec<Value>>> {
        let world = Arc::clone(&self.world);
        let index = |id: &str| world.rankers.iter().position(|ranker| ranker == id);
        let (Some(left), Some(right)) = (index(&duel.left), index(&duel.right)) else {
            bail!("the server shows unknown rankers: `{}` and `{}`", duel.left, duel.right);
        };
        self.tally.appearances[left].fetch_add(1, Ordering::Relaxed);
        self.tally.appearances[right].fetch_add(1, Ordering::Relaxed);
        if duel.self_duel {
            self.tally.self_duels.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        if self.rng.random_bool(self.traffic.lost) {
            self.tally.lost.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        if let Some(documents) = &world.documents {
            let (query, body) = documents.search(&duel.duel_id, left, right, &mut self.rng);
            let (status, text) = self.post("interleave", &body).await?;
            let page: Page = read(status, &text)?;
            return documents.read(query, &page, &mut self.rng).map(Some);
        }
        let left_wins = self.rng.random::<f64>() < world.matrix.win_probability(left, right);
        let outcome = if left_wins { "left" } else { "right" };
        Ok(Some(vec![json!({"duel_id": duel.duel_id, "outcome": outcome})]))
    }

    /// Sends the feedback on one page.
    async fn answer(&mut self, bodies: Vec<Value>) -> anyhow::Result<()> {
        let times = if self.rng.random_bool(self.traffic.repeated) { 2 } else { 1 };
        for body in bodies {
            let is_piece = body["final"] == json!(false);
            for _ in 0..times {
                let (status, text) = self.post("feedback", &body).await?;
                let counter = if status == StatusCode::GONE {
                    &self.tally.expired
                } else {
                    match read::<Receipt>(status, &text)?.status.as_str() {
                        "recorded" if is_piece => &self.tally.pieces,
                        "recorded" => &self.tally.recorded,
                        "duplicate" => &self.tally.duplicates,
                        other => bail!("the server answered feedback with the status `{other}`"),
                    }
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Posts a request, and repeats it after "try again". Returns the status and text of the
    /// answer.
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<(StatusCode, String)> {
        let url = format!("{}/{path}", self.world.experiment_url);
        for _ in 0..ATTEMPTS {
            let response = self
                .client
                .post(&url)
                .json(body)
                .send()
                .await
                .with_context(|| format!("POST {url}"))?;
            let status = response.status();
            if status != StatusCode::SERVICE_UNAVAILABLE {
                let text = response.text().await.with_context(|| format!("POST {url}"))?;
                return Ok((status, text));
            }
            self.tally.retried.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(RETRY_AFTER).await;
        }
        bail!("the server answered POST {url} with \"try again\" {ATTEMPTS} times")
    }
}

/// The body of a successful answer.
fn read<T: serde::de::DeserializeOwned>(status: StatusCode, text: &str) -> anyhow::Result<T> {
    if !status.is_success() {
        bail!("the server answered {status}: {text}");
    }
    serde_json::from_str(text).with_context(|| format!("the server answered {text}"))
}

const ATTEMPTS: u32 = 30;
const RETRY_AFTER: Duration = Duration::from_millis(200);
