//! CCB against its reference implementation.

use dueling_bandits::{Duel, InFlight, Outcome, Policy, PolicyRng};
use rand::RngExt;

use super::support::{
    A, Reference, ReferencePolicy, answer, assert_same_distribution, feed, frequencies, rng,
    selections, start,
};
use crate::reference::ccb::ReferenceCcb;

const SEED: u64 = 5;

fn assert_is_state_of(reference: &ReferenceCcb, policy: &dyn Policy) {
    let found = ReferenceCcb::of(policy, 0.51, SEED);
    let step = reference.reference.steps;
    assert_eq!(found.reference.steps, step);
    assert_eq!(found.contenders, reference.contenders, "B at step {step}");
    assert_eq!(found.beaten_by, reference.beaten_by, "B^i at step {step}");
    assert_eq!(found.most_losses, reference.most_losses, "L_C at step {step}");
}

/// Fold `steps` groups of duels into both policies, half selected by the policy and half at random,
/// and compare after each group. The preferences change every `lasting` steps, so that earlier
/// conclusions are disproven.
fn fold_both(k: usize, steps: usize, lasting: usize, seed: u64) -> (Box<dyn Policy>, ReferenceCcb) {
    let mut policy = start("ccb", k, SEED);
    let mut reference = ReferenceCcb::new(Reference::new(k, 0.51), SEED);
    let mut rng = rng(seed);
    let mut matrix = Vec::new();
    for step in 0..steps {
        if step % lasting == 0 {
            matrix = random_matrix(k, &mut rng);
        }
        let duel = if rng.random_bool(0.5) {
            policy.select(&InFlight::new(), &mut rng).duel
        } else {
            Duel::new(rng.random_range(0..k), rng.random_range(0..k))
        };
        // comparisons come in groups; otherwise hardly any pair would be decided
        let (count, outcome) = match rng.random_range(0..10) {
            _ if duel.is_self() => (rng.random_range(1..60), Outcome::None),
            0 => (1, Outcome::Half),
            1 => (1, Outcome::None),
            _ if rng.random_bool(matrix[duel.first][duel.second]) => {
                (rng.random_range(1..9), Outcome::First)
            }
            _ => (rng.random_range(1..9), Outcome::Second),
        };
        for _ in 0..count {
            reference.fold(duel, outcome);
            if !duel.is_self() {
                policy.observe(&answer(duel.first, duel.second, outcome));
                assert_is_state_of(&reference, policy.as_ref());
            }
        }
        if duel.is_self() {
            policy.observe_self_duels(duel.first, count);
            assert_is_state_of(&reference, policy.as_ref());
        }
    }
    (policy, reference)
}

fn random_matrix(k: usize, rng: &mut PolicyRng) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.5; k]; k];
    for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
        matrix[i][j] = [0.05, 0.3, 0.45, 0.55, 0.7, 0.95][rng.random_range(0..6)];
        matrix[j][i] = 1.0 - matrix[i][j];
    }
    matrix
}

/// Groups of duels: winner, loser, wins.
type Script = &'static [(usize, usize, u32)];

/// Rankers and logs that lead to states that random logs rarely reach.
const SCRIPTS: &[(usize, Script)] = &[
    // 0 beats all; once 1 has beaten it in turn, 0, 1 and 2 lose once each, and sets of one are too
    // small
    (
        4,
        &[
            (2, 1, 20),
            (2, 3, 20),
            (1, 3, 20),
            (0, 1, 20),
            (0, 2, 20),
            (0, 3, 20),
            (1, 0, 60),
            (3, 0, 60),
        ],
    ),
    // 0 is the only contender; after trimming has removed it from the sets of 1 and 3, both beat it
    // in turn, and then 1, which is no contender, overtakes it
    (
        5,
        &[
            (2, 1, 20),
            (1, 3, 20),
            (0, 1, 20),
            (0, 2, 20),
            (0, 3, 20),
            (0, 4, 20),
            (1, 0, 60),
            (3, 0, 60),
            (1, 4, 20),
        ],
    ),
];

#[test]
fn the_fold_is_the_reference_implementation() {
    let mut happened = [0; 5];
    for seed in 0..8 {
        let (_, reference) = fold_both(3 + seed as usize % 3, 400, 80, seed);
        (0..5).for_each(|n| happened[n] += reference.happened[n]);
    }
    for seed in 0..8 {
        for (k, script) in SCRIPTS {
            let mut policy = start("ccb", *k, seed);
            let mut reference = ReferenceCcb::new(Reference::new(*k, 0.51), seed);
            for &(winner, loser, count) in *script {
                for _ in 0..count {
                    policy.observe(&answer(winner, loser, Outcome::First));
                    reference.fold(Duel::new(winner, loser), Outcome::First);
                    assert_is_state_of(&reference, policy.as_ref());
                }
            }
            (0..5).for_each(|n| happened[n] += reference.happened[n]);
        }
    }
    assert!(happened.iter().all(|&count| count > 0), "a case was not covered: {happened:?}");
}

#[test]
fn selects_like_the_reference_implementation() {
    const DRAWS: usize = 8_000;
    for seed in 0..6 {
        let k = 3 + seed as usize % 4;
        let (policy, reference) = fold_both(k, 20 * (seed as usize + 1), 400, 300 + seed);
        let mut rng = rng(31);
        let expected = frequencies(k, DRAWS, || reference.select(&mut rng));
        let found = selections(policy.as_ref(), DRAWS, 32);
        assert_same_distribution(&expected, &found, &format!("matrix {seed}"));
    }
}

#[test]
fn duels_in_flight_count_in_the_challenger_s_radius() {
    let (counts, self_duels) = A;
    let mut policy = start("ccb", 4, SEED);
    feed(policy.as_mut(), counts, self_duels);
    let challengers = |in_flight: &InFlight| {
        let mut rng = rng(43);
        let duels = (0..200).map(|_| policy.select(in_flight, &mut rng).duel);
        let mut seen: Vec<_> =
            duels.filter(|duel| duel.first == 0).map(|duel| duel.second).collect();
        seen.dedup();
        seen
    };
    let mut in_flight = InFlight::new();
    assert_eq!(challengers(&in_flight), [3]);
    // u[3][0] = 1/2 + sqrt(2.088116 / (8 + pending)) falls below u[1][0] = 0.667145 at 67 in flight
    in_flight.add(0, 3, 66);
    assert_eq!(challengers(&in_flight), [3]);
    in_flight.add(3, 0, 1);
    assert_eq!(challengers(&in_flight), [1]);
}
