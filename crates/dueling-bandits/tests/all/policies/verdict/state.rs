//! What the state of D-TS-Verdict may depend on: the log alone. Not on the selections, not on when
//! it was saved and restored, and as to the verdict not even on the policy's own parameters.

use dueling_bandits::evidence::{Target, VerdictTracker, verdict};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{
    InFlight, Observation, Outcome, Policy, PolicyRng, PolicySpec, Roster, Tally,
};
use rand::RngExt;

use super::super::support::{answer, rng};

const RANKERS: usize = 4;
const TARGET: Target = Target { confidence: 0.9, margin: 0.0 };
const TEXT: &str = "d-ts-verdict:confidence=0.9";

/// One entry of a log.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Answer(Observation),
    SelfDuels(usize, u64),
    Enlist,
    Retire(usize),
}

fn fold(policy: &mut dyn Policy, entry: &Entry) {
    match *entry {
        Entry::Answer(observation) => policy.observe(&observation),
        Entry::SelfDuels(ranker, count) => policy.observe_self_duels(ranker, count),
        Entry::Enlist => policy.enlist().expect("another ranker"),
        Entry::Retire(ranker) => policy.retire(ranker).expect("a known ranker"),
    }
}

fn spec(text: &str) -> PolicySpec {
    PolicySpec::from_text(text).expect("a policy")
}

fn start(text: &str, seed: u64) -> Box<dyn Policy> {
    spec(text).start(Setup { rankers: RANKERS, seed })
}

fn restored(text: &str, policy: &dyn Policy) -> Box<dyn Policy> {
    let setup = Setup { rankers: RANKERS, seed: 0 };
    spec(text).restore(setup, policy.format(), &policy.save()).expect("its own state")
}

/// The saved state: tally, retired rankers, verdict, plan, steps at the plan, whether it is stale,
/// how well the records agree with the pairs, and the half wins at the verdict against each rival.
type Saved = (Tally, Vec<u16>, verdict::State, SavedPlan, u64, bool, f64, Vec<(u16, u32, u32)>);
/// Leader, duels missing at first, whether it needs losses, and the claims: winner, loser, target
/// and regret.
type SavedPlan = (Option<u16>, f64, bool, Vec<(u16, u16, f64, f64)>);

fn saved(policy: &dyn Policy) -> Saved {
    postcard::from_bytes(&policy.save()).expect("the saved layout")
}

fn verdict_of(policy: &dyn Policy) -> verdict::State {
    saved(policy).2
}

fn has_verdict(policy: &dyn Policy) -> bool {
    VerdictTracker::restore(TARGET, verdict_of(policy), RANKERS).verdict().is_some()
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
    fn step(&mut self, policy: &dyn Policy, ties: bool) -> Vec<Entry> {
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
        let mut entries = requests.step(&*policy, changes);
        match step * 3 / steps {
            1 if changes && step * 3 % steps < 3 => entries.push(Entry::Enlist),
            2 if changes && step * 3 % steps < 3 => entries.push(Entry::Retire(1)),
            _ => {}
        }
        entries.iter().for_each(|entry| fold(&mut *policy, entry));
        log.extend(entries);
    }
    log
}

/// A policy that is saved and restored at every step selects the same duels as one that is not.
#[test]
fn a_policy_restored_at_every_step_selects_the_same_duels() {
    let mut verdicts = 0;
    for seed in 0..3 {
        let mut policy = start(TEXT, seed);
        let mut other = restored(TEXT, &*policy);
        let mut requests = Requests::new(seed);
        for step in 0..3000 {
            let mut same = requests.rng.clone();
            let duel = other.select(&requests.in_flight, &mut same).duel;
            let mut original = requests.rng.clone();
            assert_eq!(policy.select(&requests.in_flight, &mut original).duel, duel, "{step}");
            assert_eq!(original, same, "step {step}: draws");
            assert_eq!(policy.champion(), other.champion(), "step {step}");
            assert_eq!(policy.save(), other.save(), "step {step}");
            let mut entries = requests.step(&*policy, true);
            match step {
                700 | 2000 => entries.push(Entry::Enlist),
                1400 => entries.push(Entry::Retire(1)),
                2400 => entries.push(Entry::Retire(policy.champion())),
                // so long after a verdict the winner has to prove itself again
                _ if step % 100 == 99 && has_verdict(&*policy) => {
                    entries.push(Entry::SelfDuels(policy.champion(), 1_000_000));
                }
                _ => {}
            }
            for entry in &entries {
                let decided = has_verdict(&*policy);
                fold(&mut *policy, entry);
                verdicts += u32::from(!decided && has_verdict(&*policy));
                fold(&mut *other, entry);
                other = restored(TEXT, &*other);
            }
        }
    }
    assert!(verdicts > 0);
}

/// A log that is read again, in one go or with postponed work, gives the same state to the byte.
#[test]
fn the_state_is_a_function_of_the_log() {
    for seed in 0..3 {
        let log = log(seed, 2400, true);
        let (mut first, mut second) = (start(TEXT, seed), start(TEXT, seed + 1));
        for (at, entry) in log.iter().enumerate() {
            fold(&mut *first, entry);
            match entry {
                Entry::Answer(observation) => second.observe_deferred(observation),
                _ => {
                    second.catch_up();
                    fold(&mut *second, entry);
                }
            }
            if at.is_multiple_of(50) {
                second.catch_up();
                let duel = |policy: &dyn Policy| policy.select(&InFlight::new(), &mut rng(9)).duel;
                assert_eq!(duel(&*first), duel(&*second), "entry {at}");
                assert_eq!(first.save(), second.save(), "entry {at}");
            }
        }
    }
}

/// The verdict of a policy is that of the stopping rule alone on the same log, whatever the
/// parameters of the policy are.
#[test]
fn the_verdict_is_that_of_the_rule_on_the_log() {
    let mut verdicts = 0;
    for seed in 0..3 {
        let log = log(seed, 3000, true);
        let mut decided = false;
        let mut policies =
            [TEXT, "d-ts-verdict:confidence=0.9,urgency=0", "d-ts-verdict:confidence=0.9,alpha=2"]
                .map(|text| start(text, seed));
        let mut tracker = VerdictTracker::new(TARGET, RANKERS);
        let (mut tally, mut roster) = (Tally::new(RANKERS), Roster::new(RANKERS));
        for (at, entry) in log.iter().enumerate() {
            policies.iter_mut().for_each(|policy| fold(&mut **policy, entry));
            match *entry {
                Entry::Answer(Observation { duel, outcome, .. }) => {
                    tally.record(duel, outcome);
                    if roster.is_active(duel.first) && roster.is_active(duel.second) {
                        tracker.observe(&tally, roster.active(), duel);
                    }
                }
                Entry::SelfDuels(_, count) => tally.skip(count),
                Entry::Enlist => {
                    tally.enlist();
                    roster.enlist().expect("another ranker");
                    tracker.roster_changed(&tally, roster.active().len());
                }
                Entry::Retire(ranker) => {
                    roster.retire(ranker).expect("a known ranker");
                    tracker.roster_changed(&tally, roster.active().len());
                }
            }
            decided |= tracker.verdict().is_some();
            if at.is_multiple_of(16) {
                for policy in &policies {
                    assert_eq!(&verdict_of(&**policy), tracker.state(), "entry {at}");
                }
            }
        }
        verdicts += u32::from(decided);
    }
    assert!(verdicts > 0);
}

/// A policy from the counts alone has the verdict of these counts, and selects as one that was
/// restored from its state.
#[test]
fn a_policy_from_counts_has_the_verdict_of_the_counts() {
    let mut verdicts = 0;
    for seed in 0..3 {
        let log = log(seed, 1500, false);
        let mut policy = start(TEXT, seed);
        for (at, entry) in log.iter().enumerate() {
            fold(&mut *policy, entry);
            if !at.is_multiple_of(40) {
                continue;
            }
            let tally = policy.tally();
            let row = |i| (0..RANKERS).map(|j| tally.half_wins(i, j) / 2).collect();
            let wins: Vec<Vec<u32>> = (0..RANKERS).map(row).collect();
            let of_counts = spec(TEXT).from_counts(&wins, Some(tally.steps())).expect("counts");
            assert_eq!(of_counts.tally(), tally);
            let active: Vec<usize> = (0..RANKERS).collect();
            let judged = VerdictTracker::of_counts(TARGET, tally, &active);
            assert_eq!(&verdict_of(&*of_counts), judged.state(), "entry {at}");
            verdicts += u32::from(judged.verdict().is_some());
            let again = restored(TEXT, &*of_counts);
            for seed in 0..8 {
                let duel =
                    |policy: &dyn Policy| policy.select(&InFlight::new(), &mut rng(seed)).duel;
                assert_eq!(duel(&*of_counts), duel(&*again), "entry {at}");
            }
        }
    }
    assert!(verdicts > 0);
}
