//! The time to load an experiment into memory, the speed of folding alone, and the memory of an
//! experiment.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use rand::{RngExt as _, SeedableRng as _};

use super::answers::{create, spec};
use super::context::Bench;
use super::load::{self, Connections, Pace};
use super::report::{Bound, Goal, Row, Section};
use crate::cli::database::open_store;
use crate::clock::{Clock as _, SystemClock};
use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::Fold;
use crate::events::{Event, OutcomeEvent};
use crate::service::Service;
use crate::service::ServiceSettings;
use crate::store::{LogEntry, NewEvent};
use crate::telemetry::metrics::Metrics;
use dueling_bandits::{Answer, PolicyRng};

const SECONDS: &str = "seconds";
const RATE: &str = "outcomes/s";
const BYTES: &str = "bytes";
/// Number of rankers of the experiment with the long log.
const RANKERS: usize = 10;
/// Number of experiments for the measurement of memory.
const LARGE: u32 = 4;
/// Number of rankers of each of them: the maximum.
const MANY_RANKERS: usize = 1024;
/// The largest number of unanswered duels; with a short log, there are fewer.
const UNANSWERED: u64 = 100_000;
/// Number of events of one append.
const APPENDED: u64 = 10_000;

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    let name = bench.experiment("start");
    let mut append = Row::new(format!("appending to the store, {APPENDED} per commit"));
    let mut fold = Row::new("folding entries in memory");
    let mut cold = Row::new(format!("opening {} outcomes without a snapshot", bench.outcomes));
    let mut warm = Row::new(format!("opening {} outcomes from a snapshot", bench.outcomes));

    bench.runtime.block_on(async {
        let spec = fill(bench, &name, &mut append).await?;
        for _ in 0..bench.rounds {
            fold.add(RATE, folded_per_second(&spec, bench.outcomes.min(1_000_000)));
        }
        for round in 0..bench.rounds {
            bench.say(&format!("start, round {} of {}", round + 1, bench.rounds));
            if round == 0 {
                // The service writes the snapshot when it stops, so only the first start has none.
                let seconds = open(bench, &name).await?;
                cold.add(SECONDS, seconds);
                cold.add(RATE, bench.outcomes as f64 / seconds);
            }
            warm.add(SECONDS, open(bench, &name).await?);
        }
        anyhow::Ok(())
    })?;

    let (pairs, unanswered) = memory(bench)?;
    let goals = [
        ("opening from a snapshot: seconds", warm.median(SECONDS), Bound::Most(1.0)),
        ("opening without a snapshot: outcomes/s", cold.median(RATE), Bound::Least(2e6)),
        ("folding alone: outcomes/s", fold.median(RATE), Bound::Least(2e6)),
        ("memory of a pair: bytes", pairs.median(BYTES), Bound::Most(32.0)),
        ("memory of an unanswered duel: bytes", unanswered.median(BYTES), Bound::Most(1.0)),
    ];
    Ok(Section {
        name: "start",
        on: bench.machine(),
        rows: vec![append, fold, cold, warm, pairs, unanswered],
        goals: goals
            .into_iter()
            .filter_map(|(what, measured, bound)| {
                Some(Goal { what: what.into(), measured: measured?, bound })
            })
            .collect(),
    })
}

async fn service(bench: &Bench) -> anyhow::Result<Arc<Service>> {
    let store = open_store(&bench.database_url).await?;
    let clock = Arc::new(SystemClock);
    Ok(Service::start(store, clock, Arc::new(Metrics::new()), ServiceSettings::default()).await?)
}

/// Seconds to load the experiment into the memory of a new service.
async fn open(bench: &Bench, name: &str) -> anyhow::Result<f64> {
    let service = service(bench).await?;
    let started = Instant::now();
    let loaded = service.experiment(name).await?;
    let seconds = started.elapsed().as_secs_f64();
    anyhow::ensure!(
        loaded.fold()?.position() == bench.outcomes,
        "the log was not folded completely"
    );
    service.shutdown().await;
    Ok(seconds)
}

fn outcome(rng: &mut PolicyRng) -> OutcomeEvent {
    let first = rng.random_range(0..RANKERS as u16);
    OutcomeEvent {
        first,
        second: (first + rng.random_range(1..RANKERS as u16)) % RANKERS as u16,
        first_left: rng.random(),
        answer: if rng.random_bool(0.6) { Answer::First } else { Answer::Second },
        batch: None,
        ticket: 0,
        chosen_at: 0,
        issued_at: 1_790_000_000_000,
        unit: None,
        segment: None,
    }
}

/// Creates an experiment with a long log.
async fn fill(bench: &Bench, name: &str, append: &mut Row) -> anyhow::Result<ExperimentSpec> {
    let spec = spec(&bench.policy, RANKERS);
    let new = crate::store::NewExperiment {
        name: name.into(),
        spec: serde_json::to_string(&spec).context("the spec cannot be written")?,
        seed: 1,
        created_at: SystemClock.now_ms(),
        audit: None,
    };
    bench.store.create_experiment(&new).await?;
    let record =
        bench.store.experiment(name).await?.context("the created experiment is missing")?;
    let mut rng = PolicyRng::seed_from_u64(1);
    let high = u128::from(crate::entropy::number()? >> 1) << 64;
    let mut appended = 0;
    while appended < bench.outcomes {
        let count = APPENDED.min(bench.outcomes - appended);
        let events: Vec<_> = (appended..appended + count)
            .map(|low| {
                let event = Event::Outcome(outcome(&mut rng));
                (record.id, NewEvent::new(high | u128::from(low), event))
            })
            .collect();
        let started = Instant::now();
        bench.store.append(&events, SystemClock.now_ms()).await?;
        append.add(RATE, count as f64 / started.elapsed().as_secs_f64());
        appended += count;
        if appended % 1_000_000 == 0 {
            bench.say(&format!("start, {appended} of {} outcomes are in the log", bench.outcomes));
        }
    }
    Ok(spec)
}

fn folded_per_second(spec: &ExperimentSpec, outcomes: u64) -> f64 {
    let mut rng = PolicyRng::seed_from_u64(1);
    let entries: Vec<_> = (1..=outcomes)
        .map(|position| LogEntry {
            position,
            nonce: position.into(),
            recorded_at: 1_790_000_000_000,
            event: Event::Outcome(outcome(&mut rng)),
        })
        .collect();
    let mut fold = Fold::start(spec, 1, 0);
    let started = Instant::now();
    // In chunks, as when an experiment is loaded.
    for chunk in entries.chunks(APPENDED as usize) {
        fold.apply_chunk(|folding| chunk.iter().try_for_each(|entry| folding.apply(entry)))
            .expect("valid entries in order");
    }
    outcomes as f64 / started.elapsed().as_secs_f64()
}

/// The additional memory of a server for a pair of rankers, and for an unanswered duel.
fn memory(bench: &Bench) -> anyhow::Result<(Row, Row)> {
    let mut pair = Row::new(format!("memory of a server per pair of rankers, K = {MANY_RANKERS}"));
    let left = UNANSWERED.min(bench.outcomes);
    let mut duel =
        Row::new(format!("memory of a server per duel of {left} unanswered duels, K = {RANKERS}"));
    let server = bench.server(&bench.log, Stdio::inherit())?;
    let created = |what: &str, rankers| -> anyhow::Result<Vec<u8>> {
        let name = bench.experiment(what);
        create(server.address, &name, &bench.policy, rankers)?;
        Ok(load::post(&format!("/v1/experiments/{name}/next-duel"), ""))
    };
    let connections = Connections::open(&[server.address], bench.connections)?;
    let duels = |request: &[u8], count: u64| {
        let mut requests = (0..count).map(|_| request);
        connections.run(Pace::Closed, bench.forever(), |next| {
            requests.next().map(|request| next.extend_from_slice(request)).is_some()
        })
    };
    let small = created("small", RANKERS)?;
    duels(&small, left)?;
    let before = server.memory();
    duels(&small, left)?;
    let after = server.memory();
    let more = before.zip(after).map(|(before, after)| (after - before).max(0.0));
    duel.add(BYTES, more.map(|bytes| bytes / left as f64));

    // The first large experiment also allocates memory that the next ones use again.
    created("large", MANY_RANKERS)?;
    let before = server.memory();
    for number in 0..LARGE {
        let large = created(&format!("large-{number}"), MANY_RANKERS)?;
        duels(&large, bench.connections as u64)?;
    }
    let more = before.zip(server.memory()).map(|(before, after)| (after - before).max(0.0));
    let pairs = LARGE as f64 * (MANY_RANKERS * (MANY_RANKERS - 1) / 2) as f64;
    pair.add(BYTES, more.map(|bytes| bytes / pairs));
    Ok((pair, duel))
}
