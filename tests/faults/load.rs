//! Callers that request duels, answer, repeat and contradict while servers fail, and remember every
//! response.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::documented::Documented;
use crate::support::client::{Answer, Client, JSON};

const OUTCOMES: [&str; 4] = ["left", "right", "tie", "none"];
/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(20);

/// An answer that a caller sent for a duel, and the service's last response to it.
#[derive(Debug, Clone)]
pub struct SentAnswer {
    /// The experiment.
    pub name: String,
    /// The outcome that was sent.
    pub outcome: &'static str,
    /// The last response to it.
    pub fate: Fate,
}

/// The latest response of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// No final response: the answer may be in the log.
    Open,
    /// It was recorded at this log position.
    Acknowledged(u64),
    /// It arrived too late and does not count.
    Expired,
}

/// The answers that the callers sent, and the responses that they received.
#[derive(Debug, Default)]
pub struct Memory {
    /// Sent answers by `duel_id`.
    pub duels: BTreeMap<String, SentAnswer>,
    /// Number of responses that asked for a retry.
    pub told_to_retry: u64,
    /// Number of requests without a response.
    pub unanswered: u64,
    /// Responses that the service must not send.
    pub anomalies: Vec<String>,
}

impl Memory {
    /// Number of acknowledged answers.
    pub fn acknowledged(&self) -> u64 {
        self.duels.values().filter(|sent| matches!(sent.fate, Fate::Acknowledged(_))).count() as u64
    }

    /// Number of answers that arrived too late.
    pub fn expired(&self) -> u64 {
        self.duels.values().filter(|sent| sent.fate == Fate::Expired).count() as u64
    }
}

/// Shared by the callers and the test that injects faults.
pub struct Office {
    /// The servers that are running now.
    pub servers: RwLock<Vec<Client>>,
    /// The answers and responses of all callers.
    pub memory: Mutex<Memory>,
    documented: Documented,
    closed: AtomicBool,
}

impl Office {
    /// An office without callers.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            servers: RwLock::default(),
            memory: Mutex::default(),
            documented: Documented::new(),
            closed: AtomicBool::new(false),
        })
    }

    /// Start this many callers on these experiments. They stop when the office is
    /// [closed](Self::close).
    pub fn open(self: &Arc<Self>, callers: usize, names: &[&str]) -> JoinSet<()> {
        self.closed.store(false, Ordering::SeqCst);
        let mut set = JoinSet::new();
        for caller in 0..callers {
            set.spawn(call(Arc::clone(self), names[caller % names.len()].to_owned(), caller));
        }
        set
    }

    /// Stop the callers.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    /// Read or change the memory of the callers.
    pub fn know<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        change(&mut self.memory.lock().expect("a memory"))
    }

    /// The running server whose turn it is; `None` if none runs.
    pub fn server(&self, turn: usize) -> Option<Client> {
        let servers = self.servers.read().expect("servers");
        servers.get(turn % servers.len().max(1)).cloned()
    }

    /// Send a request to one of the servers and return its response if it is final. `None`: retry.
    pub async fn ask(
        &self,
        turn: usize,
        operation: &str,
        name: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let (method, path) = operation.split_once(' ').expect("a method and a path");
        let path = path.replace("{name}", name);
        let headers: &[_] = if body.is_some() { &[JSON] } else { &[] };
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let answer = match self.server(turn) {
            Some(server) => server.try_send(method, &path, headers, body).await.ok(),
            None => None,
        };
        let Some(answer) = answer else {
            self.know(|memory| memory.unanswered += 1);
            tokio::time::sleep(PAUSE).await;
            return None;
        };
        if let Some(wrong) = self.documented.wrong(operation, &answer) {
            self.know(|memory| memory.anomalies.push(wrong));
        }
        if matches!(answer.status, 500 | 503 | 504) {
            self.know(|memory| memory.told_to_retry += 1);
            tokio::time::sleep(PAUSE).await;
            return None;
        }
        Some(answer)
    }

    fn record_anomaly(&self, answer: &Answer, why: &str) {
        let what = format!("{why}: {}: {} {}", answer.request, answer.status, answer.text());
        self.know(|memory| memory.anomalies.push(what));
    }
}

const NEXT_DUEL: &str = "POST /v1/experiments/{name}/next-duel";
const FEEDBACK: &str = "POST /v1/experiments/{name}/feedback";

async fn call(office: Arc<Office>, name: String, caller: usize) {
    for round in caller.. {
        let mut items = Vec::new();
        while items.len() < 1 + round % 4 && office.is_open() {
            let Some(answer) = office.ask(round, NEXT_DUEL, &name, None).await else { continue };
            let duel = answer.json(200);
            if duel["self_duel"] == false {
                let id = duel["duel_id"].as_str().expect("an id").to_owned();
                items.push((id, OUTCOMES[(round * 3 + items.len()) % 4]));
            }
        }
        if !office.is_open() {
            return;
        }
        office.know(|memory| {
            for (id, outcome) in &items {
                let sent = SentAnswer { name: name.clone(), outcome, fate: Fate::Open };
                memory.duels.insert(id.clone(), sent);
            }
        });
        for attempt in 0.. {
            if !office.is_open() {
                return; // without an answer
            }
            if send(&office, round + attempt, &name, &items, attempt == 0).await {
                break;
            }
        }
        if round % 5 == 0 {
            // Repeat acknowledged answers at another server; they are not counted again.
            send(&office, round + 1, &name, &items, false).await;
        }
        if round % 7 == 0 {
            contradict(&office, round, &name, &items[0]).await;
        }
    }
}

/// Send answers, singly or as a list; returns whether each got a final response.
pub async fn send(
    office: &Office,
    turn: usize,
    name: &str,
    items: &[(String, &'static str)],
    first: bool,
) -> bool {
    let item = |(id, outcome): &(String, &str)| json!({"duel_id": id, "outcome": outcome});
    let body = match items {
        [one] => item(one),
        many => json!({"feedback": many.iter().map(item).collect::<Vec<_>>()}),
    };
    let Some(answer) = office.ask(turn, FEEDBACK, name, Some(&body)).await else { return false };
    let body: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    let receipts = match (answer.status, body["results"].as_array()) {
        (200, Some(results)) => results.clone(),
        (200, None) => vec![body],
        (410, None) => vec![json!({"status": "expired"})],
        _ => {
            office.record_anomaly(&answer, "no receipt");
            return true;
        }
    };
    for ((id, _), receipt) in items.iter().zip(&receipts) {
        let fate = match (receipt["status"].as_str(), receipt["position"].as_u64()) {
            (Some("recorded"), Some(position)) => Fate::Acknowledged(position),
            (Some("duplicate"), Some(position)) if !first => Fate::Acknowledged(position),
            (Some("expired"), None) => Fate::Expired,
            _ => {
                office.record_anomaly(&answer, "unexpected receipt");
                continue;
            }
        };
        let before = office.know(|memory| {
            let sent = memory.duels.get_mut(id).expect("a duel that was noted");
            std::mem::replace(&mut sent.fate, fate)
        });
        // A late answer may be in time again if the clock was set back.
        if matches!(before, Fate::Acknowledged(_))
            && (before != fate || receipt["status"] == "recorded")
        {
            office.record_anomaly(&answer, &format!("the previous response was {before:?}"));
        }
    }
    true
}

/// Contradict an acknowledged answer; the contradiction must be refused.
async fn contradict(office: &Office, turn: usize, name: &str, item: &(String, &'static str)) {
    // Not for late answers: with a clock that is behind, the contradiction would count.
    if !office.know(|memory| matches!(memory.duels[&item.0].fate, Fate::Acknowledged(_))) {
        return;
    }
    let other = if item.1 == "left" { "right" } else { "left" };
    let body = json!({"duel_id": item.0, "outcome": other});
    let Some(answer) = office.ask(turn, FEEDBACK, name, Some(&body)).await else { return };
    if answer.status != 409 {
        office.record_anomaly(&answer, "a contradiction was not refused");
    }
}
