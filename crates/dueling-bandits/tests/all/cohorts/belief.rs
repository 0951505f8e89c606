//! What a policy believes to count, against the definition.

use std::collections::{BTreeMap, BTreeSet};

use dueling_bandits::evidence::{Cohorts, Counting, Score, Target, TimedAnswer, VerdictTracker};
use dueling_bandits::{
    Duel, InFlight, Observation, Outcome, Policy, PolicyRng, SaveLater, Selection, Tally,
    VerdictPlanning,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::WINDOW;
use super::expected::{UNITS_MAX, first_wins, mixed};

/// Each answer has an ordered pair of its own, so that reports name it.
const RANKERS: usize = 100;

/// A policy that keeps which answers it has observed and believes to count.
#[derive(Debug)]
struct Believing {
    tally: Tally,
    counts: BTreeSet<usize>,
    /// Scores of answers that are believed to count.
    scores: BTreeSet<usize>,
}

impl Believing {
    fn new() -> Self {
        let (counts, scores) = Default::default();
        Self { tally: Tally::new(RANKERS), counts, scores }
    }
}

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

fn number_of(duel: Duel) -> usize {
    let Duel { first, second } = duel;
    first * (RANKERS - 1) + second - usize::from(second > first)
}

impl Policy for Believing {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        Selection::of(0, 1)
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
        assert!(self.counts.insert(number_of(observation.duel)));
    }

    fn observe_self_duels(&mut self, _ranker: usize, _count: u64) {}

    fn verdict_planning(&mut self) -> Option<&mut dyn VerdictPlanning> {
        Some(self)
    }

    fn format(&self) -> u32 {
        0
    }

    fn save_later(&self) -> SaveLater {
        Box::new(Vec::new)
    }
}

impl VerdictPlanning for Believing {
    fn score(&mut self, duel: Duel, score: Score) {
        let number = number_of(duel);
        assert_eq!(score_of(number), Some(score));
        assert!(self.scores.insert(number), "scored twice");
    }

    fn leave_out(&mut self, duel: Duel, _outcome: Outcome, score: Option<Score>) {
        let number = number_of(duel);
        assert_eq!(score_of(number), score);
        assert!(self.counts.remove(&number), "left out twice");
        assert_eq!(self.scores.remove(&number), score.is_some());
    }

    fn count_again(&mut self, duel: Duel, _outcome: Outcome, score: Option<Score>) {
        let number = number_of(duel);
        assert_eq!(score_of(number), score);
        assert!(self.counts.insert(number), "counted twice");
        assert!(score.is_none() || self.scores.insert(number), "scored twice");
    }

    fn reconsider(&mut self, _: &VerdictTracker) -> bool {
        false
    }
}

/// What happens in a run.
#[derive(Debug, Clone)]
enum Event {
    /// An answer of a unit, issued at this time.
    Answer(i64, Option<u64>),
    /// Time goes on by so much, and cohorts that end by then are complete.
    Complete(i64),
    /// The state is saved and restored.
    Snapshot,
}

/// Which answers are expected to count, by the definition and from the whole history.
#[derive(Debug, Default)]
struct Plain {
    complete_until: i64,
    /// Answers that counted, and their units.
    counted: BTreeSet<usize>,
    units: BTreeSet<u64>,
    /// By cohort: the time of issue, the number and the unit of the answers that came in time.
    open: BTreeMap<i64, Vec<(i64, usize, Option<u64>)>>,
}

impl Plain {
    fn add(&mut self, width: i64, issued_at: i64, number: usize, unit: Option<u64>) {
        let is_known = unit.is_some_and(|unit| self.units.contains(&unit));
        if issued_at >= self.complete_until && !is_known {
            let start = issued_at.div_euclid(width) * width;
            self.open.entry(start).or_default().push((issued_at, number, unit));
        }
    }

    /// The answers that would count if these cohorts were complete, with their units.
    fn counting(&self, cohorts: std::ops::Range<i64>) -> (BTreeSet<usize>, BTreeSet<u64>) {
        let (mut counted, mut units) = (self.counted.clone(), self.units.clone());
        for answers in self.open.range(cohorts).map(|(_, answers)| answers) {
            let mut first = BTreeMap::new();
            for &(issued_at, number, unit) in answers {
                match unit {
                    None => _ = counted.insert(number),
                    Some(unit) => {
                        let known = first.entry((mixed(unit), unit)).or_insert((i64::MAX, 0));
                        *known = (issued_at, number).min(*known);
                    }
                }
            }
            for (&(_, unit), &(_, number)) in first.iter().take(UNITS_MAX) {
                if units.insert(unit) {
                    counted.insert(number);
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

    fn expected(&self) -> BTreeSet<usize> {
        self.counting(self.complete_until..i64::MAX).0
    }
}

/// The first answers are of these units, in turns of the first two cohorts. They are not looked at
/// one by one.
fn believes_what_is_expected(fillers: &[u64], events: Vec<Event>) {
    let mut policy = Believing::new();
    let mut tracker = VerdictTracker::new(Target { confidence: 0.95, margin: 0.0 }, 2);
    let mut cohorts = Cohorts::new(WINDOW);
    let width = cohorts.width_ms();
    let mut plain = Plain::default();
    let (mut now, mut number) = (0, 0);
    let filler = |(at, &unit): (usize, &u64)| Event::Answer(at as i64 % 2 * width, Some(unit));
    let all = fillers.iter().enumerate().map(filler).chain(events);
    for event in all.chain([Event::Complete(i64::MAX / 2)]) {
        let mut counting = Counting {
            tracker: &mut tracker,
            cohorts: &mut cohorts,
            policy: &mut policy,
            active: &[0, 1],
        };
        match event {
            Event::Answer(issued_at, unit) => {
                let (duel, outcome, score) = (pair_of(number), Outcome::First, score_of(number));
                if let Some(score) = score {
                    counting.policy.score(duel, score);
                }
                counting.policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
                let nonce = number as u128;
                let answer = TimedAnswer { duel, outcome, score, issued_at, nonce, unit };
                counting.admit(&answer, |_, _, _| ());
                plain.add(width, issued_at, number, unit);
                number += 1;
            }
            Event::Complete(by) => {
                now += by;
                counting.complete(now, |_, _, _| ());
                plain.complete(width, now);
            }
            Event::Snapshot => {
                let restored = Cohorts::restore(WINDOW, cohorts.saved().clone());
                assert_eq!(restored, cohorts);
                cohorts = restored;
            }
        }
        if number > fillers.len() {
            assert_eq!(policy.counts, plain.expected(), "answer {number}, time {now}");
        }
    }
    assert_eq!(policy.counts, counted_by(&tracker, &policy, number));
    assert_eq!(policy.scores.len() as u64, tracker.state().scores().answers());
}

/// The first `answers` answers of which the verdict counts the pairs.
fn counted_by(tracker: &VerdictTracker, policy: &Believing, answers: usize) -> BTreeSet<usize> {
    let counted = tracker.counted(&policy.tally);
    let counts = |&number: &usize| {
        let Duel { first, second } = pair_of(number);
        counted.half_wins(first, second) > 0
    };
    (0..answers).filter(counts).collect()
}

/// Times of issue in six cohorts, some complete when the answer arrives, and units of which many
/// come back.
fn events(units: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = Vec<Event>> {
    let width = Cohorts::new(WINDOW).width_ms();
    let answer = (0..6 * width, proptest::option::weighted(0.9, units));
    let event = prop_oneof![
        16 => answer.prop_map(|(issued_at, unit)| Event::Answer(issued_at, unit)),
        1 => (0..2 * width).prop_map(Event::Complete),
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

/// The filter may take a unit for a known one after its answer arrived. The policy hears of it when
/// the cohort is complete.
#[test]
fn a_mistake_of_the_filter_is_told_when_the_cohort_is_complete() {
    let mut known = Cohorts::new(0);
    for unit in 0..700_000 {
        known.add(&first_wins(0, 1, unit));
    }
    let mut cohorts = Cohorts::restore(WINDOW, known.saved().clone());
    let width = cohorts.width_ms();
    let mut policy = Believing::new();
    let mut tracker = VerdictTracker::new(Target { confidence: 0.95, margin: 0.0 }, 2);
    let before = cohorts.left_out().repeated_unit;
    let mut counting = Counting {
        tracker: &mut tracker,
        cohorts: &mut cohorts,
        policy: &mut policy,
        active: &[0, 1],
    };
    let answers = 9000;
    for number in 0..answers {
        let (duel, outcome, score) = (pair_of(number), Outcome::First, score_of(number));
        if let Some(score) = score {
            counting.policy.score(duel, score);
        }
        counting.policy.observe(&Observation { duel, outcome, batch: None, ticket: 0 });
        let (issued_at, unit) = (number as i64 % 6 * width, Some(1_000_000 + number as u64));
        let answer = TimedAnswer { duel, outcome, score, issued_at, nonce: 1, unit };
        counting.admit(&answer, |_, _, _| ());
    }
    let at_arrival = counting.cohorts.left_out().repeated_unit - before;
    counting.complete(WINDOW, |_, _, _| ());
    let found = cohorts.left_out().repeated_unit - before - at_arrival;
    assert!(at_arrival > 0 && found > 0, "{at_arrival} mistakes at arrival, {found} later");
    assert_eq!(policy.counts, counted_by(&tracker, &policy, answers));
    assert_eq!(policy.scores.len() as u64, tracker.state().scores().answers());
}
