//! RUCB, and RCS, which uses the same challenger.

use dueling_bandits::{Bandit, Duel, InFlight, Outcome};

use crate::reference::rucb::{ReferenceRcs, ReferenceRucb};
use crate::support::{
    A, B, C, D, Reference, ReferencePolicy, assert_same_distribution, feed, frequencies, rng,
    selections, start,
};

#[test]
fn worked_matrices() {
    for (name, (counts, self_duels), challengers) in
        [("A", A, &[3, 3, 0, 2][..]), ("B", B, &[1, 2, 1]), ("C", C, &[2, 2, 2, 2])]
    {
        let k = counts.len();
        for spec in ["rucb", "rcs"] {
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
    assert_eq!(selections(policy.as_ref(), 100, 52)[2 * 4 + 2], 100);
    assert_eq!(policy.champion(), 2);
}

/// Both with the same duels: whole wins `counts[winner][loser]`, then self-duels.
fn fed(
    spec: &str,
    counts: &[&[u32]],
    self_duels: u64,
    reference: &mut dyn ReferencePolicy,
) -> Box<dyn Bandit> {
    let mut policy = start(spec, counts.len(), 1);
    feed(policy.as_mut(), counts, self_duels);
    let most = counts.iter().flat_map(|row| row.iter()).copied().max().unwrap_or(0);
    for round in 0..most {
        for (i, row) in counts.iter().enumerate() {
            for j in (0..row.len()).filter(|&j| round < row[j]) {
                reference.fold(Duel::new(i, j), Outcome::First);
            }
        }
    }
    (0..self_duels).for_each(|_| reference.fold(Duel::new(0, 0), Outcome::None));
    policy
}

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
        for self_duels in [0, 3, 2_000] {
            let k = counts.len();
            let mut reference = ReferenceRucb::new(Reference::new(k, 0.51));
            let policy = fed("rucb", counts, self_duels, &mut reference);
            with_hypothesis +=
                u32::from(reference.hypothesis.is_some() && reference.candidates.len() > 1);
            let mut rng = rng(53);
            let expected = frequencies(k, DRAWS, || reference.select(&mut rng));
            let found = selections(policy.as_ref(), DRAWS, 54);
            let name = format!("case {n}, {self_duels} self-duels");
            assert_same_distribution(&expected, &found, &name);
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
        let championships = vec![0; k];
        let mut reference = ReferenceRcs { reference: Reference::new(k, 0.51), championships };
        let policy = fed("rcs", counts, 40, &mut reference);
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
