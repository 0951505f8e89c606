//! Copeland PBR and RankEl, which explore, then exploit.

use dueling_bandits::preference::PreferenceMatrix;

use crate::arena::{answer, assert_empirical_winner, explore, explores_to_its_horizon, rng, start};

#[test]
fn the_horizon_ends_exploring_with_the_best_empirical_ranker() {
    for kind in ["pbr:horizon=200", "rank-el:horizon=200"] {
        assert_empirical_winner(&*explores_to_its_horizon(kind), kind);
    }
}

#[test]
fn each_finds_the_copeland_winner() {
    // 0 beats both others with 0.6; 1 always beats 2, so 1 has the larger mean, 0.7
    let rows = [vec![0.5, 0.6, 0.6], vec![0.4, 0.5, 1.0], vec![0.4, 0.0, 0.5]];
    let matrix = PreferenceMatrix::from_rows(&rows).expect("a matrix");
    for kind in ["pbr:horizon=100000", "rank-el:horizon=100000"] {
        for seed in 0..5 {
            // the error probability is at most 1/T in each of the five runs
            let mut policy = start(kind, 3, seed);
            let answer = |duel, rng: &mut _| answer(&matrix, duel, rng);
            let found = explore(&mut *policy, 99_999, &mut rng(seed), answer);
            assert_eq!((found, policy.champion()), (Some(0), 0), "{kind} {seed}");
        }
    }
}
