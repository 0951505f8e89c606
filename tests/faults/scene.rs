//! Servers, callers and a database for a fault test.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use crate::load::Office;
use crate::support::client::{Client, steady, until};
use crate::support::server::{FREE_PORT, Process, rankduel_on};

/// The experiments of every scene: one without self-duels, one that samples, one with confidence
/// bounds, one in small batches, and one with two rankers.
pub const NAMES: [&str; 5] = ["steady", "thompson", "bounds", "batches", "pair"];

const CALLERS: usize = 8;

/// Processes on one database, and callers.
pub struct Scene {
    pub office: Arc<Office>,
    /// How the processes reach the database.
    url: String,
    variables: Vec<(String, String)>,
    /// The key of the callers.
    key: Option<String>,
    replicas: Vec<Option<Process>>,
    callers: JoinSet<()>,
}

impl Scene {
    /// Start this many processes on this database, one on SQLite, and create the experiments; no
    /// callers yet.
    pub async fn set(url: &str, replicas: usize) -> Self {
        Self::set_with(url, replicas, &[], None).await
    }

    /// Start a scene with these environment variables for its processes. `{replica}` in a value
    /// becomes the index of the process. The callers have this key.
    pub async fn set_with(
        url: &str,
        replicas: usize,
        variables: &[(&str, &str)],
        key: Option<String>,
    ) -> Self {
        let replicas = if url.starts_with("sqlite:") { 1 } else { replicas };
        let mut scene = Self {
            office: Office::new(),
            url: url.to_owned(),
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            key,
            replicas: (0..replicas).map(|_| None).collect(),
            callers: JoinSet::new(),
        };
        for replica in 0..replicas {
            scene.start(replica);
        }
        let client = scene.client(0);
        let rankers = ["a", "b", "c", "d"];
        client.create(&steady("steady", &rankers)).await;
        client.create(&steady("pair", &["a", "b"])).await;
        for (name, policy) in [
            ("thompson", json!({"kind": "d-ts-plus"})),
            ("bounds", json!({"kind": "ccb"})),
            ("batches", json!({"kind": "scomp2", "horizon": 20_000})),
        ] {
            client
                .create(
                    &json!({"name": name, "rankers": rankers, "policy": policy, "ties": "coin"}),
                )
                .await;
        }
        scene
    }

    /// Start the callers.
    pub fn open(&mut self) {
        self.callers = self.office.open(CALLERS, &NAMES);
    }

    /// Stop the callers.
    pub async fn close(&mut self) {
        self.office.close();
        while let Some(ended) = self.callers.join_next().await {
            ended.expect("a caller");
        }
    }

    /// Start the process with this index.
    pub fn start(&mut self, replica: usize) {
        let mut command = rankduel_on(&self.url, &["serve", FREE_PORT, "--log", "error"]);
        for (name, value) in &self.variables {
            command.env(name, value.replace("{replica}", &replica.to_string()));
        }
        self.replicas[replica] = Some(Process::start(command));
        self.announce();
    }

    /// Kill the process with this index (SIGKILL).
    pub fn kill(&mut self, replica: usize) {
        let process = self.replicas[replica].take().expect("a process");
        process.signal("KILL");
        process.wait();
        self.announce();
    }

    /// Send a signal to the process with this index.
    pub fn signal(&self, replica: usize, name: &str) {
        self.replicas[replica].as_ref().expect("a process").signal(name);
    }

    /// Stop the process with this index cleanly; its log must confirm that.
    pub fn stop(&mut self, replica: usize) {
        let process = self.replicas[replica].take().expect("a process");
        self.announce();
        process.stop();
    }

    /// Number of processes, running or not.
    pub fn places(&self) -> usize {
        self.replicas.len()
    }

    /// A client of the process with this index.
    pub fn client(&self, replica: usize) -> Client {
        self.client_of(self.replicas[replica].as_ref().expect("a process"))
    }

    fn client_of(&self, process: &Process) -> Client {
        Client::with_key(&process.url, self.key.as_deref())
    }

    fn announce(&self) {
        let processes = self.replicas.iter().flatten();
        let clients = processes.map(|process| self.client_of(process)).collect();
        *self.office.servers.write().expect("servers") = clients;
    }

    /// Number of answers acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.office.know(|memory| memory.acknowledged())
    }

    /// Wait until `more` further answers have been acknowledged.
    pub async fn acknowledges(&self, more: u64) {
        let enough = self.acknowledged() + more;
        until("acknowledged answers", async || {
            let anomalies = self.office.know(|memory| memory.anomalies.clone());
            assert!(anomalies.is_empty(), "{anomalies:#?}");
            self.acknowledged() >= enough
        })
        .await;
    }

    /// Wait until another request is refused with a request to retry, or gets no response.
    pub async fn refuses(&self) {
        let refused = || self.office.know(|memory| memory.told_to_retry + memory.unanswered);
        let before = refused();
        until("a refusal", async || refused() > before).await;
    }
}
