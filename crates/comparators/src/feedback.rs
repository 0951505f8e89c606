//! How feedback reaches a policy: ties, pages without clicks, loss and delay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

use rand::RngExt;
use rand_distr::{Distribution, Geometric};

use dueling_bandits::{PolicyRng, TieRule};

/// How feedback reaches the policy. The default is the setting of the papers: immediate, never lost
/// and without ties.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// Probability that a page gets no click. It is drawn first.
    pub no_click: f64,
    /// Probability that a page with clicks is a tie. Otherwise the preference matrix decides.
    pub ties: f64,
    /// How the policy counts a tie.
    pub tie_rule: TieRule,
    /// Probability that an outcome is lost. The duel stays in flight for its delay, then expires.
    pub loss: f64,
    pub delay: Delay,
    /// Outcomes are delivered together, after every step that is a multiple of this number. With 1,
    /// they are delivered at once.
    pub batch_steps: u64,
    /// Number of servers that share the log, at least 1. In each step, a random server issues the
    /// duel, and a random server receives the outcome.
    pub replicas: usize,
    /// Number of steps until a server folds the entries of other servers. When a server appends an
    /// entry itself, it folds the whole log at once.
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

/// The number of further duels that are selected before the outcome of a duel is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Delay {
    Steps(u64),
    /// A geometrically distributed number (0, 1, 2, …) with this mean.
    Geometric {
        mean: f64,
    },
    /// This many duels are outstanding at any time. Once the number is reached, one of them, drawn
    /// uniformly, is answered in each step. 1 means no delay.
    Outstanding(usize),
}

impl FromStr for Delay {
    type Err = String;

    /// `N` or `geometric:MEAN`, in steps.
    fn from_str(text: &str) -> Result<Self, String> {
        const MAX_STEPS: u64 = 1_000_000;
        let wrong =
            || format!("it must be a number of steps from 0 to {MAX_STEPS}, or geometric:MEAN");
        match text.split_once(':') {
            None => match text.parse() {
                Ok(steps) if steps <= MAX_STEPS => Ok(Self::Steps(steps)),
                _ => Err(wrong()),
            },
            Some(("geometric", mean)) => match mean.parse() {
                Ok(mean) if (0.0..=MAX_STEPS as f64).contains(&mean) => {
                    Ok(Self::Geometric { mean })
                }
                _ => Err(format!(
                    "the mean `{mean}` must be a number of steps from 0 to {MAX_STEPS}"
                )),
            },
            Some(_) => Err(wrong()),
        }
    }
}

/// The duels that wait for their outcomes, each with what its caller keeps of it.
#[derive(Debug)]
pub struct Outstanding<T> {
    delay: Delay,
    batch_steps: u64,
    geometric: Option<Geometric>,
    /// Duels with a known delivery time, by the step after which they are delivered and then in the
    /// order of insertion.
    dated: BinaryHeap<Reverse<Dated<T>>>,
    /// Duels without a delivery time, under [`Delay::Outstanding`].
    undated: Vec<T>,
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Dated<T> {
    due: u64,
    number: u64,
    pending: T,
}

impl<T> Ord for Dated<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl<T> PartialEq for Dated<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Dated<T> {}

impl<T> PartialOrd for Dated<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Outstanding<T> {
    /// No duels, whose outcomes will come like this.
    pub fn new(feedback: &Feedback) -> Self {
        let geometric = match feedback.delay {
            // A mean of m failures before the first success is a success probability of 1/(m + 1).
            Delay::Geometric { mean } => Geometric::new(1.0 / (mean + 1.0)).ok(),
            Delay::Steps(_) | Delay::Outstanding(_) => None,
        };
        Self {
            delay: match feedback.delay {
                Delay::Outstanding(0 | 1) => Delay::Steps(0),
                delay => delay,
            },
            batch_steps: feedback.batch_steps.max(1),
            geometric,
            dated: BinaryHeap::new(),
            undated: Vec::new(),
            count: 0,
        }
    }

    /// Adds the duel that was shown in step `step`.
    pub fn add(&mut self, step: u64, pending: T, rng: &mut PolicyRng) {
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

    /// The next duel whose outcome is delivered after step `step`; `None` when there are no more.
    pub fn next(&mut self, step: u64, rng: &mut PolicyRng) -> Option<T> {
        if let Delay::Outstanding(most) = self.delay
            && self.undated.len() >= most
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

    fn date(&mut self, due: u64, pending: T) {
        let due = due.div_ceil(self.batch_steps).saturating_mul(self.batch_steps);
        self.count += 1;
        self.dated.push(Reverse(Dated { due, number: self.count, pending }));
    }
}
