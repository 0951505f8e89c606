//! Requirements for every comparator.

use comparators::{Bandit, Comparator};
use dueling_bandits::{Duel, InFlight, Observation, Outcome, Setup};
use rand::RngExt;
use serde_json::json;

use crate::arena::{fold, rng};

const RANKERS: usize = 6;

/// Every kind, before its first observation.
fn policies(seed: u64) -> impl Iterator<Item = (&'static str, Box<dyn Bandit>)> {
    Comparator::KINDS.iter().map(move |kind| {
        let spec = Comparator::from_text(kind, &[("horizon", json!(100_000))]).expect(kind);
        spec.validate(RANKERS).expect(kind);
        assert_eq!(spec.kind(), *kind);
        (*kind, spec.start(Setup { rankers: RANKERS, seed }))
    })
}

/// Lower indices win 4 times in 5; some pages are tied or without a click. Outcomes come late, and
/// some never. A tenth of the observations is of pairs that nobody selected.
fn play(policy: &mut dyn Bandit, steps: usize, seed: u64) {
    let mut rng = rng(seed);
    let (mut in_flight, mut waiting) = (InFlight::new(), Vec::new());
    for _ in 0..steps {
        let selection = policy.select(&in_flight, &mut rng);
        assert!(selection.duel.first < RANKERS && selection.duel.second < RANKERS);
        in_flight.add(selection.duel.first, selection.duel.second, 1);
        waiting.push(selection);
        if waiting.len() < 4 {
            continue;
        }
        let selection = waiting.swap_remove(rng.random_range(0..4));
        let duel = selection.duel;
        in_flight.remove(duel.first, duel.second, 1);
        let outcome = match rng.random_range(0..20) {
            0 => Outcome::None,
            1 => Outcome::Void,
            2 => Outcome::Half,
            3 => continue, // never answered
            n if (n < 17) == (duel.first < duel.second) => Outcome::First,
            _ => Outcome::Second,
        };
        fold(policy, selection, outcome);
        if rng.random_bool(0.1) {
            let duel = Duel::new(rng.random_range(0..RANKERS), rng.random_range(0..RANKERS));
            let ticket = rng.random();
            match duel.is_self() {
                true => policy.observe_self_duels(duel.first, rng.random_range(1..9)),
                false => policy.observe(&Observation { duel, outcome, batch: None, ticket }),
            }
        }
    }
}

#[test]
fn every_step_is_counted_whatever_its_outcome() {
    for (kind, mut policy) in policies(5) {
        let mut rng = rng(5);
        for _ in 0..200 {
            let duel = Duel::new(rng.random_range(0..RANKERS), rng.random_range(0..RANKERS));
            let before = policy.tally().clone();
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 3);
                assert_eq!(policy.tally().steps(), before.steps() + 3, "{kind}");
                continue;
            }
            let outcomes = [Outcome::First, Outcome::Half, Outcome::Void, Outcome::None];
            let outcome = outcomes[rng.random_range(0..4)];
            let ticket = rng.random();
            policy.observe(&Observation { duel, outcome, batch: None, ticket });
            assert_eq!(policy.tally().steps(), before.steps() + 1, "{kind}");
            let won = |i, j| policy.tally().half_wins(i, j) - before.half_wins(i, j);
            let (first, second) = (duel.first, duel.second);
            assert_eq!((won(first, second), won(second, first)), outcome.half_wins(), "{kind}");
        }
    }
}

#[test]
fn the_same_log_gives_the_same_state() {
    for ((kind, mut one), (_, mut other)) in policies(7).zip(policies(7)) {
        play(&mut *one, 600, 8);
        play(&mut *other, 600, 8);
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{kind}");
        assert_eq!(one.champion(), other.champion(), "{kind}");
    }
}

#[test]
fn selecting_changes_nothing() {
    for (kind, mut policy) in policies(9) {
        play(&mut *policy, 200, 9);
        let before = format!("{policy:?}");
        for seed in 0..50 {
            policy.select(&InFlight::new(), &mut rng(seed));
        }
        assert_eq!(format!("{policy:?}"), before, "{kind}");
    }
}

#[test]
fn a_parameter_is_read_by_its_name() {
    let rcs = Comparator::from_text("rcs : alpha = 0.6", &[]).expect("spaces are allowed");
    assert_eq!(rcs, Comparator::from_text("rcs", &[("alpha", json!(0.6))]).expect("a fallback"));
    // what the text says comes before a fallback, and a fallback that the kind lacks is ignored
    let fallbacks = [("alpha", json!(0.9)), ("horizon", json!(10))];
    assert_eq!(rcs, Comparator::from_text("rcs:alpha=0.6", &fallbacks).expect("a spec"));
    for (text, parameter, told) in [
        ("rcs:beta=1", "beta", "only: alpha"),
        ("rcs:alpha=x", "alpha", "alpha"),
        ("rcs:alpha", "", "name=value"),
        ("no-such:alpha=1", "kind", "rucb"),
    ] {
        let error = Comparator::from_text(text, &[]).expect_err(text);
        assert_eq!(error.parameter, parameter, "{text}");
        assert!(error.detail.contains(told), "{text}: {}", error.detail);
    }
}
