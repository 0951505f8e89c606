//! The duels that another policy would have selected, estimated from recorded answers.
//!
//! The queue-based evaluator of Mandel, Liu, Brunskill and Popović, "Offline evaluation of online
//! reinforcement learning algorithms", AAAI 2016. The other policy starts from its initial state.
//! Each pair that it selects is answered by one of that pair's recorded answers, drawn at random
//! without replacement.
//!
//! The answers of a pair have the same distribution under every policy. The probability of each
//! recorded duel is therefore not needed, unlike with importance weights or rejection (Li, Chu,
//! Langford and Wang, WSDM 2011). The price: a run ends when the answers of a selected pair are
//! used up, so that runs can be compared only up to the end of the shortest.

use rand::RngExt;

use crate::pairs::pair_index;
use crate::{Answer, Duel, InFlight, Policy, PolicyRng, TieRule};

/// The recorded answers of each pair that were not used yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    rankers: usize,
    /// In the order of [`pair_index`]: wins of the lower index, wins of the higher, ties, no click.
    left: Vec<[u64; 4]>,
}

impl Answers {
    /// The answers that `of` gives for each pair `(low, high)`: wins of the lower index, wins of
    /// the higher, ties, no click.
    pub fn new(rankers: usize, of: impl Fn(usize, usize) -> [u64; 4]) -> Self {
        let pairs = (1..rankers).flat_map(|high| (0..high).map(move |low| (low, high)));
        Self { rankers, left: pairs.map(|(low, high)| of(low, high)).collect() }
    }

    /// `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }

    /// Number of answers over all pairs.
    pub fn total(&self) -> u64 {
        self.left.iter().flatten().sum()
    }

    /// Remove a random answer of a pair; `None` when all are used up.
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

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffPolicyRun {
    /// Steps made.
    pub steps: u64,
    /// Appearances of each ranker.
    pub shown: Vec<u64>,
    /// The selected pair without further answers; `None` when all steps were made.
    pub used_up: Option<Duel>,
}

/// Run `policy`, in its initial state, for up to `steps` steps on `answers`.
pub fn run(
    policy: &mut dyn Policy,
    mut answers: Answers,
    ties: TieRule,
    seed: u64,
    steps: u64,
    rng: &mut PolicyRng,
) -> OffPolicyRun {
    let mut run = OffPolicyRun { steps: 0, shown: vec![0; answers.rankers], used_up: None };
    let in_flight = InFlight::new();
    while run.steps < steps {
        let selection = policy.select(&in_flight, rng);
        let duel = selection.duel;
        if duel.is_self() {
            policy.observe_self_duels(duel.first, 1);
        } else {
            let Some(answer) = answers.take(duel, rng) else {
                run.used_up = Some(duel);
                return run;
            };
            let outcome = ties.resolve(answer, seed, policy.tally().steps());
            policy.observe(&selection.observed(outcome));
        }
        run.shown[duel.first] += 1;
        run.shown[duel.second] += 1;
        run.steps += 1;
    }
    run
}
