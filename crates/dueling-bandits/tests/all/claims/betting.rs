//! Evidence on the mean of a bounded value.

use dueling_bandits::claims::betting::{Bets, LEVELS, Side};

/// The share of coins at a level, and the level above it.
fn mean_of_rounded(bets: &Bets, value: f64, size: impl Fn(usize) -> f64) -> f64 {
    const COINS: usize = 1 << 12;
    let coin = |number: usize| (number as f64 + 0.5) / COINS as f64;
    let sum: f64 = (0..COINS).map(|number| size(bets.level(value, coin(number)))).sum();
    sum / COINS as f64
}

fn size(level: usize) -> f64 {
    let power = 2_f64.powi(level.abs_diff(8) as i32 - 8);
    [-power, 0.0, power][(level > 8) as usize + (level >= 8) as usize]
}

#[test]
fn rounding_keeps_the_mean_and_cuts_what_is_too_large() {
    let value = Bets::on_value(2.0, 0.5);
    let difference = Bets::on_cut_difference(1.0, 0.01).expect("a cut");
    for share in [0.0, 1e-4, 1.0 / 128.0, 0.011, 0.3, 0.5, 0.77, 0.999, 1.0] {
        let of = |bets: &Bets, most: f64| {
            let mean = mean_of_rounded(bets, share * most, size);
            assert!((mean - share).abs() < 1e-3, "{mean} of {share}");
        };
        of(&value, 2.0);
        of(&difference, 0.1);
        let mean = mean_of_rounded(&difference, -share * 0.1, size);
        assert!((mean + share).abs() < 1e-3, "{mean} of -{share}");
    }
    assert_eq!((difference.level(7.0, 0.99), difference.level(-7.0, 0.01)), (16, 0));
    assert_eq!((value.level(0.0, 0.99), value.level(0.0, 0.0)), (8, 8));
}

/// Over all sequences of values whose mean is the limit, each given the ones before it.
#[test]
fn at_the_limit_the_mean_evidence_is_one() {
    // the bets, and two levels with the limit between them
    for (bets, limit, [low, high]) in [
        (Bets::on_value(1.0, 0.02), 0.02, [8, 16]),
        (Bets::on_value(1.0, 0.3), 0.3, [14, 15]),
        (Bets::on_difference(10.0, 1.0), 0.1, [0, 16]),
        (Bets::on_difference(10.0, 1.0), 0.1, [12, 14]),
        (Bets::on_difference(10.0, 0.5), 0.05, [0, 16]),
        (Bets::on_cut_difference(10.0, 0.5).expect("a cut"), 0.1, [0, 16]),
    ] {
        let up = (limit - size(low)) / (size(high) - size(low));
        for side in [Side::Harm, Side::Safe] {
            let mut mean = 0.0;
            for sequence in 0..1_u32 << 12 {
                let ones = sequence.count_ones();
                let mut counts = [0; LEVELS];
                (counts[low], counts[high]) = (12 - ones, ones);
                let probability = up.powi(ones as i32) * (1.0 - up).powi(12 - ones as i32);
                let ln = bets.ln(side, &counts, 0);
                assert!(ln <= bets.ln_at_most(side, &counts, 0) + 1e-9);
                // no value that a missing one may have had is better for the claim
                counts[low] -= (12 - ones).min(1);
                assert!(bets.ln(side, &counts, (12 - ones).min(1)) <= ln + 1e-9);
                mean += probability * ln.exp();
            }
            assert!((mean - 1.0).abs() < 1e-9, "{mean} for {side:?} at {limit}");
        }
    }
}
