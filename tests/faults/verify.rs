//! The checks at the end of every fault test.

use std::collections::BTreeMap;

use dueling_bandits::Answer;
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_store::events::{ControlEvent, Event};
use rankduel_store::{LogEntry, Nonce, SharedStore, connect};
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};

use crate::cluster::Cluster;
use crate::load::Fate;
use crate::scene::{NAMES, Scene};
use crate::support::client::{Client, eventually};

/// Stop the callers, check that the log has every acknowledged outcome once and that every
/// process's standings agree with the log, and print the counts. `url` is the database itself,
/// without a proxy.
pub async fn verify(mut scene: Scene, url: &str, fault: &'static str, times: u64) {
    scene.close().await;
    let store = open(url).await;
    let Findings { lost, double_counted, wrong } = compare_with_the_log(&scene, &*store).await;
    let (acknowledged, told_to_retry, unanswered, anomalies) = scene.office.know(|memory| {
        let anomalies = std::mem::take(&mut memory.anomalies);
        (memory.acknowledged(), memory.told_to_retry, memory.unanswered, anomalies)
    });
    println!(
        "{fault}, {}: injected {times} times, {acknowledged} outcomes acknowledged, {lost} lost, \
         {double_counted} counted twice; {told_to_retry} requests to retry, {unanswered} unanswered",
        store.kind()
    );
    assert!(anomalies.is_empty(), "{} wrong responses: {anomalies:#?}", anomalies.len());
    assert_eq!((lost, double_counted, wrong), (0, 0, vec![]), "{fault}");
    assert!(acknowledged > 0, "no outcome was acknowledged");

    for name in NAMES {
        // The processes that ran during the faults.
        for replica in 0..scene.places() {
            agrees_with_the_log(&scene.client(replica), &store, name).await;
        }
    }
    // New processes: one that restores the snapshots, and one that has only the log.
    for replica in 0..scene.places() {
        scene.stop(replica);
    }
    scene.start(0);
    let mut restored = Vec::new();
    for name in NAMES {
        restored.push(scene.client(0).standings(name).await);
    }
    scene.stop(0);
    execute(url, "delete from snapshot").await;
    scene.start(0);
    for (name, restored) in NAMES.into_iter().zip(restored) {
        assert_eq!(
            scene.client(0).standings(name).await,
            restored,
            "{name}: the fold of the whole log"
        );
        agrees_with_the_log(&scene.client(0), &store, name).await;
    }
    scene.stop(0);
    store.close().await;
}

/// The store of a URL.
pub async fn open(url: &str) -> SharedStore {
    connect(url).await.expect("a store")
}

/// The differences between the log and the responses that callers received.
#[derive(Debug, Default, PartialEq)]
struct Findings {
    /// Acknowledged outcomes that are missing or different in the log.
    lost: u64,
    /// Duels that are in the log more than once.
    double_counted: u64,
    /// All other errors.
    wrong: Vec<String>,
}

async fn compare_with_the_log(scene: &Scene, store: &dyn rankduel_store::Store) -> Findings {
    let keys = SigningKeySet::new(&store.signing_keys().await.expect("keys")).expect("a key");
    let mut findings = Findings::default();
    let mut entries: BTreeMap<Nonce, Vec<LogEntry>> = BTreeMap::new();
    for name in NAMES {
        for (position, entry) in (1..).zip(log(store, name).await) {
            if entry.position != position {
                findings.wrong.push(format!("{name}: at position {position} there is {entry:?}"));
            }
            if matches!(entry.event, Event::Outcome(_)) {
                entries.entry(entry.nonce).or_default().push(entry);
            }
        }
    }
    scene.office.know(|memory| {
        for (id, sent) in &memory.duels {
            let token = keys.verify(id).expect("a token of this service");
            let found = entries.remove(&token.nonce).unwrap_or_default();
            findings.double_counted += u64::from(found.len() > 1);
            let as_sent = |entry: &LogEntry| {
                let Event::Outcome(outcome) = &entry.event else { return false };
                outcome.answer == answer_of(sent.outcome, token.first_left)
                    && (outcome.first, outcome.second) == (token.first, token.second)
            };
            let is_there =
                |position| found.iter().any(|entry| entry.position == position && as_sent(entry));
            match sent.fate {
                Fate::Acknowledged(position) => findings.lost += u64::from(!is_there(position)),
                Fate::Open if found.iter().all(as_sent) => {}
                Fate::Expired if found.is_empty() => {}
                _ => findings.wrong.push(format!("{sent:?}: {found:?}")),
            }
        }
    });
    let unsent = entries.into_values().flatten().map(|entry| format!("no caller sent {entry:?}"));
    findings.wrong.extend(unsent);
    findings
}

/// The answer that `outcome`, which names a side, is for the ordered pair.
fn answer_of(outcome: &str, first_left: bool) -> Answer {
    match (outcome, first_left) {
        ("left", true) | ("right", false) => Answer::First,
        ("left", false) | ("right", true) => Answer::Second,
        ("tie", _) => Answer::Tie,
        _ => Answer::None,
    }
}

/// A process's standings match the log up to the same position, and reach the end of the log.
async fn agrees_with_the_log(client: &Client, store: &SharedStore, name: &str) {
    let head = log(&**store, name).await.len() as u64;
    let standings = eventually("a replica at the end of the log", async || {
        let standings = client.standings(name).await;
        (standings["position"].as_u64() >= Some(head)).then_some(standings)
    })
    .await;
    let position = standings["position"].as_u64().expect("a position") as usize;
    let counted = count(
        &log(&**store, name).await[..position],
        standings["rankers"].as_array().expect("rankers").len(),
    );
    for (field, counted) in counted.as_object().expect("counts") {
        assert_eq!(&standings[field], counted, "{name}: {field} at position {position}");
    }
}

/// The standings that follow from these entries, computed independently.
fn count(entries: &[LogEntry], rankers: usize) -> Value {
    let mut wins = vec![vec![0; rankers]; rankers];
    let mut ties = wins.clone();
    let mut shown: BTreeMap<&str, u64> =
        ["left", "right", "tie", "none"].map(|side| (side, 0)).into();
    let (mut duels, mut self_duels) = (0, 0);
    for entry in entries {
        match &entry.event {
            Event::Outcome(outcome) => {
                let (first, second) = (usize::from(outcome.first), usize::from(outcome.second));
                let side = match (outcome.answer, outcome.first_left) {
                    (Answer::First, true) | (Answer::Second, false) => "left",
                    (Answer::First, false) | (Answer::Second, true) => "right",
                    (Answer::Tie, _) => "tie",
                    (Answer::None, _) => "none",
                };
                duels += 1;
                *shown.get_mut(side).expect("a side") += 1;
                match outcome.answer {
                    Answer::First => wins[first][second] += 1,
                    Answer::Second => wins[second][first] += 1,
                    Answer::Tie => {
                        ties[first][second] += 1;
                        ties[second][first] += 1;
                    }
                    Answer::None => {}
                }
            }
            Event::Control(ControlEvent::SelfDuels { counts, .. }) => {
                self_duels += counts.iter().map(|(_, count)| count).sum::<u64>();
            }
            Event::Control(ControlEvent::Created { .. }) => {}
            Event::Control(other) => panic!("no caller requested {other:?}"),
        }
    }
    json!({"duels": duels, "self_duels": self_duels, "outcomes": shown, "wins": wins, "ties": ties})
}

/// The whole log of an experiment.
pub async fn log(store: &dyn rankduel_store::Store, name: &str) -> Vec<LogEntry> {
    let record = store.experiment(name).await.expect("a store").expect("an experiment");
    let mut log: Vec<LogEntry> = Vec::new();
    loop {
        let after = log.last().map_or(0, |entry| entry.position);
        let chunk = store.read(record.id, after, 10_000).await.expect("a chunk");
        if chunk.is_empty() {
            return log;
        }
        log.extend(chunk);
    }
}

/// Run a statement directly on the database.
pub async fn execute(url: &str, statement: &'static str) {
    if url.starts_with("sqlite:") {
        let mut connection = SqliteConnection::connect(url).await.expect("a connection");
        connection.execute(statement).await.expect("a statement");
        connection.close().await.expect("a clean close");
    } else {
        let mut connection = PgConnection::connect(url).await.expect("a connection");
        connection.execute(statement).await.expect("a statement");
        connection.close().await.expect("a clean close");
    }
}

/// The checks detect lost, duplicated and changed outcomes, and gaps.
#[tokio::test(flavor = "multi_thread")]
async fn lost_and_duplicated_outcomes_are_detected() {
    let cluster = Cluster::start().await;
    let url = cluster.database("rankduel").await;
    let mut scene = Scene::set(&url, 1).await;
    scene.open();
    scene.acknowledges(100).await;
    scene.close().await;
    scene.stop(0);
    let store = connect(&url).await.expect("a store");
    assert_eq!(compare_with_the_log(&scene, &*store).await, Findings::default());

    execute(
        &url,
        "update log set answer = (answer + 1) % 4
        where experiment_id = (select id from experiment where name = 'steady') and position = 2",
    )
    .await;
    let findings = compare_with_the_log(&scene, &*store).await;
    assert_eq!(
        (findings.lost + findings.wrong.len() as u64, findings.double_counted),
        (1, 0),
        "{findings:?}"
    );

    execute(&url, "alter table log drop constraint log_experiment_id_nonce_key").await;
    execute(
        &url,
        "with steady as (
            select log.* from log
            join experiment on experiment.id = experiment_id and experiment.name = 'steady'
        )
        update log set nonce = (select nonce from steady where position = 3)
        where experiment_id = (select id from experiment where name = 'steady') and position = 4",
    )
    .await;
    let findings = compare_with_the_log(&scene, &*store).await;
    assert_eq!(findings.double_counted, 1, "{findings:?}");
    assert!(findings.lost >= 1, "{findings:?}");

    execute(
        &url,
        "delete from log where position = 1
        and experiment_id = (select id from experiment where name = 'thompson')",
    )
    .await;
    let findings = compare_with_the_log(&scene, &*store).await;
    assert!(!findings.wrong.is_empty(), "a gap was not found");
}
