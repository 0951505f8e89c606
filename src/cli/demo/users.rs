//! Simulated users over HTTP. They search, answer late, never, or twice.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rand::{RngExt, SeedableRng};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use dueling_bandits::PolicyRng;
use dueling_bandits::preference::PreferenceMatrix;

/// Time between two looks at whether the experiment has concluded.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Mean number of pages that a user sees before answering one, so that answers are late and out of
/// order.
const OPEN_PAGES: usize = 8;
const ATTEMPTS: u32 = 30;
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// One experiment on one server, with the true preferences of its searchers.
#[derive(Debug)]
pub struct World {
    pub client: reqwest::Client,
    /// `http://ADDRESS/v1/experiments/NAME`.
    pub experiment_url: String,
    /// The ids of the rankers, in the order of the matrix.
    pub rankers: Vec<String>,
    /// The true preferences.
    pub matrix: PreferenceMatrix,
}

/// The behaviour of the users.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// Most pages shown, over all users.
    pub pages: u64,
    /// Whether to stop as soon as the experiment has concluded.
    pub until_concluded: bool,
    /// Number of concurrent users.
    pub users: u32,
    /// The time that a user reads a page.
    pub reading: Duration,
    /// The time that a user reads a page with one ranker alone.
    pub reading_alone: Duration,
    /// Share of pages that are never answered.
    pub lost: f64,
    /// Share of answers that are sent twice.
    pub repeated: f64,
    /// The seed of all users.
    pub seed: u64,
}

/// Counts of all users.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Number of shown pages.
    pub pages: u64,
    /// Number of pages with one ranker alone.
    pub self_duels: u64,
    /// Number of pages without an answer.
    pub lost: u64,
    /// Number of answers acknowledged as recorded.
    pub recorded: u64,
    /// Number of answers acknowledged as repeats.
    pub duplicates: u64,
    /// Number of answers after the expiry of their duel.
    pub expired: u64,
    /// Number of requests that were answered with "try again" and repeated.
    pub retried: u64,
    /// How often each ranker was shown.
    pub appearances: Vec<u64>,
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

/// State that the users share while they search.
#[derive(Debug, Default)]
struct Shared {
    /// Pages that a user has set out to see.
    pages: AtomicU64,
    concluded: AtomicBool,
    tally: Mutex<Tally>,
}

/// Runs the users until all pages are shown and answered. Returns their counts and the time.
pub async fn drive(world: &Arc<World>, traffic: Traffic) -> anyhow::Result<(Tally, Duration)> {
    let started = Instant::now();
    let appearances = vec![0; world.rankers.len()];
    let tally = Mutex::new(Tally { appearances, ..Tally::default() });
    let shared = Arc::new(Shared { tally, ..Shared::default() });
    let watch = tokio::spawn(watch(Arc::clone(world), traffic, Arc::clone(&shared)));
    let mut users = tokio::task::JoinSet::new();
    for user in 0..traffic.users {
        let user = User {
            world: Arc::clone(world),
            shared: Arc::clone(&shared),
            traffic,
            rng: PolicyRng::seed_from_u64(traffic.seed.wrapping_add(u64::from(user) << 32)),
        };
        users.spawn(user.search());
    }
    while let Some(user) = users.join_next().await {
        user.context("a simulated user panicked")??;
    }
    watch.abort();
    if std::io::stderr().is_terminal() {
        eprint!("\r                \r");
    }
    let tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((tally, started.elapsed()))
}

/// Shows the number of pages on a terminal, and looks at the experiment until it has concluded.
async fn watch(world: Arc<World>, traffic: Traffic, shared: Arc<Shared>) {
    let on_terminal = std::io::stderr().is_terminal();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if on_terminal {
            eprint!("\r{:>10} pages", shared.pages.load(Ordering::Relaxed));
        }
        // an error is of no consequence: look again
        if traffic.until_concluded
            && let Ok(experiment) = world.get("").await
            && experiment["status"] == "concluded"
        {
            shared.concluded.store(true, Ordering::Relaxed);
            return;
        }
    }
}

struct User {
    world: Arc<World>,
    shared: Arc<Shared>,
    traffic: Traffic,
    rng: PolicyRng,
}

impl User {
    /// Count something.
    fn count(&self, add: impl FnOnce(&mut Tally)) {
        add(&mut self.shared.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn search(mut self) -> anyhow::Result<()> {
        let mut open: Vec<Value> = Vec::new();
        while !self.shared.concluded.load(Ordering::Relaxed)
            && self.shared.pages.fetch_add(1, Ordering::Relaxed) < self.traffic.pages
        {
            let (status, text) = self.post("next-duel", &json!({})).await?;
            let duel: Duel = read(status, &text)?;
            open.extend(self.look_at(&duel)?);
            let Traffic { reading, reading_alone, .. } = self.traffic;
            let reading = if duel.self_duel { reading.max(reading_alone) } else { reading };
            if !reading.is_zero() {
                tokio::time::sleep(reading).await;
            }
            if self.rng.random_range(0..OPEN_PAGES) < open.len() {
                let any = self.rng.random_range(0..open.len());
                let answer = open.swap_remove(any);
                self.answer(&answer).await?;
            }
        }
        for answer in &open {
            self.answer(answer).await?;
        }
        Ok(())
    }

    /// Reads a page. Returns the feedback that the user will send, if any.
    fn look_at(&mut self, duel: &Duel) -> anyhow::Result<Option<Value>> {
        let index = |id: &str| self.world.rankers.iter().position(|ranker| ranker == id);
        let (Some(left), Some(right)) = (index(&duel.left), index(&duel.right)) else {
            bail!("the server shows unknown rankers: `{}` and `{}`", duel.left, duel.right);
        };
        self.count(|tally| {
            tally.pages += 1;
            tally.appearances[left] += 1;
            tally.appearances[right] += 1;
            tally.self_duels += u64::from(duel.self_duel);
        });
        if duel.self_duel {
            return Ok(None);
        }
        if self.rng.random_bool(self.traffic.lost) {
            self.count(|tally| tally.lost += 1);
            return Ok(None);
        }
        let left_wins = self.rng.random_bool(self.world.matrix.win_probability(left, right));
        let outcome = if left_wins { "left" } else { "right" };
        Ok(Some(json!({"duel_id": duel.duel_id, "outcome": outcome})))
    }

    /// Sends the feedback on one page.
    async fn answer(&mut self, body: &Value) -> anyhow::Result<()> {
        let times = if self.rng.random_bool(self.traffic.repeated) { 2 } else { 1 };
        for _ in 0..times {
            let (status, text) = self.post("feedback", body).await?;
            if status == StatusCode::GONE {
                self.count(|tally| tally.expired += 1);
                continue;
            }
            match read::<Receipt>(status, &text)?.status.as_str() {
                "recorded" => self.count(|tally| tally.recorded += 1),
                "duplicate" => self.count(|tally| tally.duplicates += 1),
                other => bail!("the server answered feedback with the status `{other}`"),
            }
        }
        Ok(())
    }

    /// Posts a request, and repeats it after "try again". Returns the status and text of the
    /// answer.
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<(StatusCode, String)> {
        let url = format!("{}/{path}", self.world.experiment_url);
        for _ in 0..ATTEMPTS {
            let posted = self.world.client.post(&url).json(body).send().await;
            let response = posted.with_context(|| format!("POST {url}"))?;
            let status = response.status();
            if status != StatusCode::SERVICE_UNAVAILABLE {
                let text = response.text().await.with_context(|| format!("POST {url}"))?;
                return Ok((status, text));
            }
            self.count(|tally| tally.retried += 1);
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
