//! Pairwise sampling: the sign shortcut of Thompson sampling.

use dueling_bandits::beta_sampling::theta_given_side;
use dueling_bandits::pairwise_sampling::{PairwiseSample, WinProbabilities};
use dueling_bandits::win_probability::{
    NEARLY, WinProbabilitySource, beta_above_half, beta_nearly_above_half,
};
use dueling_bandits::{Duel, Outcome, Tally};

use super::support::rng;

fn tally(wins: u32, losses: u32, halves: u32) -> Tally {
    let mut tally = Tally::new(2);
    for (count, outcome) in
        [(wins, Outcome::First), (losses, Outcome::Second), (halves, Outcome::Half)]
    {
        for _ in 0..count {
            tally.record(Duel::new(0, 1), outcome);
        }
    }
    tally
}

/// `Pr(θ > 1/2)`, and `E(θ | θ > 1/2)` and `E(θ² | θ > 1/2)`, of `θ ~ Beta(a+1, b+1)`, by Simpson's
/// rule.
fn integrals(a: f64, b: f64) -> (f64, [f64; 2]) {
    let peak = (a / (a + b)).clamp(0.5, 1.0 - 1e-9); // peak of the part above 1/2
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
    let moment = |power| simpson(0.5, 1.0, &|x| x.powi(power) * f(x)) / above;
    (above / (below + above), [moment(1), moment(2)])
}

/// `Pr(Bin(n+1, 1/2) ≤ a)`, summed term by term from the middle.
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
        for a in [
            middle,
            middle - deviation / 3,
            middle - deviation / 2,
            middle.saturating_sub(3 * deviation),
        ] {
            let (found, expected) =
                (beta_above_half(a.into(), (n - a).into()), binomial_tail(a, n - a));
            // the first term of the sum has a relative error of about 1e-16 n ln n
            assert!(
                (found - expected).abs() < 3e-9,
                "{a}:{} gives {found}, expected {expected}",
                n - a
            );
            let other = beta_above_half((n - a).into(), a.into());
            assert!((found + other - 1.0).abs() < 1e-15);
        }
    }
}

#[test]
fn half_wins_are_allowed() {
    for (half_wins, half_losses) in [(1, 0), (3, 4), (21, 12), (7, 40)] {
        let (expected, _) = integrals(f64::from(half_wins) / 2.0, f64::from(half_losses) / 2.0);
        let found = beta_above_half(f64::from(half_wins) / 2.0, f64::from(half_losses) / 2.0);
        assert!((found - expected).abs() < 1e-7, "{half_wins}:{half_losses} gives {found}");
    }
}

#[test]
fn the_quick_way_is_near_for_any_fraction_of_a_comparison() {
    for comparisons in [39.01, 42.3, 57.77, 100.1, 260.9] {
        for part in 0..=1000 {
            let wins = comparisons * f64::from(part) / 1000.0;
            let losses = comparisons - wins;
            let error = (beta_nearly_above_half(wins, losses).unwrap()
                - beta_above_half(wins, losses))
            .abs();
            assert!(error < NEARLY / 4.0, "{wins} of {comparisons} is off by {error}");
        }
    }
}

/// The later of any two rankers is above 1/2 with this probability.
struct Later(f64);

impl WinProbabilitySource for Later {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        if i > j { self.0 } else { 1.0 - self.0 }
    }
}

/// The probabilities of a tally, always computed exactly.
struct Exactly<'a>(&'a Tally);

impl WinProbabilitySource for Exactly<'_> {
    fn above_half(&self, i: usize, j: usize) -> f64 {
        self.0.above_half(i, j)
    }
}

#[test]
fn the_quick_way_gives_the_leading_bits_of_the_probability() {
    for plays in (0..300).chain([1_000, 2_001, 19_999]) {
        for half_wins in 0..=2 * plays {
            let mut tally = Tally::new(2);
            let (wins, halves) = (half_wins / 2, half_wins % 2);
            tally.record_run(Duel::new(0, 1), Outcome::First, wins);
            tally.record_run(Duel::new(0, 1), Outcome::Half, halves);
            tally.record_run(Duel::new(0, 1), Outcome::Second, plays - wins - halves);
            let (quick, plain) =
                (WinProbabilities::new(2, &tally), WinProbabilities::new(2, &Exactly(&tally)));
            let bits =
                |of: &WinProbabilities| format!("{of:?}").split("stale").next().map(String::from);
            assert_eq!(bits(&quick), bits(&plain), "{half_wins} half wins in {plays} comparisons");
        }
    }
}

#[test]
fn winners_follow_their_probabilities_and_can_be_drawn_again() {
    const DRAWS: u32 = 40_000;
    for (wins, losses) in [(0, 0), (2, 2), (4, 1), (3, 9), (200, 0), (0, 200)] {
        let tally = tally(wins, losses, 0);
        let probabilities = WinProbabilities::new(2, &tally);
        let mut rng = rng(11);
        let (mut count, mut reverse_count) = (0, 0);
        for _ in 0..DRAWS {
            let draw = PairwiseSample::new(&probabilities, &tally, &mut rng);
            let (wins, reverse) = (draw.row(0).wins(1), draw.row(1).wins(0));
            assert_eq!(draw.row(0).wins(1), wins);
            count += u32::from(wins);
            reverse_count += u32::from(!reverse);
        }
        let p = beta_above_half(wins.into(), losses.into());
        let deviation = (p * (1.0 - p) / f64::from(DRAWS)).sqrt();
        for count in [count, reverse_count] {
            let found = f64::from(count) / f64::from(DRAWS);
            assert!(
                (found - p).abs() <= 4.75 * deviation,
                "{wins}:{losses} gives {found}, expected {p}"
            );
        }
    }
}

/// Scores of `owners` against all earlier rankers, pair by pair.
fn one_by_one(draw: PairwiseSample, owners: &[usize], included: &[u16]) -> Vec<u16> {
    let mut scores = vec![0; included.len()];
    for &owner in owners {
        for j in (0..owner).filter(|&j| included[j] == 1) {
            scores[if draw.row(owner).wins(j) { owner } else { j }] += 1;
        }
    }
    scores
}

#[test]
fn a_row_drawn_at_once_equals_a_row_drawn_pair_by_pair() {
    let mut rng = rng(14);
    for rankers in [2, 3, 9, 16, 17, 31, 32, 33, 64, 65, 97] {
        let mut tally = Tally::new(rankers);
        for i in 0..rankers {
            for j in (0..rankers).filter(|j| (i * 7 + j) % 3 == 0 && i != *j) {
                tally.record_run(Duel::new(i, j), Outcome::First, (i * j) as u32 % 60);
            }
        }
        let probabilities = WinProbabilities::new(rankers, &tally);
        let included: Vec<u16> =
            (0..PairwiseSample::padded_len(rankers)).map(|j| u16::from(j % 5 != 0)).collect();
        for owner in 0..rankers {
            let draw = PairwiseSample::new(&probabilities, &tally, &mut rng);
            let mut scores = vec![0; included.len()];
            draw.score_against_earlier(std::iter::once(owner), &included, &mut scores);
            assert_eq!(scores, one_by_one(draw, &[owner], &included), "row {owner} of {rankers}");
        }
    }
}

/// Probabilities so close to 0 or 1 that the first 16 bits of a draw never decide alone: the
/// results depend on the tie breaking.
#[test]
fn draws_that_the_leading_bits_leave_undecided_use_further_bits() {
    const RANKERS: usize = 150;
    const DRAWS: usize = 1_000;
    let all: Vec<usize> = (0..RANKERS).collect();
    let included = vec![1; PairwiseSample::padded_len(RANKERS)];
    let winners = (RANKERS * (RANKERS - 1) / 2 * DRAWS) as f64;
    let tie = 2.0_f64.powi(-16);
    let mut rng = rng(15);
    for p in [0.0, 0.25 * tie, 0.75 * tie, 1.0 - 0.75 * tie, 1.0 - 0.25 * tie, 1.0] {
        let source = Later(p);
        let probabilities = WinProbabilities::new(RANKERS, &source);
        let mut seldom = 0.0;
        for _ in 0..DRAWS {
            let draw = PairwiseSample::new(&probabilities, &source, &mut rng);
            let mut scores = vec![0; included.len()];
            draw.score_against_earlier(all.iter().copied(), &included, &mut scores);
            // a ranker with more points than usual has won improbable pairs
            let usual = |i: usize| if p < 0.5 { RANKERS - 1 - i } else { i };
            let odd: Vec<usize> =
                all.iter().copied().filter(|&i| usize::from(scores[i]) != usual(i)).collect();
            seldom += odd
                .iter()
                .map(|&i| usize::from(scores[i]).saturating_sub(usual(i)) as f64)
                .sum::<f64>();
            if !odd.is_empty() {
                assert_eq!(scores, one_by_one(draw, &all, &included));
            }
        }
        let expected = p.min(1.0 - p) * winners;
        assert!(
            (seldom - expected).abs() <= 4.75 * expected.sqrt(),
            "{p}: {seldom}, expected {expected}"
        );
    }
}

/// Any two signs in two neighbouring rows, of later and earlier rankers, agree as often as
/// independent signs do.
#[test]
fn the_pairs_of_a_sample_are_independent() {
    const DRAWS: usize = 16_384;
    const RANKERS: usize = 71;
    const ROWS: [usize; 2] = [39, 40];
    let mut rng = rng(12);
    for p in [0.5, 0.25, 1.0 / 3.0] {
        let source = Later(p);
        let probabilities = WinProbabilities::new(RANKERS, &source);
        let others = |i: usize| (0..RANKERS).filter(move |&j| j != i).map(move |j| (i, j));
        let pairs: Vec<(usize, usize)> = ROWS.iter().flat_map(|&i| others(i)).collect();
        // for each pair, the winners of 64 draws in a word
        let mut winners = vec![vec![0_u64; DRAWS / 64]; pairs.len()];
        for at in 0..DRAWS {
            let draw = PairwiseSample::new(&probabilities, &source, &mut rng);
            for (winners, &(i, j)) in winners.iter_mut().zip(&pairs) {
                winners[at / 64] |= u64::from(draw.row(i).wins(j) == (i > j)) << (at % 64);
            }
        }
        let agree = p * p + (1.0 - p) * (1.0 - p);
        let deviation = (agree * (1.0 - agree) * DRAWS as f64).sqrt();
        for (at, a) in winners.iter().enumerate() {
            for (b, other) in winners[..at].iter().zip(&pairs) {
                let differ: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
                let found = (DRAWS as f64 - f64::from(differ) - agree * DRAWS as f64) / deviation;
                // about 10,000 comparisons
                assert!(
                    found.abs() < 5.5,
                    "{:?} and {other:?} at {p}: {found} deviations",
                    pairs[at]
                );
            }
        }
    }
}

#[test]
fn theta_given_its_side_has_the_right_moments() {
    const DRAWS: u32 = 20_000;
    for (wins, losses, halves) in [
        (0, 0, 0),
        (1, 0, 0),
        (2, 2, 0),
        (1, 4, 0),
        (4, 3, 0),
        (7, 0, 0),
        (0, 7, 0),
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
        let mut rng = rng(13);
        let (mut sums, mut squares) = ([0.0; 2], [0.0; 2]);
        for _ in 0..DRAWS {
            let theta = theta_given_side(&tally, 0, 1, true, &mut rng);
            assert!(theta > 0.5 && theta <= 1.0);
            for (moment, value) in [theta, theta * theta].into_iter().enumerate() {
                sums[moment] += value;
                squares[moment] += (value - expected[moment]).powi(2);
            }
            let other = theta_given_side(&tally, 1, 0, false, &mut rng);
            assert!(other < 0.5);
        }
        for moment in 0..2 {
            let (found, expected) = (sums[moment] / f64::from(DRAWS), expected[moment]);
            let deviation = (squares[moment] / f64::from(DRAWS) / f64::from(DRAWS)).sqrt();
            assert!(
                (found - expected).abs() < 4.75 * deviation + 1e-9,
                "{wins}:{losses}: moment {} is {found}, expected {expected}",
                moment + 1
            );
        }
    }
}
