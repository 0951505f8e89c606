//! The requests of a batch, the duels issued, and the parameters that are refused.

use dueling_bandits::{Duel, InFlight, Observation, Outcome, PairCounts, PolicyRng, Selection};
use rand::SeedableRng;

use super::super::arena::start;
use super::{KINDS, answer_batch, arms, lower_wins, needed, ordered};

#[test]
fn pairs_are_compared_q_to_the_r_times_and_the_last_batch_is_cut_fairly() {
    // q = 1000^(1/3) = 10 exactly, which must not become 9.99…
    let mut policy = start("pcomp:horizon=1000,batches=3", 3, 1);
    for each in [10, 100] {
        let pairs = policy.batch_pairs();
        assert_eq!(
            pairs.iter().map(|p| ordered(p.duel)).collect::<Vec<_>>(),
            [(0, 1), (0, 2), (1, 2)]
        );
        assert!(pairs.iter().all(|pair| pair.needed == each && pair.answered == 0));
        answer_batch(policy.as_mut(), |pair| pair.needed / 2);
    }
    // 1000 - 30 - 300 = 670 remain for three pairs
    let mut last: Vec<u32> = policy.batch_pairs().iter().map(|pair| pair.needed).collect();
    last.sort_unstable();
    assert_eq!(last, [223, 223, 224]);
    answer_batch(policy.as_mut(), |pair| pair.needed / 2);
    assert_eq!((policy.batch(), policy.batch_pairs()), (None, vec![]));
    assert_eq!(policy.tally().steps(), 1000);
}

#[test]
fn the_default_number_of_batches_is_the_binary_logarithm_of_the_horizon() {
    // ⌊log2 100000⌋ = 16, q = 10^(5/16) = 2.0535: 2, 4, 8, 17, 36, 74, 153, and 10^2.5 = 316
    let mut policy = start("pcomp:horizon=100000", 2, 1);
    for each in [2, 4, 8, 17, 36, 74, 153, 316] {
        assert_eq!(policy.batch_pairs()[0].needed, each);
        answer_batch(policy.as_mut(), |pair| pair.needed / 2);
    }
}

#[test]
fn a_remainder_of_the_cut_is_spread_over_the_rankers() {
    // 45 pairs of 10 rankers, one comparison each, and 15 comparisons in total: every third pair in
    // order
    let policy = start("pcomp:horizon=15,batches=15", 10, 1);
    let pairs = policy.batch_pairs();
    assert_eq!(needed(&pairs), 15);
    assert!(pairs.iter().all(|pair| pair.needed == 1));
    assert_eq!(arms(&pairs), (0..10).collect::<Vec<_>>());
}

#[test]
fn seed_sets_follow_their_exponent_and_are_never_empty() {
    // exponent 0: every ranker is a seed, and SCOMP's S × A is all pairs
    assert_eq!(start("scomp:horizon=1000,seed_exponent=0", 6, 3).batch_pairs().len(), 15);

    let seeds = |rankers: usize, exponent: f64, seed: u64| -> usize {
        let policy =
            start(&format!("scomp:horizon=1000000,seed_exponent={exponent}"), rankers, seed);
        let pairs = policy.batch_pairs().len();
        // |S| (K - |S|) + |S| (|S| - 1) / 2 pairs
        (1..=rankers).find(|s| s * (rankers - s) + s * (s - 1) / 2 == pairs).unwrap()
    };
    // with K = 2 and exponent 1, one set in four is empty and is drawn again
    assert!((0..100).all(|seed| seeds(2, 1.0, seed) >= 1));
    // the mean of |S| over n seeds is K^(1-e) within four standard errors of a binomial; no set of
    // 100 is empty
    for exponent in [0.5, 2.0 / 3.0] {
        let (rankers, runs) = (100, 200);
        let p = f64::from(rankers as u32).powf(-exponent);
        let mean =
            (0..runs).map(|seed| seeds(rankers, exponent, seed) as f64).sum::<f64>() / runs as f64;
        let error = (100.0 * p * (1.0 - p) / runs as f64).sqrt();
        assert!((mean - 100.0 * p).abs() < 4.0 * error, "exponent {exponent}: mean size {mean}");
    }
}

#[test]
fn selecting_issues_the_needed_comparisons_and_then_shows_the_champion_alone() {
    for kind in KINDS {
        let policy = start(&format!("{kind}:horizon=1000,batches=4"), 6, 5);
        let mut rng = PolicyRng::seed_from_u64(1);
        let mut in_flight = InFlight::new();
        let pairs = policy.batch_pairs();
        for _ in 0..needed(&pairs) {
            let Selection { duel, batch, .. } = policy.select(&in_flight, &mut rng);
            assert_eq!(batch, Some(1));
            in_flight.add(duel.first, duel.second, 1);
        }
        for pair in &pairs {
            assert_eq!(in_flight.of(pair.duel.first, pair.duel.second), pair.needed, "{kind}");
        }
        let waiting = policy.select(&in_flight, &mut rng);
        assert_eq!(waiting, Selection::of(policy.champion(), policy.champion()));
        // an expired duel is issued again
        in_flight.remove(pairs[0].duel.first, pairs[0].duel.second, 1);
        let again = policy.select(&in_flight, &mut rng);
        assert_eq!((again.duel, again.batch), (pairs[0].duel, Some(1)));
    }
}

#[test]
fn pairs_are_issued_in_random_order() {
    let policy = start("pcomp:horizon=1000", 10, 1);
    let mut rng = PolicyRng::seed_from_u64(9);
    let mut counts = std::collections::HashMap::new();
    let draws = 9000;
    for _ in 0..draws {
        *counts.entry(policy.select(&InFlight::new(), &mut rng).duel).or_insert(0) += 1;
    }
    // 45 pairs, 200 draws each, standard deviation 14
    assert_eq!(counts.len(), 45);
    assert!(counts.values().all(|count| (140..260).contains(count)));
}

#[test]
fn the_last_ranker_is_shown_alone_forever() {
    for kind in KINDS {
        let mut policy = start(&format!("{kind}:horizon=100000"), 5, 2);
        while policy.batch().is_some() {
            answer_batch(policy.as_mut(), lower_wins);
        }
        assert!(
            policy.tally().steps() < 5000,
            "{kind} is expected to finish long before its horizon"
        );
        for _ in 0..10 {
            policy.observe_self_duels(0, 100_000);
            let selection = policy.select(&InFlight::new(), &mut PolicyRng::seed_from_u64(3));
            assert_eq!(selection, Selection::of(0, 0));
        }
    }
}

#[test]
fn surplus_comparisons_answer_nothing_and_count_as_evidence() {
    let one = |duel, batch| Observation { duel, outcome: Outcome::First, batch, ticket: 0 };
    for estimates in ["all", "fresh"] {
        let mut policy = start(&format!("pcomp:horizon=100,batches=2,estimates={estimates}"), 2, 1);
        for batch in [None, Some(0), Some(2)] {
            policy.observe(&one(Duel::new(0, 1), batch));
        }
        policy.observe(&Observation { outcome: Outcome::None, ..one(Duel::new(0, 1), Some(1)) });
        assert_eq!(policy.batch_pairs()[0].answered, 0);
        assert_eq!((policy.tally().half_wins(0, 1), policy.tally().steps()), (6, 4));
        // 8 of 8 alone are not clear: 8 ln 2 = 5.55 < ln 400 = 5.99; with the three surplus wins
        // they are, 7.62
        policy.observe_counts(
            &PairCounts { duel: Duel::new(0, 1), first_wins: 8, second_wins: 0, ties: 2 },
            Some(1),
            &mut |_| Outcome::Void,
        );
        assert_eq!((policy.batch(), policy.champion()), (None, 0), "{estimates}");
    }
}

/// A pair of rankers with the same ranking has no results. The batch goes on, and what is learnt of
/// the other pairs is the same as without those pages.
#[test]
fn a_pair_without_results_does_not_hold_a_batch_up() {
    for kind in ["pcomp", "scomp:seed_exponent=0", "scomp2:seed_exponent=0"] {
        let colon = if kind.contains(':') { "," } else { ":" };
        let mut policy = start(&format!("{kind}{colon}horizon=3000,batches=3"), 3, 1);
        let mut rng = PolicyRng::seed_from_u64(4);
        let (mut pages, mut silent, mut batches) = (0, 0, 0);
        while let Some(number) = policy.batch() {
            batches = number;
            let selection = policy.select(&InFlight::new(), &mut rng);
            let outcome = match ordered(selection.duel) {
                (0, 1) => {
                    silent += 1;
                    Outcome::None
                }
                // 60 % for the lower index
                (low, _) if (pages % 5 < 3) == (selection.duel.first == low) => Outcome::First,
                _ => Outcome::Second,
            };
            policy.observe(&selection.observed(outcome));
            pages += 1;
            assert!(pages < 10_000, "{kind}: batch {number} does not end");
        }
        assert!(batches > 1 && silent > 100, "{kind}: {batches} batches, {silent} pages");
        // the pair waits once, and not in each batch: all other pages are comparisons
        assert!(pages <= 3000 + 100, "{kind}: {pages} pages");
        assert_eq!(policy.tally().half_plays(0, 1), 0, "{kind}: they change no count");
        assert!([0, 1].contains(&policy.champion()), "{kind}");
    }
}

#[test]
fn pages_without_a_result_answer_only_after_a_hundred_in_a_row() {
    let mut policy = start("pcomp:horizon=1000,batches=2", 2, 1);
    let one = |outcome, batch| Observation { duel: Duel::new(0, 1), outcome, batch, ticket: 0 };
    let answered = |policy: &dyn dueling_bandits::Policy| policy.batch_pairs()[0].answered;
    policy.observe_run(&one(Outcome::None, Some(1)), 99);
    policy.observe(&one(Outcome::Void, Some(1)));
    policy.observe_run(&one(Outcome::None, Some(1)), 100);
    // of another batch
    policy.observe_run(&one(Outcome::None, Some(2)), 100);
    assert_eq!(answered(policy.as_ref()), 1);
    policy.observe_run(&one(Outcome::None, Some(1)), 3);
    assert_eq!(answered(policy.as_ref()), 4);
    policy.observe(&one(Outcome::First, Some(1)));
    policy.observe(&one(Outcome::None, Some(1)));
    assert_eq!(answered(policy.as_ref()), 5);
    // in one run as one by one, over the end of the batch: 31 comparisons, then the next batch
    let mut single = start("pcomp:horizon=1000,batches=2", 2, 1);
    let mut whole = start("pcomp:horizon=1000,batches=2", 2, 1);
    let open = one(Outcome::None, Some(Observation::OPEN_BATCH));
    whole.observe_run(&open, 150);
    (0..150).for_each(|_| single.observe(&open));
    assert_eq!(whole.save(), single.save());
    assert_eq!((whole.batch(), answered(whole.as_ref())), (Some(2), 19));
}

#[test]
fn comparisons_of_the_open_batch_go_on_with_the_next_one() {
    let counts =
        |first_wins| PairCounts { duel: Duel::new(0, 1), first_wins, second_wins: 20, ties: 0 };
    let mut policy = start("pcomp:horizon=1000,batches=3", 2, 1);
    // 10 in the first batch, 100 in the second
    policy.observe_counts(&counts(16), Some(Observation::OPEN_BATCH), &mut |_| Outcome::Void);
    assert_eq!((policy.batch(), policy.batch_pairs()[0].answered), (Some(2), 26));
    let mut policy = start("pcomp:horizon=1000,batches=3", 2, 1);
    policy.observe_counts(&counts(16), Some(1), &mut |_| Outcome::Void);
    assert_eq!((policy.batch(), policy.batch_pairs()[0].answered), (Some(2), 0));
}

#[test]
fn a_batch_can_get_a_higher_number() {
    let mut policy = start("pcomp:horizon=1000,batches=3", 2, 1);
    let numbers = |policy: &dyn dueling_bandits::Policy| {
        (policy.batch(), policy.batches().expect("batches").most())
    };
    policy.renumber_batch(1);
    assert_eq!(numbers(policy.as_ref()), (Some(1), 3));
    policy.renumber_batch(4);
    assert_eq!(numbers(policy.as_ref()), (Some(4), 6));
    answer_batch(policy.as_mut(), |pair| pair.needed / 2);
    assert_eq!(numbers(policy.as_ref()), (Some(5), 6));
}
