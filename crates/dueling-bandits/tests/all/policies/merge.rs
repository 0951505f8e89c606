//! MergeRUCB and MergeDTS.

use dueling_bandits::{Duel, InFlight, Outcome, Policy, PolicySpec};
use rand::RngExt;

use super::support::{
    D, Reference, ReferencePolicy, answer, assert_same_distribution, feed, frequencies, rng,
    selections, start,
};
use crate::reference::merge::{ReferenceMergeDts, saved};

fn batches(policy: &dyn Policy) -> Vec<Vec<u16>> {
    let (_, (mut batches, ..)) = saved(policy);
    batches.iter_mut().for_each(|batch| batch.sort_unstable());
    batches
}

#[test]
fn worked_pruning() {
    let mut policy = start("merge-rucb:constant=1000", 4, 1);
    // no ranker is beaten yet: the duels of 0 with 1 and 2 follow
    feed(policy.as_mut(), &[&[0, 0, 0, 6], &[0, 0, 20, 12], &[0, 20, 0, 30], &[2, 12, 10, 0]], 0);
    assert_eq!(batches(policy.as_ref()), [[0, 1, 2, 3]]);
    feed(policy.as_mut(), &[&[0, 90, 75, 0], &[10, 0, 0, 0], &[15, 0, 0, 0], &[0; 4]], 0);
    assert_eq!(policy.tally().steps(), 302);
    assert_eq!(batches(policy.as_ref()), [[0, 3]]);
    assert_eq!(policy.champion(), 0);
}

/// `u[1][0]` falls below 1/2 exactly when `p̂ + sqrt(α ln(t + C)/N)` does.
#[test]
fn a_ranker_is_removed_as_soon_as_its_bound_falls_below_half() {
    for (spec, alpha, constant) in
        [("merge-rucb:constant=1000", 1.01, 1_000.0), ("merge-dts", 0.262144, 400_000.0)]
    {
        let mut policy = start(spec, 3, 1);
        let mut removed = false;
        for n in 1..200_u32 {
            policy.observe(&answer(0, 1, Outcome::First));
            let bound: f64 = alpha * (f64::from(n) + 1.0 + constant).ln() / f64::from(n);
            removed |= bound.sqrt() < 0.5;
            let left = batches(policy.as_ref());
            assert_eq!(
                left,
                if removed { [vec![0, 2]] } else { [vec![0, 1, 2]] },
                "{spec} after {n}"
            );
        }
        assert!(removed);
    }
}

#[test]
fn the_theory_s_constant() {
    // 4(4α-1)K²/… at α = 0.8, K = 100 is 87,187,130,431: so large that 60 wins in a row decide
    // nothing, while `constant = 1` decides
    let loses = |spec: &str| {
        let mut policy = start(spec, 100, 1);
        let pair = batches(policy.as_ref())[0].clone();
        for _ in 0..60 {
            policy.observe(&answer(usize::from(pair[0]), usize::from(pair[1]), Outcome::First));
        }
        batches(policy.as_ref()).concat().len() < 100
    };
    // the bound is below 1/2 when α ln(t + C) < N/4: 0.8 · 25.19 = 20.2 against 15
    assert!(!loses("merge-rucb:alpha=0.8"));
    assert!(loses("merge-rucb:alpha=0.8,constant=1000"));
    for (alpha, valid) in
        [("0.8", true), ("0.5", false), ("0.5001", false), ("0.3,constant=1000", true)]
    {
        let spec = PolicySpec::from_text(&format!("merge-rucb:alpha={alpha}")).unwrap();
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
    let reference = Reference::of(policy.as_ref(), 1.01);
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

    let mut policy = start("merge-dts:alpha=1", k, 1);
    feed(policy.as_mut(), counts, 0);
    assert_eq!(batches(policy.as_ref())[0].len(), k);
    let reference = ReferenceMergeDts::of(policy.as_ref(), 1.0, 400_000.0, 16, 1);
    let expected = frequencies(k, DRAWS, || reference.select(&mut rng));
    assert_same_distribution(&expected, &selections(policy.as_ref(), DRAWS, 73), "MergeDTS");
}

/// Lower indices win 9 times in 10: removed rankers stay away, the others merge, and one remains.
#[test]
fn batches_merge_until_one_ranker_is_left() {
    for spec in [
        "merge-rucb:alpha=0.6,constant=1000",
        "merge-rucb:alpha=0.6,constant=1000,round_robin=true",
        "merge-dts:batch_size=4",
        "merge-dts:batch_size=3,round_robin=true",
    ] {
        let k = 13;
        let mut policy = start(spec, k, 3);
        let (mut rng, idle) = (rng(74), InFlight::new());
        let mut left = k;
        for _ in 0..20_000 {
            let Duel { first, second } = policy.select(&idle, &mut rng).duel;
            let now = batches(policy.as_ref());
            let together = |batch: &Vec<u16>| {
                batch.contains(&(first as u16)) && batch.contains(&(second as u16))
            };
            assert!(now.iter().any(together), "{spec}: ({first}, {second}) of {now:?}");
            assert!(now.concat().len() <= left);
            left = now.concat().len();
            if left == 1 {
                assert_eq!((first, second), (0, 0), "{spec}");
                break;
            }
            assert_ne!(first, second, "{spec}");
            let lower_wins = rng.random_bool(0.9);
            let first_wins = (first < second) == lower_wins;
            policy.observe(&answer(
                first,
                second,
                if first_wins { Outcome::First } else { Outcome::Second },
            ));
        }
        assert_eq!(left, 1, "{spec}");
        assert_eq!(policy.champion(), 0, "{spec}");
    }
}

#[test]
fn batches_take_turns_only_if_requested() {
    let firsts = |spec: &str| {
        let policy = start(spec, 12, 3);
        let batches = batches(policy.as_ref());
        let (mut rng, idle) = (rng(75), InFlight::new());
        let mut seen = vec![0; batches.len()];
        for _ in 0..300 {
            let first = policy.select(&idle, &mut rng).duel.first as u16;
            seen[batches.iter().position(|batch| batch.contains(&first)).unwrap()] += 1;
        }
        seen
    };
    assert_eq!(firsts("merge-rucb:round_robin=true"), [300, 0, 0]);
    // a third each, within 4.75 standard deviations of a binomial count
    assert!(firsts("merge-rucb").into_iter().all(|n: i32| (n - 100).abs() < 39));
}
