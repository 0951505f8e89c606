//! Orders in the fold: whatever comes when, a basket counts once, with the same score.

use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::events::{ControlEvent, Event, UnitHash};
use rankduel_store::hashes::DocumentHash;
use rankduel_store::order_events::{LinksEvent, OrderEvent};
use serde_json::json;
use uuid::Uuid;

use crate::events::{CREATED_AT, SEED, changed, entry, excludes};

const WINDOW_MS: i64 = 600_000;
const UNITS: u64 = 60;
/// A unit that clicks and buys for the other ranker, again and again.
const MACHINE: u64 = 1000;

fn spec(by: &str, cap: Option<f64>) -> ExperimentSpec {
    let mut decide_by = json!({
        "event": "order", "window_seconds": WINDOW_MS / 1000, "arrival_seconds": 60, "by": by,
    });
    if let Some(cap) = cap {
        decide_by["cap"] = json!(cap);
    }
    serde_json::from_value(json!({
        "rankers": ["a", "b"], "policy": {"kind": "d-ts"}, "ties": "skip", "duel_ttl_seconds": 60,
        "answer_window_seconds": WINDOW_MS / 1000 + 60, "seed": SEED, "drift": "off",
        "decide_by": decide_by,
    }))
    .expect("a spec")
}

fn document(number: u64) -> DocumentHash {
    DocumentHash([0, 0, 0, 0, number as u8])
}

/// A page of a unit with a click on one document, for the first ranker or for the second one.
fn link(unit: u64, page: u64, document_number: u64, credit: i8) -> Event {
    Event::Control(ControlEvent::Links(Box::new(LinksEvent {
        duel: Uuid::from_u128(u128::from(1000 * unit + page)),
        first: 0,
        second: 1,
        ticket: 0,
        chosen_at: 0,
        issued_at: CREATED_AT + 1000 * (unit % UNITS + page) as i64,
        method: 1,
        unit: UnitHash(unit),
        segment: None,
        links: vec![(document(document_number), credit)],
    })))
}

fn order(number: u64, unit: u64, after_ms: i64, documents: &[u64]) -> Event {
    Event::Control(ControlEvent::Order(Box::new(OrderEvent {
        order: UnitHash(number),
        unit: UnitHash(unit),
        at: CREATED_AT + 1000 * unit as i64 % 60_000 + after_ms,
        lines: documents.iter().map(|&it| (document(it), 20.0, 1)).collect(),
    })))
}

/// The clicks and the orders of all units.
fn facts() -> (Vec<Event>, Vec<Event>) {
    let (mut clicks, mut orders) = (Vec::new(), Vec::new());
    for unit in 0..UNITS {
        // one document for `a`, one for `b`, and one that comes back on the other side
        clicks.push(link(unit, 0, 1, 127));
        clicks.push(link(unit, 1, 2, -127));
        clicks.push(link(unit, 0, 3, 127));
        clicks.push(link(unit, 2, 3, -127));
        match unit % 4 {
            0 => orders.push(order(unit, unit, 60_000, &[1])),
            1 => orders.push(order(unit, unit, 60_000, &[1, 3])),
            2 => orders.push(order(unit, unit, 60_000, &[1, 1, 2])),
            _ => orders.push(order(unit, unit, WINDOW_MS + 30_000, &[2])),
        }
    }
    (clicks, orders)
}

/// The fold of these events, with every basket closed.
fn closed(spec: &ExperimentSpec, events: &[Event]) -> Fold {
    let mut fold = Fold::start(spec, SEED, CREATED_AT);
    let issued_before = CREATED_AT + 3_600_000;
    let complete = ControlEvent::CohortsComplete { issued_before, issued: 0, answered: 0 };
    let events = events.iter().cloned().chain([Event::Control(complete)]);
    for (position, event) in (1..).zip(events) {
        fold.apply(&entry(position, None, event)).expect("an entry that follows");
    }
    fold
}

#[test]
fn the_order_of_arrival_changes_nothing() {
    for spec in [spec("orders", None), spec("money", Some(30.0))] {
        let (clicks, orders) = facts();
        let nightly: Vec<_> = clicks.iter().chain(&orders).cloned().collect();
        let mut backwards: Vec<_> = orders.iter().chain(&clicks).cloned().collect();
        let live = clicks.chunks(4).zip(&orders);
        let live: Vec<_> = live
            .flat_map(|(clicks, order)| clicks.iter().cloned().chain([order.clone()]))
            .collect();
        let expected = closed(&spec, &nightly);
        let run = expected.run();
        assert_eq!(run.cohorts().units(), UNITS, "each is known, whether it ordered or not");
        assert!(run.verdict().comparisons() > UNITS / 2);
        assert_eq!(run.verdict().verdict().map(|verdict| verdict.winner()), Some(0));
        for other in [live, backwards.clone(), {
            backwards.reverse();
            backwards
        }] {
            let other = closed(&spec, &other);
            assert_eq!(other.run().cohorts(), run.cohorts());
            assert_eq!(format!("{:?}", other.run().verdict()), format!("{:?}", run.verdict()));
            assert_eq!(other.state().baskets, expected.state().baskets);
        }
        // each piece once more
        let twice: Vec<_> = nightly.iter().flat_map(|it| [it.clone(), it.clone()]).collect();
        let twice = closed(&spec, &twice);
        assert_eq!(format!("{:?}", twice.run().verdict()), format!("{:?}", run.verdict()));
        assert_eq!(twice.state().baskets, expected.state().baskets);
    }
}

#[test]
fn a_snapshot_between_clicks_and_orders_goes_on() {
    let spec = spec("orders", None);
    let (clicks, orders) = facts();
    let mut fold = Fold::start(&spec, SEED, CREATED_AT);
    let mut position = 0;
    let mut next = |event: &Event| {
        position += 1;
        entry(position, None, event.clone())
    };
    for event in &clicks {
        fold.apply(&next(event)).expect("links");
    }
    fold.apply(&next(&orders[0])).expect("an order");
    assert!(fold.holds_order(0) && fold.has_open_baskets());
    let saved = fold.save();
    let mut restored = Fold::restore(&spec, SEED, &saved).expect("a saved state");
    assert_eq!(restored.save(), saved);
    assert_eq!(restored.bytes(), fold.bytes());
    let cancelled = Event::Control(ControlEvent::OrderCancelled { order: UnitHash(0) });
    for event in orders[1..].iter().chain([&cancelled]) {
        let event = next(event);
        fold.apply(&event).expect("an order");
        restored.apply(&event).expect("an order");
    }
    assert!(!fold.holds_order(0));
    assert_eq!(restored.save(), fold.save());
}

#[test]
fn an_excluded_unit_never_clicked_nor_ordered() {
    let plain = spec("orders", None);
    let excluding = plain.patched(&excludes(MACHINE)).expect("valid");
    let (clicks, orders) = facts();
    let own = [link(MACHINE, 0, 2, -127), order(MACHINE, MACHINE, 1000, &[2])];
    let without: Vec<_> = clicks.into_iter().chain(orders).collect();
    let with: Vec<_> = own.into_iter().chain(without.clone()).collect();
    let excluded = [changed(&excludes(MACHINE))];
    let fold = |events: &[Event]| {
        let events: Vec<_> = excluded.iter().chain(events).cloned().collect();
        closed(&excluding, &events)
    };
    let (with, without) = (fold(&with), fold(&without));
    assert_eq!(with.state().baskets, without.state().baskets);
    assert_eq!(with.run().cohorts(), without.run().cohorts());
    assert_eq!(with.state().excluded.answers(), 1, "its order");
}

/// Three rankers, whose policy plans for the verdict with what open baskets are expected to be.
fn of_three() -> ExperimentSpec {
    let policy = json!({"kind": "d-ts-verdict"});
    let own = json!({"rankers": ["a", "b", "c"], "policy": policy});
    let mut spec = serde_json::to_value(spec("orders", None)).expect("JSON");
    spec.as_object_mut().expect("a spec").extend(own.as_object().expect("members").clone());
    serde_json::from_value(spec).expect("a spec")
}

/// 300 units in the order of their numbers, each with a home, a click, and every other one an order
/// for the ranker of the lower number. Every twentieth one, baskets close.
fn at_home() -> Vec<Event> {
    let mut events = Vec::new();
    for unit in 0..300 {
        let (first, second) = [(0, 1), (2, 0), (1, 2), (1, 1)][unit as usize % 4];
        let at = CREATED_AT + 1000 * unit as i64;
        let home = (UnitHash(unit), first, second, 0, 0, at);
        let homes = Event::Control(ControlEvent::Homes { units: vec![home] });
        let Event::Control(ControlEvent::Links(mut links)) = link(unit, 0, 1, 127) else {
            return events;
        };
        links.issued_at = at;
        (links.first, links.second) = (first.min(second), first.max(second));
        let links = Event::Control(ControlEvent::Links(links));
        if first == second {
            events.push(homes);
            continue;
        }
        // another process can append the clicks first
        match unit % 3 {
            0 => events.extend([links, homes]),
            _ => events.extend([homes, links]),
        }
        if unit % 2 == 0 {
            events.push(order(unit, unit, 1000 * unit as i64 - 1000 * unit as i64 % 60_000, &[1]));
        }
        if unit % 20 == 0 {
            let issued_before = at - 60_000;
            let complete = ControlEvent::CohortsComplete { issued_before, issued: 0, answered: 0 };
            events.push(Event::Control(complete));
        }
    }
    events
}

#[test]
fn with_homes_every_snapshot_goes_on_as_the_log() {
    let spec = of_three();
    let entries: Vec<_> = (1..).zip(at_home()).map(|(at, event)| entry(at, None, event)).collect();
    let mut fold = Fold::start(&spec, SEED, CREATED_AT);
    let mut restored: Option<Fold> = None;
    for chunk in entries.chunks(37) {
        for entry in chunk {
            fold.apply(entry).expect("an entry that follows");
        }
        if let Some(mut restored) = restored {
            restored
                .apply_chunk(|log| chunk.iter().try_for_each(|it| log.apply(it).map(drop)))
                .expect("entries that follow");
            assert_eq!(restored.save(), fold.save());
            let expected = |fold: &Fold| fold.run().expected().scores().clone();
            assert_eq!(expected(&restored), expected(&fold));
        }
        restored = Fold::restore(&spec, SEED, &fold.save());
        assert!(restored.is_some(), "a saved state");
    }
    let verdict = fold.run().verdict();
    assert!(verdict.comparisons() > 50, "{}", verdict.comparisons());
    assert!(fold.run().expected().scores().answers() > verdict.counted().scores().answers());
}

#[test]
fn a_home_that_this_log_cannot_have_is_refused() {
    let mut fold = Fold::start(&of_three(), SEED, CREATED_AT);
    for (first, second, at) in [(0, 3, CREATED_AT), (0, 1, i64::MAX)] {
        let home = (UnitHash(1), first, second, 0, 0, at);
        let homes = Event::Control(ControlEvent::Homes { units: vec![home] });
        assert!(fold.apply(&entry(1, None, homes)).is_err());
    }
    // it was chosen by a state that the log has lost
    let home = (UnitHash(1), 0, 3, 0, 9, CREATED_AT);
    let homes = Event::Control(ControlEvent::Homes { units: vec![home] });
    fold.apply(&entry(1, None, homes)).expect("it is set aside");
}
