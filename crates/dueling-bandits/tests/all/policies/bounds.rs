//! Bounds that are updated incrementally equal the bounds computed from scratch.

use dueling_bandits::{Bounds, Duel, InFlight, Outcome};
use proptest::prelude::*;

use super::support::{A, B, C, Reference, rng};

#[derive(Debug, Clone)]
enum Event {
    Duels(usize, usize, Outcome, u32),
    Skip(u64),
    Enlist,
    Retire(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let outcome = prop_oneof![
        6 => Just(Outcome::First),
        2 => Just(Outcome::Second),
        1 => Just(Outcome::Half),
        1 => Just(Outcome::Void),
        1 => Just(Outcome::None),
    ];
    let event = prop_oneof![
        30 => (0..9_usize, 0..9_usize, outcome, 1..12_u32).prop_map(|(i, j, o, n)| Event::Duels(i, j, o, n)),
        4 => (0..2_000_u64).prop_map(Event::Skip),
        1 => Just(Event::Enlist),
        1 => (0..9_usize).prop_map(Event::Retire),
    ];
    prop::collection::vec(event, 0..80)
}

fn check(bounds: &Bounds, reference: &Reference) {
    let active = reference.active();
    assert_eq!(bounds.active(), active);
    assert_eq!(bounds.tally().steps(), reference.steps);
    for &i in &active {
        let others = || active.iter().copied().filter(move |&j| j != i);
        for j in others() {
            assert_eq!(bounds.beats(i, j), reference.lower(i, j) > 0.5, "whether {i} beats {j}");
            let open = reference.lower(i, j) <= 0.5 && reference.upper(i, j) >= 0.5;
            assert_eq!(!bounds.is_decided(i, j), open, "whether {i} and {j} are undecided");
        }
        assert_eq!(
            bounds.possible_wins(i),
            others().filter(|&j| reference.upper(i, j) >= 0.5).count()
        );
        assert_eq!(
            bounds.certain_wins(i),
            others().filter(|&j| reference.lower(i, j) > 0.5).count()
        );
        assert_eq!(
            bounds.certain_losses(i),
            others().filter(|&j| reference.upper(i, j) < 0.5).count()
        );
    }
    let least = active.iter().map(|&i| bounds.certain_losses(i)).min();
    assert_eq!(Some(bounds.least_losses()), least);
}

proptest! {
    #[test]
    fn incremental_is_from_scratch(
        rankers in 2..7_usize,
        alpha in prop_oneof![Just(0.51), Just(1.0), Just(3.0)],
        events in events(),
    ) {
        let mut bounds = Bounds::new(rankers, alpha);
        let mut reference = Reference::new(rankers, alpha);
        for event in events {
            let k = reference.wins.len();
            match event {
                Event::Duels(i, j, outcome, count) => {
                    for _ in 0..count {
                        let open: Vec<_> = undecided(&bounds);
                        let duel = Duel::new(i % k, j % k);
                        bounds.record(duel, outcome);
                        reference.record(duel, outcome);
                        check(&bounds, &reference);
                        let mut released = bounds.released().to_vec();
                        released.sort_unstable();
                        let played = (duel.first.min(duel.second), duel.first.max(duel.second));
                        let expected: Vec<_> = undecided(&bounds)
                            .into_iter()
                            .filter(|pair| !open.contains(pair) && *pair != played)
                            .collect();
                        assert_eq!(released, expected);
                    }
                }
                Event::Skip(count) => {
                    bounds.skip(count);
                    reference.steps += count;
                }
                Event::Enlist => {
                    bounds.enlist().unwrap();
                    reference.wins.iter_mut().for_each(|row| row.push(0.0));
                    reference.wins.push(vec![0.0; k + 1]);
                    reference.retired.push(false);
                }
                Event::Retire(i) => {
                    let i = i % k;
                    let was_active = !reference.retired[i];
                    let is_last = was_active && reference.active().len() == 1;
                    match bounds.retire(i) {
                        Ok(took_part) => {
                            assert!(!is_last);
                            assert_eq!(took_part, was_active);
                            reference.retired[i] = true;
                        }
                        Err(_) => assert!(is_last),
                    }
                }
            }
            check(&bounds, &reference);
        }
        let (tally, retired) = bounds.parts();
        let again = Bounds::from_parts(tally.clone(), &retired, alpha).unwrap();
        check(&again, &reference);
    }
}

fn undecided(bounds: &Bounds) -> Vec<(usize, usize)> {
    let active = bounds.active();
    let mut pairs = Vec::new();
    for &i in active {
        pairs
            .extend(active.iter().filter(|&&j| i < j && !bounds.is_decided(i, j)).map(|&j| (i, j)));
    }
    pairs
}

fn bounds_of((counts, self_duels): (&[&[u32]], u64)) -> Bounds {
    let mut bounds = Bounds::new(counts.len(), 0.51);
    for (i, row) in counts.iter().enumerate() {
        for (j, &wins) in row.iter().enumerate() {
            for _ in 0..wins {
                bounds.record(Duel::new(i, j), Outcome::First);
            }
        }
    }
    bounds.skip(self_duels);
    bounds
}

fn challengers(bounds: &Bounds, c: usize) -> Vec<usize> {
    let mut rng = rng(3);
    let mut seen: Vec<_> =
        (0..50).map(|_| bounds.challenger(c, &InFlight::new(), &mut rng)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn worked_bounds_and_challengers() {
    let close = |a: f64, b: f64| (a - b).abs() < 5e-7;
    let idle = InFlight::new();

    let a = bounds_of(A);
    assert!(close(a.width(), 2.088116));
    let upper = [
        [0.5, 1.167145, 1.256959, 1.010896],
        [0.667145, 0.5, 1.000478, 0.760896],
        [0.656959, 0.833811, 0.5, 1.260896],
        [1.010896, 1.260896, 0.760896, 0.5],
    ];
    for (i, row) in upper.iter().enumerate() {
        for (j, &expected) in row.iter().enumerate() {
            assert!(close(a.upper(i, j, &idle), expected), "u[{i}][{j}]");
        }
    }
    assert_eq!((0..4).map(|c| challengers(&a, c)).collect::<Vec<_>>(), [[3], [3], [0], [2]]);

    let b = bounds_of(B);
    assert!(close(b.upper(0, 1, &idle), 2.029813));
    assert!(b.upper(1, 2, &idle).is_infinite());
    assert_eq!((0..3).map(|c| challengers(&b, c)).collect::<Vec<_>>(), [[1], [2], [1]]);

    let c = bounds_of(C);
    assert!(close(c.width(), 2.957537));
    assert!(close(c.upper(0, 2, &idle), 0.343209));
    assert_eq!((0..4).map(|i| challengers(&c, i)).collect::<Vec<_>>(), [[2], [2], [2], [2]]);
    assert_eq!((0..4).filter(|&i| c.certain_losses(i) == 0).collect::<Vec<_>>(), [2]);
}

#[test]
fn duels_in_flight_narrow_only_the_radius() {
    let bounds = bounds_of(B);
    let mut in_flight = InFlight::new();
    in_flight.add(2, 1, 3);
    in_flight.add(2, 0, 4);
    assert_eq!(bounds.upper(1, 2, &in_flight), 1.25);
    let expected = 0.4 + (0.51 * 8_f64.ln() / 9.0).sqrt();
    assert!((bounds.upper(2, 0, &in_flight) - expected).abs() < 1e-12);
    assert_eq!(bounds.upper(0, 1, &in_flight), bounds.upper(0, 1, &InFlight::new()));
}

#[test]
fn challengers_that_tie_are_drawn_and_the_candidate_yields() {
    let fresh = Bounds::new(4, 0.51);
    assert_eq!(challengers(&fresh, 1), [0, 2, 3]);
    let mut lost = Bounds::new(2, 0.51);
    for _ in 0..40 {
        lost.record(Duel::new(0, 1), Outcome::First);
    }
    assert_eq!(challengers(&lost, 0), [0]);
    assert_eq!(challengers(&lost, 1), [0]);
}
