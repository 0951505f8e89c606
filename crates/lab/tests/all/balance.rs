//! The checks of an experiment, over whole simulated experiments and looked at after every cohort:
//! how often they are wrong about a healthy experiment, and how soon they find a fault.
//!
//! `RANKDUEL_CHECK_RUNS` sets the number of experiments of each test, for a measurement.

use std::collections::{BTreeMap, BinaryHeap};

use dueling_bandits::evidence::balance::{AnswerBalance, Cell, Kind, coin_evidence};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{InFlight, Outcome, PolicyRng, PolicySpec, Setup, step_rng};
use rand::RngExt;
use rayon::prelude::*;

/// Time between two duels, so that a lifetime is 640 duels and a cohort has 10.
const DUEL_MS: u64 = 100;
const COHORT_MS: u64 = 1000;
const LIFETIME_MS: u64 = 64_000;
/// The thresholds of the service for one server and for the whole log.
const ANSWERS_NEEDED: f64 = 2000.0;
const SIDES_NEEDED: f64 = 1000.0;

/// A duel as a searcher sees it.
#[derive(Clone, Copy)]
struct Shown {
    left: u16,
    right: u16,
    left_wins: bool,
    /// Time of the issue.
    at: u64,
}

/// The experiment that is simulated.
struct Scene<'a> {
    matrix: &'a str,
    policy: &'a str,
    duels: u64,
    /// Probability that a duel is answered.
    answered: &'a (dyn Fn(Shown) -> f64 + Sync),
    /// Mean time to an answer.
    delay_ms: f64,
}

/// When the checks first raised an alarm, in issued duels.
#[derive(Debug, Default, Clone, Copy)]
struct Alarms {
    answers: Option<u64>,
    /// The factor that the alarm about answers named.
    named: Option<(Kind, (u16, u16))>,
    sides: Option<u64>,
}

impl Scene<'_> {
    fn play(&self, seed: u64) -> Alarms {
        let matrix = PreferenceMatrix::named(self.matrix).expect("known").expect("valid");
        let spec = PolicySpec::from_text_with(self.policy, &[]).expect("a policy");
        let mut policy = spec.start(Setup { rankers: matrix.rankers(), seed });
        let mut rng: PolicyRng = step_rng(seed, 7);
        let mut in_flight = InFlight::new();
        // (time, number of the duel), the earliest first
        let mut events: BinaryHeap<std::cmp::Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut open = Vec::new();
        let mut cohorts: BTreeMap<u64, BTreeMap<(u16, u16), Cell>> = BTreeMap::new();
        let (mut balance, mut sides, mut alarms) =
            (AnswerBalance::default(), [0, 0], Alarms::default());
        for number in 0..self.duels {
            let now = number * DUEL_MS;
            while let Some(&std::cmp::Reverse((at, duel))) =
                events.peek().filter(|event| event.0.0 <= now)
            {
                events.pop();
                let (selection, shown): (dueling_bandits::Selection, Shown) = open[duel];
                let pair = selection.duel;
                in_flight.remove(pair.first, pair.second, 1);
                if at >= shown.at + LIFETIME_MS {
                    continue;
                }
                let first_left = pair.first == usize::from(shown.left);
                let outcome =
                    if shown.left_wins == first_left { Outcome::First } else { Outcome::Second };
                policy.observe(&selection.observed(outcome));
                cohorts
                    .get_mut(&(shown.at / COHORT_MS))
                    .and_then(|cohort| cohort.get_mut(&(shown.left, shown.right)))
                    .expect("it was issued")
                    .answered += 1;
                sides[usize::from(!shown.left_wins)] += 1;
                if alarms.sides.is_none() && coin_evidence(sides[0], sides[1]) >= SIDES_NEEDED {
                    alarms.sides = Some(number);
                }
            }
            while let Some(oldest) = cohorts.first_entry()
                && (oldest.key() + 1) * COHORT_MS + LIFETIME_MS <= now
            {
                balance.add(oldest.remove());
                if alarms.answers.is_none() && balance.evidence() >= ANSWERS_NEEDED {
                    alarms.answers = Some(number);
                    alarms.named = balance.worst().map(|worst| (worst.kind, worst.pair));
                }
            }
            let selection = policy.select(&in_flight, &mut rng);
            let pair = selection.duel;
            if pair.is_self() {
                policy.observe_self_duels(pair.first, 1);
                continue;
            }
            let (left, right) =
                if rng.random() { (pair.first, pair.second) } else { (pair.second, pair.first) };
            let shown = Shown {
                left: left as u16,
                right: right as u16,
                left_wins: rng.random_bool(matrix.win_probability(left, right)),
                at: now,
            };
            cohorts
                .entry(now / COHORT_MS)
                .or_default()
                .entry((shown.left, shown.right))
                .or_default()
                .issued += 1;
            in_flight.add(pair.first, pair.second, 1);
            let is_answered = rng.random_bool((self.answered)(shown));
            let delay = -self.delay_ms * rng.random::<f64>().max(1e-9).ln();
            let ends = if is_answered { now + delay as u64 + 1 } else { now + LIFETIME_MS };
            events.push(std::cmp::Reverse((ends.min(now + LIFETIME_MS), open.len())));
            open.push((selection, shown));
        }
        alarms
    }

    fn play_all(&self, runs: u64) -> Vec<Alarms> {
        (0..runs).into_par_iter().map(|run| self.play(1000 + run)).collect()
    }
}

fn runs(usual: u64) -> u64 {
    let asked = std::env::var("RANKDUEL_CHECK_RUNS").ok();
    asked.map_or(usual, |runs| runs.parse().expect("a number"))
}

/// Number of alarms, and the median of when they came.
fn report(what: &str, alarms: &[Option<u64>]) -> (usize, u64) {
    let mut raised: Vec<u64> = alarms.iter().copied().flatten().collect();
    raised.sort_unstable();
    let median = raised.get(raised.len() / 2).copied().unwrap_or_default();
    println!("{what}: {} of {}, median at {median} duels", raised.len(), alarms.len());
    (raised.len(), median)
}

/// Experiments of uniform pairs in which answers are lost.
fn faulty(
    matrix: &str,
    duels: u64,
    answered: &(dyn Fn(Shown) -> f64 + Sync),
    runs: u64,
) -> Vec<Alarms> {
    Scene { matrix, policy: "uniform", duels, answered, delay_ms: 3000.0 }.play_all(runs)
}

/// At a true rate of 1 in 1000, four or more alarms in 400 experiments come up in less than 0.1 %
/// of all cases.
#[test]
fn a_healthy_experiment_raises_no_alarm_however_often_it_is_looked_at() {
    let night_and_day =
        |shown: Shown| if (shown.at / 50_000).is_multiple_of(2) { 0.95 } else { 0.6 };
    let seldom = |_: Shown| 0.2;
    let mostly = |_: Shown| 0.97;
    // matrix, policy, duels, answered, mean delay
    type Case<'a> = (&'a str, &'a str, u64, &'a (dyn Fn(Shown) -> f64 + Sync), f64);
    let cases: [Case<'_>; 5] = [
        ("hard:2:1:0.05", "uniform", 3000, &mostly, 3000.0),
        ("arxiv-6", "uniform", 3000, &night_and_day, 3000.0),
        ("arxiv-6", "d-ts-verdict", 3000, &mostly, 400.0),
        ("arxiv-6", "d-ts-verdict", 3000, &seldom, 15_000.0),
        ("cyclic-4", "d-ts-plus", 3000, &night_and_day, 3000.0),
    ];
    for (matrix, policy, duels, answered, delay_ms) in cases {
        let scene = Scene { matrix, policy, duels, answered, delay_ms };
        let alarms = scene.play_all(runs(400));
        let name = |check: &str| format!("healthy {matrix} {policy}, {check}");
        let answers: Vec<_> = alarms.iter().map(|alarms| alarms.answers).collect();
        let sides: Vec<_> = alarms.iter().map(|alarms| alarms.sides).collect();
        let most = (runs(400) as usize / 400).max(3);
        assert!(report(&name("answers"), &answers).0 <= most, "{matrix} {policy}");
        assert!(report(&name("sides"), &sides).0 <= most, "{matrix} {policy}");
    }
}

#[test]
fn a_pair_that_loses_a_fifth_of_its_answers_is_found_and_named() {
    let answered = |shown: Shown| {
        if (shown.left.min(shown.right), shown.left.max(shown.right)) == (1, 3) {
            0.76
        } else {
            0.95
        }
    };
    let alarms = faulty("cyclic-4", 8000, &answered, runs(100));
    let answers: Vec<_> = alarms.iter().map(|alarms| alarms.answers).collect();
    let (raised, median) = report("pair loses 20 %", &answers);
    assert_eq!(raised, alarms.len());
    assert!(median < 3000, "{median}");
    let named = alarms.iter().filter(|alarms| alarms.named == Some((Kind::Pairs, (1, 3)))).count();
    println!("named {named}");
    assert!(named * 10 >= alarms.len() * 9, "{named}");
}

#[test]
fn with_two_rankers_a_ranker_that_fails_on_the_left_is_found() {
    let answered = |shown: Shown| if shown.left == 1 { 0.88 } else { 0.93 };
    let alarms = faulty("hard:2:1:0.05", 30_000, &answered, runs(40));
    let answers: Vec<_> = alarms.iter().map(|alarms| alarms.answers).collect();
    let (raised, _) = report("two rankers, one loses 5 % on the left", &answers);
    assert!(raised * 10 >= alarms.len() * 9, "{raised}");
    let named = alarms.iter().filter(|alarms| alarms.named == Some((Kind::Sides, (1, 0)))).count();
    assert!(named * 10 >= raised * 9, "{named}");
}

#[test]
fn a_side_that_loses_a_twentieth_of_its_wins_is_found() {
    let answered = |shown: Shown| if shown.left_wins { 0.9025 } else { 0.95 };
    let alarms = faulty("hard:2:1:0.05", 100_000, &answered, runs(20));
    let sides: Vec<_> = alarms.iter().map(|alarms| alarms.sides).collect();
    let (raised, _) = report("left loses 5 % of its wins", &sides);
    assert!(raised * 4 >= alarms.len() * 3, "{raised}");
}
