//! Duels in flight, and the cohorts of those whose time is over.

use dueling_bandits::Selection;
use dueling_bandits::evidence::balance::Cell;
use rankduel_engine::open_duels::{AnsweredInTime, OpenDuels};

/// Time from the expiry of a duel to its completeness.
const GRACE_MS: i64 = 60_000;

fn issue(open: &mut OpenDuels, left: usize, right: usize, now_ms: i64) {
    open.issue(&Selection::of(left, right), true, now_ms);
}

#[test]
fn an_unanswered_duel_is_in_flight_for_its_time() {
    let mut open = OpenDuels::new(64_000, AnsweredInTime::new(0, 1000));
    issue(&mut open, 0, 1, 10_500);
    assert_eq!(open.in_flight_at(10_500, None).of(1, 0), 1);
    assert_eq!(open.in_flight_at(10_500 + 64_000, None).of(0, 1), 1, "its cohort is not over yet");
    assert_eq!(open.in_flight_at(10_000 + 1000 + 64_000, None).of(0, 1), 0);
    assert_eq!(open.in_flight_at(90_000, None).total(), 0);
}

#[test]
fn an_answer_ends_one_duel_and_a_second_answer_none() {
    let mut open = OpenDuels::new(64_000, AnsweredInTime::new(0, 1000));
    issue(&mut open, 2, 5, 100);
    open.issue(&Selection::of(5, 2), false, 200);
    open.answered((2, 5), None, 100);
    assert_eq!(open.in_flight_at(300, None).of(2, 5), 1);
    open.answered((2, 5), None, 200);
    open.answered((2, 5), None, 200);
    assert_eq!((open.in_flight_at(300, None).total(), open.answered_until(300)), (0, 300));
}

#[test]
fn a_duel_that_was_counted_late_is_found() {
    let mut open = OpenDuels::new(64_000, AnsweredInTime::new(0, 1000));
    issue(&mut open, 0, 1, 1000);
    issue(&mut open, 2, 3, 999);
    open.answered((2, 3), None, 999);
    assert_eq!(
        (open.in_flight_at(1002, None).of(2, 3), open.in_flight_at(1002, None).of(0, 1)),
        (0, 1)
    );
    assert_eq!(open.ended(500_000).total, Cell { issued: 2, answered: 1 });
}

#[test]
fn a_new_batch_starts_without_duels_in_flight() {
    let mut open = OpenDuels::new(64_000, AnsweredInTime::new(0, 1000));
    open.in_flight_at(0, Some(1));
    open.issue(&Selection { batch: Some(1), ..Selection::of(0, 1) }, true, 0);
    assert_eq!(open.in_flight_at(1, Some(1)).total(), 1);
    assert_eq!(open.in_flight_at(1, Some(2)).total(), 0);
    open.answered((0, 1), Some(1), 0);
    open.issue(&Selection { batch: Some(1), ..Selection::of(0, 1) }, true, 2);
    assert_eq!(open.in_flight_at(3, Some(2)).total(), 0, "duels of a closed batch do not count");
}

#[test]
fn a_cohort_counts_when_all_its_duels_are_over() {
    let mut open = OpenDuels::new(64_000, AnsweredInTime::new(0, 1000));
    for at in [10_100, 10_200, 11_500] {
        issue(&mut open, 0, 1, at);
    }
    open.answered((0, 1), None, 10_200);
    // nobody was asked to compare these, or with these sides
    open.answered((0, 2), None, 10_200);
    open.answered((1, 0), None, 10_200);
    let total = |open: &mut OpenDuels, at| {
        let Cell { issued, answered } = open.ended(at).total;
        (issued, answered)
    };
    assert_eq!(total(&mut open, 10_000 + 1000 + 64_000 + GRACE_MS - 1), (0, 0));
    assert_eq!(total(&mut open, 10_000 + 1000 + 64_000 + GRACE_MS), (2, 1));
    open.answered((0, 1), None, 10_100);
    assert_eq!(total(&mut open, 12_000 + 64_000 + GRACE_MS), (3, 1), "it came too late");
}
