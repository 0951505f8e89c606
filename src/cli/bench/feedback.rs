//! `feedback`, compared with one connection on the same disk that commits one row after the other.

use std::process::Stdio;

use anyhow::Context as _;

use super::answers::{Answers, create};
use super::context::Bench;
use super::disk;
use super::load::{Connections, Observed, Pace};
use super::process::Server;
use super::report::{Bound, Goal, Row, Section};

const RATE: &str = "outcomes/s";
const P50: &str = "p50 ms";
const P99: &str = "p99 ms";
const PER_CPU_SECOND: &str = "outcomes per server CPU-second";
const COMMITS: &str = "commits/s";
const COMMIT_MS: &str = "ms per commit";
/// Number of outcomes of a request with many outcomes.
const MANY: usize = 100;
/// Number of connections that send many outcomes per request.
const MANY_CONNECTIONS: usize = 32;
/// Requests are rendered before the measurement: this many times the number that the rate of the
/// warm-up requires.
const SPARE: f64 = 1.5;

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    let server = bench.server(&bench.log, Stdio::inherit())?;
    let name = bench.experiment("feedback");
    create(server.address, &name, &bench.policy, 10)?;
    let mut answers = bench.runtime.block_on(Answers::of(&bench.store, &name))?;
    let connections = Connections::open(&[server.address], bench.feedback_connections)?;
    let many_connections = Connections::open(&[server.address], MANY_CONNECTIONS)?;

    let mut disk = Row::new("one connection, one row per commit");
    let mut one = Row::new(format!(
        "feedback, one outcome per request, {} connections",
        bench.feedback_connections
    ));
    let mut many =
        Row::new(format!("feedback, {MANY} outcomes per request, {MANY_CONNECTIONS} connections"));
    let mut half = Row::new("feedback, one outcome per request, open loop at half that rate");
    for round in 0..bench.rounds {
        bench.say(&format!("feedback, round {} of {}", round + 1, bench.rounds));
        let commits =
            bench.runtime.block_on(disk::commits_per_second(&bench.database_url, bench.round))?;
        disk.add(COMMITS, commits);
        disk.add(COMMIT_MS, 1000.0 / commits);
        measure(bench, &server, &connections, Pace::Closed, &mut one, 1, || answers.one())?;
        measure(bench, &server, &many_connections, Pace::Closed, &mut many, MANY, || {
            answers.many(MANY)
        })?;
        let rate = one.median(RATE).context("there is no rate")? / 2.0;
        measure(bench, &server, &connections, Pace::Open(rate), &mut half, 1, || answers.one())?;
    }

    let commits = disk.median(COMMITS).context("there is no rate")?;
    let goals = [
        (
            "one per request: multiple of the commits of one connection",
            one.median(RATE).map(|rate| rate / commits),
            Bound::Least(50.0),
        ),
        ("one per request: outcomes/s", one.median(RATE), Bound::Least(5000.0)),
        ("100 per request: outcomes/s", many.median(RATE), Bound::Least(100_000.0)),
        (
            "at half the rate: p50 as a multiple of a commit",
            half.median(P50).map(|p50| p50 * commits / 1000.0),
            Bound::Most(2.0),
        ),
    ];
    Ok(Section {
        name: "feedback",
        on: bench.machine(),
        rows: vec![disk, one, many, half],
        goals: goals
            .into_iter()
            .filter_map(|(what, measured, bound)| {
                Some(Goal { what: what.into(), measured: measured?, bound })
            })
            .collect(),
    })
}

/// One round: a warm-up that determines the number of requests, then the measurement.
pub fn measure(
    bench: &Bench,
    server: &Server,
    connections: &Connections,
    pace: Pace,
    row: &mut Row,
    outcomes: usize,
    mut request: impl FnMut() -> Vec<u8>,
) -> anyhow::Result<()> {
    let (warm, _) = spend(server, connections, pace, bench.warm_up(), |next| {
        next.extend_from_slice(&request());
        true
    })?;
    let wanted = (warm.per_second() * bench.round.as_secs_f64() * SPARE).ceil() as usize;
    let mut ready: Vec<_> = (0..wanted).map(|_| request()).collect();
    let (observed, spent) =
        spend(server, connections, pace, bench.round, |next| match ready.pop() {
            Some(request) => {
                *next = request;
                true
            }
            None => false,
        })?;
    row.add(RATE, observed.per_second() * outcomes as f64);
    row.add(P50, observed.quantile_ms(0.5));
    row.add(P99, observed.quantile_ms(0.99));
    let answered = (observed.answered * outcomes as u64) as f64;
    row.add(PER_CPU_SECOND, spent.filter(|spent| *spent > 0.0).map(|spent| answered / spent));
    Ok(())
}

fn spend(
    server: &Server,
    connections: &Connections,
    pace: Pace,
    within: std::time::Duration,
    next: impl FnMut(&mut Vec<u8>) -> bool,
) -> anyhow::Result<(Observed, Option<f64>)> {
    let before = server.processor_time();
    let observed = connections.run(pace, within, next)?;
    let spent =
        before.zip(server.processor_time()).map(|(before, after)| (after - before).as_secs_f64());
    Ok((observed, spent))
}
