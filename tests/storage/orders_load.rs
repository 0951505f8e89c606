//! How much memory and time a shop takes: a measurement, which `scripts/test` leaves out.
//!
//! ```text
//! cargo test --release --all-features --test storage a_million_searches -- --ignored --nocapture
//! ```
//!
//! 120,000 searches a day for the 8.5 days of a window of a week: a million, of which none has
//! counted. A unit has four pages; half of the pages have a click, on 1.3 documents; 2.5 % of the
//! pages have an order. On top of them, pages, clicks and orders come side by side, as fast as the
//! server takes them: none of them is turned away.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dueling_bandits::orders::baskets::MOST_BYTES;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt as _, SeedableRng as _};
use rankduel_engine::clock::{Clock as _, SystemClock, rfc3339};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::events::{ControlEvent, Event, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::{HomeRow, LinksEvent, OrderEvent};
use rankduel_store::{LogEntry, NewEvent, Snapshot};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::client::Client;
use crate::support::server::{FREE_PORT, Process, rankduel_on};
use crate::support::{Kind, fresh_database};

const IDS: [&str; 3] = ["a", "b", "c"];
const SEARCHES: u64 = 1_000_000;
const DAY_MS: i64 = 86_400_000;
const SPAN_MS: i64 = DAY_MS * 17 / 2;
/// Units that get a home in the two seconds of an entry.
const AT_ONCE: usize = 2;

fn mixed(number: u64) -> u64 {
    Xoshiro256PlusPlus::seed_from_u64(number).random()
}

fn document(number: u64) -> DocumentHash {
    let [_, _, _, name @ ..] = mixed(number).to_be_bytes();
    DocumentHash(name)
}

/// The log of the searches that end now, without its first entry.
fn log(rankers: u64, now: i64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut homes: Vec<HomeRow> = Vec::new();
    for search in 0..SEARCHES {
        // the pages of a unit are spread over a day
        let (unit, page) = (search % (SEARCHES / 4), search / (SEARCHES / 4));
        let first = now - SPAN_MS + SPAN_MS / (SEARCHES / 4) as i64 * unit as i64;
        let issued_at = (first + page as i64 * DAY_MS / 4).min(now);
        let coin = |salt: u64| mixed(search * 16 + salt) as f64 / u64::MAX as f64;
        let hash = mixed(unit << 20);
        let pair = [(0, 1), (0, 2), (1, 2)][if rankers == 2 { 0 } else { unit as usize % 3 }];
        if page == 0 && rankers > 2 {
            homes.push((UnitHash(hash), pair.0, pair.1, 0, 1, first));
        }
        if homes.len() == AT_ONCE {
            let units = std::mem::take(&mut homes);
            events.push((first, ControlEvent::Homes { units }));
        }
        if coin(0) < 0.5 {
            let side = |salt| if coin(salt) < 0.5 { 127 } else { -127 };
            let mut links = vec![(document(search), side(1))];
            if coin(2) < 0.3 {
                links.push((document(search + SEARCHES), side(3)));
            }
            links.sort_unstable();
            let event = LinksEvent {
                duel: Uuid::from_u128(search.into()),
                first: pair.0,
                second: pair.1,
                ticket: 0,
                chosen_at: 1,
                issued_at,
                method: 1,
                unit: UnitHash(hash),
                segment: None,
                links,
            };
            events.push((issued_at + 1, ControlEvent::Links(Box::new(event))));
        }
        if coin(4) < 0.025 {
            let lines = vec![(document(search), 20.0, 1)];
            let at = (issued_at + (coin(5) * DAY_MS as f64) as i64).min(now);
            let event = OrderEvent { order: UnitHash(search), unit: UnitHash(hash), at, lines };
            events.push((at + 2, ControlEvent::Order(Box::new(event))));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events.into_iter().map(|(_, event)| Event::Control(event)).collect()
}

fn body(rankers: u64) -> Value {
    // whatever the orders say, most pages show two rankers
    json!({
        "name": "shop", "rankers": IDS[..rankers as usize], "conclude_at": "never", "drift": "off",
        "policy": {"kind": "uniform"},
        "decide_by": {"event": "order", "window_seconds": 604_800, "arrival_seconds": 129_600},
    })
}

/// Bytes of memory of a process that are resident.
fn resident(process: &str) -> i64 {
    let path = format!("/proc/{process}/statm");
    let pages = std::fs::read_to_string(path).expect("the memory of a process");
    4096 * pages.split(' ').nth(1).and_then(|it| it.parse::<i64>().ok()).expect("a number")
}

/// Searchers that search at the same time, and how long.
const LIVE: u64 = 16;
const LIVE_FOR: Duration = Duration::from_secs(20);

/// Pages, clicks on them, and an order for each of ten. Returns the results, with the status of the
/// answer, and the longest time of a request.
async fn searches(
    server: Client,
    rankers: usize,
    number: u64,
) -> (BTreeMap<(u16, String), u64>, Duration) {
    let (started, mut statuses, mut slowest) = (Instant::now(), BTreeMap::new(), Duration::ZERO);
    let of = |id: &str| (0..4).map(|place| format!("{id}{place}")).collect::<Vec<_>>();
    let rankings: BTreeMap<_, _> = IDS[..rankers].iter().map(|&id| (id, of(id))).collect();
    let mut unit = 0;
    while started.elapsed() < LIVE_FOR {
        unit += 1;
        let name = format!("live-{number}-{unit}");
        let mut send = async |call: &'static str, body: Value| {
            let (sent, path) = (Instant::now(), format!("/v1/experiments/shop/{call}"));
            let answer = server.post(&path, &body).await;
            slowest = slowest.max(sent.elapsed());
            let body = serde_json::from_slice::<Value>(&answer.bytes).unwrap_or_default();
            let result = match call {
                "next-duel" => format!("self-duel: {}", body["self_duel"]),
                "feedback" => format!("{call}: {}", body["status"]),
                _ => format!("{call}: {}", body["results"][0]["status"]),
            };
            *statuses.entry((answer.status, result)).or_insert(0) += 1;
            body
        };
        let page =
            send("next-duel", json!({"unit": name, "rankings": rankings, "length": 4})).await;
        send("feedback", json!({"duel_id": page["duel_id"], "clicks": [0, 1]})).await;
        if unit % 10 == 0 {
            let at = rfc3339(SystemClock.now_ms());
            let lines = json!([{"document": page["slots"][0]["document"]}]);
            let order = json!({"order_id": name, "unit": name, "at": at, "lines": lines});
            send("orders", json!({"orders": [order]})).await;
        }
    }
    (statuses, slowest)
}

const MIB: f64 = 1_048_576.0;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement of minutes, for a release build"]
async fn a_million_searches() {
    for (kind, rankers) in [(Kind::Sqlite, 2), (Kind::Sqlite, 3), (Kind::Postgres, 2)] {
        measure(kind, rankers).await;
    }
}

async fn measure(kind: Kind, rankers: u64) {
    let database = fresh_database(kind).await;
    let serve =
        || Process::start(rankduel_on(&database.url, &["serve", FREE_PORT, "--log", "error"]));
    let process = serve();
    let empty = resident(&process.pid());
    Client::new(&process.url).post("/v1/experiments", &body(rankers)).await.json(201);
    process.stop();
    let store = database.connect().await;
    let record = store.experiment("shop").await.expect("an answer").expect("an experiment");
    let spec: ExperimentSpec = serde_json::from_str(&record.spec).expect("a spec");
    let events = log(rankers, record.created_at);
    let entries = events.len();
    let nonce = |number: usize| 1 << 126 | number as u128;
    for (chunk, events) in events.chunks(10_000).enumerate() {
        let event = |(at, event): (usize, &Event)| {
            (record.id, NewEvent::new(nonce(chunk * 10_000 + at), event.clone()))
        };
        let events: Vec<_> = events.iter().enumerate().map(event).collect();
        store.append(&events, record.created_at).await.expect("they are in the log");
    }

    // the fold alone
    let log: Vec<LogEntry> = (2..)
        .zip(events)
        .map(|(position, event)| LogEntry {
            position,
            nonce: position.into(),
            recorded_at: record.created_at,
            event,
        })
        .collect();
    let first = store.read(record.id, 0, 1).await.expect("an entry").into_iter().next();
    let mut fold =
        Fold::created(first.as_ref(), &spec, record.seed, record.created_at).expect("a fold");
    let (before, started) = (resident("self"), Instant::now());
    for chunk in log.chunks(20_000) {
        fold.apply_chunk(|fold| chunk.iter().try_for_each(|it| fold.apply(it).map(drop)))
            .expect("entries that follow");
    }
    let took = started.elapsed();
    let (grown, baskets) = (resident("self") - before, fold.state().baskets.as_deref());
    let baskets = baskets.expect("orders decide");
    let saved = fold.save();
    println!(
        "{kind:?}, {rankers} rankers: {entries} entries, {:.0} a second; {:.1} MiB by estimate, {:.1} MiB \
         resident; sampled {}; snapshot {:.1} MiB",
        entries as f64 / took.as_secs_f64(),
        fold.bytes() as f64 / MIB,
        grown as f64 / MIB,
        baskets.sampled(),
        saved.len() as f64 / MIB
    );
    assert!(baskets.bytes() <= MOST_BYTES);
    // a server saves one every 10,000 entries
    let snapshot = Snapshot {
        experiment: record.id,
        position: fold.state().position,
        format: fold.format(),
        state: saved,
        created_at: record.created_at,
    };
    store.save_snapshot(&snapshot).await.expect("it is kept");
    let end = record.created_at;
    for (what, until) in
        [("the first three hours", end - SPAN_MS + 3 * 3_600_000), ("the rest", end)]
    {
        let closing = Instant::now();
        let closed = ControlEvent::CohortsComplete { issued_before: until, issued: 0, answered: 0 };
        let position = fold.state().position + 1;
        let event = Event::Control(closed);
        let last = LogEntry { position, nonce: position.into(), recorded_at: end, event };
        fold.apply(&last).expect("it follows");
        println!("  closing {what}: {:.2} s", closing.elapsed().as_secs_f64());
    }
    drop((fold, log));

    // a server that loads it, and serves it
    let process = serve();
    let server = Client::new(&process.url);
    let started = Instant::now();
    let duel = server.post("/v1/experiments/shop/next-duel", &json!({"unit": "u"})).await;
    duel.json(200);
    let loaded = started.elapsed();
    let units = server.verdict("shop").await["orders"]["units"].as_u64().expect("a count");
    let searchers =
        (0..LIVE).map(|number| tokio::spawn(searches(server.clone(), rankers as usize, number)));
    let searchers: Vec<_> = searchers.collect();
    let (mut found, mut slowest) = (BTreeMap::new(), Duration::ZERO);
    for searcher in searchers {
        let (statuses, took) = searcher.await.expect("a searcher");
        slowest = slowest.max(took);
        statuses.into_iter().for_each(|(it, count)| *found.entry(it).or_insert(0) += count);
    }
    println!("  live for {} s: {found:?}, the slowest in {slowest:?}", LIVE_FOR.as_secs());
    assert!(found.keys().all(|(status, _)| *status == 200), "{found:?}");
    let orders = server.verdict("shop").await["orders"].clone();
    let clicked = found.get(&(200, "self-duel: false".into())).copied().unwrap_or_default();
    assert_eq!(orders["units"], units + clicked, "each click counts");
    println!(
        "  a server: loaded in {:.1} s; {:.1} MiB more than an empty one; {}",
        loaded.as_secs_f64(),
        (resident(&process.pid()) - empty) as f64 / MIB,
        orders["sentence"]
    );
    process.stop();
}
