//! The servers of a simulation: each folds the one log into a state of its own, and some are
//! behind.

use std::collections::VecDeque;

use super::feedback::{Feedback, Pending};
use dueling_bandits::{Answer, Duel, InFlight, Observation, Policy, Selection, TieRule};

/// One server.
#[derive(Debug)]
struct Replica {
    policy: Box<dyn Policy>,
    /// What it has handed out and has not folded the outcome of. Nobody else knows of it.
    in_flight: InFlight,
    /// Log entries folded.
    position: u64,
}

/// What stands in the log.
#[derive(Debug, Clone, Copy)]
enum Event {
    Outcome { selection: Selection, answer: Answer, issued_by: usize },
    SelfDuel { ranker: usize },
}

/// The servers, and what of the log not all of them have folded.
#[derive(Debug)]
pub(super) struct Replicas {
    replicas: Vec<Replica>,
    /// By the step after which it was appended.
    log: VecDeque<(u64, Event)>,
    /// Entries before those in `log`.
    dropped: u64,
    lag: u64,
    tie_rule: TieRule,
    folding_seed: u64,
}

impl Replicas {
    /// As many servers as the feedback says, all in the state that `start` makes.
    pub fn new(
        feedback: &Feedback,
        folding_seed: u64,
        start: impl Fn() -> Box<dyn Policy>,
    ) -> Self {
        let replica = || Replica { policy: start(), in_flight: InFlight::new(), position: 0 };
        Self {
            replicas: (0..feedback.replicas.max(1)).map(|_| replica()).collect(),
            log: VecDeque::new(),
            dropped: 0,
            lag: feedback.lag,
            tie_rule: feedback.tie_rule,
            folding_seed,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.replicas.len()
    }

    /// The state of one of them, and what it has in flight.
    pub fn of(&self, replica: usize) -> (&dyn Policy, &InFlight) {
        let replica = &self.replicas[replica];
        (&*replica.policy, &replica.in_flight)
    }

    /// The only server has shown a duel, and its outcome is there already, or never comes.
    pub fn at_once(&mut self, selection: Selection, answer: Option<Answer>) {
        let policy = &mut *self.replicas[0].policy;
        if selection.duel.is_self() {
            policy.observe_self_duels(selection.duel.first, 1);
        } else if let Some(answer) = answer {
            observe(policy, self.tie_rule, self.folding_seed, selection, answer);
        }
    }

    /// A server has handed out a duel that waits for its outcome.
    pub fn issued(&mut self, replica: usize, duel: Duel) {
        self.replicas[replica].in_flight.add(duel.first, duel.second, 1);
    }

    /// A duel's outcome comes to a server after step `step`, or will never come.
    pub fn received(&mut self, step: u64, receiver: usize, pending: Pending) {
        let Pending { selection, answer, issued_by } = pending;
        match answer {
            Some(answer) => {
                self.append(step, receiver, Event::Outcome { selection, answer, issued_by })
            }
            None => {
                let Duel { first, second } = selection.duel;
                self.replicas[issued_by].in_flight.remove(first, second, 1);
            }
        }
    }

    /// A server has shown one ranker alone.
    pub fn self_duel(&mut self, step: u64, replica: usize, ranker: usize) {
        self.append(step, replica, Event::SelfDuel { ranker });
    }

    /// Whoever appends has the whole log.
    fn append(&mut self, step: u64, replica: usize, event: Event) {
        self.log.push_back((step, event));
        self.fold(replica, self.dropped + self.log.len() as u64);
    }

    /// Step `step` is over: everybody folds what is old enough.
    pub fn follow(&mut self, step: u64) {
        let old_enough =
            self.log.partition_point(|(appended, _)| appended.saturating_add(self.lag) <= step);
        for replica in 0..self.replicas.len() {
            self.fold(replica, self.dropped + old_enough as u64);
        }
        self.log.drain(..old_enough);
        self.dropped += old_enough as u64;
    }

    fn fold(&mut self, number: usize, up_to: u64) {
        let replica = &mut self.replicas[number];
        while replica.position < up_to {
            let (_, event) = self.log[(replica.position - self.dropped) as usize];
            replica.position += 1;
            match event {
                Event::SelfDuel { ranker } => replica.policy.observe_self_duels(ranker, 1),
                Event::Outcome { selection, answer, issued_by } => {
                    if issued_by == number {
                        replica.in_flight.remove(selection.duel.first, selection.duel.second, 1);
                    }
                    observe(
                        &mut *replica.policy,
                        self.tie_rule,
                        self.folding_seed,
                        selection,
                        answer,
                    );
                }
            }
        }
    }
}

fn observe(
    policy: &mut dyn Policy,
    ties: TieRule,
    seed: u64,
    selection: Selection,
    answer: Answer,
) {
    let Selection { duel, batch, ticket } = selection;
    let outcome = ties.resolve(answer, seed, policy.tally().steps());
    policy.observe(&Observation { duel, outcome, batch, ticket });
}
