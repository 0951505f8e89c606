//! The claim that preferences have changed.

use dueling_bandits::claims::drift::{Drift, ERROR, WITHIN};
use dueling_bandits::{Duel, Outcome, PolicyRng, step_rng};
use rand::RngExt;

const PAIR: Duel = Duel { first: 0, second: 1 };

fn block(drift: &mut Drift, wins: u32, at: i64) -> bool {
    drift.count(PAIR, Outcome::First, wins);
    drift.count(PAIR, Outcome::Second, 50 - wins);
    drift.check(at, at)
}

fn wins_of_50(p: f64, rng: &mut PolicyRng) -> u32 {
    (0..50).map(|_| u32::from(rng.random_bool(p))).sum()
}

/// Answers from the change on until the alarm; `None` if there is none within `most`, and an error
/// if the alarm comes before the change.
fn delay((from, to): (f64, f64), change: u64, most: u64, run: u64) -> Result<Option<u64>, u64> {
    let (mut drift, mut rng) = (Drift::new(2), step_rng(run, 0));
    for answers in (50..=change + most).step_by(50) {
        let p = if answers <= change { from } else { to };
        if block(&mut drift, wins_of_50(p, &mut rng), answers as i64) {
            return answers.checked_sub(change).filter(|&it| it > 0).map(Some).ok_or(answers);
        }
    }
    Ok(None)
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// `E` in the words of its definition, with a change point after each block.
fn by_definition(blocks: &[u32], pairs_share: f64) -> f64 {
    let total: u32 = blocks.iter().sum();
    let (mut wins, mut evidence) = (0, 0.0);
    for (j, &block) in blocks.iter().enumerate().take(blocks.len() - 1) {
        wins += block;
        let j = j as f64 + 1.0;
        let (n1, n2) = (50.0 * j, 50.0 * (blocks.len() as f64 - j));
        let apart = (f64::from(wins) / n1 - f64::from(total - wins) / n2).abs() - WITHIN;
        let (h1, h2) = (1.0 + n1 / 200.0, 1.0 + n2 / 200.0);
        let (k1, k2) = (n1 * n1 / (100.0 * h1), n2 * n2 / (100.0 * h2));
        let k = k1 * k2 / (k1 + k2);
        if apart > 0.0 {
            let weight = 1.0 / (1.13 * (j + 1.0) * (j + 2.72).ln().powi(2));
            evidence += weight * (k * apart * apart).exp() / (h1 * h2).sqrt();
        }
    }
    pairs_share * evidence
}

#[test]
fn dropping_points_never_raises_the_evidence_and_costs_little() {
    for run in 0..10 {
        let (mut drift, mut rng, mut blocks) = (Drift::new(2), step_rng(run, 1), Vec::new());
        for at in 0..300 {
            blocks.push(wins_of_50(if at < 200 { 0.5 } else { 0.6 }, &mut rng));
            if block(&mut drift, blocks[blocks.len() - 1], at) {
                break;
            }
            let (whole, kept) = (by_definition(&blocks, 0.9), drift.evidence());
            assert!(kept <= whole * (1.0 + 1e-9), "{kept} of {whole}");
            // the best point of a late change was kept, or one near it
            assert!(at < 250 || kept > 0.03 * whole, "{kept} of {whole} at {at}");
        }
    }
}

/// Over all outcomes of some blocks, where the null hypothesis is at its edge.
#[test]
fn the_mean_evidence_at_the_edge_is_at_most_one() {
    let ln_factorial = |n: u32| (1..=n).map(|i| f64::from(i).ln()).sum::<f64>();
    let binomial = |wins: u32, p: f64| {
        let choose = ln_factorial(50) - ln_factorial(wins) - ln_factorial(50 - wins);
        (choose + f64::from(wins) * p.ln() + f64::from(50 - wins) * (1.0 - p).ln()).exp()
    };
    for (before, after) in [(0.5, 0.5), (0.5, 0.52), (0.98, 1.0 - 1e-9), (0.05, 0.03)] {
        let mut mean = 0.0;
        for wins in 0..=50 {
            for then in 0..=50 {
                let mut drift = Drift::new(2);
                block(&mut drift, wins, 1);
                block(&mut drift, then, 2);
                // an alarm would have ended the process: take its evidence as it was
                let evidence = match drift.raised() {
                    0 => drift.evidence(),
                    _ => by_definition(&[wins, then], 0.9),
                };
                mean += binomial(wins, before) * binomial(then, after) * evidence;
            }
        }
        assert!(mean < 1.0, "{mean} at {before} and {after}");
    }
}

#[test]
fn what_does_not_change_raises_no_alarm() {
    for ((from, to), change) in [((0.5, 0.5), 10_000), ((0.55, 0.57), 5_000)] {
        let false_alarms = (0..40)
            .filter(|&run| !matches!(delay((from, to), change, 10_000, run), Ok(None)))
            .count();
        assert_eq!(false_alarms, 0, "{from} to {to}");
    }
    // a wave of one point is a season
    let (mut drift, mut rng) = (Drift::new(2), step_rng(1, 3));
    for answers in (0..200_000).step_by(50) {
        let p = 0.55 + 0.01 * (f64::from(answers) * std::f64::consts::TAU / 100_000.0).sin();
        assert!(!block(&mut drift, wins_of_50(p, &mut rng), answers.into()));
    }
    assert!(drift.bytes() < 110 * 8 + 100, "{} bytes", drift.bytes());
}

#[test]
fn ten_points_are_found_in_the_time_they_take() {
    for (change, known, runs) in [(5_000, 1_450, 120), (50_000, 1_600, 20)] {
        let delays = (0..runs).map(|run| match delay((0.55, 0.65), change, 20_000, run) {
            Ok(Some(delay)) => delay,
            other => panic!("run {run}: {other:?}"),
        });
        let median = median(delays.collect());
        assert!(median <= known * 6 / 5, "{median} answers after {change}");
    }
}

#[test]
fn the_alarm_names_the_time_and_the_pair() {
    let mut drift = Drift::new(3);
    let mut rng = step_rng(5, 5);
    let mut at = 0;
    while drift.raised() == 0 && at < 3_000 {
        at += 1;
        for (duel, p) in
            [(Duel::new(0, 1), 0.5), (Duel::new(2, 1), if at < 300 { 0.6 } else { 0.75 })]
        {
            let wins = wins_of_50(p, &mut rng);
            drift.count(duel, Outcome::First, wins);
            drift.count(duel, Outcome::Second, 50 - wins);
        }
        drift.check(at, at);
    }
    let alarm = &drift.alarms()[0];
    assert_eq!((alarm.at, alarm.pair, alarm.answers), (at, (1, 2), 100 * at as u64));
    assert!((280..=320).contains(&alarm.since), "{alarm:?}");
    assert!((alarm.before.wins - 0.4).abs() < 0.03 && (alarm.after.wins - 0.25).abs() < 0.06);
    assert!(alarm.before.answers + alarm.after.answers == 50.0 * at as f64);
    // the next process has the next part of the error, and starts from nothing
    assert_eq!((drift.answers(), drift.evidence()), (0, 0.0));
    assert!((drift.error() - ERROR / 6.0).abs() < 1e-12);
    assert!(drift.is_sound(3));
}

#[test]
fn a_cohort_counts_in_any_order() {
    let answers = [
        (Duel::new(0, 1), Outcome::First, 30),
        (Duel::new(1, 0), Outcome::Half, 11),
        (Duel::new(2, 0), Outcome::Second, 40),
        (Duel::new(0, 2), Outcome::Void, 7),
        (Duel::new(0, 1), Outcome::Second, 25),
    ];
    let of = |order: [usize; 5]| {
        let mut drift = Drift::new(40);
        for at in 0..4 {
            for place in order {
                let (duel, outcome, count) = answers[place];
                drift.count(duel, outcome, count);
            }
            drift.check(at, at);
        }
        drift
    };
    let (one, other) = (of([0, 1, 2, 3, 4]), of([4, 2, 3, 1, 0]));
    assert_eq!(one, other);
    assert_eq!(one.answers(), 4 * 106);
    assert!(one.is_sound(40) && !one.is_sound(39));
}

/// With many rankers, no pair is followed before it has 50 answers, and 120 are followed at most.
#[test]
fn the_pairs_of_many_rankers_have_a_bound() {
    let mut drift = Drift::new(64);
    for at in 0..40 {
        for first in 0..64 {
            for second in first + 1..64 {
                drift.count(Duel::new(first, second), Outcome::First, 2);
            }
        }
        drift.check(at, at);
    }
    let bytes = drift.bytes();
    assert!(drift.is_sound(64) && bytes < 50 * 120 * 8, "{bytes} bytes");
}

#[test]
#[ignore = "a table for crates/lab/notes/claims.md: the command is there"]
fn figures() {
    let quantile = |values: &[u64], share: f64| values[(values.len() as f64 * share) as usize];
    for (rates, change, most, runs) in [
        ((0.55, 0.65), 1_000, 60_000, 200),
        ((0.55, 0.65), 5_000, 60_000, 200),
        ((0.55, 0.65), 50_000, 60_000, 200),
        ((0.55, 0.65), 300_000, 60_000, 60),
    ] {
        let found = (0..runs).map(|run| delay(rates, change, most, run));
        let mut told: Vec<u64> = found.filter_map(|delay| delay.expect("no early alarm")).collect();
        told.sort_unstable();
        let (median, ninety) = (quantile(&told, 0.5), quantile(&told, 0.9));
        println!("{rates:?} after {change}: {} of {runs} told, {median} ({ninety})", told.len());
    }
    for (rates, change, runs) in [((0.5, 0.5), 20_000, 5_000), ((0.55, 0.57), 5_000, 5_000)] {
        let is_false = |run: &u64| !matches!(delay(rates, change, 20_000 - change, *run), Ok(None));
        let found = (0..runs).filter(is_false).count() as u64;
        let most = 100.0 * super::at_most(found, runs);
        println!("{rates:?} after {change}: {found} of {runs} false, at most {most:.2} %");
    }
}
