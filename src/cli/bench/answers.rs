//! Feedback requests for duels that were not requested first.
//!
//! A duel is only a signed token, so a program with the signing keys of the database can create
//! one. The measurement of `feedback` therefore does not include the load of `next-duel`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use super::load::{Connections, Pace, ask, post};
use crate::audience::Audience;
use crate::clock::{Clock as _, SystemClock};
use crate::engine::experiment_spec::DEFAULT_DUEL_TTL_SECONDS;
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::experiment_spec::Ranker;
use crate::engine::page_rules::PageRules;
use crate::store::{ExperimentId, SharedStore};
use crate::tokens::duel_token::DuelToken;
use crate::tokens::key_set::SigningKeySet;
use dueling_bandits::{PolicyRng, PolicySpec, TieRule};

/// The lifetime of the duels.
const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);

/// Creates answers for one experiment.
pub struct Answers {
    keys: SigningKeySet,
    experiment: ExperimentId,
    path: String,
    rankers: u16,
    nonce: u128,
    rng: PolicyRng,
}

impl Answers {
    /// Answers for the experiment with this name.
    pub async fn of(store: &SharedStore, name: &str) -> anyhow::Result<Self> {
        let record = store.experiment(name).await?.context("the created experiment is missing")?;
        let spec: ExperimentSpec = serde_json::from_str(&record.spec)
            .context("the spec of the experiment cannot be read")?;
        Ok(Self {
            keys: SigningKeySet::new(&store.signing_keys().await?)
                .context("the database has no signing key")?,
            experiment: record.id,
            path: format!("/v1/experiments/{name}/feedback"),
            rankers: u16::try_from(spec.rankers.len()).context("there are too many rankers")?,
            // Every process has its own random high half of the nonces.
            nonce: u128::from(crate::entropy::number()? >> 1) << 64,
            rng: PolicyRng::seed_from_u64(1),
        })
    }

    /// A request with one answer.
    pub fn one(&mut self) -> Vec<u8> {
        let answer = self.answer();
        post(&self.path, &answer)
    }

    /// A request with `count` answers.
    pub fn many(&mut self, count: usize) -> Vec<u8> {
        let answers: Vec<_> = (0..count).map(|_| self.answer()).collect();
        post(&self.path, &format!("{{\"feedback\":[{}]}}", answers.join(",")))
    }

    /// An answer for a random pair. The ranker with the lower number wins more often; its lead
    /// grows with the distance between the two.
    fn answer(&mut self) -> String {
        let first = self.rng.random_range(0..self.rankers);
        let second = (first + self.rng.random_range(1..self.rankers)) % self.rankers;
        let lead = f64::from(second) - f64::from(first);
        let first_wins = self.rng.random_bool(0.5 + 0.4 * lead / f64::from(self.rankers));
        let now = SystemClock.now_ms();
        self.nonce += 1;
        let duel_id = self.keys.sign(&DuelToken {
            experiment: self.experiment,
            first,
            second,
            first_left: true,
            batch: None,
            ticket: 0,
            chosen_at: 0,
            issued_at: now,
            expires_at: now + TIME_TO_LIVE.as_millis() as i64,
            nonce: self.nonce,
            audience: Audience::default(),
        });
        let outcome = if first_wins { "left" } else { "right" };
        format!("{{\"duel_id\":\"{duel_id}\",\"outcome\":\"{outcome}\"}}")
    }
}

/// The spec of an experiment with this policy and this number of rankers.
pub fn spec(policy: &PolicySpec, rankers: usize) -> ExperimentSpec {
    let ranker = |number| Ranker { id: format!("ranker-{number}"), description: None };
    ExperimentSpec {
        rankers: (1..=rankers).map(ranker).collect(),
        policy: policy.clone(),
        ties: TieRule::Skip,
        duel_ttl_seconds: DEFAULT_DUEL_TTL_SECONDS,
        answer_window_seconds: 0,
        seed: None,
        conclude_at: None,
        former_policies: Vec::new(),
        roster_changes: Default::default(),
        exclusions: Vec::new(),
        pages: PageRules::default(),
    }
}

/// Sends this many requests of 100 answers each, so that the policy selects from a state that is
/// not empty.
pub fn feed(server: SocketAddr, answers: &mut Answers, requests: usize) -> anyhow::Result<()> {
    let connection = Connections::open(&[server], 1)?;
    let mut requests = (0..requests).map(|_| answers.many(100));
    connection.run(Pace::Closed, Duration::from_secs(3600), |next| match requests.next() {
        Some(request) => {
            *next = request;
            true
        }
        None => false,
    })?;
    Ok(())
}

/// Creates an experiment with this policy and this number of rankers.
pub fn create(
    server: SocketAddr,
    name: &str,
    policy: &PolicySpec,
    rankers: usize,
) -> anyhow::Result<()> {
    let spec = spec(policy, rankers);
    let body = json!({ "name": name, "rankers": spec.rankers, "policy": spec.policy });
    ask(server, "POST", "/v1/experiments", &body.to_string()).map(drop)
}
