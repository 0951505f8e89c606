//! The units that answer most.

use dueling_bandits::PolicyRng;
use dueling_bandits::evidence::HeavyUnits;
use rand::{RngExt, SeedableRng};

#[test]
fn the_units_that_answer_most_are_found_among_many() {
    let mut units = HeavyUnits::default();
    let mut rng = PolicyRng::seed_from_u64(1);
    for answer in 0..20_000_u64 {
        let unit = match answer % 20 {
            0 => 1,
            1 if answer % 40 == 1 => 2,
            _ => 100 + answer,
        };
        units.answered(unit, Some(rng.random()));
    }
    assert_eq!(units.answers(), 20_000);
    let heaviest = units.heaviest();
    assert_eq!(heaviest.len(), 32);
    let answers = |at: usize| {
        let (unit, counts) = heaviest[at];
        (unit, counts.answers - counts.error <= 1000 && counts.answers >= 1000)
    };
    assert!(heaviest[..2].iter().any(|&(unit, _)| unit == 1), "{heaviest:?}");
    assert_eq!(heaviest.iter().filter(|(unit, _)| *unit == 1).count(), 1);
    assert!(answers(0).1 || answers(1).1);
    assert!(units.is_sound());
}

#[test]
fn a_machine_shows_and_a_person_does_not() {
    let mut machine = HeavyUnits::default();
    for _ in 0..40 {
        machine.answered(7, Some(true));
    }
    assert!(machine.heaviest()[0].1.ln_evidence() > (1e6_f64).ln());

    // people let each side win half of the time, looked at after every answer
    let (people, alpha) = (4000, 0.05);
    let mut rng = PolicyRng::seed_from_u64(2);
    let mut taken = 0;
    for person in 0..people {
        let mut units = HeavyUnits::default();
        taken += u32::from((0..300).any(|_| {
            units.answered(person, Some(rng.random()));
            units.heaviest()[0].1.ln_evidence() >= -f64::ln(alpha)
        }));
    }
    let share = f64::from(taken) / f64::from(people as u32);
    assert!(share <= alpha && share > 0.005, "{share} of people are taken for machines");
}

#[test]
fn answers_without_a_winner_are_no_evidence() {
    let mut units = HeavyUnits::default();
    for _ in 0..100 {
        units.answered(7, None);
    }
    let (_, counts) = units.heaviest()[0];
    assert_eq!((counts.answers, counts.left, counts.right), (100, 0, 0));
    assert!(counts.ln_evidence().abs() < 1e-12);
}
