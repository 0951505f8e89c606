//! Values of metrics in the log: any snapshot of the fold goes on as the fold itself.

use dueling_bandits::claims::betting::Side;
use dueling_bandits::claims::guardrails::{Claim, Kind};
use dueling_bandits::{Answer, Selection};
use interleaving::Team;
use rankduel_engine::experiment_spec::{ExperimentSpec, Patch};
use rankduel_engine::fold::Fold;
use rankduel_store::events::*;
use rankduel_store::{LogEntry, Nonce};
use serde_json::json;

use crate::events::{
    CREATED_AT, SEED, clicks, enlists, entries, entry, fold_all, outcome, sheet, started,
};

fn spec() -> ExperimentSpec {
    let metrics = json!([
        {"name": "latency_ms", "cap": 1000.0, "limit": 400.0, "difference": 10.0},
        {"name": "failed", "cap": 1.0, "limit": 0.5, "on_harm": "tell"},
        {"name": "sold", "of": "page", "better": "higher", "cap": 1.0, "difference": 0.0},
    ]);
    let spec = json!({
        "rankers": [{"id": "a"}, {"id": "b"}, {"id": "c"}], "policy": {"kind": "uniform"},
        "ties": "skip", "duel_ttl_seconds": 3600, "seed": null, "control": "a", "metrics": metrics,
        "alone": 0.5,
    });
    ExperimentSpec::read(&spec.to_string()).expect("a spec")
}

/// A slow ranker that sells nothing, and whose failures nobody reports; a new ranker, and another
/// control.
fn events() -> Vec<Event> {
    let mut events = Vec::new();
    for number in 0..200_u16 {
        let issued_at = CREATED_AT + 500 * i64::from(number);
        let pair = [[0, 1], [1, 2], [2, 0]][usize::from(number) % 3];
        let latency = |ranker: u16| Some(if ranker == 2 { 800.0 } else { 100.0 });
        let values = pair.map(|ranker| match ranker {
            2 => vec![latency(ranker)],
            _ => vec![latency(ranker), Some(0.0)],
        });
        let unit = (number % 4 == 0).then_some(u64::from(number) / 8);
        let page = |values| PageValues::of(number.into(), pair, issued_at, unit, values);
        let issued = page([Vec::new(), Vec::new()]);
        // a ranker that is not known here spoils nothing
        let unknown = PageValues { second: 9, ..issued.clone() };
        events.push(ControlEvent::Values { pages: vec![issued.clone(), unknown] });
        events.push(ControlEvent::Values { pages: vec![page(values)] });
        let shown = [2, 0][usize::from(number) % 2];
        let number = u64::from(number);
        let (seller, unit) = (1000 + u128::from(number), Some(1000 + number / 2));
        let alone = PageValues::of(seller, [2, 0], issued_at, unit, Default::default());
        let alone = PageValues { alone: Some(shown), ..alone };
        let later = [vec![], vec![None, None, Some(1.0)]];
        let values = if shown == 0 { later } else { Default::default() };
        events.push(ControlEvent::Values { pages: vec![alone.clone()] });
        events.push(ControlEvent::Values { pages: vec![PageValues { values, ..alone }] });
        match number {
            120 => events.push(of_change(&enlists("d"))),
            150 => events.push(of_change(&named("b"))),
            _ if number % 20 == 19 => {
                events.push(ControlEvent::ValuesComplete { issued_before: issued_at - 5_000 });
            }
            _ => {}
        }
    }
    events.into_iter().map(Event::Control).collect()
}

fn named(control: &str) -> Patch {
    Patch { control: Some(control.into()), ..Patch::default() }
}

fn of_change(patch: &Patch) -> ControlEvent {
    ControlEvent::Changed { patch: patch.to_json(), by: "anyone".into() }
}

#[test]
fn a_snapshot_goes_on_as_the_fold() {
    let first = spec();
    let spec = first.patched(&enlists("d")).and_then(|spec| spec.patched(&named("b")));
    let spec = spec.expect("valid");
    let mut fold = started(&first);
    let often = |entry: LogEntry| LogEntry {
        recorded_at: CREATED_AT + 150 * entry.position as i64,
        ..entry
    };
    let log: Vec<_> = entries(events()).into_iter().map(often).collect();
    let whole = fold_all(started(&first), &log).save();
    for (number, entry) in log.iter().enumerate() {
        fold.apply(entry).expect("an entry that follows");
        if number % 37 == 0 {
            let saved = fold.save();
            let restored = Fold::restore(&spec, SEED, &saved).expect("a state of this spec");
            assert_eq!(restored.save(), saved);
            assert_eq!(fold_all(restored, &log[number + 1..]).save(), whole);
        }
    }
    let held = fold.state().guardrails.as_deref().expect("guardrails");
    let decided: Vec<Claim> = held.decided().collect();
    let harmful = |metric| {
        let is_it = |it: &&Claim| it.side == Side::Harm && it.metric == metric;
        decided.iter().filter(is_it).map(|it| it.ranker).collect::<Vec<_>>()
    };
    assert_eq!((harmful(0).first(), harmful(1)), (Some(&2), vec![]), "{decided:?}");
    let silent = |it: &Claim| it.ranker == 2 && it.metric == 1;
    assert!(!decided.iter().any(silent), "nobody says whether it fails: {decided:?}");
    assert_eq!((held.control(), held.metrics()), (Some(1), 3));
    // of another spec it is no state
    assert!(Fold::restore(&first, SEED, &fold.save()).is_none());
}

/// A crash loses pages that wait to be appended. Their answers and clicks show that they were
/// issued.
#[test]
fn a_page_whose_answer_is_in_the_log_counts_without_a_value() {
    let mut events = Vec::new();
    for number in 0..60_u16 {
        let issued_at = CREATED_AT + i64::from(number);
        // of each ten pages, one has a value, and it is a good one
        let nonce = 1 + u128::from(number);
        let latency = [vec![Some(1.0)], vec![Some(1.0)]];
        let page = PageValues::of(nonce, [0, 2], issued_at, None, latency);
        if number % 10 == 0 {
            events.push(entry_of(7000 + nonce, ControlEvent::Values { pages: vec![page] }));
        }
        let selection = Selection::of(0, 2);
        if number % 2 == 0 {
            let answered = OutcomeEvent { issued_at, ..outcome(selection, Answer::None) };
            events.push((nonce, Event::Outcome(answered)));
        } else {
            let sheet = sheet([Team::Left, Team::Right].into_iter());
            let clicks = ClicksEvent { issued_at, ..clicks(selection, nonce, 1, sheet, vec![0]) };
            events.push(entry_of(9000 + nonce, ControlEvent::Clicks(Box::new(clicks))));
        }
    }
    let complete = ControlEvent::ValuesComplete { issued_before: CREATED_AT + 100_000 };
    events.push(entry_of(5000, complete));
    let numbered = (1..).zip(events);
    let log: Vec<_> = numbered.map(|(at, (nonce, event))| entry(at, Some(nonce), event)).collect();
    let fold = fold_all(Fold::start(&spec(), SEED, CREATED_AT), &log);
    let held = fold.state().guardrails.as_deref().expect("guardrails");
    let is_it = |claim: &&Claim| {
        (claim.ranker, claim.metric, claim.side) == (2, 0, Side::Safe) && claim.kind == Kind::Limit
    };
    let claims: Vec<_> = held.claims().collect();
    let claim = claims.iter().find(is_it).expect("a claim");
    assert_eq!((claim.pages, claim.missing), (60, 54));
}

fn entry_of(nonce: Nonce, event: ControlEvent) -> (Nonce, Event) {
    (nonce, Event::Control(event))
}

#[test]
fn a_value_that_is_no_number_of_a_metric_is_refused() {
    let fold = || Fold::start(&spec(), SEED, CREATED_AT);
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        let values = [vec![Some(value)], Vec::new()];
        let page = PageValues::of(1, [0, 1], CREATED_AT, None, values);
        let event = Event::Control(ControlEvent::Values { pages: vec![page] });
        assert!(fold().apply(&entry(1, None, event)).is_err(), "{value}");
    }
}
