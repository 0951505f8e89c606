//! Callers that request and answer duels as fast as they can, and remember the responses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client::Client;

const CALLERS: usize = 8;
const OUTCOMES: [&str; 4] = ["left", "right", "tie", "none"];

/// The answers that the callers sent, and the responses that they received.
#[derive(Debug, Default)]
pub struct Memory {
    /// Acknowledged answers by duel: outcome and log position.
    pub acknowledged: BTreeMap<String, (&'static str, u64)>,
    /// Answers that were sent and got no response.
    pub unheard: BTreeMap<String, &'static str>,
    /// Duels that were issued and not answered.
    pub open: Vec<String>,
    /// Self-duels that were issued.
    pub self_duels: u64,
}

/// A memory that callers share.
pub type Shared = Arc<Mutex<Memory>>;

/// Start callers on these experiments; the tasks in the set end when the server is gone.
pub fn storm(client: &Client, names: &[&str], memory: &Shared) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let name = names[caller % names.len()].to_owned();
        callers.spawn(call(client.clone(), name, caller, Arc::clone(memory)));
    }
    callers
}

/// Request and answer duels until a request fails.
async fn call(client: Client, name: String, caller: usize, memory: Shared) {
    let know = |change: &mut dyn FnMut(&mut Memory)| change(&mut memory.lock().expect("a memory"));
    for round in caller.. {
        let mut items = Vec::new();
        for number in 0..1 + round % 7 {
            let path = format!("/v1/experiments/{name}/next-duel");
            let Ok(answer) = client.try_send("POST", &path, &[], Vec::new()).await else { return };
            let duel = answer.json(200);
            if duel["self_duel"] == true {
                know(&mut |memory| memory.self_duels += 1);
                continue;
            }
            let id = duel["duel_id"].as_str().expect("an id").to_owned();
            // One duel in six stays unanswered.
            if (round + number) % 6 == 5 {
                know(&mut |memory| memory.open.push(id.clone()));
            } else {
                items.push((id, OUTCOMES[(round * 3 + number) % 4]));
            }
        }
        if items.is_empty() {
            continue;
        }
        know(&mut |memory| memory.unheard.extend(items.iter().cloned()));
        let Some(receipts) = send(&client, &name, &items).await else { return };
        know(&mut |memory| {
            for ((id, outcome), receipt) in items.iter().zip(&receipts) {
                assert_eq!(receipt["status"], "recorded", "{receipt}");
                memory.unheard.remove(id);
                memory.acknowledged.insert(id.clone(), (outcome, position(receipt)));
            }
        });
    }
}

/// Send answers, singly or as a list; `None` if there was no response.
pub async fn send(
    client: &Client,
    name: &str,
    items: &[(String, &'static str)],
) -> Option<Vec<Value>> {
    let item = |(id, outcome): &(String, &str)| json!({"duel_id": id, "outcome": outcome});
    let body = match items {
        [one] => item(one),
        many => json!({"feedback": many.iter().map(item).collect::<Vec<_>>()}),
    };
    let path = format!("/v1/experiments/{name}/feedback");
    let headers = [crate::support::client::JSON];
    let answer =
        client.try_send("POST", &path, &headers, body.to_string().into_bytes()).await.ok()?;
    let receipts = answer.json(200);
    Some(match receipts["results"].as_array() {
        Some(results) => results.clone(),
        None => vec![receipts],
    })
}

/// The log position of a receipt.
pub fn position(receipt: &Value) -> u64 {
    receipt["position"].as_u64().unwrap_or_else(|| panic!("no position: {receipt}"))
}

/// Wait until this many answers have been acknowledged.
pub async fn acknowledged(memory: &Shared, count: usize) {
    crate::support::client::eventually("acknowledged answers", async || {
        (memory.lock().expect("a memory").acknowledged.len() >= count).then_some(())
    })
    .await;
}
