//! The answers that are expected to count, against the definition.

use std::collections::{BTreeMap, BTreeSet};

use dueling_bandits::evidence::{Cohorts, Counted, Score, Target, TimedAnswer};
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, Outcome, PolicySpec, Setup};
use proptest::collection::vec;
use proptest::prelude::*;

use super::WINDOW;

/// Units that one cohort keeps.
const UNITS_MAX: usize = 2048;

/// The finaliser of SplitMix64: a full cohort keeps the units for which it is smallest.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Each answer has an ordered pair of its own, so that reports name it.
const RANKERS: usize = 100;

/// A third of the answers count by a score.
fn score_of(number: usize) -> Option<Score> {
    let weight = (number as u32 % 1000) * (Score::ONE / 1000);
    let is_up = |_| number.is_multiple_of(2);
    number.is_multiple_of(3).then(|| Score::rounded(true, weight, true, is_up))
}

/// The pair of answer `number`, and back.
fn pair_of(number: usize) -> Duel {
    let (first, second) = (number / (RANKERS - 1), number % (RANKERS - 1));
    Duel::new(first, second + usize::from(second >= first))
}

/// An event of a run.
#[derive(Debug, Clone)]
enum Event {
    /// An answer of a unit, issued at this time.
    Answer(i64, Option<u64>),
    /// Time goes on by so much, and cohorts that end by then are complete.
    Complete(i64),
    /// A ranker comes, and the verdict starts again.
    Enlist,
    /// The state is saved and restored.
    Snapshot,
}

/// Which answers are expected to count, by the definition and from the whole history.
#[derive(Debug, Default)]
struct Plain {
    complete_until: i64,
    /// The verdict counts the cohorts from this one on.
    verdict_from: i64,
    /// Answers that counted, and the units of answers that counted or taught without counting.
    counted: BTreeSet<usize>,
    units: BTreeSet<u64>,
    /// By cohort: the time of issue, the number and the unit of the answers that came in time.
    open: BTreeMap<i64, Vec<(i64, usize, Option<u64>)>>,
}

impl Plain {
    fn add(&mut self, width: i64, issued_at: i64, number: usize, unit: Option<u64>) {
        if issued_at < self.complete_until {
            self.units.extend(unit);
        } else if unit.is_none_or(|unit| !self.units.contains(&unit)) {
            let start = issued_at.div_euclid(width) * width;
            let answers = self.open.entry(start).or_default();
            answers.push((issued_at, number, unit));
            if answers.len() > UNITS_MAX {
                let units = answers.iter().filter_map(|answer| answer.2);
                let units: BTreeSet<_> = units.map(|unit| (mixed(unit), unit)).collect();
                if let Some(&(_, lost)) = units.iter().nth(UNITS_MAX) {
                    self.units.insert(lost);
                    answers.retain(|answer| answer.2 != Some(lost));
                }
            }
        }
    }

    /// The answers that would count if these cohorts were complete, with their units.
    fn counting(&self, cohorts: std::ops::Range<i64>) -> (BTreeSet<usize>, BTreeSet<u64>) {
        let (mut counted, mut units) = (self.counted.clone(), self.units.clone());
        for (&start, answers) in self.open.range(cohorts) {
            let mut first = BTreeMap::new();
            let mut count = |number| {
                if start >= self.verdict_from {
                    counted.insert(number);
                }
            };
            for &(issued_at, number, unit) in answers {
                match unit {
                    None => count(number),
                    Some(unit) => {
                        let known = first.entry((mixed(unit), unit)).or_insert((i64::MAX, 0));
                        *known = (issued_at, number).min(*known);
                    }
                }
            }
            for (&(_, unit), &(_, number)) in &first {
                if units.insert(unit) {
                    count(number);
                }
            }
        }
        (counted, units)
    }

    fn complete(&mut self, width: i64, until: i64) {
        let until = until.div_euclid(width) * width;
        (self.counted, self.units) = self.counting(self.complete_until..until);
        self.complete_until = until;
        self.open = self.open.split_off(&until);
    }

    fn start_again(&mut self, width: i64, at: i64) {
        self.counted.clear();
        self.verdict_from = (at.div_euclid(width) + 1) * width;
    }

    fn expected(&self) -> BTreeSet<usize> {
        self.counting(self.complete_until..i64::MAX).0
    }
}

/// The first answers are of these units, in turns of the first two cohorts. They are not looked at
/// one by one.
fn believes_what_is_expected(fillers: &[u64], events: Vec<Event>) {
    let spec = PolicySpec::from_text("uniform").expect("a policy");
    let (setup, target) =
        (Setup { rankers: RANKERS, seed: 1 }, Target { confidence: 0.95, margin: 0.0 });
    let mut run = Run::new(spec.start(setup), target, WINDOW);
    let width = run.cohorts().width_ms();
    let mut plain = Plain::default();
    let (mut now, mut number) = (0, 0);
    let filler = |(at, &unit): (usize, &u64)| Event::Answer(at as i64 % 2 * width, Some(unit));
    let all = fillers.iter().enumerate().map(filler).chain(events);
    for event in all.chain([Event::Complete(i64::MAX / 2)]) {
        match event {
            Event::Answer(issued_at, unit) => {
                let (duel, outcome, score) = (pair_of(number), Outcome::First, score_of(number));
                let nonce = number as u128;
                let answer =
                    TimedAnswer { duel, outcome, score, issued_at, nonce, unit, segment: 0 };
                run.observe_timed(&answer, None, 0, now);
                plain.add(width, issued_at, number, unit);
                number += 1;
            }
            Event::Complete(by) => {
                now += by;
                run.complete(now, now);
                plain.complete(width, now);
            }
            Event::Enlist => {
                // another one would be too many
                if run.enlist(now).is_ok() {
                    plain.start_again(width, now);
                }
            }
            Event::Snapshot => {
                let (roster, saved) = (run.roster().clone(), run.saved());
                let restored = Run::restore((&spec, setup), target, roster, saved);
                let restored = restored.expect("its own state");
                assert_eq!(restored.cohorts(), run.cohorts());
                run = restored;
            }
        }
        if number > fillers.len() {
            let expected = counted_by(run.expected(), &run, number);
            assert_eq!(expected, plain.expected(), "answer {number}, time {now}");
            let scored = expected.iter().filter(|&&number| score_of(number).is_some()).count();
            assert_eq!(run.expected().scores().answers(), scored as u64);
        }
    }
    let counted = counted_by(run.verdict().counted(), &run, number);
    assert_eq!(counted, plain.expected());
}

/// The first `answers` answers of which the pairs count.
fn counted_by(counted: &Counted, run: &Run, answers: usize) -> BTreeSet<usize> {
    let counted = counted.of(run.tally());
    let counts = |&number: &usize| {
        let Duel { first, second } = pair_of(number);
        counted.half_wins(first, second) > 0
    };
    (0..answers).filter(counts).collect()
}

/// Times of issue in six cohorts, some complete or before the newest start of the verdict when the
/// answer arrives, and units of which many come back.
fn events(units: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = Vec<Event>> {
    let width = Cohorts::new(WINDOW).width_ms();
    let answer = (0..6 * width, proptest::option::weighted(0.9, units));
    let event = prop_oneof![
        16 => answer.prop_map(|(issued_at, unit)| Event::Answer(issued_at, unit)),
        1 => (0..2 * width).prop_map(Event::Complete),
        1 => Just(Event::Enlist),
        1 => Just(Event::Snapshot),
    ];
    vec(event, 1..160)
}

proptest! {
    #[test]
    fn the_policy_believes_what_is_expected(events in events(0..12_u64)) {
        believes_what_is_expected(&[], events);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The first two cohorts are nearly full of other units with small hashes, so that units lose
    /// their place.
    #[test]
    fn the_policy_believes_what_is_expected_of_full_cohorts(events in events(0..40_u64)) {
        let small = (1000..).filter(|&unit| mixed(unit) < u64::MAX / 3);
        let fillers: Vec<u64> = small.take(2 * UNITS_MAX - 8).collect();
        believes_what_is_expected(&fillers, events);
    }
}
