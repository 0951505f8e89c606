//! Doubler: its epochs, the effect of tickets, and the worked example.

use dueling_bandits::{Bandit, Duel, InFlight, Observation, Outcome};

use crate::arena::{rng, start};

fn observe(policy: &mut dyn Bandit, first: usize, second: usize, ticket: u64) {
    let duel = Duel::new(first, second);
    policy.observe(&Observation { duel, outcome: Outcome::First, batch: None, ticket });
}

/// The share of 8000 selections in which each of three rankers is first.
fn shares(policy: &dyn Bandit) -> [f64; 3] {
    let mut requests = rng(1);
    let mut counts = [0; 3];
    for _ in 0..8_000 {
        counts[policy.select(&InFlight::new(), &mut requests).duel.first] += 1;
    }
    counts.map(|count| f64::from(count) / 8_000.0)
}

fn about(got: [f64; 3], wanted: [f64; 3]) {
    for (got, wanted) in got.into_iter().zip(wanted) {
        // five standard deviations of a share of 8000 are at most 0.028
        assert!((got - wanted).abs() < 0.028, "{got}, expected {wanted}");
    }
}

fn epoch(policy: &dyn Bandit) -> u64 {
    policy.select(&InFlight::new(), &mut rng(0)).ticket
}

/// The worked example: epoch 1 plays 2, 2 and epoch 2 plays 0, 2, 1, 2.
#[test]
fn the_first_ranker_is_drawn_from_the_plays_of_the_previous_epoch() {
    let mut policy = start("doubler", 3, 4);
    let first = policy.champion();
    let only = |ranker: usize| [0, 1, 2].map(|i| if i == ranker { 1.0 } else { 0.0 });
    about(shares(&*policy), only(first));
    observe(&mut *policy, 0, 2, 1);
    observe(&mut *policy, 0, 2, 1);
    assert_eq!(epoch(&*policy), 2);
    assert_eq!(policy.champion(), 2);
    about(shares(&*policy), only(2));
    observe(&mut *policy, 2, 0, 2);
    policy.observe_self_duels(2, 1);
    observe(&mut *policy, 2, 1, 2);
    assert_eq!(epoch(&*policy), 2);
    policy.observe_self_duels(2, 1);
    assert_eq!(epoch(&*policy), 3);
    about(shares(&*policy), [0.25, 0.25, 0.5]);
}

#[test]
fn epoch_i_waits_for_two_to_the_i_outcomes() {
    let mut policy = start("doubler", 4, 1);
    let mut requests = rng(1);
    let mut lengths = [0u64; 9];
    for _ in 0..(1 << 9) - 2 {
        let selection = policy.select(&InFlight::new(), &mut requests);
        let duel = selection.duel;
        for outcome in [Outcome::None, Outcome::Void] {
            // outcomes that are not steps of the epoch
            let other = Duel::new(duel.first, (duel.first + 1) % 4);
            policy.observe(&Observation {
                duel: other,
                outcome,
                batch: None,
                ticket: selection.ticket,
            });
        }
        lengths[selection.ticket as usize] += 1;
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            observe(&mut *policy, duel.first, duel.second, selection.ticket);
        }
    }
    assert_eq!(lengths, [0, 2, 4, 8, 16, 32, 64, 128, 256]);
    assert_eq!(epoch(&*policy), 9);
}

#[test]
fn the_machine_is_reset_at_every_epoch() {
    // in epoch 3, eight steps, each of four rankers is tried before any is tried again, regardless
    // of earlier epochs
    let mut policy = start("doubler", 4, 9);
    let mut requests = rng(2);
    while epoch(&*policy) < 3 {
        let duel = policy.select(&InFlight::new(), &mut requests).duel;
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            observe(&mut *policy, duel.first, duel.second, 0);
        }
    }
    let mut tried = Vec::new();
    for _ in 0..4 {
        let duel = policy.select(&InFlight::new(), &mut requests).duel;
        tried.push(duel.second);
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            observe(&mut *policy, duel.first, duel.second, 3);
        }
    }
    tried.sort_unstable();
    assert_eq!(tried, [0, 1, 2, 3]);
}

#[test]
fn late_outcomes_join_the_multiset_of_their_epoch_and_no_machine() {
    let mut policy = start("doubler", 3, 4);
    observe(&mut *policy, 0, 2, 1);
    observe(&mut *policy, 0, 2, 1);
    for ticket in [3, 17, u64::MAX] {
        observe(&mut *policy, 2, 0, ticket); // a future epoch
    }
    assert_eq!(epoch(&*policy), 2);
    about(shares(&*policy), [0.0, 0.0, 1.0]);
    observe(&mut *policy, 2, 1, 1);
    observe(&mut *policy, 2, 1, 1);
    assert_eq!(epoch(&*policy), 2, "late outcomes are not steps");
    about(shares(&*policy), [0.0, 0.5, 0.5]);
    for _ in 0..4 {
        observe(&mut *policy, 2, 0, 0); // without a ticket: counts in this epoch
    }
    assert_eq!(epoch(&*policy), 3);
    about(shares(&*policy), [1.0, 0.0, 0.0]);
    observe(&mut *policy, 0, 1, 1);
    about(shares(&*policy), [1.0, 0.0, 0.0]);
}
