//! The numbering of pairs, and covariances.

use dueling_bandits::Duel;
use dueling_bandits::math::cholesky::Covariance;
use dueling_bandits::pairs::{pair_at, pair_count, pair_index, pairs_by_strips};

#[test]
fn indices_run_through_all_pairs() {
    let mut index = 0;
    for high in 1..1024 {
        for low in 0..high {
            assert_eq!((pair_index(low, high), pair_index(high, low)), (index, index));
            assert_eq!(pair_at(index), Duel::new(low, high));
            index += 1;
        }
        assert_eq!(pair_count(high + 1), index);
    }
}

#[test]
fn strips_have_each_pair_once_and_the_others_of_a_ranker_in_order() {
    for rankers in [0, 1, 2, 15, 16, 17, 50] {
        let mut others = vec![Vec::new(); rankers];
        for (low, high) in pairs_by_strips(rankers) {
            assert!(low < high);
            others[low].push(high);
            others[high].push(low);
        }
        for (ranker, others) in others.iter().enumerate() {
            assert!(others.iter().copied().eq((0..rankers).filter(|&other| other != ranker)));
        }
    }
}

#[test]
fn a_covariance_is_the_inverse() {
    // its inverse is [[14, 6, 2], [6, 12, 4], [2, 4, 16]] / 44
    let precision = vec![4.0, -2.0, 0.0, -2.0, 5.0, -1.0, 0.0, -1.0, 3.0];
    let covariance = Covariance::inverse_of(precision, 3);
    for (i, j, expected) in [(0, 1, 14.0), (1, 0, 14.0), (0, 2, 26.0), (1, 2, 20.0)] {
        let found = covariance.of_difference(i, j);
        assert!((found - expected / 44.0).abs() < 1e-12, "{i}, {j}: {found}");
    }
    // the columns of Mᵀ add up to the covariance
    let columns: Vec<Vec<f64>> = (0..3)
        .map(|k| covariance.correlate(&[0, 1, 2].map(|row| f64::from(u8::from(row == k)))))
        .collect();
    let entry = |i: usize, j: usize| columns.iter().map(|c| c[i] * c[j]).sum::<f64>();
    assert!((entry(0, 0) - 14.0 / 44.0).abs() < 1e-12);
    assert!((entry(0, 2) - 2.0 / 44.0).abs() < 1e-12);
    assert!((entry(1, 2) - 4.0 / 44.0).abs() < 1e-12);
}
