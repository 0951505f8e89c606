//! SAVAGE, which explores, then exploits.

use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Duel, InFlight, Observation, Outcome, PolicyRng};
use proptest::prelude::*;
use rand::RngExt;

use super::arena::{
    assert_empirical_winner, explore, explores_to_its_horizon, fold, matrix, rng, run, start, step,
};

/// The explorations with one unknown per pair, and the one with one unknown per ranker.
const KINDS: [&str; 3] =
    ["savage:winner=copeland,", "savage:winner=condorcet,", "savage:winner=borda,"];
const PAIRS: &[&str] = KINDS.split_at(2).0;

fn of(kind: &str, horizon: u64) -> String {
    format!("{kind}horizon={horizon}")
}

fn lower_wins(duel: Duel, _: &mut PolicyRng) -> Outcome {
    if duel.first < duel.second { Outcome::First } else { Outcome::Second }
}

fn ordered(duel: Duel) -> (usize, usize) {
    (duel.first.min(duel.second), duel.first.max(duel.second))
}

#[test]
fn every_pair_has_its_turn() {
    for kind in PAIRS {
        let mut policy = start(&of(kind, 100_000), 6, 1);
        let mut requests = rng(1);
        for _ in 0..3 {
            let mut pass = Vec::new();
            for _ in 0..15 {
                let selection = policy.select(&InFlight::new(), &mut requests);
                pass.push(ordered(selection.duel));
                let outcome = if pass.len() % 2 == 0 { Outcome::First } else { Outcome::Second };
                fold(&mut *policy, selection, outcome);
            }
            pass.sort_unstable();
            pass.dedup();
            assert_eq!(pass.len(), 15, "{kind}");
        }
    }
}

#[test]
fn requests_in_flight_are_spread_over_the_pairs() {
    for kind in PAIRS {
        let policy = start(&of(kind, 100_000), 6, 1);
        let mut requests = rng(2);
        let mut in_flight = InFlight::new();
        for sent in 1..=100 {
            let duel = policy.select(&in_flight, &mut requests).duel;
            in_flight.add(duel.first, duel.second, 1);
            let counts = (0..6)
                .flat_map(|i| (i + 1..6).map(move |j| (i, j)))
                .map(|(i, j)| in_flight.of(i, j));
            assert!(
                counts.clone().max().unwrap() - counts.min().unwrap() <= 1,
                "{kind}: {sent} sent"
            );
        }
    }
}

#[test]
fn an_even_pair_does_not_delay_others_and_a_page_without_a_click_answers_nothing() {
    for kind in PAIRS {
        let mut policy = start(&of(kind, 1_000_000), 5, 3);
        let found = explore(&mut *policy, 200_000, &mut rng(3), |duel, rng| {
            match (ordered(duel), rng.random_range(0..10)) {
                (_, 0) => Outcome::None,
                // skipped ties: this pair is never decided, and not needed
                ((3, 4), _) => Outcome::Void,
                _ => lower_wins(duel, rng),
            }
        });
        assert_eq!(found, Some(0), "{kind}");
        assert_eq!(policy.tally().half_plays(3, 4), 0);
    }
}

#[test]
fn the_horizon_ends_exploring_with_the_best_empirical_ranker() {
    for kind in KINDS {
        let policy = explores_to_its_horizon(&of(kind, 200));
        if !kind.contains("borda") {
            assert_empirical_winner(&*policy, kind);
        }
    }
}

/// 0 beats both others with 0.6; 1 always beats 2, so 1 has the larger mean, 0.7.
fn copeland_and_borda_differ() -> PreferenceMatrix {
    PreferenceMatrix::from_rows(&[vec![0.5, 0.6, 0.6], vec![0.4, 0.5, 1.0], vec![0.4, 0.0, 0.5]])
        .expect("a matrix")
}

#[test]
fn each_parameter_finds_its_kind_of_winner() {
    let matrix = copeland_and_borda_differ();
    for (kind, winner) in [
        ("savage:winner=copeland,", 0),
        ("savage:winner=condorcet,", 0),
        ("savage:winner=borda,", 1),
        ("savage:winner=copeland,intersect=false,", 0),
    ] {
        for seed in 0..5 {
            // the error probability is at most 1/T in each of the five runs
            let mut policy = start(&of(kind, 100_000), 3, seed);
            let mut requests = rng(seed);
            let found = explore(&mut *policy, 99_999, &mut requests, |duel, rng| {
                super::arena::answer(&matrix, duel, rng)
            });
            assert_eq!(found, Some(winner), "{kind} {seed}");
        }
    }
}

#[test]
fn without_a_horizon_exploration_ends_when_the_winner_is_certain() {
    for kind in ["savage:", "savage:winner=borda,"] {
        let mut surer = 0;
        for delta in [0.1, 1e-6] {
            let mut policy = start(&format!("{kind}delta={delta}"), 4, 6);
            assert_eq!(explore(&mut *policy, 100_000, &mut rng(6), lower_wins), Some(0), "{kind}");
            assert!(policy.tally().steps() > surer, "{kind}: a smaller delta takes longer");
            surer = policy.tally().steps();
        }
    }
}

#[test]
fn savage_has_the_regret_of_the_published_library() {
    // Copeland regret after 10⁴ steps of SAVAGE with the Condorcet predicate on cyclic-4: 512 ± 12
    // in the published library of Komiyama et al. (duelingbanditlib)
    use dueling_bandits::preference::Regret;
    let matrix = matrix("cyclic-4");
    let regret = Regret::copeland(&matrix);
    let values: Vec<f64> = (0..40)
        .map(|seed| run("savage:winner=condorcet,horizon=10000", &matrix, &regret, 10_000, seed))
        .collect();
    let mean = values.iter().sum::<f64>() / 40.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 39.0;
    let error = (variance / 40.0 + 12.0_f64.powi(2)).sqrt();
    assert!((mean - 512.0).abs() < 4.0 * error, "{mean:.0} ± {error:.0}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For all outcomes, in any order and of any pairs: no panic, and a ranker that is shown alone
    /// remains.
    #[test]
    fn an_accepted_ranker_stays_accepted(
        kind in prop::sample::select(KINDS.to_vec()), rankers in 4..8usize, seed: u64, edge in 0.0..0.5f64, most in 1..4000usize,
    ) {
        let mut policy = start(&of(kind, 2000), rankers, seed);
        let mut requests = rng(seed);
        let matrix = PreferenceMatrix::named(&format!("sst:{rankers}:{}", seed % 1000)).unwrap().unwrap();
        let mut alone = None;
        for nth in 0..most {
            let duel = policy.select(&InFlight::new(), &mut requests).duel;
            prop_assert!(alone.is_none_or(|ranker| duel == Duel::new(ranker, ranker)));
            if duel.is_self() {
                alone = Some(duel.first);
                prop_assert_eq!(policy.champion(), duel.first);
            }
            if nth % 3 == 0 {
                // an outcome of a pair that was not requested
                let duel = Duel::new(nth % rankers, (nth + 1 + nth / rankers) % rankers);
                if !duel.is_self() {
                    let outcome = if requests.random_bool(0.5 + edge) { Outcome::First } else { Outcome::Half };
                    policy.observe(&Observation { duel, outcome, batch: Some(3), ticket: 9 });
                }
            }
            step(&mut *policy, &matrix, &mut requests);
        }
        if policy.tally().steps() >= 2000 {
            prop_assert!(policy.select(&InFlight::new(), &mut requests).duel.is_self(), "the horizon has passed");
        }
    }
}
