//! `next-duel` while others read reports, compared with `next-duel` while nobody does.
//!
//! Feedback arrives all the time, so that every report is computed anew, and both databases take
//! part.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::json;

use super::answers::{Answers, create, feed};
use super::context::Bench;
use super::load::{self, Connections, Pace};
use super::report::{Bound, Goal, Row, Section};

const P50: &str = "p50 ms";
const P99: &str = "p99 ms";
const READ: &str = "reports/s";
/// Requests for duels per second: far from the limit, so that only the reports disturb them.
const RATE: f64 = 500.0;
/// Connections that request duels.
const CONNECTIONS: usize = 16;
/// Pause between two pieces of feedback.
const FEEDBACK_EVERY: Duration = Duration::from_millis(50);
/// A p99 may be this many times the one without readers, and this long.
const TIMES_MAX: f64 = 5.0;
const P99_MAX_MS: f64 = 5.0;

/// What the readers request, each on a connection of its own, one request after the other.
struct Mix {
    what: &'static str,
    readers: usize,
    requests: Vec<Vec<u8>>,
}

pub fn run(bench: &Bench) -> anyhow::Result<Section> {
    let server = bench.server(&bench.log, Stdio::inherit())?;
    let (mut rows, mut goals) = (Vec::new(), Vec::new());
    for rankers in [100, 1024] {
        let name = bench.experiment(&format!("reports-{rankers}"));
        create(server.address, &name, &bench.policy, rankers)?;
        let mut answers = bench.runtime.block_on(Answers::of(&bench.store, &name))?;
        // each ranker has some of it
        feed(server.address, &mut answers, rankers.div_ceil(4))?;
        let mixes = mixes(&name);
        let mut measured: Vec<Row> = mixes
            .iter()
            .map(|mix| Row::new(format!("next-duel, K = {rankers}, {}", mix.what)))
            .collect();
        for round in 0..bench.rounds {
            bench.say(&format!("reports, K = {rankers}, round {} of {}", round + 1, bench.rounds));
            for (mix, row) in mixes.iter().zip(&mut measured) {
                measure(bench, server.address, &name, &mut answers, mix, row)?;
            }
        }
        let idle = measured[0].median(P99).unwrap_or(f64::NAN);
        for row in &measured[1..] {
            let Some(p99) = row.median(P99) else { continue };
            let goal = |what: &str, measured, most| Goal {
                what: format!("{}: {what}", row.what),
                measured,
                bound: Bound::Most(most),
            };
            goals.push(goal("p99, times the one without readers", p99 / idle, TIMES_MAX));
            goals.push(goal("p99 ms", p99, P99_MAX_MS));
        }
        rows.append(&mut measured);
    }
    Ok(Section { name: "reports", on: bench.machine(), rows, goals })
}

fn mixes(name: &str) -> Vec<Mix> {
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\naccept-encoding: gzip\r\n\r\n")
            .into_bytes()
    };
    let report = |report: &str| get(&format!("/v1/experiments/{name}/{report}"));
    let json = || {
        let reports = ["standings", "statistics", "regret", "winners", "verdict", "traffic"];
        reports.map(report).into_iter().chain([get("/metrics")]).collect::<Vec<_>>()
    };
    let pages = || vec![get(&format!("/experiments/{name}")), get("/")];
    let work = || {
        let policy = json!({ "policy": { "kind": "rucb" } }).to_string();
        vec![load::post(&format!("/v1/experiments/{name}/replay"), &policy)]
    };
    vec![
        Mix { what: "nobody reads", readers: 0, requests: Vec::new() },
        Mix { what: "16 readers of standings", readers: 16, requests: vec![report("standings")] },
        Mix { what: "16 readers of all reports", readers: 16, requests: json() },
        Mix { what: "4 readers of the dashboard", readers: 4, requests: pages() },
        Mix { what: "4 replays", readers: 4, requests: work() },
        Mix {
            what: "24 readers of everything",
            readers: 24,
            requests: [json(), pages(), work()].concat(),
        },
    ]
}

fn measure(
    bench: &Bench,
    server: SocketAddr,
    name: &str,
    answers: &mut Answers,
    mix: &Mix,
    row: &mut Row,
) -> anyhow::Result<()> {
    let duel = load::post(&format!("/v1/experiments/{name}/next-duel"), "");
    let send = |request: &mut Vec<u8>| {
        request.extend_from_slice(&duel);
        true
    };
    let connections = Connections::open(&[server], CONNECTIONS)?;
    let (going, read) = (AtomicBool::new(true), AtomicU64::new(0));
    let observed = std::thread::scope(|scope| {
        let feedback = scope.spawn(|| send_feedback(server, answers, &going));
        let readers: Vec<_> = (0..mix.readers)
            .map(|number| {
                let (going, read) = (&going, &read);
                scope.spawn(move || read_reports(server, &mix.requests, number, going, read))
            })
            .collect();
        let observed = (|| {
            connections.run(Pace::Open(RATE), bench.warm_up(), send)?;
            let before = read.load(Ordering::Relaxed);
            let observed = connections.run(Pace::Open(RATE), bench.round, send)?;
            Ok::<_, anyhow::Error>((observed, read.load(Ordering::Relaxed) - before))
        })();
        going.store(false, Ordering::Relaxed);
        let ended = readers.into_iter().chain([feedback]).map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(_) => bail!("a thread of the load panicked"),
        });
        ended.collect::<anyhow::Result<Vec<()>>>()?;
        observed
    });
    let (observed, read) = observed?;
    row.add(P50, observed.quantile_ms(0.5));
    row.add(P99, observed.quantile_ms(0.99));
    row.add(READ, read as f64 / observed.elapsed.as_secs_f64());
    Ok(())
}

fn send_feedback(
    server: SocketAddr,
    answers: &mut Answers,
    going: &AtomicBool,
) -> anyhow::Result<()> {
    let connection = Connections::open(&[server], 1)?;
    while going.load(Ordering::Relaxed) {
        let mut request = Some(answers.one());
        connection.run(Pace::Closed, Duration::from_secs(60), |next| match request.take() {
            Some(request) => {
                *next = request;
                true
            }
            None => false,
        })?;
        std::thread::sleep(FEEDBACK_EVERY);
    }
    Ok(())
}

/// Send the requests in turn, from the one with this number on. Reading takes processor time that
/// a reader on another machine would not take, so it has a low priority.
fn read_reports(
    server: SocketAddr,
    requests: &[Vec<u8>],
    number: usize,
    going: &AtomicBool,
    read: &AtomicU64,
) -> anyhow::Result<()> {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
    let mut stream = TcpStream::connect(server).context("cannot connect to the server")?;
    let mut answers = BufReader::new(stream.try_clone().context("no second handle")?);
    for request in requests.iter().cycle().skip(number) {
        if !going.load(Ordering::Relaxed) {
            break;
        }
        stream.write_all(request).context("a report cannot be requested")?;
        skip_answer(&mut answers)?;
        read.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Read one answer. A server that is busy with reports may refuse some with 503 or 504.
fn skip_answer(answers: &mut BufReader<TcpStream>) -> anyhow::Result<()> {
    let (mut line, mut length) = (String::new(), 0);
    let mut status = None;
    loop {
        line.clear();
        answers.read_line(&mut line).context("a report cannot be read")?;
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if status.is_none() {
            status = text.split(' ').nth(1).map(str::to_owned);
        }
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().context("a report has no length")?;
        }
    }
    match status.as_deref() {
        Some("200" | "503" | "504") => {}
        _ => bail!("the server answered {status:?} to a request for a report"),
    }
    let skipped = std::io::copy(&mut answers.take(length), &mut std::io::sink());
    skipped.context("a report cannot be read").map(drop)
}
