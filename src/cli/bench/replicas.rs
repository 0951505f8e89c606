//! Feedback to one server, and to two that share the database.

use std::process::Stdio;

use anyhow::{Context as _, bail};

use super::Bench;
use super::answers::{Answers, create};
use super::load::{Connections, Pace};
use super::process::Server;
use super::report::{Bound, Goal, Row, Section};

const RATE: &str = "outcomes/s";
const P50: &str = "p50 ms";
const P99: &str = "p99 ms";
/// Experiments that the answers are spread over.
const EXPERIMENTS: usize = 8;

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    if bench.database_url.starts_with("sqlite:") {
        bail!("replicas share a PostgreSQL database: --database-url postgres://…");
    }
    let start = || Server::of_api(&bench.database_url, &bench.log, Stdio::inherit());
    let servers = [start()?, start()?];
    let addresses = servers.each_ref().map(|server| server.address);
    let mut answers = Vec::new();
    for number in 0..EXPERIMENTS {
        let name = bench.experiment(&format!("replicas-{number}"));
        create(addresses[0], &name, 10)?;
        answers.push(bench.runtime.block_on(Answers::of(&bench.store, &name))?);
    }
    let one = Connections::open(&addresses[..1], bench.feedback_connections)?;
    let two = Connections::open(&addresses, bench.feedback_connections)?;
    let mut rows = [Row::new("one server"), Row::new("two servers")];
    for round in 0..bench.rounds {
        bench.say(&format!("replicas, round {} of {}", round + 1, bench.rounds));
        for (row, connections) in rows.iter_mut().zip([&one, &two]) {
            let mut turn = 0;
            let observed = connections.run(Pace::Closed, bench.round, |request| {
                turn = (turn + 1) % EXPERIMENTS;
                request.extend_from_slice(&answers[turn].one());
                true
            })?;
            row.add(RATE, observed.per_second());
            row.add(P50, observed.quantile_ms(0.5));
            row.add(P99, observed.quantile_ms(0.99));
        }
    }
    let [single, double] = rows.each_ref().map(|row| row.median(RATE));
    let measured = double.context("a rate")? / single.context("a rate")?;
    Ok(Section {
        name: "replicas",
        on: format!(
            "one outcome a request, {} connections, {EXPERIMENTS} experiments, {}",
            bench.feedback_connections,
            bench.machine()
        ),
        rows: rows.into(),
        goals: vec![Goal {
            what: "two servers: outcomes/s of one server".into(),
            measured,
            bound: Bound::Least(1.0),
        }],
    })
}
