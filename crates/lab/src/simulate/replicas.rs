//! The servers of a simulation. They share one log, and each folds it into its own state, possibly
//! with a lag.

use std::collections::VecDeque;

use comparators::feedback::Feedback;
use dueling_bandits::{Answer, Bandit, Duel, InFlight, Selection, TieRule};

/// A duel that waits for its outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub selection: Selection,
    /// The answer; `None` if it will be lost.
    pub answer: Option<Answer>,
    /// The server that issued the duel.
    pub issued_by: usize,
}

#[derive(Debug)]
struct Replica {
    policy: Box<dyn Bandit>,
    /// The duels it has issued without folding their outcome. Other servers do not know them.
    in_flight: InFlight,
    /// Number of log entries folded.
    position: u64,
}

/// An entry of the log.
#[derive(Debug, Clone, Copy)]
enum Event {
    Outcome { selection: Selection, answer: Answer, issued_by: usize },
    SelfDuel { ranker: usize },
}

/// The servers, and the log entries that not all of them have folded.
#[derive(Debug)]
pub(super) struct Replicas {
    replicas: Vec<Replica>,
    /// Each entry with the step after which it was appended.
    log: VecDeque<(u64, Event)>,
    /// Number of entries before those in `log`.
    dropped: u64,
    lag: u64,
    tie_rule: TieRule,
    folding_seed: u64,
}

impl Replicas {
    /// The servers of `feedback`, all in the state that `start` returns.
    pub fn new(
        feedback: &Feedback,
        folding_seed: u64,
        start: impl Fn() -> Box<dyn Bandit>,
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

    pub fn count(&self) -> usize {
        self.replicas.len()
    }

    /// The state of one server, and its duels in flight.
    pub fn of(&self, replica: usize) -> (&dyn Bandit, &InFlight) {
        let replica = &self.replicas[replica];
        (&*replica.policy, &replica.in_flight)
    }

    /// A server has issued a duel that waits for its outcome.
    pub fn issued(&mut self, replica: usize, duel: Duel) {
        self.replicas[replica].in_flight.add(duel.first, duel.second, 1);
    }

    /// The outcome of a duel arrives at a server after step `step`, or is lost.
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

    /// A server has shown a self-duel.
    pub fn self_duel(&mut self, step: u64, replica: usize, ranker: usize) {
        self.append(step, replica, Event::SelfDuel { ranker });
    }

    /// Appends an entry. The server that appends it folds the whole log.
    fn append(&mut self, step: u64, replica: usize, event: Event) {
        self.log.push_back((step, event));
        self.fold(replica, self.dropped + self.log.len() as u64);
    }

    /// Ends step `step`: every server folds the entries that are old enough.
    pub fn end_step(&mut self, step: u64) {
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
                    let steps = replica.policy.tally().steps();
                    let outcome = self.tie_rule.resolve(answer, self.folding_seed, steps);
                    replica.policy.observe(&selection.observed(outcome));
                }
            }
        }
    }
}
