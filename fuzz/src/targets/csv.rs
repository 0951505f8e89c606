//! Reading a preference matrix: writing and reading it again gives the same matrix, and it has
//! winners.

use dueling_bandits::preference::csv;

/// The input is a file.
pub fn run(bytes: &[u8]) {
    let Ok(matrix) = csv::read(bytes) else { return };
    let mut written = Vec::new();
    csv::write(&matrix, &mut written).expect("memory");
    assert_eq!(csv::read(&written[..]).expect("the written matrix"), matrix);

    let rankers = matrix.rankers();
    let winners = matrix.copeland_winners();
    assert!(!winners.is_empty() && winners.iter().all(|&winner| winner < rankers));
    if let Some(winner) = matrix.condorcet_winner() {
        assert_eq!(winners, [winner]);
    }
    let smith = matrix.smith_set();
    assert!(winners.iter().all(|winner| smith.contains(winner)), "{winners:?} {smith:?}");
    if rankers <= 12 {
        let walk: f64 = matrix.random_walk_distribution().iter().sum();
        assert!((walk - 1.0).abs() < 1e-6, "{walk}");
        if let Ok(strategy) = matrix.von_neumann_strategy() {
            assert!((strategy.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{strategy:?}");
        }
    }
}
