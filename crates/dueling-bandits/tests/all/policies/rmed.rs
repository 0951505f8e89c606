//! RMED1, RMED2 and RMED2FH against the worked examples and a reference implementation.

use dueling_bandits::{Duel, InFlight, Outcome, Policy, Selection};
use rand::RngExt;

use super::support::{A, C, D, ReferencePolicy, answer, feed, rng, start};
use crate::reference::rmed::{ReferenceRmed1, saved};

/// `kind` with these counts, after its initial phase, with `list` as its list.
fn at_loop(kind: &str, counts: &[&[u32]], self_duels: u64, list: &[usize]) -> Box<dyn Policy> {
    let spec = dueling_bandits::PolicySpec::from_text(kind).unwrap();
    let k = counts.len();
    let setup = dueling_bandits::parameters::Setup { rankers: k, seed: 1 };
    let mut policy = spec.start(setup);
    feed(policy.as_mut(), counts, self_duels);
    let mut state = saved(policy.as_ref());
    state.initial = None;
    state.remaining = (0..k).map(|i| list.contains(&i)).collect();
    state.next = vec![false; k];
    spec.restore(setup, policy.format(), &postcard::to_stdvec(&state).unwrap())
        .expect("a valid state")
}

fn opponents(kind: &str, counts: &[&[u32]], self_duels: u64) -> Vec<usize> {
    let opponent = |l| {
        let policy = at_loop(kind, counts, self_duels, &[l]);
        let duel = policy.select(&InFlight::new(), &mut rng(1)).duel;
        assert_eq!(duel.first, l);
        duel.second
    };
    (0..counts.len()).map(opponent).collect()
}

/// RMED2 without forced draws, so that only its rule determines the selection.
const RMED2: &str = "rmed2:alpha=0.001";

#[test]
fn worked_opponents() {
    assert_eq!(opponents("rmed1", A.0, A.1), [3, 0, 0, 0]);
    assert_eq!(opponents(RMED2, A.0, A.1), [3, 0, 0, 2]);
    assert_eq!(opponents("rmed1", C.0, C.1), [2, 2, 2, 2]);
    assert_eq!(opponents("rmed1", D.0, D.1), [3, 0, 0, 2]);
    assert_eq!(opponents(RMED2, D.0, D.1), [3, 2, 0, 2]);
    // A with 24 comparisons of 2 and 3 at t = 76: the ratio test fails and the likeliest winner is
    // the opponent
    let counts: &[&[u32]] = &[&[0, 9, 8, 4], &[3, 0, 7, 2], &[2, 5, 0, 18], &[4, 6, 6, 0]];
    assert_eq!(opponents(RMED2, counts, 1)[3], 0);
    for (counts, star) in [(A, 0), (C, 2), (D, 0)] {
        assert_eq!(at_loop("rmed1", counts.0, counts.1, &[0]).champion(), star);
    }
}

/// The rankers that satisfy `J` at `t`: after a draw of the only ranker in the list, they are the
/// next list.
fn plausible(counts: &[&[u32]], self_duels: u64) -> Vec<usize> {
    let mut policy = at_loop("rmed1", counts, self_duels, &[0]);
    policy.observe_self_duels(0, 1);
    let state = saved(policy.as_ref());
    (0..counts.len()).filter(|&i| state.remaining[i]).collect()
}

#[test]
fn worked_lists() {
    // the folded step has the index t of the example
    assert_eq!(plausible(A.0, A.1), [0, 1, 2, 3]);
    assert_eq!(plausible(C.0, C.1), [2]);
    assert_eq!(plausible(D.0, D.1), [0, 2, 3]);
}

#[test]
fn worked_trace() {
    let mut policy = start("rmed1", 3, 1);
    let mut duels = Vec::new();
    let mut lists = Vec::new();
    for _ in 0..14 {
        let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng(2));
        duels.push((duel.first, duel.second));
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            let outcome = if duel.first < duel.second { Outcome::First } else { Outcome::Second };
            policy.observe(&dueling_bandits::Observation { duel, outcome, batch, ticket });
        }
        let state = saved(policy.as_ref());
        lists.push((state.remaining, state.next));
    }
    let expected = [
        (0, 1),
        (0, 2),
        (1, 2),
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 0),
        (1, 0),
    ];
    assert_eq!(duels, expected);
    assert_eq!(lists[11].0, [true, true, false]);
    assert_eq!(lists[12], (vec![false, true, false], vec![true, false, true]));
    assert_eq!(lists[13].0, [true, true, true]);
}

#[test]
fn frozen_opponents_are_those_of_the_initial_phase() {
    // T = 3 to 15: ln ln T is below 1, so L = 3 with α = 3
    let mut policy = start("rmed2-fh:horizon=15", 4, 1);
    let wins = [[0, 3, 3, 0], [0, 0, 3, 2], [0, 0, 0, 2], [3, 1, 1, 0]];
    let mut seen = [[0; 4]; 4];
    for step in 0..18 {
        let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng(3));
        let Duel { first, second } = duel;
        assert!(first < second, "the initial phase selects {duel:?} at step {step}");
        assert_eq!(seen[first][second], step / 6, "in rounds");
        let outcome = if seen[first][second] < wins[first][second] {
            Outcome::First
        } else {
            Outcome::Second
        };
        seen[first][second] += 1;
        assert!(saved(policy.as_ref()).frozen.is_none());
        policy.observe(&dueling_bandits::Observation { duel, outcome, batch, ticket });
    }
    // i* = 3 (it loses 1 of 3 to 1 and to 2: I = 2·3 d(1/3); 0 loses all 3 to it: 3 ln 2)
    assert_eq!(policy.champion(), 3);
    let state = saved(policy.as_ref());
    assert!(state.initial.is_none());
    // b̂(1): 0 has (p[3][1] + p[3][0] - 1)/ln 2 = (1/3 + 1 - 1)/ln 2, its only opponent; b̂(2): 0
    // against 1, with (1/3 + 1/3 - 1)/ln 2; b̂(3): 1 and 2 tie, so the lowest
    assert_eq!(state.frozen, Some(vec![Some(3), Some(0), Some(1), Some(1)]));
}

#[test]
fn rmed2_forces_pairs_with_too_few_comparisons() {
    let counts: &[&[u32]] = &[&[0, 30, 30], &[5, 0, 4], &[5, 1, 0]];
    let policy = at_loop("rmed2", counts, 0, &[0]);
    // t = 76: 3 ln ln 76 = 4.4 comparisons
    let policy_after = |mut policy: Box<dyn Policy>| {
        policy.observe_self_duels(0, 400); // 3 ln ln 476 = 5.4
        policy
    };
    let quiet = policy.select(&InFlight::new(), &mut rng(4));
    assert_eq!(quiet.duel, Duel::new(0, 0));
    let mut policy = policy_after(policy);
    let forced = policy.select(&InFlight::new(), &mut rng(4));
    assert_eq!(forced.duel, Duel::new(1, 2));
    // a pair in flight is not requested twice
    let mut in_flight = InFlight::new();
    in_flight.add(2, 1, 1);
    assert_ne!(policy.select(&in_flight, &mut rng(4)).duel, Duel::new(1, 2));
    // forced draws do not change the lists
    let before = saved(policy.as_ref());
    let Selection { duel, batch, ticket } = forced;
    policy.observe(&dueling_bandits::Observation { duel, outcome: Outcome::First, batch, ticket });
    let after = saved(policy.as_ref());
    assert_eq!((before.remaining, before.next), (after.remaining, after.next));
    assert_ne!(policy.select(&InFlight::new(), &mut rng(4)).duel, Duel::new(1, 2));
}

#[test]
fn concurrent_requests_spread_over_the_initial_phase_and_the_list() {
    let policy = start("rmed1", 6, 1);
    let (mut rng, mut in_flight) = (rng(5), InFlight::new());
    let mut asked: Vec<_> = (0..15)
        .map(|_| {
            let duel = policy.select(&in_flight, &mut rng).duel;
            in_flight.add(duel.first, duel.second, 1);
            (duel.first, duel.second)
        })
        .collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked.len(), 15, "each pair once");
    let policy = at_loop("rmed1", A.0, A.1, &[0, 1, 2, 3]);
    let mut firsts: Vec<_> =
        (0..60).map(|_| policy.select(&in_flight, &mut rng).duel.first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts, [0, 1, 2, 3]);
}

#[test]
fn rmed1_is_the_reference_implementation() {
    for seed in 0..12 {
        let k = 3 + seed as usize % 4;
        let mut policy = start("rmed1", k, 1);
        let mut reference = ReferenceRmed1::new(k);
        let mut rng = rng(60 + seed);
        for step in 0..800 {
            let Selection { duel, ticket, batch } = policy.select(&InFlight::new(), &mut rng);
            assert_eq!(duel, reference.select(&mut rng), "seed {seed}, step {step}");
            let outcome = match rng.random_range(0..20) {
                0 => Outcome::Half,
                1 => Outcome::Void,
                2 => Outcome::None,
                n if (n < 12) == (duel.first < duel.second) => Outcome::First,
                _ => Outcome::Second,
            };
            reference.fold(duel, outcome);
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                policy.observe(&dueling_bandits::Observation { duel, outcome, batch, ticket });
            }
        }
    }
}

/// A late outcome whose first ranker is not in the list counts and is tested, but draws nothing.
#[test]
fn late_outcomes_draw_nothing() {
    let mut policy = at_loop("rmed1", D.0, D.1, &[2]);
    policy.observe(&answer(0, 1, Outcome::First));
    let state = saved(policy.as_ref());
    assert_eq!(state.remaining, [false, false, true, false]);
    assert_eq!(state.next, [true, false, false, true]);
}
