//! Which of the answers that wait are expected to count, and what a policy hears of it.

use dueling_bandits::evidence::cohorts::{Change, Reason};
use dueling_bandits::evidence::{Added, Admission, Cohorts, Target, TimedAnswer};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{Duel, InFlight, Outcome, PolicySpec, step_rng};

use super::{WINDOW, answer, counted};

/// Units that one cohort keeps.
pub const UNITS_MAX: usize = 2048;

pub fn first_wins(issued_at: i64, nonce: u128, unit: u64) -> TimedAnswer {
    answer(issued_at, nonce, Some(unit), Outcome::First)
}

fn change(outcome: Outcome, counts: bool) -> Change {
    Change { duel: Duel::new(0, 1), outcome, score: None, counts }
}

fn alone(admission: Admission) -> Added {
    admission.into()
}

#[test]
fn a_repeat_within_the_window_is_not_expected_to_count() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    assert_eq!(cohorts.add(&first_wins(1, 1, 7)), alone(Admission::Waits));
    for later in 1..4 {
        let repeat = cohorts.add(&first_wins(later * width, 1 + later as u128, 7));
        assert_eq!(repeat, alone(Admission::WaitsAsRepeat));
    }
    assert_eq!(counted(&mut cohorts, width), [(1, 0, 0)]);
    let known = cohorts.add(&first_wins(5 * width, 9, 7));
    assert_eq!(known, alone(Admission::LeftOut(Reason::RepeatedUnit)));
    let completed: Vec<_> =
        cohorts.complete(4 * width).into_iter().flat_map(|(_, rows)| rows).collect();
    assert!(completed.iter().all(|row| !row.counts && !row.expected), "{completed:?}");
    assert_eq!(completed.len(), 3);
}

#[test]
fn an_answer_that_was_issued_earlier_takes_the_place_of_one_that_arrived_earlier() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    let second_wins = |issued_at, nonce| answer(issued_at, nonce, Some(7), Outcome::Second);
    assert_eq!(cohorts.add(&second_wins(9 * width, 1)), alone(Admission::Waits));
    let earlier = cohorts.add(&first_wins(5 * width + 10, 2, 7));
    let not_any_more = |outcome| vec![change(outcome, false)];
    let others = not_any_more(Outcome::Second);
    assert_eq!(earlier, Added { admission: Admission::Waits, others }, "of another cohort");
    let earlier = cohorts.add(&second_wins(5 * width + 5, 3));
    let others = not_any_more(Outcome::First);
    assert_eq!(earlier, Added { admission: Admission::Waits, others }, "of the same cohort");
    let repeat = cohorts.add(&second_wins(9 * width - 3, 4));
    assert_eq!(repeat, alone(Admission::WaitsAsRepeat), "between the two");
    // the other answer of this cohort was left out already
    let repeat = cohorts.add(&first_wins(9 * width - 5, 5, 7));
    assert_eq!(repeat, alone(Admission::WaitsAsRepeat), "in place of a repeat");
    assert_eq!(counted(&mut cohorts, WINDOW), [(0, 1, 0), (0, 0, 0), (0, 0, 0)]);
}

/// A late answer teaches the policy, and later pairs of its unit can depend on that. An open duel
/// of the unit does not count either, so it makes no difference which of the two comes first.
#[test]
fn no_answer_of_a_unit_counts_after_a_late_one() {
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    cohorts.complete(width);
    assert_eq!(cohorts.add(&first_wins(width, 1, 7)), alone(Admission::Waits));
    assert_eq!(cohorts.add(&first_wins(3 * width, 2, 7)), alone(Admission::WaitsAsRepeat));
    for (unit, others) in [(7, vec![change(Outcome::First, false)]), (8, vec![])] {
        let late = Added { admission: Admission::LeftOut(Reason::Late), others };
        assert_eq!(cohorts.add(&first_wins(1, 3, unit)), late);
        let open = cohorts.add(&first_wins(2 * width, 4, unit));
        assert_eq!(open, alone(Admission::LeftOut(Reason::RepeatedUnit)));
    }
    assert_eq!(cohorts.expected(), []);
    assert_eq!(counted(&mut cohorts, WINDOW), [(0, 0, 0), (0, 0, 0)]);
    assert_eq!((cohorts.left_out().repeated_unit, cohorts.answers()), (4, (0, 0)));
}

/// The finaliser of SplitMix64: a full cohort keeps the units for which it is smallest.
pub fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// So many units that a cohort keeps rather than the largest one of them, which comes last.
fn units_by_hash(count: u64) -> Vec<u64> {
    let mut units: Vec<u64> = (0..count).collect();
    units.sort_by_key(|&unit| mixed(unit));
    units
}

#[test]
fn no_answer_of_a_unit_counts_after_a_full_cohort_left_one_out() {
    let units = units_by_hash(UNITS_MAX as u64 + 1);
    let (&largest, smaller) = units.split_last().unwrap();
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    cohorts.add(&first_wins(1, 1, largest));
    let repeat = answer(width, 2, Some(largest), Outcome::Second);
    assert_eq!(cohorts.add(&repeat), alone(Admission::WaitsAsRepeat));
    // a repeat of the unit that comes last, so that all three kinds of changes come at once
    let (&last, others) = smaller.split_last().unwrap();
    for (nonce, &unit) in others.iter().enumerate() {
        assert_eq!(cohorts.add(&first_wins(2, nonce as u128, unit)), alone(Admission::Waits));
    }
    cohorts.add(&answer(2 * width, 1, Some(last), Outcome::Half));
    let added = cohorts.add(&first_wins(3, 5, last));
    let others = vec![change(Outcome::First, false), change(Outcome::Half, false)];
    assert_eq!(added, Added { admission: Admission::Waits, others });
    let again = cohorts.add(&first_wins(9 * width, 1, largest));
    assert_eq!(again, alone(Admission::LeftOut(Reason::RepeatedUnit)), "it lost its place");
    let larger = (UNITS_MAX as u64 + 1..).find(|&unit| mixed(unit) > mixed(last)).unwrap();
    let full = alone(Admission::LeftOut(Reason::Full));
    assert_eq!(cohorts.add(&first_wins(1, 1, larger)), full);
    let again = cohorts.add(&first_wins(9 * width, 1, larger));
    assert_eq!(again, alone(Admission::LeftOut(Reason::RepeatedUnit)), "it found no place");
    assert_eq!(counted(&mut cohorts, WINDOW), [(2048, 0, 0), (0, 0, 0), (0, 0, 0)]);
    assert_eq!((cohorts.left_out().full, cohorts.left_out().repeated_unit), (2, 4));
}

/// The policy hears of a repeat as it arrives, before its cohort is complete.
#[test]
fn the_default_policy_is_told_of_a_repeat_at_once() {
    let spec = PolicySpec::from_text("d-ts-verdict").unwrap();
    let target = Target { confidence: 0.95, margin: 0.0 };
    let mut run = Run::new(spec.start(Setup { rankers: 2, seed: 1 }), target, WINDOW);
    let width = run.cohorts().width_ms();
    let mut shown_alone = |answers: std::ops::Range<i64>, unit: &dyn Fn(i64) -> u64| {
        for number in answers {
            let answer = first_wins(number % 400 * width, number as u128, unit(number));
            run.observe_timed(&answer, None, 0, number);
        }
        run.catch_up();
        let select = |step| run.select(&InFlight::new(), &mut step_rng(2, step)).duel;
        (0..500).filter(|&step| select(step).is_self()).count()
    };
    let of_five_people = shown_alone(0..400, &|number| number as u64 % 5);
    assert!(of_five_people < 100, "five answers prove nothing: alone on {of_five_people} of 500");
    let of_many = shown_alone(400..800, &|number| number as u64);
    assert!(of_many > 400, "alone on {of_many} of 500");
}
