//! What happens between a duel and its outcome, and the duels that wait for theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::RngExt;
use rand_distr::{Distribution, Geometric};

use dueling_bandits::{Answer, PolicyRng, Selection, TieRule};

/// How feedback reaches the policy. The default is the papers': at once, every time, never a tie.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// Probability that a page gets no click at all; drawn first.
    pub no_click: f64,
    /// Probability that a page with clicks is a tie; otherwise the preference matrix decides.
    pub ties: f64,
    /// What a tie means to the policy.
    pub tie_rule: TieRule,
    /// Probability that an outcome never comes. The duel stays in flight for as long as its delay,
    /// then expires.
    pub loss: f64,
    /// How long an outcome takes.
    pub delay: Delay,
    /// Outcomes that have arrived are delivered together, after every step that is a multiple of
    /// this; 1 at once.
    pub batch_steps: u64,
    /// Servers that share the log; each step one of them, drawn at random, hands out the duel, and
    /// one takes the outcome. At least 1.
    pub replicas: usize,
    /// Steps until a server has folded what another one has appended. What it appends itself, and
    /// all before that, it folds at once.
    pub lag: u64,
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            no_click: 0.0,
            ties: 0.0,
            tie_rule: TieRule::default(),
            loss: 0.0,
            delay: Delay::Steps(0),
            batch_steps: 1,
            replicas: 1,
            lag: 0,
        }
    }
}

/// How many further duels are selected before a duel's outcome is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    /// Always this many.
    Steps(u64),
    /// A geometrically distributed number (0, 1, 2, …) with this mean.
    Geometric {
        /// Mean number of steps.
        mean: f64,
    },
    /// This many duels are outstanding at any time: once there are so many, each step a uniformly
    /// drawn one of them is answered. 1 is no delay.
    Outstanding(usize),
}

impl Feedback {
    /// Whether every outcome is known before the next duel is selected.
    pub(super) fn is_immediate(&self) -> bool {
        self.batch_steps <= 1
            && self.replicas <= 1
            && matches!(self.delay, Delay::Steps(0) | Delay::Outstanding(0 | 1))
    }
}

/// A duel and what will be said about it; `None` when its outcome gets lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pending {
    pub selection: Selection,
    pub answer: Option<Answer>,
    /// The server that handed it out.
    pub issued_by: usize,
}

/// Duels whose outcome is not known yet.
#[derive(Debug)]
pub(super) struct Outstanding {
    delay: Delay,
    batch_steps: u64,
    geometric: Option<Geometric>,
    /// Answered, or with a known time of being so: by the step after which they are delivered, then
    /// in the order in which they were put here.
    dated: BinaryHeap<Reverse<Dated>>,
    /// Not answered yet, under [`Delay::Outstanding`].
    undated: Vec<Pending>,
    count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dated {
    due: u64,
    number: u64,
    pending: Pending,
}

impl Ord for Dated {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for Dated {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Outstanding {
    /// Nothing outstanding.
    pub fn new(feedback: &Feedback) -> Self {
        let geometric = match feedback.delay {
            // a mean of m failures before the first success is a success probability of 1/(m + 1)
            Delay::Geometric { mean } => Geometric::new(1.0 / (mean + 1.0)).ok(),
            Delay::Steps(_) | Delay::Outstanding(_) => None,
        };
        Self {
            delay: feedback.delay,
            batch_steps: feedback.batch_steps.max(1),
            geometric,
            dated: BinaryHeap::new(),
            undated: Vec::new(),
            count: 0,
        }
    }

    /// The duel of step `step` was shown.
    pub fn add(&mut self, step: u64, pending: Pending, rng: &mut PolicyRng) {
        match self.delay {
            Delay::Steps(steps) => self.date(step + steps, pending),
            Delay::Geometric { .. } => {
                let steps =
                    self.geometric.as_ref().map_or(0, |distribution| distribution.sample(rng));
                self.date(step.saturating_add(steps), pending);
            }
            Delay::Outstanding(_) => self.undated.push(pending),
        }
    }

    /// The next duel whose outcome is delivered after step `step`; `None` when all of them have
    /// been.
    pub fn next(&mut self, step: u64, rng: &mut PolicyRng) -> Option<Pending> {
        if let Delay::Outstanding(most) = self.delay
            && self.undated.len() >= most.max(1)
        {
            let answered = self.undated.swap_remove(rng.random_range(0..self.undated.len()));
            self.date(step, answered);
        }
        if self.dated.peek()?.0.due > step {
            return None;
        }
        let Reverse(Dated { pending, .. }) = self.dated.pop()?;
        Some(pending)
    }

    fn date(&mut self, due: u64, pending: Pending) {
        let due = due.div_ceil(self.batch_steps).saturating_mul(self.batch_steps);
        self.count += 1;
        self.dated.push(Reverse(Dated { due, number: self.count, pending }));
    }
}
