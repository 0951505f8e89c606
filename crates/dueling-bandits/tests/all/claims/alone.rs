//! Units of one ranker alone: each counts once, and a loss of one arm shows.

use rand::RngExt;

use dueling_bandits::claims::alone::{AlonePages, Arm};
use dueling_bandits::step_rng;

/// Units until the alarm, at most `most`, if each answer of the control is lost with a chance
/// of `loss`.
fn units_until_alarm(experiment: u64, loss: f64, most: u64) -> Option<u64> {
    let mut rng = step_rng(29, experiment);
    let mut pages = AlonePages::default();
    for unit in 1..=most {
        let arm = if rng.random() { Arm::Leader } else { Arm::Control };
        if arm == Arm::Leader || !rng.random_bool(loss) {
            pages.answer(unit, arm, Some(unit as i64 / 100), unit);
        }
        if unit % 100 == 0 {
            pages.complete(unit as i64 / 100, unit);
            if pages.answered().uneven_since().is_some() {
                return Some(unit);
            }
        }
    }
    None
}

#[test]
fn a_fair_coin_raises_few_alarms_and_a_loss_does() {
    let alarms = (0..2000).filter(|&nth| units_until_alarm(nth, 0.0, 20_000).is_some()).count();
    // the error is 20; with it, more than 20 come up in half of all such tests
    assert!(alarms <= 20, "{alarms} of 2000");
    let mut told: Vec<_> =
        (0..201).map(|nth| units_until_alarm(nth, 0.04, 200_000).expect("a loss shows")).collect();
    told.sort_unstable();
    // the median of many is 28,000; of 201 it varies by 1,600
    assert!((23_500..32_500).contains(&told[100]), "{}", told[100]);
}

/// The mean of the next factor is 1, so the evidence is a martingale.
#[test]
fn the_next_unit_is_worth_nothing_in_the_mean() {
    for units in [[0, 0], [3, 9], [5000, 5300]] {
        let ln = |more: [u64; 2]| {
            let mut pages = AlonePages::default();
            let arms = [Arm::Leader, Arm::Control].into_iter().zip(units.iter().zip(more));
            let arms = arms.flat_map(|(arm, (units, more))| (0..units + more).map(move |_| arm));
            pages.issue((0..).zip(arms), 1);
            pages.issued().ln_evidence()
        };
        let factor = |more| (ln(more) - ln([0, 0])).exp();
        let mean = (factor([1, 0]) + factor([0, 1])) / 2.0;
        assert!((mean - 1.0).abs() < 1e-9, "{mean}");
    }
}

#[test]
fn a_unit_counts_once_and_answers_with_their_cohort() {
    let mut pages = AlonePages::default();
    pages.issue([(1, Arm::Leader), (2, Arm::Control), (1, Arm::Leader)], 1);
    pages.issue([(2, Arm::Control)], 2);
    assert_eq!(pages.issued().units(), [1, 1]);
    assert!(pages.has_issued(1) && !pages.has_issued(3));
    let (mut other, mut answers) =
        (pages.clone(), [(1, Arm::Leader, 10), (2, Arm::Control, 20), (1, Arm::Leader, 10)]);
    for (unit, arm, cohort) in answers {
        pages.answer(unit, arm, Some(cohort), 3);
    }
    answers.reverse();
    for (unit, arm, cohort) in answers {
        other.answer(unit, arm, Some(cohort), 3);
    }
    assert_eq!(pages, other, "in any order");
    assert_eq!(pages.answered().units(), [0, 0]);
    pages.complete(20, 4);
    assert_eq!(pages.answered().units(), [1, 0]);
    pages.answer(3, Arm::Control, Some(19), 5);
    pages.complete(30, 6);
    assert_eq!(pages.answered().units(), [1, 1], "one came too late");
    pages.answer(4, Arm::Control, None, 7);
    assert_eq!(pages.answered().units(), [1, 2]);
    assert!(pages.is_sound());
}
