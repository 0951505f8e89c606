//! Self-Sparring: its sampling distribution and its champion.

use dueling_bandits::{Bandit, InFlight, Outcome};

use crate::arena::{rng, start};
use crate::support::answer;

fn observe(policy: &mut dyn Bandit, first: usize, second: usize, outcome: Outcome) {
    policy.observe(&answer(first, second, outcome));
}

/// The shares of 6000 selections in which ranker 0 is first and second.
fn shares_of_0(policy: &dyn Bandit) -> (f64, f64) {
    let mut requests = rng(1);
    let (mut first, mut second) = (0, 0);
    for _ in 0..6_000 {
        let duel = policy.select(&InFlight::new(), &mut requests).duel;
        first += u32::from(duel.first == 0);
        second += u32::from(duel.second == 0);
    }
    (f64::from(first) / 6_000.0, f64::from(second) / 6_000.0)
}

/// Five standard deviations of a share of 6000 are at most 0.033.
fn about(got: (f64, f64), wanted: f64) {
    assert!(
        (got.0 - wanted).abs() < 0.033 && (got.1 - wanted).abs() < 0.033,
        "{got:?}, expected {wanted}"
    );
}

#[test]
fn either_ranker_is_the_largest_of_its_own_sample() {
    let mut policy = start("self-sparring", 2, 1);
    about(shares_of_0(&*policy), 0.5);
    // one win of 0 over 1: P(Beta(2,1) > Beta(1,2)) = ∫ 2x (1 - (1-x)²) dx = 5/6
    observe(&mut *policy, 0, 1, Outcome::First);
    about(shares_of_0(&*policy), 5.0 / 6.0);
    // half a win for both keeps the symmetry about the same means, and one win back makes it even
    observe(&mut *policy, 0, 1, Outcome::Half);
    observe(&mut *policy, 1, 0, Outcome::First);
    about(shares_of_0(&*policy), 0.5);
}

#[test]
fn pages_without_a_click_and_self_duels_change_nothing() {
    let mut policy = start("self-sparring", 2, 1);
    observe(&mut *policy, 0, 1, Outcome::First);
    policy.observe_self_duels(1, 1_000);
    for _ in 0..1_000 {
        observe(&mut *policy, 1, 0, Outcome::None);
        observe(&mut *policy, 1, 0, Outcome::Void);
    }
    about(shares_of_0(&*policy), 5.0 / 6.0);
}

#[test]
fn the_champion_has_the_largest_posterior_mean() {
    let mut policy = start("self-sparring", 3, 1);
    assert_eq!(policy.champion(), 0);
    for _ in 0..3 {
        observe(&mut *policy, 2, 1, Outcome::First); // 2: 4/5
    }
    for _ in 0..10 {
        observe(&mut *policy, 0, 1, Outcome::First); // 0: 11/12
    }
    assert_eq!(policy.champion(), 0);
    observe(&mut *policy, 0, 1, Outcome::Second); // 0: 11/13
    assert_eq!(policy.champion(), 0);
    observe(&mut *policy, 0, 1, Outcome::Second); // 0: 11/14
    assert_eq!(policy.champion(), 2);
}
