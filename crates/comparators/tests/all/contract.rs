//! Requirements for every comparator.

use comparators::Comparator;
use dueling_bandits::{Bandit, Duel, InFlight, Observation, Outcome, Setup};
use rand::RngExt;
use serde_json::json;

use crate::arena::{assert_counts_every_step, fold, rng, start};

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
    policies(5).for_each(|(kind, mut policy)| assert_counts_every_step(&mut *policy, kind));
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

/// The kinds that draw a coin for each self-duel.
#[test]
fn self_duels_counted_together_are_the_same_coins_one_by_one() {
    let draws = |(kind, _): &(&str, _)| ["btm", "sparring"].contains(kind);
    for ((kind, mut together), (_, mut single)) in
        policies(6).zip(policies(6)).filter(|(one, _)| draws(one))
    {
        for (ranker, count) in [(1, 7), (2, 300), (1, 64), (0, 500)] {
            together.observe_self_duels(ranker, count);
            (0..count).for_each(|_| single.observe_self_duels(ranker, 1));
            assert_eq!(format!("{together:?}"), format!("{single:?}"), "{kind}");
        }
    }
}

/// The duels that so many concurrent requests get.
fn concurrent(text: &str, rankers: usize, requests: u64) -> Vec<Duel> {
    let (policy, mut in_flight) = (start(text, rankers, 1), InFlight::new());
    let select = |request| {
        let duel = policy.select(&in_flight, &mut rng(request)).duel;
        in_flight.add(duel.first, duel.second, 1);
        duel
    };
    (0..requests).map(select).collect()
}

#[test]
fn concurrent_requests_are_spread() {
    for (text, rankers) in [("ecw-rmed", 5), ("rmed1", 6)] {
        let pairs = rankers as u64 * (rankers as u64 - 1) / 2;
        let mut asked = concurrent(text, rankers, pairs);
        asked.sort_unstable_by_key(|duel| (duel.first, duel.second));
        asked.dedup();
        assert_eq!(asked.len() as u64, pairs, "{text}: each pair once");
    }
    for (text, rankers) in [("btm:horizon=1000,self_pairs=false", 6), ("sparring", 5)] {
        let mut shown = vec![0; rankers];
        for duel in concurrent(text, rankers, 10 * rankers as u64) {
            shown[duel.first] += 1;
            shown[duel.second] += 1;
        }
        assert!(shown.iter().all(|&shown| (16..=24).contains(&shown)), "{text}: {shown:?}");
    }
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    for (text, parameter) in [
        ("btm", "horizon"),
        ("btm:horizon=9,gamma=0.9", "gamma"),
        ("btm:horizon=9,kappa=0", "kappa"),
        ("ecw-rmed:beta=0.5", "beta"),
        ("interleaved-filter", "horizon"),
        ("interleaved-filter:horizon=9,scale=-1", "scale"),
        ("pbr", "horizon"),
        ("pbr:horizon=1000,delta=2", "delta"),
    ] {
        let checked = Comparator::from_text(text, &[]).and_then(|spec| spec.validate(RANKERS));
        assert_eq!(checked.expect_err(text).parameter, parameter, "{text}");
    }
    let spec = Comparator::from_text("ecw-rmed", &[]).expect("a comparator");
    assert!(spec.validate(32).is_ok());
    assert!(spec.validate(33).unwrap_err().detail.contains("at most 32"));
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
