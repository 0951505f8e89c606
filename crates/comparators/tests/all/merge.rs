//! MergeRUCB.

use comparators::Comparator;
use dueling_bandits::{Bandit, Duel, InFlight, Outcome};
use rand::RngExt;

use crate::support::{
    D, Reference, answer, assert_same_distribution, feed, frequencies, rng, selections, start,
};

/// The rankers that `draws` selections show, ascending.
fn shown(policy: &dyn Bandit, draws: usize) -> Vec<usize> {
    let (mut rng, idle) = (rng(70), InFlight::new());
    let pairs = (0..draws).map(|_| policy.select(&idle, &mut rng).duel);
    let mut shown: Vec<usize> = pairs.flat_map(|duel| [duel.first, duel.second]).collect();
    shown.sort_unstable();
    shown.dedup();
    shown
}

#[test]
fn worked_pruning() {
    let mut policy = start("merge-rucb:constant=1000", 4, 1);
    // no ranker is beaten yet: the duels of 0 with 1 and 2 follow
    feed(policy.as_mut(), &[&[0, 0, 0, 6], &[0, 0, 20, 12], &[0, 20, 0, 30], &[2, 12, 10, 0]], 0);
    assert_eq!(shown(policy.as_ref(), 100), [0, 1, 2, 3]);
    feed(policy.as_mut(), &[&[0, 90, 75, 0], &[10, 0, 0, 0], &[15, 0, 0, 0], &[0; 4]], 0);
    assert_eq!(policy.tally().steps(), 302);
    assert_eq!(shown(policy.as_ref(), 100), [0, 3]);
    assert_eq!(policy.champion(), 0);
}

/// `u[1][0]` falls below 1/2 exactly when `p̂ + sqrt(α ln(t + C)/N)` does.
#[test]
fn a_ranker_is_removed_as_soon_as_its_bound_falls_below_half() {
    let mut policy = start("merge-rucb:constant=1000", 3, 1);
    let mut removed = false;
    for n in 1..200_u32 {
        policy.observe(&answer(0, 1, Outcome::First));
        let bound: f64 = 1.01 * (f64::from(n) + 1.0 + 1_000.0).ln() / f64::from(n);
        removed |= bound.sqrt() < 0.5;
        let left = shown(policy.as_ref(), 100);
        assert_eq!(left.contains(&1), !removed, "after {n}");
    }
    assert!(removed);
}

#[test]
fn the_theory_s_constant() {
    // 4(4α-1)K²/… at α = 0.8, K = 100 is 87,187,130,431: so large that 60 wins in a row decide
    // nothing, while `constant = 1` decides
    let loses = |spec: &str| {
        let mut policy = start(spec, 100, 1);
        let Duel { first, second } = policy.select(&InFlight::new(), &mut rng(76)).duel;
        for _ in 0..60 {
            policy.observe(&answer(first, second, Outcome::First));
        }
        // a ranker is first in one of a hundred selections
        !shown(policy.as_ref(), 3_000).contains(&second)
    };
    // the bound is below 1/2 when α ln(t + C) < N/4: 0.8 · 25.19 = 20.2 against 15
    assert!(!loses("merge-rucb:alpha=0.8"));
    assert!(loses("merge-rucb:alpha=0.8,constant=1000"));
    for (alpha, valid) in
        [("0.8", true), ("0.5", false), ("0.5001", false), ("0.3,constant=1000", true)]
    {
        let spec = Comparator::from_text(&format!("merge-rucb:alpha={alpha}"), &[]).unwrap();
        assert_eq!(spec.validate(100).is_ok(), valid, "alpha {alpha}");
    }
}

#[test]
fn selects_like_the_reference_implementation() {
    const DRAWS: usize = 10_000;
    let (counts, _) = D;
    let (k, mut rng) = (4, rng(71));

    let mut policy = start("merge-rucb:constant=1000", k, 1);
    feed(policy.as_mut(), counts, 0);
    let reference = Reference::of(policy.tally(), 1.01);
    let width: f64 = 1.01 * (reference.steps as f64 + 1.0 + 1_000.0).ln();
    let upper = |j: usize, c: usize| {
        reference.wins[j][c] / reference.plays(j, c) + (width / reference.plays(j, c)).sqrt()
    };
    let expected = frequencies(k, DRAWS, || {
        let c = rng.random_range(0..k);
        let others: Vec<_> = (0..k).filter(|&j| j != c).collect();
        Duel::new(c, Reference::best(&others, |j| upper(j, c))[0])
    });
    assert_same_distribution(&expected, &selections(policy.as_ref(), DRAWS, 72), "MergeRUCB");
}

/// Lower indices win 9 times in 10: removed rankers stay away, the others merge, and one remains.
#[test]
fn batches_merge_until_one_ranker_is_left() {
    let mut policy = start("merge-rucb:alpha=0.6,constant=1000", 13, 3);
    let (mut rng, idle) = (rng(74), InFlight::new());
    let mut is_over = false;
    for _ in 0..20_000 {
        let Duel { first, second } = policy.select(&idle, &mut rng).duel;
        if first == second {
            is_over = true;
            assert_eq!(first, 0);
            break;
        }
        let lower_wins = rng.random_bool(0.9);
        let first_wins = (first < second) == lower_wins;
        let outcome = if first_wins { Outcome::First } else { Outcome::Second };
        policy.observe(&answer(first, second, outcome));
    }
    assert!(is_over);
    assert_eq!((policy.champion(), shown(policy.as_ref(), 20)), (0, vec![0]));
}
