//! Callers that ask and answer as fast as they can, and remember what they were told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::client::Client;

const CALLERS: usize = 8;
const OUTCOMES: [&str; 4] = ["left", "right", "tie", "none"];

/// What callers know.
#[derive(Debug, Default)]
pub struct Memory {
    /// Answers that were acknowledged, by duel: outcome and log position.
    pub acknowledged: BTreeMap<String, (&'static str, u64)>,
    /// Answers that were sent, and of which nothing was heard.
    pub unheard: BTreeMap<String, &'static str>,
    /// Duels that were issued and not answered.
    pub open: Vec<String>,
    /// Self-duels that were issued.
    pub self_duels: u64,
}

/// A memory as callers share it.
pub type Shared = Arc<Mutex<Memory>>;

/// Let callers loose on these experiments until the server is gone; their end is in the set.
pub fn storm(client: &Client, names: &[&str], memory: &Shared) -> JoinSet<()> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let name = names[caller % names.len()].to_owned();
        callers.spawn(call(client.clone(), name, caller, Arc::clone(memory)));
    }
    callers
}

/// Ask and answer until the way to the server breaks.
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
            // one in six stays open
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

/// Send answers, one as one and more as many; `None` when nothing came back.
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

/// Wait until so many answers were acknowledged.
pub async fn acknowledged(memory: &Shared, count: usize) {
    crate::support::client::eventually("acknowledged answers", async || {
        (memory.lock().expect("a memory").acknowledged.len() >= count).then_some(())
    })
    .await;
}
