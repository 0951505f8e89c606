//! Orders while servers die: each counts once, whoever acknowledged it and how often it was sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::TestDatabase;
use crate::support::client::{Client, JSON, eventually};
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::{rounds, some_moment};

on_postgres! {
    orders_count_once_whoever_dies
}

const REPLICAS: usize = 3;
const UNITS: usize = 60;
/// Orders of units that the file has besides, and orders of one request.
const STRANGERS: usize = 3000;
const AT_ONCE: usize = 50;
/// How often the file is sent, each time to another server first.
const TIMES: usize = 3;
const PATH: &str = "/v1/experiments/shop/orders";

/// The statuses of each order, in the order in which they came.
type Ledger = BTreeMap<String, Vec<String>>;

fn start(database: &TestDatabase) -> Process {
    Process::start(rankduel_on(&database.url, &["serve", FREE_PORT, "--log", "error"]))
}

/// A unit gets a page of its home and clicks; returns an order of what it clicked, or of something
/// else if its home is one ranker.
async fn visit(server: &Client, unit: usize) -> (Value, bool) {
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings = json!({"a": of("a"), "b": of("b"), "c": of("c")});
    let unit = format!("u{unit}");
    let body = json!({"unit": unit, "rankings": rankings, "length": 4});
    let page = server.post("/v1/experiments/shop/next-duel", &body).await.json(200);
    let clicked = page["slots"][0]["document"].clone();
    let counts = page["self_duel"] == false;
    if counts {
        let body = json!({"duel_id": page["duel_id"], "clicks": [clicked]});
        assert_eq!(server.feedback("shop", &body).await.json(200)["status"], "recorded");
    }
    (order(&format!("of {unit}"), &unit, &clicked), counts)
}

fn order(id: &str, unit: &str, document: &Value) -> Value {
    let at = rankduel_engine::clock::rfc3339(now_ms());
    json!({"order_id": id, "unit": unit, "at": at, "lines": [{"document": document}]})
}

fn now_ms() -> i64 {
    use rankduel_engine::clock::Clock as _;
    rankduel_engine::clock::SystemClock.now_ms()
}

/// Sends the file, each request again until it has an answer.
async fn send(
    servers: Arc<RwLock<Vec<Client>>>,
    file: Arc<Vec<Value>>,
    ledger: Arc<Mutex<Ledger>>,
    turn: usize,
) {
    for (number, orders) in file.chunks(AT_ONCE).enumerate() {
        for attempt in 0.. {
            let server =
                servers.read().expect("servers")[(number + turn + attempt) % REPLICAS].clone();
            let body = json!({"orders": orders}).to_string().into_bytes();
            let answer = server.try_send("POST", PATH, &[JSON], body).await;
            let Some(answer) = answer.ok().filter(|answer| answer.status == 200) else {
                some_moment(50).await;
                continue;
            };
            let results = answer.json(200)["results"].as_array().expect("results").clone();
            let mut ledger = ledger.lock().expect("a ledger");
            for (order, result) in orders.iter().zip(results) {
                let id = order["order_id"].as_str().expect("an id").to_owned();
                let status = result["status"].as_str().expect("a status").to_owned();
                ledger.entry(id).or_default().push(status);
            }
            break;
        }
    }
}

async fn orders_count_once_whoever_dies(database: TestDatabase) {
    let mut processes: Vec<_> = (0..REPLICAS).map(|_| start(&database)).collect();
    let clients = |processes: &[Process]| {
        processes.iter().map(|process| Client::new(&process.url)).collect::<Vec<_>>()
    };
    let servers = Arc::new(RwLock::new(clients(&processes)));
    let first = servers.read().expect("servers")[0].clone();
    let shop = json!({
        "name": "shop", "rankers": ["a", "b", "c"], "policy": {"kind": "uniform"},
        "conclude_at": "never", "drift": "off",
        "decide_by": {"event": "order", "window_seconds": 86_400},
    });
    first.post("/v1/experiments", &shop).await.json(201);
    let (mut file, mut counting) = (Vec::new(), 0);
    for unit in 0..UNITS {
        let (order, counts) = visit(&first, unit).await;
        counting += usize::from(counts);
        file.push(order);
    }
    let stranger = |number| order(&format!("A-{number}"), &format!("s{number}"), &json!("a0"));
    file.extend((0..STRANGERS).map(stranger));
    // those of the units are anywhere in the file
    file.sort_by_key(|order| {
        order["order_id"].as_str().map(|id| id.bytes().rev().collect::<Vec<_>>())
    });
    let (file, ledger) = (Arc::new(file), Arc::new(Mutex::new(Ledger::new())));

    let done = Arc::new(AtomicBool::new(false));
    let mut senders = JoinSet::new();
    for turn in 0..TIMES {
        senders.spawn(send(Arc::clone(&servers), Arc::clone(&file), Arc::clone(&ledger), turn));
    }
    let all = tokio::spawn({
        let done = Arc::clone(&done);
        async move {
            while let Some(sent) = senders.join_next().await {
                sent.expect("a sender");
            }
            done.store(true, Ordering::SeqCst);
        }
    });
    let mut kills = 0;
    while kills < rounds(10) {
        some_moment(300).await;
        let victim = kills as usize % REPLICAS;
        processes[victim].signal("KILL");
        let dead = std::mem::replace(&mut processes[victim], start(&database));
        dead.wait();
        *servers.write().expect("servers") = clients(&processes);
        kills += 1;
        if done.load(Ordering::SeqCst) {
            break;
        }
    }
    all.await.expect("all senders");

    let ledger = ledger.lock().expect("a ledger").clone();
    assert_eq!(ledger.len(), UNITS + STRANGERS);
    let is_recorded = |status: &&String| **status == "recorded";
    let recorded = |statuses: &Vec<String>| statuses.iter().filter(is_recorded).count();
    for (id, statuses) in &ledger {
        let known = statuses.iter().all(|it| ["recorded", "duplicate"].contains(&it.as_str()));
        assert!(known && statuses.len() == TIMES && recorded(statuses) <= 1, "{id}: {statuses:?}");
    }
    let unanswered = ledger.values().filter(|statuses| recorded(statuses) == 0).count();
    println!(
        "kill -9 of 1 of 3 servers: {kills} times, {} orders acknowledged {TIMES} times each; of \
         {unanswered} the first answer was lost",
        ledger.len()
    );
    let log = r#"select count(*) from log where detail like '%"kind":"order"%'"#;
    assert_eq!(database.count(log).await, ledger.len() as i64);

    // every server has folded the same, and one that has the log alone
    let head = database.count("select head from experiment").await;
    let found = async |server: &Client| {
        eventually("the end of the log", async || {
            let verdict = server.verdict("shop").await;
            (verdict["position"].as_i64() >= Some(head)).then(|| verdict["orders"].clone())
        })
        .await
    };
    let orders = found(&Client::new(&processes[0].url)).await;
    assert_eq!((&orders["units"], &orders["ordered"]), (&json!(counting), &json!(counting)));
    for server in clients(&processes) {
        assert_eq!(found(&server).await, orders);
    }
    processes.into_iter().for_each(|process| drop(process.stop()));
    database.execute("delete from snapshot").await;
    let last = start(&database);
    assert_eq!(found(&Client::new(&last.url)).await, orders);
    last.stop();
}
