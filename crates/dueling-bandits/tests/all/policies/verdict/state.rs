//! A run depends on the log alone. Not on the selections, not on when it was saved and
//! restored, and as to the verdict not even on the policy's own parameters.

use dueling_bandits::evidence::Target;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, InFlight, Observation, Outcome, PolicyRng, PolicySpec};
use rand::RngExt;

use super::super::support::{answer, rng};

const RANKERS: usize = 4;
const TARGET: Target = Target { confidence: 0.9, margin: 0.01 };
const TEXT: &str = "d-ts-verdict:confidence=0.9";

/// One entry of a log.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Answer(Observation),
    SelfDuels(usize, u64),
    Enlist,
    Retire(usize),
}

fn fold(run: &mut Run, entry: &Entry) {
    match *entry {
        Entry::Answer(observation) => run.observe(&observation),
        Entry::SelfDuels(ranker, count) => run.observe_self_duels(ranker, count),
        Entry::Enlist => run.enlist(0).expect("another ranker"),
        Entry::Retire(ranker) => run.retire(ranker, 0).expect("a known ranker"),
    }
}

fn spec(text: &str) -> PolicySpec {
    PolicySpec::from_text(text).expect("a policy")
}

fn start(text: &str, seed: u64) -> Run {
    Run::of(spec(text).start(Setup { rankers: RANKERS, seed }))
}

fn saved(run: &Run) -> Vec<u8> {
    postcard::to_stdvec(&run.saved()).expect("bytes")
}

fn restored(run: &Run) -> Run {
    let setup = Setup { rankers: RANKERS, seed: 0 };
    let state = postcard::from_bytes(&saved(run)).expect("the layout");
    let run = Run::restore((&spec(TEXT), setup), TARGET, run.roster().clone(), state);
    run.expect("its own state")
}

/// Duels in flight, and what answers them.
struct Requests {
    in_flight: InFlight,
    waiting: Vec<(usize, usize)>,
    rng: PolicyRng,
    matrix: PreferenceMatrix,
}

impl Requests {
    fn new(seed: u64) -> Self {
        let matrix =
            PreferenceMatrix::from_pairs(RANKERS + 2, |i, j| if i + 3 == j { 0.35 } else { 0.65 });
        Self {
            in_flight: InFlight::new(),
            waiting: Vec::new(),
            rng: rng(seed),
            matrix: matrix.expect("probabilities"),
        }
    }

    /// Select a duel, and return what is to be folded then.
    fn step(&mut self, policy: &Run, ties: bool) -> Vec<Entry> {
        let duel = policy.select(&self.in_flight, &mut self.rng).duel;
        let mut entries = Vec::new();
        if duel.is_self() {
            entries.push(Entry::SelfDuels(duel.first, 1));
        } else {
            self.in_flight.add(duel.first, duel.second, 1);
            self.waiting.push((duel.first, duel.second));
        }
        while self.waiting.len() > 6 || !self.waiting.is_empty() && self.rng.random_range(0..6) == 0
        {
            let at = self.rng.random_range(0..self.waiting.len());
            let (i, j) = self.waiting.swap_remove(at);
            self.in_flight.remove(i, j, 1);
            let won = self.rng.random_bool(self.matrix.win_probability(i, j));
            let outcome = match self.rng.random_range(0..20) {
                0 if ties => Outcome::Half,
                1 if ties => Outcome::Void,
                _ if won => Outcome::First,
                _ => Outcome::Second,
            };
            entries.push(Entry::Answer(answer(i, j, outcome)));
        }
        entries
    }
}

/// The log of a run. The roster changes twice, or never.
fn log(seed: u64, steps: usize, changes: bool) -> Vec<Entry> {
    let mut policy = start(TEXT, seed);
    let mut requests = Requests::new(seed);
    let mut log = Vec::new();
    for step in 0..steps {
        let mut entries = requests.step(&policy, changes);
        match step * 3 / steps {
            1 if changes && step * 3 % steps < 3 => entries.push(Entry::Enlist),
            2 if changes && step * 3 % steps < 3 => {
                entries.extend([Entry::Retire(1), Entry::Retire(policy.champion())]);
            }
            _ => {}
        }
        entries.iter().for_each(|entry| fold(&mut policy, entry));
        log.extend(entries);
    }
    log
}

/// A log that is read again gives the same state to the byte, and the verdict that the stopping
/// rule gives, whatever the parameters of the policy are, and however often it is restored.
#[test]
fn the_state_is_a_function_of_the_log() {
    let mut verdicts = 0;
    for seed in 0..3 {
        let log = log(seed, 3000, true);
        let (mut first, mut second) = (start(TEXT, seed), start(TEXT, seed + 1));
        let other = spec("d-ts-verdict:alpha=2").start(Setup { rankers: RANKERS, seed });
        let mut other = Run::new(other, TARGET, 0);
        let mut decided = false;
        for (at, entry) in log.iter().enumerate() {
            [&mut first, &mut second, &mut other].into_iter().for_each(|run| fold(run, entry));
            decided |= first.verdict().verdict().is_some();
            if at.is_multiple_of(16) {
                let select = |run: &Run| run.select(&InFlight::new(), &mut rng(at as u64));
                assert_eq!(select(&first), select(&second), "entry {at}");
                assert_eq!(saved(&first), saved(&second), "entry {at}");
                assert_eq!(first.champion(), second.champion(), "entry {at}");
                assert_eq!(first.verdict().state(), other.verdict().state(), "entry {at}");
                second = restored(&second);
            }
        }
        verdicts += u32::from(decided);
    }
    assert!(verdicts > 0);
}
