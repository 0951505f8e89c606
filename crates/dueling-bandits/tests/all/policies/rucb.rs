//! RUCB, and RCS, which uses the same challenger.

use dueling_bandits::{Duel, InFlight, Outcome, Policy, Tally};

use super::support::{
    A, B, C, D, Reference, ReferencePolicy, answer, assert_same_distribution, feed, frequencies,
    rng, selections, start,
};
use crate::reference::rucb::{ReferenceRcs, ReferenceRucb};
use rand::RngExt;

type Saved = (Tally, Vec<u16>, Option<u16>);

fn hypothesis(policy: &dyn Policy) -> Option<usize> {
    let (_, _, hypothesis): Saved = postcard::from_bytes(&policy.save()).unwrap();
    hypothesis.map(usize::from)
}

#[test]
fn worked_matrices() {
    for (name, (counts, self_duels), challengers) in
        [("A", A, &[3, 3, 0, 2][..]), ("B", B, &[1, 2, 1]), ("C", C, &[2, 2, 2, 2])]
    {
        let k = counts.len();
        for spec in ["rucb", "rucb:variant=arxiv", "rcs"] {
            let mut policy = start(spec, k, 1);
            feed(policy.as_mut(), counts, self_duels);
            let found = selections(policy.as_ref(), 2_000, 51);
            for at in (0..k * k).filter(|&at| found[at] > 0) {
                assert_eq!(challengers[at / k], at % k, "{spec} on {name}");
            }
        }
    }
    // C: one candidate remains; it is the hypothesis, and its strongest challenger is itself
    let (counts, self_duels) = C;
    let mut policy = start("rucb", 4, 1);
    feed(policy.as_mut(), counts, self_duels);
    assert_eq!(hypothesis(policy.as_ref()), Some(2));
    assert_eq!(selections(policy.as_ref(), 100, 52)[2 * 4 + 2], 100);
    assert_eq!(policy.champion(), 2);
}

/// The log makes candidates leave and return; the hypothesis is checked at every step.
#[test]
fn the_hypothesis_is_dropped_when_it_is_not_a_candidate() {
    let mut empty = 0;
    let mut forgotten = 0;
    for seed in 0..30 {
        let k = 3 + seed as usize % 3;
        let mut policy = start("rucb", k, 1);
        let mut reference = ReferenceRucb::new(Reference::new(k, 0.51), true);
        let mut rng = rng(seed);
        for _ in 0..400 {
            let duel = Duel::new(rng.random_range(0..k), rng.random_range(0..k));
            let count = rng.random_range(1..9);
            // cyclic preferences, so that C = ∅ occurs too
            let wins = (duel.first + k - duel.second) % k == 1;
            let outcome =
                if wins || rng.random_bool(0.4) { Outcome::First } else { Outcome::Second };
            for _ in 0..count {
                let before = reference.hypothesis;
                reference.fold(duel, outcome);
                empty += u32::from(reference.candidates.is_empty());
                forgotten += u32::from(before.is_some_and(|b| !reference.candidates.contains(&b)));
                if !duel.is_self() {
                    policy.observe(&answer(duel.first, duel.second, outcome));
                }
            }
            if duel.is_self() {
                policy.observe_self_duels(duel.first, count);
            }
            assert_eq!(hypothesis(policy.as_ref()), reference.hypothesis);
        }
    }
    assert!(empty > 0 && forgotten > 0, "a case was not covered: {empty} {forgotten}");
}

/// Steps 4 and 5, with the saved hypothesis.
#[test]
fn selects_like_the_reference_implementation() {
    const DRAWS: usize = 10_000;
    let cases: [&[&[u32]]; 4] = [
        // 0 beats 1 until self-duels have widened the bounds, and stays the hypothesis
        &[&[0, 28, 30, 30], &[6, 0, 30, 30], &[2, 2, 0, 9], &[2, 2, 4, 0]],
        &[&[0, 40, 2], &[2, 0, 40], &[40, 2, 0]], // C = ∅
        D.0,
        &[&[0, 0, 0], &[0, 0, 0], &[0, 0, 0]],
    ];
    let mut with_hypothesis = 0;
    for (n, counts) in cases.into_iter().enumerate() {
        for (spec, plays_hypothesis) in [("rucb", true), ("rucb:variant=arxiv", false)] {
            for self_duels in [0, 3, 2_000] {
                let k = counts.len();
                let mut policy = start(spec, k, 1);
                feed(policy.as_mut(), counts, self_duels);
                let reference = ReferenceRucb::of(policy.as_ref(), 0.51, plays_hypothesis);
                assert!(plays_hypothesis || reference.hypothesis.is_none());
                with_hypothesis +=
                    u32::from(reference.hypothesis.is_some() && reference.candidates.len() > 1);
                let mut rng = rng(53);
                let expected = frequencies(k, DRAWS, || reference.select(&mut rng));
                let found = selections(policy.as_ref(), DRAWS, 54);
                assert_same_distribution(
                    &expected,
                    &found,
                    &format!("{spec}, case {n}, {self_duels} self-duels"),
                );
            }
        }
    }
    assert!(with_hypothesis > 0, "no case drew the coin for the hypothesis");
}

#[test]
fn rcs_selects_like_the_reference_implementation() {
    const DRAWS: usize = 10_000;
    let cycle: &[&[u32]] = &[&[0, 9, 3, 7], &[3, 0, 9, 5], &[9, 3, 0, 5], &[2, 5, 5, 0]];
    for (name, counts) in [("A", A.0), ("B", B.0), ("D", D.0), ("a cycle", cycle)] {
        let k = counts.len();
        let mut policy = start("rcs", k, 1);
        feed(policy.as_mut(), counts, 0);
        policy.observe_self_duels(1, 40);
        let reference = ReferenceRcs::of(policy.as_ref(), 0.51);
        // first rankers of the duels fed, and the self-duels
        let mut championships: Vec<u64> =
            counts.iter().map(|row| row.iter().map(|&wins| u64::from(wins)).sum()).collect();
        championships[1] += 40;
        assert_eq!(reference.championships, championships);
        let mut rng = rng(55);
        let expected = frequencies(k, DRAWS, || reference.select(&mut rng));
        let found = selections(policy.as_ref(), DRAWS, 56);
        assert_same_distribution(&expected, &found, name);
    }
}

#[test]
fn duels_in_flight_turn_the_challenger() {
    for spec in ["rucb", "rcs"] {
        let mut policy = start(spec, 4, 1);
        feed(policy.as_mut(), A.0, A.1);
        let mut in_flight = InFlight::new();
        in_flight.add(0, 3, 67);
        let mut rng = rng(57);
        let duels = (0..500).map(|_| policy.select(&in_flight, &mut rng).duel);
        let mut seen: Vec<_> =
            duels.filter(|duel| duel.first == 0).map(|duel| duel.second).collect();
        seen.dedup();
        assert_eq!(seen, [1], "{spec}");
    }
}
