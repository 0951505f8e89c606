//! Feedback and duels of one server, of two servers that share the database, and so on, with the
//! load of each process.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::bail;

use super::answers::{Answers, create};
use super::context::Bench;
use super::load::{Connections, Pace, post};
use super::postgres::{Processes, Sampler};
use super::process::{Process, Server};
use super::report::{Bound, Goal, Row, Section};

const RATE: &str = "answers/s";
const P50: &str = "p50 ms";
const P99: &str = "p99 ms";
/// Number of experiments that the requests are distributed over.
const EXPERIMENTS: usize = 8;

/// The kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Feedback on any experiment to any server.
    Feedback,
    /// Feedback on an experiment to one server, as from a load balancer that hashes its name.
    FeedbackByExperiment,
    /// Duel requests for any experiment to any server.
    Duels,
}

impl Work {
    const ALL: [Self; 3] = [Self::Feedback, Self::FeedbackByExperiment, Self::Duels];

    fn name(self, servers: usize) -> String {
        let plural = if servers == 1 { "" } else { "s" };
        match self {
            Self::Feedback => format!("feedback, {servers} server{plural}"),
            Self::FeedbackByExperiment => {
                format!("feedback, {servers} server{plural}, each with its own experiments")
            }
            Self::Duels => format!("next-duel, {servers} server{plural}"),
        }
    }
}

/// One row of the report.
struct Side {
    work: Work,
    servers: usize,
    row: Row,
}

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    if bench.database_url.starts_with("sqlite:") {
        bail!("replicas share a PostgreSQL database: --database-url postgres://…");
    }
    let postgres = bench.runtime.block_on(Processes::of(&bench.database_url))?;
    let mut sides: Vec<_> = Work::ALL
        .into_iter()
        .flat_map(|work| (1..=bench.servers).map(move |servers| (work, servers)))
        .filter(|&(work, servers)| work != Work::FeedbackByExperiment || servers > 1)
        .map(|(work, servers)| Side { work, servers, row: Row::new(work.name(servers)) })
        .collect();
    for round in 0..bench.rounds {
        bench.say(&format!("replicas, round {} of {}", round + 1, bench.rounds));
        for (number, side) in sides.iter_mut().enumerate() {
            measure(bench, postgres, &format!("{round}-{number}"), side)?;
        }
    }

    let mut goals = Vec::new();
    for side in sides.iter().filter(|side| side.servers > 1) {
        let single = sides.iter().find(|other| {
            other.servers == 1 && (other.work == Work::Duels) == (side.work == Work::Duels)
        });
        let rates = side.row.median(RATE).zip(single.and_then(|single| single.row.median(RATE)));
        goals.extend(rates.map(|(several, one)| Goal {
            what: format!("{}: multiple of the answers/s of one server", side.row.what),
            measured: several / one,
            bound: Bound::Least(1.0),
        }));
    }
    Ok(Section {
        name: "replicas",
        on: format!(
            "one outcome per request, {} connections, duels {}, {EXPERIMENTS} experiments, {}",
            bench.feedback_connections,
            bench.connections,
            bench.machine()
        ),
        rows: sides.into_iter().map(|side| side.row).collect(),
        goals,
    })
}

/// One round of one row. Its servers and experiments are new, so that no other server reads these
/// logs, and the logs of all rows have the same length.
fn measure(
    bench: &Bench,
    postgres: Option<Processes>,
    id: &str,
    side: &mut Side,
) -> anyhow::Result<()> {
    let servers = (0..side.servers)
        .map(|_| bench.server(&bench.log, Stdio::inherit()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let (mut answers, mut duel_requests) = (Vec::new(), Vec::new());
    for number in 0..EXPERIMENTS {
        let name = bench.experiment(&format!("replicas-{id}-{number}"));
        create(addresses[number % addresses.len()], &name, &bench.policy, 10)?;
        answers.push(bench.runtime.block_on(Answers::of(&bench.store, &name))?);
        duel_requests.push(post(&format!("/v1/experiments/{name}/next-duel"), ""));
    }
    let count =
        if side.work == Work::Duels { bench.connections } else { bench.feedback_connections };
    let connections = Connections::open(&addresses, count)?;
    let mut turn = 0;
    let mut next = |connection: usize, request: &mut Vec<u8>| {
        turn += 1;
        match side.work {
            Work::Feedback => request.extend(answers[turn % EXPERIMENTS].one()),
            Work::FeedbackByExperiment => {
                let server = connection % side.servers;
                let own = (EXPERIMENTS - server).div_ceil(side.servers);
                request.extend(answers[server + side.servers * (turn % own)].one());
            }
            Work::Duels => request.extend_from_slice(&duel_requests[turn % EXPERIMENTS]),
        }
        true
    };
    connections.run_each(Pace::Closed, bench.warm_up(), &mut next)?;
    let sampler = bench.runtime.block_on(Sampler::start(&bench.database_url))?;
    let before = processor_times(&servers, postgres);
    let observed = connections.run_each(Pace::Closed, bench.round, &mut next)?;
    let after = processor_times(&servers, postgres);
    let waits = bench.runtime.block_on(sampler.end())?;

    let row = &mut side.row;
    row.add(RATE, observed.per_second());
    row.add(P50, observed.quantile_ms(0.5));
    row.add(P99, observed.quantile_ms(0.99));
    for ((name, before), (_, after)) in before.into_iter().zip(after) {
        let spent =
            before.zip(after).map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        row.add(name, spent.map(|spent| spent / observed.elapsed.as_secs_f64()));
    }
    row.add("waiting for locks", waits.for_locks);
    row.add("waiting for the log on disk", waits.for_disk);
    Ok(())
}

/// Processor times of all servers, of PostgreSQL, and of this process, which generates the load.
fn processor_times(
    servers: &[Server],
    postgres: Option<Processes>,
) -> [(&'static str, Option<Duration>); 3] {
    [
        ("processors of the servers", servers.iter().map(Server::processor_time).sum()),
        ("processors of PostgreSQL", postgres.and_then(Processes::processor_time)),
        ("processors of the load", Process::read(std::process::id()).map(|process| process.time)),
    ]
}
