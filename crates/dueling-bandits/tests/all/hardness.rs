//! The quantities of the CCB paper and its bounds.

use dueling_bandits::preference::{CopelandHardness, PreferenceMatrix};

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, expected {expected}");
}

/// 0, 1 and 2 beat each other in a cycle and all of them beat 3: three winners with one loss.
fn cycle_and_loser() -> CopelandHardness {
    let rows =
        [[0.5, 0.6, 0.3, 0.9], [0.4, 0.5, 0.8, 0.7], [0.7, 0.2, 0.5, 0.55], [0.1, 0.3, 0.45, 0.5]];
    let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
    CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"))
}

#[test]
fn the_quantities_of_definition_3() {
    let found = cycle_and_loser();
    assert_eq!((found.winners, found.most_losses), (3, 1));
    // winners against 3: 0.4, 0.2, 0.05
    close(found.gap.expect("a loser"), 0.05);
    close(found.smallest_gap.expect("a gap"), 0.05);

    let arxiv = PreferenceMatrix::named("arxiv-6").expect("a name").expect("a matrix");
    let arxiv = CopelandHardness::of(&arxiv);
    assert_eq!((arxiv.winners, arxiv.most_losses), (1, 0));
    // the winner's smallest gap is 0.04, against ranker 3; the smallest of all is 0.01
    close(arxiv.gap.expect("a loser"), 0.04);
    close(arxiv.advantage().expect("gaps"), 16.0);
}

#[test]
fn all_winners_have_no_gap() {
    let rows = vec![vec![0.5, 0.6, 0.4], vec![0.4, 0.5, 0.6], vec![0.6, 0.4, 0.5]];
    let found = CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"));
    assert_eq!((found.winners, found.gap, found.advantage()), (3, None, None));
}

#[test]
fn the_bounds_of_two_rankers() {
    // K = 2, gap 0.1, α = 1, δ = 0.1. C(δ/4) = 3·4/0.025 = 480.
    // Δ*_01 = 0.1, Δ*_10 = 0.1: rates 400 and 400. T of δ/2: 480 + 32 ln 480 + 4 ln 240 + 1 +
    // (6400 + 800 + 8·400) ln T.
    let rows = vec![vec![0.5, 0.6], vec![0.4, 0.5]];
    let found = CopelandHardness::of(&PreferenceMatrix::from_rows(&rows).expect("a matrix"));
    let constant = 481.0 + 32.0 * 480.0_f64.ln() + 4.0 * 240.0_f64.ln();
    let mut t = 1e5_f64;
    for _ in 0..200 {
        t = constant + 10_400.0 * t.ln();
    }
    let log = 1e6_f64.ln();
    let expected = 481.0 + 800.0 * t.ln() + 10.0 * 40.0_f64.ln() * log.sqrt() + 300.0 * log;
    close(found.bound_of_ccb(1.0, 0.1, 1e6), expected);
    // (1/2) (100 · 0 + 100 · 1 / 1²) ln T
    close(found.order_of_scb(1e6), 50.0 * log);
}

#[test]
fn alpha_near_one_half_has_no_useful_constant() {
    // C(δ) is 10^220.7 for K = 5 and δ = 0.05
    let bound = |alpha: f64| {
        let matrix = PreferenceMatrix::from_pairs(5, |_, _| 0.7).expect("a matrix");
        CopelandHardness::of(&matrix).bound_of_ccb(alpha, 0.2, 1e6)
    };
    assert!((bound(0.51).log10() - 220.748_667_4).abs() < 1e-3, "{}", bound(0.51).log10());
    assert!(bound(1.01) < 1e9, "{}", bound(1.01));
}
