//! The cost of claims: processor time to fold an answer and to select a duel, and memory, of the
//! same experiment without claims and with more and more of them. Memory is what the experiment
//! estimates and what it has allocated.
//!
//! ```text
//! cargo bench -p rankduel-engine --bench claims
//! ```

use std::time::Duration;

use allocation_counter::measure;
use dueling_bandits::{Answer, InFlight, step_rng};
use rand::RngExt;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::{ControlEvent, Event, OutcomeEvent, PageValues};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

const RANKERS: u16 = 10;
const SEGMENTS: [&str; 4] = ["a", "b", "c", "d"];
const ANSWERS: u64 = 200_000;
/// Shares of pages whose unit is new. Any other page is of the unit of an earlier page, so a unit
/// with more pages gets more: with 0.4, it has 2.5 pages on average, and a few have thousands.
const NEW_UNITS: [f64; 2] = [1.0, 0.4];
/// Answers of a group commit.
const CHUNK: u64 = 20;
/// Milliseconds between two answers, and the answer window.
const APART_MS: i64 = 50;
const WINDOW_MS: i64 = 60_000;
/// Answers between two completions of cohorts.
const COMPLETION: u64 = 100;
/// Answers before the first selections, when no verdict is near, and before the later ones.
const LOOKS: [u64; 2] = [1_500, ANSWERS];
const SELECTIONS: u32 = 20_000;
const ROUNDS: usize = 5;

fn main() {
    let metric = |name: &str, limits: [&str; 2]| {
        let [kind, limit] = limits;
        json!({ "name": name, "cap": 1.0, kind: limit.parse::<f64>().expect("a number"), "on_harm": "tell" })
    };
    let control = json!({ "drift": "off", "control": "r5" });
    let five = json!({
        "control": "r5", "segments": SEGMENTS,
        "metrics": [
            metric("latency", ["difference", "0.01"]),
            metric("errors", ["limit", "0.05"]),
            metric("empty", ["limit", "0.1"]),
        ],
    });
    let with = |claims: &Value, more: Value| {
        let mut all = claims.clone();
        let members = all.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        all
    };
    let cases = [
        ("verdict alone", json!({ "drift": "off" })),
        ("and drift", json!({})),
        ("and control", control.clone()),
        ("control, segments", with(&control, json!({ "segments": SEGMENTS }))),
        ("control, metrics", with(&control, json!({ "metrics": five["metrics"] }))),
        ("all of them", five.clone()),
        ("all, and alone", with(&five, json!({ "alone": 0.1 }))),
    ];
    for new_units in NEW_UNITS {
        compare(&cases, new_units);
    }
}

fn compare(cases: &[(&str, Value)], new_units: f64) {
    println!(
        "{:<18} {:>9} {:>6} {:>18} {:>13} {:>9} {:>6} {:>9} {:>6}   {new_units} new units",
        "claims",
        "ns/answer",
        "ratio",
        "ns/select at 1,500",
        "at the end",
        "KB",
        "ratio",
        "KB alloc",
        "ratio"
    );
    let mut rounds: Vec<Vec<Cost>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, claims), costs) in cases.iter().zip(&mut rounds) {
            costs.push(cost(claims, new_units));
        }
    }
    let median = |costs: &[Cost], of: fn(&Cost) -> f64| {
        let mut all: Vec<f64> = costs.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for ((name, _), costs) in cases.iter().zip(&rounds) {
        let of = |of: fn(&Cost) -> f64| (median(costs, of), median(&rounds[0], of));
        let (fold, first_fold) = of(|cost| cost.fold);
        let (bytes, first_bytes) = of(|cost| cost.bytes);
        let (allocated, first_allocated) = of(|cost| cost.allocated);
        println!(
            "{name:<18} {fold:>9.0} {:>6.2} {:>18.0} {:>13.0} {:>9.0} {:>6.2} {:>9.0} {:>6.2}",
            fold / first_fold,
            of(|cost| cost.select[0]).0,
            of(|cost| cost.select[1]).0,
            bytes / 1024.0,
            bytes / first_bytes,
            allocated / 1024.0,
            allocated / first_allocated
        );
    }
}

struct Cost {
    /// Nanoseconds an answer.
    fold: f64,
    /// Nanoseconds a selection, at each of [`LOOKS`].
    select: [f64; 2],
    bytes: f64,
    allocated: f64,
}

fn cost(claims: &Value, new_units: f64) -> Cost {
    let spec = spec(claims);
    let log = Log::of(&spec, new_units);
    let mut fold = None;
    let (mut spent, mut select, mut looks) = (Duration::ZERO, [0.0; 2], LOOKS.iter().peekable());
    let kept = measure(|| {
        let fold = fold.insert(Fold::start(&spec, 1, 0));
        for chunk in &log.0 {
            spent += timed(|| {
                fold.apply_chunk(|fold| {
                    for entry in &chunk.1 {
                        fold.apply(entry).expect("it folds");
                    }
                });
            });
            if looks.next_if(|&&look| chunk.0 >= look).is_some() {
                let at = LOOKS.len() - 1 - looks.len();
                select[at] = time_of_selecting(fold);
            }
        }
    });
    let bytes = fold.map_or(0, |fold| fold.bytes()) as f64;
    let fold = spent.as_nanos() as f64 / ANSWERS as f64;
    Cost { fold, select, bytes, allocated: kept.bytes_current as f64 }
}

fn spec(claims: &Value) -> ExperimentSpec {
    let rankers: Vec<_> = (0..RANKERS).map(|it| json!({ "id": format!("r{it}") })).collect();
    let mut spec = json!({
        "rankers": rankers, "policy": { "kind": "d-ts-verdict" }, "ties": "skip",
        "duel_ttl_seconds": 3600, "answer_window_seconds": WINDOW_MS / 1000, "seed": null,
    });
    let members = spec.as_object_mut().expect("an object");
    members.extend(claims.as_object().expect("an object").clone());
    serde_json::from_value(spec).expect("the spec of an experiment")
}

/// The log of an experiment that shows all pairs alike, in chunks with the answers up to their end.
/// Only with metrics it has their values: an entry of the pages that were issued, and one for each
/// page whose values came.
struct Log(Vec<(u64, Vec<LogEntry>)>);

impl Log {
    fn of(spec: &ExperimentSpec, new_units: f64) -> Self {
        let (mut rng, mut position, mut pages) = (step_rng(7, 0), 0, Vec::new());
        let (mut chunks, mut units) = (Vec::new(), Vec::<u64>::new());
        for last in (CHUNK..=ANSWERS).step_by(CHUNK as usize) {
            let now = 1_000_000 + last as i64 * APART_MS;
            let mut entries = Vec::new();
            let mut append = |nonce: u128, event: Event| {
                position += 1;
                entries.push(LogEntry { position, nonce, recorded_at: now, event });
            };
            for number in last - CHUNK + 1..=last {
                let first = rng.random_range(0..RANKERS);
                let second = (first + rng.random_range(1..RANKERS)) % RANKERS;
                // ranker 0 is the best one, with 59 % of its duels against ranker 5
                let p = 0.5 + 0.018 * (f64::from(second) - f64::from(first));
                let answer = if rng.random_bool(p) { Answer::First } else { Answer::Second };
                let (nonce, issued_at) = (number.into(), now - 5_000);
                let is_new = units.is_empty() || rng.random_bool(new_units);
                units.push(match is_new {
                    true => rng.random(),
                    false => units[rng.random_range(0..units.len())],
                });
                let (unit, segment) =
                    (units.last().copied(), SEGMENTS[rng.random_range(0..SEGMENTS.len())]);
                append(
                    nonce,
                    Event::Outcome(OutcomeEvent {
                        first,
                        second,
                        first_left: rng.random(),
                        answer,
                        batch: None,
                        ticket: 0,
                        chosen_at: 0,
                        issued_at,
                        unit,
                        segment: segment.try_into().ok(),
                    }),
                );
                let mut value = || vec![Some(rng.random::<f64>() * 0.3), Some(0.0), Some(0.0)];
                let values = [value(), value()];
                pages.push(PageValues::of(nonce, [first, second], issued_at, unit, values));
            }
            if spec.metrics.is_empty() {
                pages.clear();
            }
            if !pages.is_empty() {
                let mut issued = pages.clone();
                issued.iter_mut().for_each(|page| page.values = [Vec::new(), Vec::new()]);
                append(
                    1 << 64 | u128::from(last),
                    Event::Control(ControlEvent::Values { pages: issued }),
                );
            }
            for page in pages.drain(..) {
                let nonce = 4 << 64 | page.duel.as_u128();
                append(nonce, Event::Control(ControlEvent::Values { pages: vec![page] }));
            }
            if last % COMPLETION == 0 {
                let issued_before = now - WINDOW_MS;
                let (issued, answered) = (COMPLETION, COMPLETION);
                append(
                    2 << 64 | u128::from(last),
                    Event::Control(ControlEvent::CohortsComplete {
                        issued_before,
                        issued,
                        answered,
                    }),
                );
                append(
                    3 << 64 | u128::from(last),
                    Event::Control(ControlEvent::ValuesComplete { issued_before }),
                );
            }
            chunks.push((last, entries));
        }
        Self(chunks)
    }
}

fn time_of_selecting(fold: &Fold) -> f64 {
    let (mut rng, idle) = (step_rng(3, 0), InFlight::new());
    let spent = timed(|| {
        for _ in 0..SELECTIONS {
            let claimed = fold.run().claimed(&mut rng);
            std::hint::black_box(
                claimed.unwrap_or_else(|| fold.run().policy().select(&idle, &mut rng)),
            );
        }
    });
    spent.as_nanos() as f64 / f64::from(SELECTIONS)
}

/// The processor time of this thread.
fn timed(work: impl FnOnce()) -> Duration {
    let time = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let begun = time();
    work();
    time() - begun
}
