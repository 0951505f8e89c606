//! `next-duel` for one, ten and a hundred duels a request, as a client with a stock sends it.

use std::process::Stdio;

use super::answers::{Answers, create, feed};
use super::context::Bench;
use super::load::{self, Connections, Pace};
use super::process::Server;
use super::report::{Row, Section};

const RANKERS: [usize; 2] = [10, 100];
const COUNTS: [u64; 3] = [1, 10, 100];

struct Side {
    request: Vec<u8>,
    /// Duels of an answer.
    count: u64,
    row: Row,
}

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    let server = bench.server(&bench.log, Stdio::inherit())?;
    let mut sides = Vec::new();
    for rankers in RANKERS {
        let name = bench.experiment(&format!("stock-{rankers}"));
        create(server.address, &name, &bench.policy, rankers)?;
        let mut answers = bench.runtime.block_on(Answers::of(&bench.store, &name))?;
        feed(server.address, &mut answers, 2 * rankers)?;
        let path = format!("/v1/experiments/{name}/next-duel");
        sides.extend(COUNTS.map(|count| Side {
            request: load::post(&path, &format!("{{\"count\":{count}}}")),
            count,
            row: Row::new(format!("next-duel, K = {rankers}, count = {count}, closed loop")),
        }));
    }
    let connections = Connections::open(&[server.address], bench.connections)?;
    for round in 0..bench.rounds {
        bench.say(&format!("stock, round {} of {}", round + 1, bench.rounds));
        for side in &mut sides {
            measure(bench, &server, &connections, side)?;
        }
    }
    let rows = sides.into_iter().map(|side| side.row).collect();
    Ok(Section { name: "stock", on: bench.machine(), rows, goals: Vec::new() })
}

fn measure(
    bench: &Bench,
    server: &Server,
    connections: &Connections,
    side: &mut Side,
) -> anyhow::Result<()> {
    let send = |request: &mut Vec<u8>| {
        request.extend_from_slice(&side.request);
        true
    };
    connections.run(Pace::Closed, bench.warm_up(), send)?;
    let before = server.processor_time();
    let observed = connections.run(Pace::Closed, bench.round, send)?;
    let after = server.processor_time();
    let decisions = (observed.answered * side.count) as f64;
    let spent = before.zip(after).map(|(before, after)| (after - before).as_secs_f64());
    side.row.add("decisions/s", observed.per_second() * side.count as f64);
    side.row.add(
        "decisions per server CPU-second",
        spent.filter(|spent| *spent > 0.0).map(|spent| decisions / spent),
    );
    side.row.add("p50 ms", observed.quantile_ms(0.5));
    side.row.add("p99 ms", observed.quantile_ms(0.99));
    Ok(())
}
