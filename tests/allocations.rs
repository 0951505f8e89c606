//! Selecting allocates no memory; otherwise concurrent requests would wait for the allocator. The
//! memory of an experiment with many rankers, which grows with the square of their number, is
//! bounded.
//!
//! The counting allocator is used by this whole binary and counts per thread.

use allocation_counter::measure;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Answer, InFlight, Observation, Outcome, Policy, PolicyRng, PolicySpec};
use rand::{RngExt, SeedableRng};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::LogEntry;
use rankduel_store::events::{ControlEvent, Event, OutcomeEvent};
use serde_json::json;

const STEPS: u64 = 1_000;

/// Every kind that accepts this number of rankers, with a horizon where one is required.
fn specs(rankers: usize) -> impl Iterator<Item = PolicySpec> {
    let kinds = PolicySpec::KINDS.iter().map(|(kind, _)| *kind);
    let specs =
        kinds.map(|kind| PolicySpec::from_text_with(kind, &[("horizon", json!(2 * STEPS))]));
    specs
        .map(|spec| spec.expect("a kind that needs no more"))
        .filter(move |spec| spec.validate(rankers).is_ok())
}

/// Play a policy and return the first step at which selecting allocated. Every other selection has
/// duels in flight, as in a running service.
fn first_allocation(policy: &mut dyn Policy, matrix: &PreferenceMatrix) -> Option<u64> {
    let mut rng = PolicyRng::seed_from_u64(91);
    let idle = InFlight::new();
    let mut busy = InFlight::new();
    (1..policy.tally().rankers()).for_each(|i| busy.add(i, i - 1, 2));
    for step in 0..STEPS {
        let in_flight = if step % 2 == 0 { &idle } else { &busy };
        let mut selection = None;
        let allocated = measure(|| selection = Some(policy.select(in_flight, &mut rng)));
        if allocated.count_total > 0 {
            return Some(step);
        }
        let selection = selection?;
        let duel = selection.duel;
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
            continue;
        }
        let first_wins = rng.random::<f64>() < matrix.win_probability(duel.first, duel.second);
        let outcome = if first_wins { Outcome::First } else { Outcome::Second };
        policy.observe(&Observation {
            duel,
            outcome,
            batch: selection.batch,
            ticket: selection.ticket,
        });
    }
    None
}

#[test]
fn no_policy_allocates_while_selecting() {
    for name in ["arxiv-6", "cycle:24:1"] {
        let matrix = PreferenceMatrix::named(name).expect("a known name").expect("a valid size");
        let rankers = matrix.rankers();
        let kinds: Vec<String> = specs(rankers)
            .filter_map(|spec| {
                let mut policy = spec.start(Setup { rankers, seed: 1 });
                let step = first_allocation(policy.as_mut(), &matrix)?;
                Some(format!("{} at step {step}", spec.kind()))
            })
            .collect();
        assert!(kinds.is_empty(), "selecting among {name} allocates in {}", kinds.join(", "));
    }
}

/// The memory per pair that `crates/lab/notes/performance.md` states. An allowance of a kibibyte per
/// ranker covers memory that does not grow with the number of pairs.
#[test]
fn an_experiment_uses_34_bytes_per_pair() {
    const RANKERS: usize = 500;
    let rankers: Vec<_> = (0..RANKERS).map(|number| json!({ "id": number.to_string() })).collect();
    let spec = json!({
        "rankers": rankers, "policy": { "kind": "d-ts-plus" }, "ties": "half", "duel_ttl_seconds": 60, "seed": null,
    });
    let spec: ExperimentSpec = serde_json::from_value(spec).expect("the spec of an experiment");
    let mut fold = None;
    let kept = measure(|| fold = Some(Fold::start(&spec, 1, 0)));
    let pairs = RANKERS * (RANKERS - 1) / 2;
    let bytes = kept.bytes_current as f64 / pairs as f64;
    assert!((33.0..35.0).contains(&bytes), "{bytes} bytes per pair");
}

/// The estimate that decides which experiments leave memory counts what the verdict keeps: the
/// filter of units, the answers that wait, and the counts of those that do not count.
#[test]
fn the_estimate_of_memory_counts_what_the_verdict_keeps() {
    const RANKERS: u16 = 50;
    let rankers: Vec<_> = (0..RANKERS).map(|number| json!({ "id": number.to_string() })).collect();
    let spec = json!({
        "rankers": rankers, "policy": { "kind": "d-ts-verdict" }, "ties": "half",
        "duel_ttl_seconds": 3600, "answer_window_seconds": 3600, "seed": null,
    });
    let spec: ExperimentSpec = serde_json::from_value(spec).expect("the spec of an experiment");
    let mut fold = Fold::start(&spec, 1, 0);
    let before = fold.bytes() as i64;
    let answers = |units: std::ops::Range<u64>| {
        units.map(|unit| LogEntry {
            position: unit + 1,
            nonce: unit.into(),
            recorded_at: 10_000_000,
            event: Event::Outcome(OutcomeEvent {
                first: (unit % 50) as u16,
                second: ((unit + 1) % 50) as u16,
                first_left: true,
                answer: Answer::First,
                batch: None,
                ticket: 0,
                chosen_at: 0,
                issued_at: 8_000_000 + 75 * unit as i64,
                unit: Some(unit),
                segment: None,
            }),
        })
    };
    let mut entries: Vec<_> = answers(0..8000).collect();
    let event = ControlEvent::CohortsComplete { issued_before: 8_300_000, issued: 0, answered: 0 };
    let complete = LogEntry { position: 8001, event: Event::Control(event), ..entries[0].clone() };
    entries.push(complete);
    let grown = measure(|| {
        fold.apply_chunk(|chunk| {
            for entry in &entries {
                chunk.apply(entry).expect("folds");
            }
        });
    });
    let estimated = fold.bytes() as i64 - before;
    let ratio = estimated as f64 / grown.bytes_current as f64;
    assert!(estimated > 400_000 && (0.5..2.0).contains(&ratio), "{estimated}: {ratio}");
}

#[test]
fn the_allocator_counts() {
    let allocated = measure(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(allocated.count_total, 1);
}
