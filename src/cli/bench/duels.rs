//! `next-duel`, compared with a bare axum route that answers every POST with a constant JSON text
//! of the same size.

use std::process::Stdio;

use anyhow::Context as _;
use axum::Router;
use axum::http::header;
use axum::routing::post;

use super::answers::{Answers, create, feed};
use super::context::Bench;
use super::load::{self, Connections, Observed, Pace};
use super::process::Server;
use super::report::{Bound, Goal, Row, Section};

const RATE: &str = "requests/s";
const P50: &str = "p50 ms";
const P99: &str = "p99 ms";
const PER_CPU_SECOND: &str = "requests per server CPU-second";
/// The load of every side in the open loop, as a share of the throughput of the slowest side.
const OPEN_SHARE: f64 = 0.5;

struct Side {
    server: usize,
    request: Vec<u8>,
    closed: Row,
    open: Row,
}

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    let api = bench.server(&bench.log, Stdio::inherit())?;
    let path = |rankers: usize| {
        format!("/v1/experiments/{}/next-duel", bench.experiment(&format!("k{rankers}")))
    };
    for rankers in [10, 100] {
        let name = bench.experiment(&format!("k{rankers}"));
        create(api.address, &name, &bench.policy, rankers)?;
        // The policy selects from a state that is neither empty nor decided.
        let mut answers = bench.runtime.block_on(Answers::of(&bench.store, &name))?;
        feed(api.address, &mut answers, 2 * rankers)?;
    }
    let body = load::ask(api.address, "POST", &path(10), "")?;
    let bytes = body.len().to_string();
    let bare = Server::start(
        &["bench", "--constant-server", &bytes],
        &[],
        bench.share()?,
        Stdio::inherit(),
    )?;
    let logged = bench.server("info", Stdio::null())?;

    let side = |what: &str, server, path: &str| Side {
        server,
        request: load::post(path, ""),
        closed: Row::new(format!("{what}, closed loop")),
        open: Row::new(format!("{what}, open loop")),
    };
    let servers = [bare, api, logged];
    let mut sides = [
        side("bare axum route", 0, "/v1/experiments/bench/next-duel"),
        side("next-duel, K = 10", 1, &path(10)),
        side("next-duel, K = 100", 1, &path(100)),
        side("next-duel, K = 10, a log line for each request", 2, &path(10)),
    ];
    let connections = servers
        .iter()
        .map(|server| Connections::open(&[server.address], bench.connections))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let measure = |side: &Side, pace: Pace| -> anyhow::Result<(Observed, Option<f64>)> {
        let send = |request: &mut Vec<u8>| {
            request.extend_from_slice(&side.request);
            true
        };
        connections[side.server].run(pace, bench.warm_up(), send)?;
        let before = servers[side.server].processor_time();
        let observed = connections[side.server].run(pace, bench.round, send)?;
        let after = servers[side.server].processor_time();
        let spent = before.zip(after).map(|(before, after)| (after - before).as_secs_f64());
        Ok((observed, spent))
    };
    let note = |row: &mut Row, (observed, spent): &(Observed, Option<f64>)| {
        row.add(RATE, observed.per_second());
        row.add(P50, observed.quantile_ms(0.5));
        row.add(P99, observed.quantile_ms(0.99));
        row.add(
            PER_CPU_SECOND,
            spent.filter(|spent| *spent > 0.0).map(|spent| observed.answered as f64 / spent),
        );
    };
    for round in 0..bench.rounds {
        bench.say(&format!("next-duel, round {} of {}", round + 1, bench.rounds));
        for side in &mut sides {
            let measured = measure(side, Pace::Closed)?;
            note(&mut side.closed, &measured);
        }
        let slowest =
            sides.iter().filter_map(|side| side.closed.median(RATE)).fold(f64::INFINITY, f64::min);
        for side in &mut sides {
            let measured = measure(side, Pace::Open(OPEN_SHARE * slowest))?;
            note(&mut side.open, &measured);
        }
    }

    let ratio = |of: Option<f64>, to: Option<f64>| of.zip(to).map(|(of, to)| of / to);
    let mut goals = Vec::new();
    let mut goal = |what: String, measured: Option<f64>, bound| {
        goals.extend(measured.map(|measured| Goal { what, measured, bound }));
    };
    for (side, rankers) in [(1, 10), (2, 100)] {
        let closed = ratio(sides[side].closed.median(RATE), sides[0].closed.median(RATE));
        goal(format!("K = {rankers}: throughput of the bare route"), closed, Bound::Least(0.85));
        let tail = ratio(sides[side].closed.median(P99), sides[0].closed.median(P99));
        goal(format!("K = {rankers}: p99 of the bare route, closed loop"), tail, Bound::Most(1.5));
        let tail = ratio(sides[side].open.median(P99), sides[0].open.median(P99));
        goal(format!("K = {rankers}: p99 of the bare route, open loop"), tail, Bound::Most(1.5));
    }
    let per_second = sides[1].closed.median(PER_CPU_SECOND);
    goal("K = 10: decisions per server CPU-second".into(), per_second, Bound::Least(25_000.0));
    Ok(Section {
        name: "duels",
        on: format!(
            "{} connections, answers of {bytes} bytes, {}",
            bench.connections,
            bench.machine()
        ),
        rows: sides.into_iter().flat_map(|side| [side.closed, side.open]).collect(),
        goals,
    })
}

/// Serves the bare route: axum with its own server loop and no middleware. Runs until it is killed.
pub async fn serve_constant(bytes: usize) -> anyhow::Result<()> {
    let text: &'static str =
        Box::leak(format!("{{\"duel_id\":\"{}\"}}", "x".repeat(bytes.saturating_sub(14))).into());
    let answer = move || async move { ([(header::CONTENT_TYPE, "application/json")], text) };
    let app = Router::new().route("/v1/experiments/{name}/next-duel", post(answer));
    let listener =
        tokio::net::TcpListener::bind("127.0.0.1:0").await.context("no port to listen on")?;
    println!(
        "listening on http://{}",
        listener.local_addr().context("the listening address cannot be read")?
    );
    axum::serve(
        axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))),
        app,
    )
    .await
    .context("the bare route failed")
}
