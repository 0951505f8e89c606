//! Winner Stays: its worked examples, its tie rule, and the outcomes that it ignores.

use std::collections::BTreeSet;

use dueling_bandits::{Bandit, Duel, InFlight, Observation, Outcome};

use crate::arena::{fold, matrix, rng, start, step};

fn asked(policy: &dyn Bandit) -> (usize, usize) {
    let duel = policy.select(&InFlight::new(), &mut rng(0)).duel;
    (duel.first, duel.second)
}

fn win(policy: &mut dyn Bandit, winner: usize) -> (usize, usize) {
    let selection = policy.select(&InFlight::new(), &mut rng(0));
    let outcome = if selection.duel.first == winner { Outcome::First } else { Outcome::Second };
    fold(policy, selection, outcome);
    (selection.duel.first, selection.duel.second)
}

/// The example of three rankers. It starts with (0, 1), as one seed in six does.
#[test]
fn three_rankers_with_given_winners() {
    let trace = [
        ((0, 1), 0),
        ((0, 2), 2),
        ((2, 0), 2), // C = (-1, -1, 2): round 1 is over
        ((2, 0), 2),
        ((2, 1), 2), // C = (-2, -2, 4): round 2 is over
        ((2, 1), 2),
        ((2, 0), 0), // C = (-1, -3, 4): the iteration continues
        ((2, 0), 2),
        ((2, 0), 2), // C = (-3, -3, 6): round 3 is over
    ];
    let started =
        (0..100).find(|&seed| asked(&*start("winner-stays", 3, seed)) == (0, 1)).expect("a seed");
    for regret in ["weak", "strong"] {
        let mut policy = start(&format!("winner-stays:regret={regret}"), 3, started);
        let mut rounds = 0;
        for (at, (pair, winner)) in trace.into_iter().enumerate() {
            assert_eq!(asked(&*policy), pair, "{regret}, duel {at}");
            win(&mut *policy, winner);
            let over = [2, 4, 8].contains(&at);
            if over && regret == "strong" {
                rounds += 1;
                assert_eq!(asked(&*policy), (2, 2), "Z after round {rounds}");
                policy.observe_self_duels(2, 1); // 1.1, 1.21 and 1.331 are one step each
            }
        }
        assert_eq!(policy.champion(), 2);
    }
}

#[test]
fn the_winner_of_a_round_is_shown_alone_for_the_documented_number_of_steps() {
    let table = [
        1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 10, 11, 13, 14, 15,
        17,
    ];
    let mut policy = start("winner-stays", 3, 1);
    for steps in table {
        for _ in 0..2 {
            let (i, j) = asked(&*policy);
            win(&mut *policy, i.min(j)); // one duel: the challenger never wins
        }
        // the first round may need a third duel, when ranker 0 is not in the first pair
        if asked(&*policy) != (0, 0) {
            win(&mut *policy, 0);
        }
        for _ in 0..steps {
            assert_eq!(asked(&*policy), (0, 0));
            policy.observe_self_duels(0, 1);
        }
        assert_ne!(asked(&*policy), (0, 0), "after {steps} steps");
    }
}

#[test]
fn the_requested_pair_follows_the_rule_of_balances_and_ties() {
    for seed in 0..30 {
        let k = 5;
        let mut requests = rng(seed);
        let matrix = matrix("cycle:5:1");
        let mut policy = start("winner-stays:regret=weak", k, seed);
        let mut balances = vec![0i64; k];
        let mut previous: Option<(usize, usize)> = None;
        for _ in 0..400 {
            let pair = asked(&*policy);
            let allowed = |among: Vec<usize>| -> BTreeSet<usize> {
                let largest = among.iter().map(|&i| balances[i]).max().unwrap();
                let tied: BTreeSet<usize> =
                    among.into_iter().filter(|&i| balances[i] == largest).collect();
                match previous {
                    Some((i, _)) if tied.contains(&i) => BTreeSet::from([i]),
                    Some((_, j)) if tied.contains(&j) => BTreeSet::from([j]),
                    _ => tied,
                }
            };
            assert!(allowed((0..k).collect()).contains(&pair.0));
            assert!(allowed((0..k).filter(|&i| i != pair.0).collect()).contains(&pair.1));
            let before = policy.tally().half_wins(pair.0, pair.1);
            step(&mut *policy, &matrix, &mut requests);
            let first_won = policy.tally().half_wins(pair.0, pair.1) > before;
            let (winner, loser) = if first_won { pair } else { (pair.1, pair.0) };
            balances[winner] += 1;
            balances[loser] -= 1;
            previous = Some(pair);
        }
    }
}

#[test]
fn only_a_win_of_the_requested_pair_moves_the_tournament() {
    let mut policy = start("winner-stays", 4, 2);
    let (i, j) = asked(&*policy);
    let other = (0..4).find(|ranker| ![i, j].contains(ranker)).unwrap();
    let mut observe = |duel, outcome| {
        policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
        asked(&*policy)
    };
    for outcome in [Outcome::None, Outcome::Void, Outcome::Half] {
        assert_eq!(observe(Duel::new(i, j), outcome), (i, j));
    }
    assert_eq!(observe(Duel::new(i, other), Outcome::Second), (i, j));
    assert_eq!(observe(Duel::new(other, j), Outcome::First), (i, j));
    // shown in the other order, it is the same pair: j beats i, and stays
    let next = observe(Duel::new(j, i), Outcome::First);
    assert_eq!(next.0, j);
    assert_ne!(next.1, i);
    assert_eq!(policy.tally().half_wins(other, i), 2);
}

#[test]
fn outcomes_during_the_winners_steps_are_too_late() {
    let mut policy = start("winner-stays:beta=40", 2, 2);
    win(&mut *policy, 1);
    assert_eq!(asked(&*policy), (1, 1));
    let late =
        Observation { duel: Duel::new(0, 1), outcome: Outcome::First, batch: None, ticket: 0 };
    policy.observe(&late);
    policy.observe_self_duels(0, 100);
    policy.observe_self_duels(1, 39);
    assert_eq!(asked(&*policy), (1, 1));
    policy.observe_self_duels(1, 5);
    assert_eq!(asked(&*policy), (1, 0));
}
