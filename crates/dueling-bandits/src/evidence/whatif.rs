//! What another policy would have cost on the same searchers, estimated from the answers that were
//! given.
//!
//! The queue-based evaluator of Mandel, Liu, Brunskill and Popović, "Offline evaluation of online
//! reinforcement learning algorithms", AAAI 2016: the other policy runs from its beginning, and
//! each pair that it asks for is answered by one of that pair's own answers that were not used yet,
//! drawn at random. A pair's answers are alike in distribution whatever policy asked for them, so,
//! unlike with importance weights or rejection (Li, Chu, Langford and Wang, WSDM 2011), it need not
//! be known how probable each logged duel was. The price: once a pair's answers are used up nothing
//! more can be said, and only as many steps are priced as every run could make.

use rand::RngExt;

use crate::pairs::pair_index;
use crate::{Answer, Duel, InFlight, Observation, Policy, PolicyRng, TieRule};

/// The answers of each pair that were not used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    rankers: usize,
    /// Triangular: the one with the lower index won, the other won, ties, no click.
    left: Vec<[u64; 4]>,
}

impl Answers {
    /// The answers that `of` gives for each pair `(low, high)`: wins of the low, wins of the high,
    /// ties, no click.
    pub fn new(rankers: usize, of: impl Fn(usize, usize) -> [u64; 4]) -> Self {
        let pairs = (1..rankers).flat_map(|high| (0..high).map(move |low| (low, high)));
        Self { rankers, left: pairs.map(|(low, high)| of(low, high)).collect() }
    }

    /// `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }

    /// Answers over all pairs.
    pub fn total(&self) -> u64 {
        self.left.iter().flatten().sum()
    }

    /// One of the answers of a pair, uniformly; `None` when they are used up.
    fn take(&mut self, duel: Duel, rng: &mut PolicyRng) -> Option<Answer> {
        let left = &mut self.left[pair_index(duel.first, duel.second)];
        let total: u64 = left.iter().sum();
        if total == 0 {
            return None;
        }
        let mut pick = rng.random_range(0..total);
        let at = left.iter().position(|&count| {
            let here = pick < count;
            pick = pick.saturating_sub(count);
            here
        })?;
        left[at] -= 1;
        Some(match (at, duel.first < duel.second) {
            (0, true) | (1, false) => Answer::First,
            (0, false) | (1, true) => Answer::Second,
            (2, _) => Answer::Tie,
            _ => Answer::None,
        })
    }
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// Steps made.
    pub steps: u64,
    /// Places on pages of each ranker.
    pub shown: Vec<u64>,
    /// The pair whose answers were used up; `None` when all steps were made.
    pub used_up: Option<Duel>,
}

/// Run `policy`, which has seen nothing yet, for up to `steps` steps on `answers`.
pub fn run(
    policy: &mut dyn Policy,
    mut answers: Answers,
    ties: TieRule,
    seed: u64,
    steps: u64,
    rng: &mut PolicyRng,
) -> Course {
    let mut course = Course { steps: 0, shown: vec![0; answers.rankers], used_up: None };
    let in_flight = InFlight::new();
    while course.steps < steps {
        let selection = policy.select(&in_flight, rng);
        let duel = selection.duel;
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            let Some(answer) = answers.take(duel, rng) else {
                course.used_up = Some(duel);
                return course;
            };
            let outcome = ties.resolve(answer, seed, policy.tally().steps());
            let (batch, ticket) = (selection.batch, selection.ticket);
            policy.observe(&Observation { duel, outcome, batch, ticket });
        }
        course.shown[duel.first] += 1;
        course.shown[duel.second] += 1;
        course.steps += 1;
    }
    course
}
