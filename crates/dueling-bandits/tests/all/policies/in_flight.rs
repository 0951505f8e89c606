//! Duels in flight: a thousand concurrent requests must not all get one pair, and selections must
//! not depend on the iteration order of a hash table.

use std::collections::BTreeMap;

use dueling_bandits::{Duel, InFlight, Outcome, Policy, Setup};
use rand::RngExt;

use super::arena::{fold, rng};
use crate::pins::every_policy;

const RANKERS: usize = 6;

/// Every kind, after `steps` duels whose outcomes arrived at once. Lower indices win 4 times in 5.
/// Each `seed` gives another history.
fn policies(steps: usize, seed: u64) -> impl Iterator<Item = (&'static str, Box<dyn Policy>)> {
    every_policy(100_000).into_iter().map(move |spec| {
        let mut policy = spec.start(Setup { rankers: RANKERS, seed: 5 });
        let (mut rng, idle) = (rng(seed), InFlight::new());
        for _ in 0..steps {
            let selection = policy.select(&idle, &mut rng);
            let lower_wins = rng.random_range(0..5) > 0;
            let is_first = (selection.duel.first < selection.duel.second) == lower_wins;
            fold(&mut *policy, selection, if is_first { Outcome::First } else { Outcome::Second });
        }
        (spec.kind(), policy)
    })
}

#[test]
fn a_thousand_concurrent_requests_do_not_all_get_one_pair() {
    // without information, with some, and with nearly all
    let histories =
        [0, 60, 600].into_iter().flat_map(|steps| (9..14).map(move |seed| (steps, seed)));
    let all = histories
        .flat_map(|(steps, seed)| policies(steps, seed).map(move |policy| (steps, policy)));
    let mut most_at_one: BTreeMap<(&str, usize), Vec<u32>> = BTreeMap::new();
    for (steps, (kind, policy)) in all {
        let (mut rng, mut in_flight) = (rng(3), InFlight::new());
        let mut counts: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        for _ in 0..1000 {
            let Duel { first, second } = policy.select(&in_flight, &mut rng).duel;
            if first != second {
                in_flight.add(first, second, 1);
                *counts.entry((first.min(second), first.max(second))).or_default() += 1;
            }
        }
        let (pairs, most) = (counts.len(), counts.values().max().copied().unwrap_or(0));
        println!("{kind:20} after {steps} steps: {pairs} pairs, {most} of 1000 requests on one");
        most_at_one.entry((kind, steps)).or_default().push(most);
    }
    // a single history may lead any policy to one pair for a while, so take the median of the five
    // counts
    let middle = |counts: &mut Vec<u32>| *counts.select_nth_unstable(2).1;
    let concentrated: Vec<&str> = most_at_one
        .iter_mut()
        .filter_map(|((kind, _), counts)| (middle(counts) > 500).then_some(*kind))
        .collect();
    assert!(
        concentrated.is_empty(),
        "{concentrated:?} send more than half of the duels in flight to one pair"
    );
}

#[test]
fn a_policy_that_uses_duels_in_flight_declares_it() {
    for (kind, policy) in policies(300, 9) {
        if policy.uses_in_flight() {
            continue;
        }
        // for any duels in flight, the same random draws give the same duel
        let mut crowded = InFlight::new();
        for first in 0..RANKERS {
            for second in 0..first {
                crowded.add(first, second, (first * 37 + second * 11) as u32 % 50);
            }
        }
        for seed in 0..200 {
            let idle = policy.select(&InFlight::new(), &mut rng(seed));
            assert_eq!(policy.select(&crowded, &mut rng(seed)), idle, "{kind}");
        }
    }
}

#[test]
fn selections_do_not_depend_on_the_order_of_a_hash_table() {
    for (kind, policy) in policies(150, 9) {
        let pairs: Vec<_> =
            (0..RANKERS).flat_map(|first| (0..first).map(move |second| (first, second))).collect();
        // separate tables with their own hash keys, filled in two orders
        let fill = |pairs: &mut dyn Iterator<Item = &(usize, usize)>| {
            let mut in_flight = InFlight::new();
            for (first, second) in pairs {
                in_flight.add(*first, *second, (first + 3 * second) as u32 % 7 + 1);
            }
            in_flight
        };
        let (there, back) = (fill(&mut pairs.iter()), fill(&mut pairs.iter().rev()));
        assert!(there.pairs().eq(back.pairs()) && there.pairs().is_sorted());
        for seed in 0..100 {
            let first = policy.select(&there, &mut rng(seed));
            assert_eq!(policy.select(&back, &mut rng(seed)), first, "{kind}");
        }
    }
}
