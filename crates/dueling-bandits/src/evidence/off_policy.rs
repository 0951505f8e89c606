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
use crate::{Answer, Bandit, Duel, InFlight, Outcome, PolicyRng, TieRule};

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

    /// As many answers of each pair, each drawn from its answers with replacement: a log that could
    /// have been recorded as well (the bootstrap of Efron, 1979).
    pub fn resampled(&self, rng: &mut PolicyRng) -> Self {
        let left = self.left.iter().map(|counts| {
            let total: u64 = counts.iter().sum();
            let mut drawn = [0; 4];
            for _ in 0..total {
                drawn[at(counts, rng.random_range(0..total))] += 1;
            }
            drawn
        });
        Self { rankers: self.rankers, left: left.collect() }
    }

    /// Number of answers of a pair.
    pub fn of(&self, i: usize, j: usize) -> u64 {
        self.left[pair_index(i, j)].iter().sum()
    }

    /// Remove a random answer of a pair; `None` when all are used up.
    fn take(&mut self, duel: Duel, rng: &mut PolicyRng) -> Option<Answer> {
        let left = &mut self.left[pair_index(duel.first, duel.second)];
        let total: u64 = left.iter().sum();
        if total == 0 {
            return None;
        }
        let at = at(left, rng.random_range(0..total));
        left[at] -= 1;
        Some(match (at, duel.first < duel.second) {
            (0, true) | (1, false) => Answer::First,
            (0, false) | (1, true) => Answer::Second,
            (2, _) => Answer::Tie,
            _ => Answer::None,
        })
    }
}

/// The kind of the answer with number `pick`, which is below the sum of `counts`.
fn at(counts: &[u64; 4], mut pick: u64) -> usize {
    let here = counts.iter().position(|&count| {
        let here = pick < count;
        pick = pick.saturating_sub(count);
        here
    });
    here.unwrap_or(counts.len() - 1)
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffPolicyRun {
    /// Steps made.
    pub steps: u64,
    /// Appearances of each ranker.
    pub shown: Vec<u64>,
    /// The answers that were not used.
    pub unused: Answers,
    /// The selected pair without further answers; `None` when all steps were made.
    pub used_up: Option<Duel>,
}

/// Run `policy`, in its initial state, for up to `steps` steps on `answers`.
pub fn run(
    policy: &mut dyn Bandit,
    mut answers: Answers,
    ties: TieRule,
    seed: u64,
    steps: u64,
    rng: &mut PolicyRng,
) -> OffPolicyRun {
    let (mut made, mut shown, mut used_up) = (0, vec![0; answers.rankers], None);
    let in_flight = InFlight::new();
    while made < steps {
        let selection = policy.select(&in_flight, rng);
        let duel = selection.duel;
        let outcome = if duel.is_self() {
            Outcome::None
        } else if let Some(answer) = answers.take(duel, rng) {
            ties.resolve(answer, seed, policy.tally().steps())
        } else {
            used_up = Some(duel);
            break;
        };
        policy.observe_shown(selection, outcome);
        shown[duel.first] += 1;
        shown[duel.second] += 1;
        made += 1;
    }
    OffPolicyRun { steps: made, shown, unused: answers, used_up }
}
