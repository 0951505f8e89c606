//! Simulated users that search, click, and are late, forgetful or repeat themselves: all over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use rand::{RngExt, SeedableRng};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::searches::{Field, Page};
use dueling_bandits::PolicyRng;

/// What the users do.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// Pages that are shown, over all users.
    pub pages: u64,
    /// Users at once.
    pub users: u32,
    /// Pages that a user looks at before answering one, on average: answers come late and out of
    /// order.
    pub open_pages: usize,
    /// How long a user reads a page that shows one ranker alone.
    pub reading_alone: Duration,
    /// Share of pages that are never answered.
    pub lost: f64,
    /// Share of answers that are sent twice.
    pub repeated: f64,
    /// Seed of everything that the users do.
    pub seed: u64,
}

/// What happened, as the users saw it.
#[derive(Debug, Default)]
pub struct Tally {
    pages: AtomicU64,
    self_duels: AtomicU64,
    lost: AtomicU64,
    recorded: AtomicU64,
    pieces: AtomicU64,
    duplicates: AtomicU64,
    expired: AtomicU64,
    retried: AtomicU64,
    appearances: Vec<AtomicU64>,
}

/// The sums of a finished drive.
#[derive(Debug, Clone)]
pub struct Driven {
    /// Pages that were shown.
    pub pages: u64,
    /// Pages that showed one ranker alone.
    pub self_duels: u64,
    /// Pages that nobody answered.
    pub lost: u64,
    /// Answers that were acknowledged as recorded.
    pub recorded: u64,
    /// Clicks that were sent ahead of their page's answer, and acknowledged as recorded.
    pub pieces: u64,
    /// Answers that were acknowledged as repeats.
    pub duplicates: u64,
    /// Answers that came after their duel's time.
    pub expired: u64,
    /// Requests that were answered with "try again" and were tried again.
    pub retried: u64,
    /// Places on pages of each ranker.
    pub appearances: Vec<u64>,
    /// How long it took.
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

/// Let the users search until all pages are shown and answered.
pub async fn drive(
    field: Arc<Field>,
    traffic: Traffic,
    progress: ProgressBar,
) -> anyhow::Result<Driven> {
    let tally = Arc::new(Tally {
        appearances: field.rankers.iter().map(|_| AtomicU64::new(0)).collect(),
        ..Tally::default()
    });
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(traffic.users as usize)
        .timeout(Duration::from_secs(30))
        .build()
        .context("the HTTP client cannot be set up")?;
    let started = Instant::now();
    let mut users = tokio::task::JoinSet::new();
    for user in 0..traffic.users {
        let user = User {
            client: client.clone(),
            field: Arc::clone(&field),
            tally: Arc::clone(&tally),
            progress: progress.clone(),
            traffic,
            rng: PolicyRng::seed_from_u64(traffic.seed.wrapping_add(u64::from(user) << 32)),
        };
        users.spawn(user.search());
    }
    while let Some(user) = users.join_next().await {
        user.context("a simulated user panicked")??;
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Driven {
        pages: traffic.pages.min(count(&tally.pages)),
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

struct User {
    client: reqwest::Client,
    field: Arc<Field>,
    tally: Arc<Tally>,
    progress: ProgressBar,
    traffic: Traffic,
    rng: PolicyRng,
}

impl User {
    async fn search(mut self) -> anyhow::Result<()> {
        let mut open: Vec<Vec<Value>> = Vec::new();
        while self.tally.pages.fetch_add(1, Ordering::Relaxed) < self.traffic.pages {
            let (status, text) = self.post("next-duel", &json!({})).await?;
            let duel: Duel = read(status, &text)?;
            self.progress.inc(1);
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

    /// Look at a page; what the user will say about it, if anything.
    async fn look_at(&mut self, duel: Duel) -> anyhow::Result<Option<Vec<Value>>> {
        let field = Arc::clone(&self.field);
        let index = |id: &str| field.rankers.iter().position(|ranker| ranker == id);
        let (Some(left), Some(right)) = (index(&duel.left), index(&duel.right)) else {
            bail!(
                "the server shows rankers that nobody entered: `{}` and `{}`",
                duel.left,
                duel.right
            );
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
        if let Some(documents) = &field.documents {
            let (query, body) = documents.search(&duel.duel_id, left, right, &mut self.rng);
            let (status, text) = self.post("interleave", &body).await?;
            let page: Page = read(status, &text)?;
            return documents.read(query, &page, &mut self.rng).map(Some);
        }
        let left_wins = self.rng.random::<f64>() < field.matrix.win_probability(left, right);
        let outcome = if left_wins { "left" } else { "right" };
        Ok(Some(vec![json!({"duel_id": duel.duel_id, "outcome": outcome})]))
    }

    /// Post what there is to say about one page.
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
                        other => bail!("feedback was answered with the status `{other}`"),
                    }
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Post, and again after "try again", as a good client does; the answer's status and text.
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<(StatusCode, String)> {
        let url = format!("{}/{path}", self.field.experiment_url);
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
        bail!("POST {url} was answered with \"try again\" {ATTEMPTS} times")
    }
}

/// What a good answer says.
fn read<T: serde::de::DeserializeOwned>(status: StatusCode, text: &str) -> anyhow::Result<T> {
    if !status.is_success() {
        bail!("the server answered {status}: {text}");
    }
    serde_json::from_str(text).with_context(|| format!("the server answered {text}"))
}

const ATTEMPTS: u32 = 30;
const RETRY_AFTER: Duration = Duration::from_millis(200);
