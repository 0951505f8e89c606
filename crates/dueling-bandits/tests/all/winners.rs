//! The winners of a preference matrix under each notion of best, with known answers.

use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Duel, Outcome, Tally, step_rng};
use rand::RngExt;

fn matrix(name: &str) -> PreferenceMatrix {
    PreferenceMatrix::named(name).expect("a built-in name").expect("a valid name")
}

#[test]
fn the_notions_of_best_can_differ() {
    // ranker 0 beats both others narrowly, ranker 1 beats ranker 2 by a large margin
    let rows = [vec![0.5, 0.51, 0.51], vec![0.49, 0.5, 1.0], vec![0.49, 0.0, 0.5]];
    let narrow = PreferenceMatrix::from_rows(&rows).unwrap();
    assert_eq!(narrow.condorcet_winner(), Some(0));
    assert_eq!(narrow.copeland_winners(), [0]);
    assert_eq!(narrow.borda_winners(), [1]);
    assert_eq!(narrow.von_neumann_strategy().unwrap(), [1.0, 0.0, 0.0]);
}

#[test]
fn the_normalised_walk_divides_by_whole_rows() {
    // From 0 to 1 with 0.2 / (0.5 + 0.2), back with 0.8 / (0.8 + 0.5): 0.2 / 0.7 : 0.8 / 1.3.
    let two = PreferenceMatrix::from_pairs(2, |_, _| 0.8).unwrap();
    let walk = two.normalised_walk_distribution();
    let (there, back) = (0.2 / 0.7, 0.8 / 1.3);
    assert!((walk[0] - back / (there + back)).abs() < 1e-12, "{walk:?}");
    // a stationary distribution is one step of the walk from itself
    let arxiv = matrix("arxiv-6");
    let walk = arxiv.normalised_walk_distribution();
    let row = |i: usize| (0..6).map(|k| arxiv.win_probability(k, i)).sum::<f64>();
    for j in 0..6 {
        let next: f64 = (0..6).map(|i| walk[i] * arxiv.win_probability(j, i) / row(i)).sum();
        assert!((next - walk[j]).abs() < 1e-12);
    }
    assert_eq!(arxiv.normalised_walk_winners(), [0]);
}

#[test]
fn a_walk_among_certain_wins_ends_at_the_ranker_that_beats_all() {
    for winner in 0..4 {
        let certain = PreferenceMatrix::from_pairs(4, |i, j| {
            if i == winner || (j != winner && i < j) { 1.0 } else { 0.0 }
        })
        .unwrap();
        let walk = certain.random_walk_distribution();
        assert_eq!(walk[winner], 1.0, "{walk:?}");
        assert_eq!(walk.iter().sum::<f64>(), 1.0);
    }
}

/// `min_j Σ_i x[i] (P[i][j] - 1/2)`: the margin of `strategy` against its worst opponent. No
/// strategy has more than 0; a von Neumann winner has 0 up to rounding.
pub fn worst_margin(matrix: &PreferenceMatrix, strategy: &[f64]) -> f64 {
    let k = matrix.rankers();
    let against = |j: usize| -> f64 { (0..k).map(|i| strategy[i] * matrix.margin(i, j)).sum() };
    (0..k).map(against).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_largest_cycles_are_solved() {
    // certain, by chance, nearly even, and in a circle
    let mut rng = step_rng(3, 0);
    for (rankers, lead) in [(3, 0.5), (21, 0.5), (60, 0.5), (60, 0.02), (60, 1e-9), (150, 0.3)] {
        for kind in 0..4 {
            let tangle = PreferenceMatrix::from_pairs(rankers, |i, j| {
                let ahead = rng.random_bool(0.5);
                let size = lead * rng.random::<f64>();
                match kind {
                    0 => 0.5 + if ahead { lead } else { -lead },
                    1 => 0.5 + if ahead { size } else { -size },
                    2 if (j - i) % 3 == 0 => 0.5,
                    2 => 0.5 + if ahead { lead } else { -lead },
                    _ => 0.5 + if (j - i) % 2 == 1 { lead } else { -lead },
                }
            })
            .unwrap();
            let strategy = tangle.von_neumann_strategy().unwrap();
            assert!((strategy.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            let worst = worst_margin(&tangle, &strategy);
            assert!(worst >= -1e-9, "{rankers}, {lead}, {kind}: {worst}");
        }
    }
}

/// Rankers in a circle: each beats the next ones with these probabilities.
fn circle(rankers: usize, ahead: &[f64]) -> PreferenceMatrix {
    let win = |i: usize, j: usize| {
        let steps = (j + rankers - i) % rankers;
        if steps <= ahead.len() { ahead[steps - 1] } else { 1.0 - ahead[rankers - steps - 1] }
    };
    PreferenceMatrix::from_pairs(rankers, win).expect("probabilities")
}

#[test]
fn all_rankers_of_a_symmetric_circle_win() {
    for ahead in [[0.6, 0.7], [0.9, 0.6], [0.55, 0.35], [1.0 / 3.0, 0.8]] {
        for (rankers, ahead) in [(3, &ahead[..1]), (5, &ahead[..])] {
            let circle = circle(rankers, ahead);
            let all: Vec<usize> = (0..rankers).collect();
            assert_eq!(circle.copeland_winners(), all, "{ahead:?}");
            assert_eq!(circle.borda_winners(), all, "{ahead:?}");
            assert_eq!(circle.random_walk_winners(), all, "{ahead:?}");
            assert_eq!(circle.normalised_walk_winners(), all, "{ahead:?}");
        }
    }
    // rankers that are even with all others win too, however many they are
    let even = PreferenceMatrix::from_pairs(300, |_, _| 0.5).unwrap();
    assert_eq!(even.borda_winners().len(), 300);
    assert_eq!(even.random_walk_winners().len(), 300);
}

#[test]
fn a_small_difference_is_no_tie() {
    // as small as the smallest of the MSLR rankers
    let near =
        PreferenceMatrix::from_pairs(3, |i, _| if i == 0 { 0.500_002 } else { 0.5 }).unwrap();
    assert_eq!(near.borda_winners(), [0]);
    assert_eq!(near.random_walk_winners(), [0]);
}

#[test]
fn the_first_of_equal_leaders_leads_the_counts() {
    // both won 1/2, 2/5 and 2/7 of their comparisons with three rankers and all with three others;
    // the sum in the order of ranker 1 is larger in its last digit
    let shares = [[(1, 2), (2, 5), (2, 7)], [(2, 5), (2, 7), (1, 2)]];
    let mut tally = Tally::new(8);
    for (leader, shares) in shares.iter().enumerate() {
        for (other, &(won, of)) in (2..).zip(shares.iter().chain(&[(4, 4); 3])) {
            tally.record_run(Duel::new(leader, other), Outcome::First, won);
            tally.record_run(Duel::new(leader, other), Outcome::Second, of - won);
        }
    }
    let sum = |i: usize| (0..8).filter(|&j| j != i).map(|j| tally.mean(i, j).unwrap_or(0.5)).sum();
    let (first, second): (f64, f64) = (sum(0), sum(1));
    assert!(second > first && second - first < 1e-12, "{first} {second}");
    assert_eq!(tally.copeland_leader(), 0);
}
