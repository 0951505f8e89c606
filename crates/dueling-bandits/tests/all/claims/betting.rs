//! Evidence on the mean of a bounded value.

use dueling_bandits::claims::betting::{Bets, LEVELS, Side};
use dueling_bandits::step_rng;
use rand::RngExt;

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

/// Of counts of all kinds, and with missing values.
#[test]
fn a_bound_is_where_the_evidence_begins_to_decide() {
    /// The bets on a limit.
    type Make = fn(f64) -> Bets;
    const ERROR: f64 = 0.01;
    let mut rng = step_rng(5, 0);
    let kinds: [(Make, [f64; 2]); 3] = [
        (|limit| Bets::on_value(2.0, limit), [0.0, 2.0]),
        (|limit| Bets::on_difference(2.0, limit), [-2.0, 2.0]),
        (|limit| Bets::on_arms(2.0, limit), [-4.0, 4.0]),
    ];
    let mut proven = 0;
    for round in 0..300_u32 {
        let (bets, [least, most]) = &kinds[round as usize % 3];
        let lowest = if *least < 0.0 { 0 } else { LEVELS / 2 };
        let mut counts = [0; LEVELS];
        let pages = 1 << rng.random_range(0..14_u32);
        for _ in 0..rng.random_range(1..5_u32) {
            counts[rng.random_range(lowest..LEVELS)] += rng.random_range(0..pages);
        }
        let missing = rng.random_range(0..2_u32) * rng.random_range(0..1 + pages / 8);
        for side in [Side::Harm, Side::Safe] {
            let decides = |limit: f64| bets(limit).ln(side, &counts, missing) >= -ERROR.ln();
            let apart = 3.0 * (most - least) / f64::from(1 << 20);
            let (end, inwards) = match side {
                Side::Harm => (*least, -apart),
                Side::Safe => (*most, apart),
            };
            let found = bets(0.5).bound(side, &counts, missing, ERROR);
            let bound = found.unwrap_or(end);
            assert!(!decides(bound - inwards), "{side:?} {bound}, {counts:?}, {missing}");
            if found.is_some_and(|bound| (bound + inwards - end).abs() > apart) {
                assert!(decides(bound + inwards), "{side:?} {bound}, {counts:?}, {missing}");
                proven += 1;
            }
        }
    }
    assert!(proven > 300, "{proven} of 600 bounds prove something");
}
