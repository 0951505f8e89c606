//! The sign shortcut of Thompson sampling.

use rankduel::policy::signs::{SignDraw, SignOdds, probability_above_half, theta_given_sign};
use rankduel::policy::{Duel, Outcome, Tally};

use super::support::chance;

fn tally(wins: u32, losses: u32, halves: u32) -> Tally {
    let mut tally = Tally::new(2);
    for (count, outcome) in [(wins, Outcome::First), (losses, Outcome::Second), (halves, Outcome::Half)] {
        for _ in 0..count {
            tally.record(Duel::new(0, 1), outcome);
        }
    }
    tally
}

/// `Pr(θ > 1/2)` and `E(θ | θ > 1/2)` of `θ ~ Beta(a+1, b+1)`, by Simpson's rule.
fn integrals(a: f64, b: f64) -> (f64, f64) {
    let peak = (a / (a + b)).clamp(0.5, 1.0 - 1e-9); // of the part above 1/2
    let log_density = |x: f64| {
        let term = |n: f64, x: f64| if n == 0.0 { 0.0 } else { n * x.ln() };
        term(a, x) + term(b, 1.0 - x)
    };
    let top = log_density(peak);
    let simpson = |from: f64, to: f64, g: &dyn Fn(f64) -> f64| {
        let pieces = 200_000;
        let h = (to - from) / f64::from(pieces);
        (0..=pieces)
            .map(|n| {
                let weight = if n == 0 || n == pieces { 1.0 } else { 2.0 * f64::from(1 + n % 2) };
                weight * g(from + h * f64::from(n))
            })
            .sum::<f64>()
            * h
            / 3.0
    };
    let f = |x: f64| (log_density(x) - top).exp();
    let (below, above) = (simpson(0.0, 0.5, &f), simpson(0.5, 1.0, &f));
    (above / (below + above), simpson(0.5, 1.0, &|x| x * f(x)) / above)
}

#[test]
fn known_probabilities() {
    for (wins, losses, expected) in [
        (0, 0, 0.5),
        (1, 0, 0.75),
        (3, 2, 0.65625),
        (7, 5, 0.70947265625),
        (8, 2, 0.96728515625),
        (9, 3, 0.953857421875),
    ] {
        let found = probability_above_half(2 * wins, 2 * losses);
        assert!((found - expected).abs() < 1e-12, "{wins}:{losses} gives {found}");
    }
}

/// `Pr(Bin(n+1, 1/2) ≤ a)`, summed term by term from the middle ratio on.
fn binomial_tail(a: u32, b: u32) -> f64 {
    let m = a + b + 1;
    let log_term = |k: u32| {
        libm::lgamma(f64::from(m) + 1.0)
            - libm::lgamma(f64::from(k) + 1.0)
            - libm::lgamma(f64::from(m - k) + 1.0)
            - f64::from(m) * std::f64::consts::LN_2
    };
    let mut term = log_term(a).exp();
    let mut sum = 0.0;
    for k in (0..=a).rev() {
        sum += term;
        if term < 1e-20 {
            break;
        }
        term *= f64::from(k) / f64::from(m - k + 1);
    }
    sum
}

#[test]
fn probabilities_are_binomial_tails() {
    for n in [1, 2, 5, 30, 200, 3_000, 9_998, 10_001, 60_000, 1_000_000] {
        let middle = n / 2;
        let deviation = f64::from(n).sqrt() as u32;
        for a in
            [middle, middle - deviation / 3, middle - deviation / 2, middle.saturating_sub(3 * deviation)]
        {
            let (found, expected) = (probability_above_half(2 * a, 2 * (n - a)), binomial_tail(a, n - a));
            // the sum's own first term is good to about 1e-16 n ln n
            assert!((found - expected).abs() < 3e-9, "{a}:{} gives {found}, not {expected}", n - a);
            let other = probability_above_half(2 * (n - a), 2 * a);
            assert!((found + other - 1.0).abs() < 1e-15);
        }
    }
}

#[test]
fn half_wins_are_allowed() {
    for (half_wins, half_losses) in [(1, 0), (3, 4), (21, 12), (7, 40)] {
        let (expected, _) = integrals(f64::from(half_wins) / 2.0, f64::from(half_losses) / 2.0);
        let found = probability_above_half(half_wins, half_losses);
        assert!((found - expected).abs() < 1e-7, "{half_wins}:{half_losses} gives {found}");
    }
}

#[test]
fn signs_have_their_odds_and_can_be_asked_again() {
    const DRAWS: u32 = 40_000;
    for (wins, losses) in [(0, 0), (2, 2), (4, 1), (3, 9), (200, 0), (0, 200)] {
        let tally = tally(wins, losses, 0);
        let odds = SignOdds::new(&tally);
        let mut chance = chance(11);
        let mut count = 0;
        for _ in 0..DRAWS {
            let draw = SignDraw::new(&odds, &mut chance);
            let sign = draw.row(0).wins(1);
            assert_eq!(draw.row(0).wins(1), sign);
            count += u32::from(sign);
        }
        let p = probability_above_half(2 * wins, 2 * losses);
        let deviation = (p * (1.0 - p) / f64::from(DRAWS)).sqrt();
        let found = f64::from(count) / f64::from(DRAWS);
        assert!((found - p).abs() <= 4.75 * deviation, "{wins}:{losses} gives {found}, not {p}");
    }
}

#[test]
fn a_row_met_at_once_has_the_signs_that_are_asked_for_one_by_one() {
    const RANKERS: usize = 37;
    let (mut chance, mut tally) = (chance(14), Tally::new(RANKERS));
    for i in 0..RANKERS {
        for j in (0..RANKERS).filter(|j| (i * 7 + j) % 3 == 0 && i != *j) {
            (0..(i * j) % 60).for_each(|_| tally.record(Duel::new(i, j), Outcome::First));
        }
    }
    let odds = SignOdds::new(&tally);
    for owner in 0..RANKERS {
        let draw = SignDraw::new(&odds, &mut chance);
        let row = draw.row(owner);
        let counted: Vec<u32> = (0..RANKERS).map(|j| u32::from(j % 5 != 0)).collect();
        let (mut scores, mut expected) = (vec![3; RANKERS], vec![3; RANKERS]);
        draw.meet_later(std::iter::once(owner), &counted, &mut scores);
        for j in (owner + 1..RANKERS).filter(|j| j % 5 != 0) {
            expected[if row.wins(j) { owner } else { j }] += 1;
        }
        assert_eq!(scores, expected, "row {owner}");
    }
}

#[test]
fn fair_coins_of_a_row_are_independent() {
    const RANKERS: usize = 130;
    const DRAWS: usize = 4_000;
    let odds = SignOdds::new(&Tally::new(RANKERS));
    let mut chance = chance(12);
    let mut agree = [0_u32; 4];
    for _ in 0..DRAWS {
        let draw = SignDraw::new(&odds, &mut chance);
        let (row, next) = (draw.row(5), draw.row(6));
        // neighbours, the same place of the next block, the next row, and the pair the other way round
        let pairs = [
            (row.wins(7), row.wins(8)),
            (row.wins(9), row.wins(9 + 64)),
            (row.wins(100), next.wins(100)),
            (row.wins(6), next.wins(5)),
        ];
        for (count, (a, b)) in agree.iter_mut().zip(pairs) {
            *count += u32::from(a == b);
        }
    }
    for count in agree {
        let deviation = (DRAWS as f64 / 4.0).sqrt();
        assert!((f64::from(count) - DRAWS as f64 / 2.0).abs() < 4.75 * deviation, "{agree:?}");
    }
}

#[test]
fn theta_given_its_sign_has_the_right_mean() {
    const DRAWS: u32 = 20_000;
    for (wins, losses, halves) in [
        (0, 0, 0),
        (5, 3, 0),
        (3, 5, 0),
        (0, 3, 0),
        (2, 40, 0),
        (40, 2, 0),
        (300, 400, 0),
        (1, 2, 3),
        (0, 2_000, 0),
    ] {
        let tally = tally(wins, losses, halves);
        let (_, expected) = integrals(tally.wins(0, 1), tally.wins(1, 0));
        let mut chance = chance(13);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let theta = theta_given_sign(&tally, 0, 1, true, &mut chance);
            assert!(theta > 0.5 && theta <= 1.0);
            sum += theta;
            squares += (theta - expected) * (theta - expected);
            let other = theta_given_sign(&tally, 1, 0, false, &mut chance);
            assert!(other < 0.5);
        }
        let mean = sum / f64::from(DRAWS);
        let deviation = (squares / f64::from(DRAWS) / f64::from(DRAWS)).sqrt();
        assert!(
            (mean - expected).abs() < 4.75 * deviation + 1e-9,
            "{wins}:{losses}: mean {mean}, not {expected}"
        );
    }
}
