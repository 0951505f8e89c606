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

fn lower_wins(duel: Duel, _: &mut PolicyRng) -> Outcome {
    if duel.first < duel.second { Outcome::First } else { Outcome::Second }
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
fn a_race_stops_when_a_pair_has_had_its_comparisons() {
    // 6 pairs; a round compares each once; round 4 is the first with more than 3 comparisons
    let mut policy = start("pbr:horizon=100000,most_comparisons=3", 4, 8);
    let half = |_: Duel, _: &mut PolicyRng| Outcome::Half;
    assert!(explore(&mut *policy, 1000, &mut rng(8), half).is_some());
    assert_eq!(policy.tally().steps(), 24);
}

#[test]
fn an_elicited_ranking_may_be_wrong_by_its_tolerance() {
    let steps = |parameters: &str| {
        let mut policy = start(&format!("rank-el:horizon=100000,{parameters}"), 5, 9);
        assert_eq!(explore(&mut *policy, 50_000, &mut rng(9), lower_wins), Some(0), "{parameters}");
        policy.tally().steps()
    };
    // if every ranking is acceptable, nothing must be decided; a larger tolerance never takes
    // longer
    assert_eq!(steps("tolerance=10"), 10);
    assert_eq!(steps("distance=mrd,tolerance=4"), 10);
    for distance in ["ndp", "mrd"] {
        let of = |tolerance: usize| steps(&format!("distance={distance},tolerance={tolerance}"));
        assert!(of(0) >= of(1) && of(1) >= of(3), "{distance}");
    }
}

#[test]
fn parameters_are_checked_with_their_names() {
    for (text, parameter) in [
        ("pbr", "horizon"),
        ("pbr:horizon=1000,kappa=6", "kappa"),
        ("pbr:horizon=1000,kappa=0", "kappa"),
        ("pbr:horizon=1000,most_comparisons=0", "most_comparisons"),
        ("rank-el:distance=tau", "distance"),
        ("rank-el:tolerance=16", "tolerance"),
    ] {
        let checked = Comparator::from_text(text, &[]).and_then(|spec| spec.validate(6));
        assert_eq!(checked.expect_err(text).parameter, parameter, "{text}");
    }
}
