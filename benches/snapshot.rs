//! A snapshot of an experiment with many rankers: how long the copy of its state takes, which is
//! made under the lock of the fold, and how long it takes to make bytes of the copy, which is done
//! after it. Prints the median and the longest of some rounds, in milliseconds.
//!
//! ```text
//! cargo bench --bench snapshot
//! ```

use std::time::{Duration, Instant};

use dueling_bandits::Answer;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::{Event, OutcomeEvent};
use serde_json::json;

const RANKERS: u64 = 1024;
const ANSWERS: u64 = 20_000;
const ROUNDS: usize = 15;

fn main() {
    println!("{RANKERS} rankers, {ANSWERS} answers, {ROUNDS} rounds: median, longest");
    for policy in ["d-ts-verdict", "d-ts-plus", "uniform"] {
        let fold = folded(policy);
        let (mut copying, mut writing, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            let started = Instant::now();
            let copy = fold.copy();
            let copied = Instant::now();
            bytes = copy.into_bytes().len();
            copying.push(copied - started);
            writing.push(copied.elapsed());
        }
        let (copying, writing) = (summary(copying), summary(writing));
        println!("{policy:14} copy {copying}; bytes {writing}; {bytes} bytes");
    }
}

fn folded(policy: &str) -> Fold {
    let rankers: Vec<_> = (0..RANKERS).map(|number| json!({ "id": number.to_string() })).collect();
    let spec = json!({
        "rankers": rankers, "policy": { "kind": policy }, "ties": "half",
        "duel_ttl_seconds": 3600, "answer_window_seconds": 0, "seed": null,
    });
    let spec: ExperimentSpec = serde_json::from_value(spec).expect("the spec of an experiment");
    let mut fold = Fold::start(&spec, 1, 0);
    let entries = (1..=ANSWERS).map(|position| {
        let first = position * 7919 % RANKERS;
        let second = (first + 1 + position * 104_729 % (RANKERS - 1)) % RANKERS;
        LogEntry {
            position,
            nonce: position.into(),
            recorded_at: position as i64,
            event: Event::Outcome(OutcomeEvent {
                first: first as u16,
                second: second as u16,
                first_left: true,
                answer: if position % 3 == 0 { Answer::Second } else { Answer::First },
                batch: None,
                ticket: 0,
                chosen_at: 0,
                issued_at: 0,
                unit: None,
                segment: None,
            }),
        }
    });
    let entries: Vec<_> = entries.collect();
    fold.apply_chunk(|chunk| entries.iter().try_for_each(|entry| chunk.apply(entry)))
        .expect("a log that can be folded");
    fold
}

fn summary(mut times: Vec<Duration>) -> String {
    times.sort();
    let ms = |time: &Duration| time.as_secs_f64() * 1000.0;
    let (median, longest) = (&times[times.len() / 2], &times[times.len() - 1]);
    format!("{:.2}, {:.2} ms", ms(median), ms(longest))
}
