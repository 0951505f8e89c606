//! People act while they see the answers that wait, and never choose which answers count.

use std::collections::VecDeque;

use dueling_bandits::claims::control::{Claim, Goal};
use dueling_bandits::claims::ladder::Progress;
use dueling_bandits::evidence::{Target, TimedAnswer};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{Duel, Outcome, PolicyRng, PolicySpec, step_rng};
use rand::RngExt;

use super::at_most;

const TARGET: Target = Target { confidence: 0.95, margin: 0.0 };
/// Each page is in a cohort of its own.
const PAGE: i64 = 1000;
/// The control, another ranker, and the segment of a page.
const CONTROL: usize = 0;
const RANKER: usize = 1;
const PAIR: Duel = Duel { first: RANKER, second: CONTROL };
const SEGMENT: u8 = 1;

/// Somebody who enlists a dummy or retires it when the answers that wait look bad.
#[derive(Debug, Clone, Copy)]
struct Person {
    /// Pages that wait.
    waiting: i64,
    /// The lead that looks bad.
    bad: i32,
    changes: u32,
}

/// An experiment and a person who watches it.
struct Watched {
    run: Run,
    person: Person,
    /// By how much the ranker leads in the answers that wait, and each of them with its time.
    lead: i32,
    waiting: VecDeque<(i64, i32)>,
    now: i64,
    rng: PolicyRng,
}

impl Watched {
    fn new(seed: u64, rankers: usize, person: Person) -> Self {
        let policy = PolicySpec::from_text("uniform").expect("a policy");
        let policy = policy.start(Setup { rankers, seed });
        let mut run = Run::new(policy, TARGET, person.waiting * PAGE);
        run.look_for_drift();
        run.start_with_segments(1);
        let (waiting, rng) = (VecDeque::new(), step_rng(seed, 0));
        Self { run, person, lead: 0, waiting, now: 0, rng }
    }

    fn with_control(seed: u64, person: Person) -> Self {
        let mut watched = Self::new(seed, 2, person);
        watched.run.start_with_control(CONTROL, Goal::Best);
        watched
    }

    /// A page, whose first ranker wins with this probability.
    fn page(&mut self, duel: Duel, segment: u8, wins: f64) {
        let (won, nonce) = (self.rng.random_bool(wins), self.now as u128);
        let outcome = if won { Outcome::First } else { Outcome::Second };
        let answer = TimedAnswer {
            duel,
            outcome,
            score: None,
            issued_at: self.now,
            nonce,
            unit: None,
            segment,
        };
        self.run.observe_timed(&answer, None, 0, self.now);
        self.run.catch_up();
        let lead = if won { 1 } else { -1 };
        self.waiting.push_back((self.now, lead));
        self.lead += lead;
        self.now += PAGE;
        let complete = self.now - self.person.waiting * PAGE;
        self.run.complete(complete, self.now);
        while let Some((_, lead)) = self.waiting.pop_front_if(|first| first.0 < complete) {
            self.lead -= lead;
        }
    }

    /// Act if the answers that wait look bad: a lead in this direction.
    fn act(&mut self, direction: i32) {
        let Person { bad, changes, .. } = self.person;
        if changes == 0 || self.lead * direction <= bad {
            return;
        }
        self.person.changes -= 1;
        let at = self.now - 1;
        let dummy = self.run.roster().active().get(2).copied();
        match dummy {
            None => self.run.enlist(at).expect("room"),
            Some(dummy) => self.run.retire(dummy, at).expect("a dummy"),
        }
        (self.lead, self.waiting) = (0, VecDeque::new());
    }

    fn is_hurt(&self) -> bool {
        self.run.segments().is_some_and(|segments| segments.hurt_segments().next().is_some())
    }

    fn is_better(&self) -> bool {
        let claims = self.run.claims().expect("a control");
        matches!(claims.progress(RANKER, Claim::Better), Progress::Decided { .. })
    }
}

/// Whether "better" is ever said of a ranker that is not.
fn better_is_wrong(seed: u64, pages: u32, person: Person) -> bool {
    let mut watched = Watched::with_control(seed, person);
    (0..pages).any(|_| {
        watched.page(PAIR, 0, 0.5);
        watched.act(-1);
        watched.is_better()
    })
}

/// Whether "hurt" is ever said of a segment in which the winner does not lose.
fn hurt_is_wrong(seed: u64, pages: u32, person: Person) -> bool {
    let mut watched = Watched::with_control(seed, person);
    while watched.run.segments().is_some_and(|segments| segments.winner().is_none()) {
        watched.page(PAIR, 0, 0.9);
    }
    (watched.lead, watched.waiting) = (0, VecDeque::new());
    (0..pages).any(|_| {
        watched.page(PAIR, SEGMENT, 0.5);
        watched.act(1);
        watched.is_hurt()
    })
}

/// Whether drift is ever said of preferences that stay: the losses of the first half and the wins
/// of the second one look bad.
fn drift_is_wrong(seed: u64, pages: u32, person: Person) -> bool {
    let mut watched = Watched::with_control(seed, person);
    (0..pages).any(|page| {
        watched.page(PAIR, 0, 0.5);
        watched.act(if page < pages / 2 { -1 } else { 1 });
        watched.run.drift().is_some_and(|drift| drift.raised() > 0)
    })
}

fn wrong(runs: u64, is_wrong: impl Fn(u64) -> bool) -> u64 {
    (0..runs).filter(|&seed| is_wrong(seed)).count() as u64
}

const OFTEN: Person = Person { waiting: 100, bad: 5, changes: 400 };

#[test]
fn an_action_chooses_no_answers() {
    let person = Person { changes: 40, ..OFTEN };
    assert!(wrong(20, |seed| better_is_wrong(seed, 1000, person)) <= 2);
    assert!(wrong(10, |seed| hurt_is_wrong(seed, 1000, person)) <= 1);
    assert_eq!(wrong(8, |seed| drift_is_wrong(seed, 3000, person)), 0);
}

#[test]
fn without_a_control_the_rival_in_a_segment_comes_from_answers_that_count() {
    let mut watched = Watched::new(1, 3, OFTEN);
    for page in 0..OFTEN.waiting {
        let [often, less] = [Duel::new(0, 1), Duel::new(0, 2)];
        let (duel, wins) = if page % 2 == 0 { (often, 0.95) } else { (less, 0.8) };
        watched.page(duel, 0, wins);
    }
    // these wait when the winner becomes known, and will count as evidence
    while watched.run.verdict().winner().is_none() {
        watched.page(Duel::new(0, 1), SEGMENT, 0.0);
    }
    assert_eq!(watched.run.verdict().winner(), Some(0));
    assert_eq!(watched.run.segments().and_then(|segments| segments.rival(0)), Some(2));
}

/// The stake on "better" of each ranker but the first, while no answer of it counts.
fn stakes(run: &Run) -> Vec<f64> {
    let claims = run.claims().expect("a control");
    (1..run.roster().rankers()).map(|x| claims.ln_capital(x, Claim::Better).exp()).collect()
}

#[test]
fn the_claims_follow_each_change_in_the_order_of_issue() {
    let mut watched = Watched::new(1, 4, Person { waiting: 10, ..OFTEN });
    let pages = |watched: &mut Watched, count: u32| {
        (0..count).for_each(|_| watched.page(Duel::new(2, 3), 0, 0.5));
    };
    let is_near = |found: &[f64], expected: &[f64]| {
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
    };
    pages(&mut watched, 20);
    watched.run.change_control(CONTROL, Goal::Best, 20 * PAGE - 1);
    watched.run.enlist(20 * PAGE - 1).expect("room");
    pages(&mut watched, 2);
    // whoever makes these changes may have seen answers that count for the first ones
    watched.run.retire(3, 22 * PAGE - 1).expect("one of five");
    watched.run.change_control(CONTROL, Goal::Best, 22 * PAGE - 1);
    pages(&mut watched, 7);
    assert_eq!(watched.run.claims().expect("claims").control(), None, "earlier pages wait");
    let spec = PolicySpec::from_text("uniform").expect("a policy");
    let (setup, roster) = (Setup { rankers: 4, seed: 1 }, watched.run.roster().clone());
    let restored = Run::restore((&spec, setup), TARGET, roster, watched.run.saved());
    watched.run = restored.expect("its own state");
    pages(&mut watched, 1);
    let first = stakes(&watched.run);
    assert!(is_near(&first, &[0.5 / 3.0, 0.5 / 3.0, 0.5 / 3.0, 0.05]), "{first:?}");
    assert_eq!(watched.run.next_control(), Some(CONTROL));
    pages(&mut watched, 2);
    let again = stakes(&watched.run);
    assert!(is_near(&again, &[0.025 / 3.0, 0.025 / 3.0, 0.0, 0.025 / 3.0]), "{again:?}");
    assert_eq!(watched.run.next_control(), None);
}

#[test]
fn a_verdict_that_starts_again_takes_the_stakes_on_its_segments() {
    let mut watched = Watched::new(1, 2, OFTEN);
    let least = |watched: &Watched| watched.run.segments().expect("segments").least_pages();
    let before = least(&watched);
    watched.run.enlist(0).expect("room");
    (0..=OFTEN.waiting).for_each(|_| watched.page(PAIR, 0, 0.5));
    assert!(least(&watched) > before + 1, "whoever starts it again has seen what waits");
}

#[test]
#[ignore = "prints the figures of the laboratory's notes on claims"]
fn figures() {
    let print = |what: &str, runs: u64, is_wrong: &dyn Fn(u64) -> bool| {
        let wrong = wrong(runs, is_wrong);
        let at_least = 1.0 - at_most(runs - wrong, runs);
        println!("{what}: {wrong} of {runs}, {at_least:.4} to {:.4}", at_most(wrong, runs));
    };
    for (changes, bad) in [(0, 0), (3, 15), (5, 15), (10, 12), (400, 5)] {
        let person = Person { bad, changes, ..OFTEN };
        let is_wrong = |seed| better_is_wrong(seed, 4000, person);
        print(&format!("better, {changes} changes"), 2000, &is_wrong);
    }
    print("hurt", 300, &|seed| hurt_is_wrong(seed, 4000, OFTEN));
    print("drift", 200, &|seed| drift_is_wrong(seed, 10_000, OFTEN));
}
