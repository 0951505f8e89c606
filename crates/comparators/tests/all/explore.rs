//! Copeland PBR and RankEl, which explore, then exploit.

use comparators::{Bandit, Comparator};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Duel, InFlight, Outcome, PolicyRng};
use rand::RngExt;

use crate::arena::{fold, rng, start};

/// Select and answer, at most `most` steps, until a ranker is shown alone; returns that ranker.
fn explore(
    policy: &mut dyn Bandit,
    most: usize,
    requests: &mut PolicyRng,
    mut answer: impl FnMut(Duel, &mut PolicyRng) -> Outcome,
) -> Option<usize> {
    for _ in 0..most {
        let selection = policy.select(&InFlight::new(), requests);
        if selection.duel.is_self() {
            return Some(selection.duel.first);
        }
        let outcome = answer(selection.duel, requests);
        fold(policy, selection, outcome);
    }
    None
}

#[test]
fn the_horizon_ends_exploring_with_the_best_empirical_ranker() {
    for kind in ["pbr:horizon=200", "rank-el:horizon=200"] {
        let mut policy = start(kind, 4, 5);
        let mut requests = rng(5);
        // 60 : 40 for the lower index is far from certain within 200 steps
        for nth in 0..200 {
            let selection = policy.select(&InFlight::new(), &mut requests);
            assert!(!selection.duel.is_self(), "{kind}: step {nth}");
            let first = (selection.duel.first < selection.duel.second) == requests.random_bool(0.6);
            fold(&mut *policy, selection, if first { Outcome::First } else { Outcome::Second });
        }
        let champion = policy.champion();
        let selection = policy.select(&InFlight::new(), &mut requests);
        assert_eq!(selection.duel, Duel::new(champion, champion), "{kind}");
        let best = (0..4).map(|i| policy.tally().copeland_score(i)).max();
        assert_eq!(Some(policy.tally().copeland_score(champion)), best, "{kind}");
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
            let found = explore(&mut *policy, 99_999, &mut rng(seed), |duel, rng| {
                crate::arena::answer(&matrix, duel, rng)
            });
            assert_eq!((found, policy.champion()), (Some(0), 0), "{kind} {seed}");
        }
    }
}

#[test]
fn parameters_are_checked_with_their_names() {
    for (text, parameter) in [("pbr", "horizon"), ("pbr:horizon=1000,delta=2", "delta")] {
        let checked = Comparator::from_text(text, &[]).and_then(|spec| spec.validate(6));
        assert_eq!(checked.expect_err(text).parameter, parameter, "{text}");
    }
}
