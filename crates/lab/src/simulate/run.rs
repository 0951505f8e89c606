//! One run of one policy, from the first step to the horizon.

use std::time::Duration;

use rand::{RngExt, SeedableRng};

use super::progress::Progress;
use super::replicas::{Pending, Replicas};
use super::tournament::Tournament;
use comparators::RunSeeds;
use comparators::environment::Environment;
use comparators::feedback::Outstanding;
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::Regret;
use dueling_bandits::{Bandit, PolicyRng, Selection};

/// Steps between two updates of the [`Progress`].
pub(super) const STEPS_PER_UPDATE: u64 = 256;

/// The result of a run. It is shorter than the horizon if the run was stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Cumulative regret at each checkpoint reached.
    pub regrets: Vec<f64>,
    pub steps: u64,
    pub time: Duration,
}

/// Runs the policy that `start` returns. `checkpoints` ascend and end with the horizon.
pub fn run(
    tournament: &Tournament,
    start: impl Fn(Setup) -> Box<dyn Bandit>,
    seeds: RunSeeds,
    checkpoints: &[u64],
    progress: &Progress,
) -> Run {
    let started = processor_time();
    let rankers = tournament.matrix.rankers();
    let mut duels = Duels {
        replicas: Replicas::new(&tournament.feedback, seeds.folding, || {
            start(Setup { rankers, seed: seeds.folding })
        }),
        environment: match tournament.shuffle_rankers {
            true => Environment::shuffled(&tournament.matrix, &tournament.feedback, seeds),
            false => Environment::new(&tournament.matrix, &tournament.feedback, seeds),
        },
        selecting: PolicyRng::seed_from_u64(seeds.selecting),
        appearances: vec![0; rankers],
        weak_regret: tournament.regret.is_weak().then_some((&tournament.regret, 0.0)),
    };
    let mut outstanding = Outstanding::new(&tournament.feedback);

    let mut regrets = Vec::with_capacity(checkpoints.len());
    let mut steps = 0;
    'all: for &checkpoint in checkpoints {
        while steps < checkpoint {
            let before = steps;
            let pause = checkpoint.min(steps + STEPS_PER_UPDATE);
            while steps < pause && !progress.is_stopped() {
                steps += 1;
                duels.step(steps, &mut outstanding);
            }
            progress.advance(steps - before);
            if steps < pause {
                break 'all;
            }
        }
        regrets.push(match &duels.weak_regret {
            Some((_, sum)) => *sum,
            None => tournament.regret.of_appearances(&duels.appearances),
        });
    }
    Run { regrets, steps, time: processor_time().saturating_sub(started) }
}

/// The processor time of this thread. Unlike wall time, it does not include other work on the
/// machine.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The servers and their searchers.
struct Duels<'a> {
    replicas: Replicas,
    environment: Environment<'a>,
    selecting: PolicyRng,
    /// How often each ranker was shown, by its index in the matrix. Regret that is not weak needs
    /// nothing else.
    appearances: Vec<u64>,
    /// Weak regret and its sum so far.
    weak_regret: Option<(&'a Regret, f64)>,
}

impl Duels<'_> {
    /// One step, and the outcomes that arrive after it. A self-duel needs no feedback and is
    /// appended at once.
    fn step(&mut self, step: u64, outstanding: &mut Outstanding<Pending>) {
        let issued_by = self.any_replica();
        let selection = self.show(issued_by);
        if selection.duel.is_self() {
            self.replicas.self_duel(step, issued_by, selection.duel.first);
        } else {
            let answer = self.environment.answer(selection.duel);
            self.replicas.issued(issued_by, selection.duel);
            outstanding.add(
                step,
                Pending { selection, answer, issued_by },
                &mut self.environment.rng,
            );
        }
        while let Some(pending) = outstanding.next(step, &mut self.environment.rng) {
            let receiver = self.any_replica();
            self.replicas.received(step, receiver, pending);
        }
        self.replicas.end_step(step);
    }

    /// The server that a load balancer sends a request to.
    fn any_replica(&mut self) -> usize {
        match self.replicas.count() {
            1 => 0,
            count => self.environment.rng.random_range(0..count),
        }
    }

    fn show(&mut self, replica: usize) -> Selection {
        let (policy, in_flight) = self.replicas.of(replica);
        let selection = policy.select(in_flight, &mut self.selecting);
        let [first, second] =
            [selection.duel.first, selection.duel.second].map(|i| self.environment.name(i));
        self.appearances[first] += 1;
        self.appearances[second] += 1;
        if let Some((regret, sum)) = &mut self.weak_regret {
            *sum += regret.of_step(first, second);
        }
        selection
    }
}
