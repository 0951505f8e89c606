//! SAVAGE with one unknown per pair: the box `H`, the independence tests and the acceptance.

use crate::pairs::{pair_count, pair_index};
use crate::policies::explore::confidence::{Intervals, LargestOther, Radius};
use crate::policies::explore::explore_then_exploit::{Exploration, SavedExploration};
use crate::policies::explore::round_robin::RoundRobin;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// SAVAGE with one unknown per pair.
///
/// The independence test first determines which rankers are *out*: those with `upper_i < max lower`
/// for a Copeland winner, and those with `upper_i < K - 1` for a Condorcet winner. A pair can no
/// longer change the winner once it is decided or both its rankers are out (Copeland), or once one
/// of them is (Condorcet).
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct SavagePairs {
    #[serde(skip)]
    rules: Rules,
    /// `𝒲` with its turns.
    turns: RoundRobin,
    /// `H`.
    intervals: Intervals,
    out: Vec<bool>,
}

/// The rules of one experiment.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) radius: Radius,
    /// Whether an interval is intersected with the earlier ones of its pair.
    pub(super) intersect: bool,
    /// `ε`.
    pub(super) epsilon: usize,
    /// Whether the Condorcet winner is sought, and not a Copeland winner.
    pub(super) is_condorcet: bool,
}

impl SavagePairs {
    pub(super) fn new(rankers: usize, rules: Rules) -> Self {
        Self {
            rules,
            turns: RoundRobin::new(pair_count(rankers)),
            intervals: Intervals::new(rankers),
            out: vec![false; rankers],
        }
    }

    fn rankers(&self) -> usize {
        self.out.len()
    }

    /// Step 4 of the algorithm, after an outcome that changed the decision on the pair `number`.
    fn test(&mut self, number: u32) {
        let (k, is_condorcet) = (self.rankers(), self.rules.is_condorcet);
        if !is_condorcet && self.intervals.get(number).verdict().is_some() {
            self.turns.close(number);
        }
        let least = if is_condorcet { k - 1 } else { self.intervals.most_sure_wins() };
        let is_out = |&i: &usize| !self.out[i] && self.intervals.upper(i) < least;
        let newly: Vec<usize> = (0..k).filter(is_out).collect();
        for &i in &newly {
            self.out[i] = true;
        }
        for &i in &newly {
            for j in (0..k).filter(|&j| j != i && (is_condorcet || self.out[j])) {
                self.turns.close(pair_index(i, j) as u32);
            }
        }
    }

    /// The ranker that wins in every matrix of `H`: `|f(H)| = 1`. The tests of pairs are only
    /// sufficient, so it can be known while pairs are open. With `ε`, a ranker whose score is at
    /// most `ε` below that of any other; for a Condorcet winner that is Equation 12.
    fn known(&self) -> Option<usize> {
        let (k, intervals) = (self.rankers(), &self.intervals);
        // some ranker of every matrix with a Condorcet winner beats all others
        let upper = |i: usize| if self.rules.is_condorcet { k - 1 } else { intervals.upper(i) };
        let others = LargestOther::of((0..k).map(|i| upper(i) as f64));
        let lead = |i: usize| intervals.lower(i) as f64 - others.than(i);
        let best = (1..k).fold(0, |best, i| if lead(i) > lead(best) { i } else { best });
        let epsilon = self.rules.epsilon as f64;
        (lead(best) > 0.0 || (epsilon > 0.0 && lead(best) + epsilon >= 0.0)).then_some(best)
    }

    /// The accepted ranker once no pair is open.
    fn accepted(&self, tally: &Tally) -> Option<usize> {
        let standing = |i: usize| (self.intervals.upper(i), tally.copeland_score(i));
        self.turns.open().is_empty().then(|| {
            (1..self.rankers())
                .fold(0, |best, i| if standing(i) > standing(best) { i } else { best })
        })
    }
}

impl SavedExploration for SavagePairs {
    fn resume(self, decoded: Self) -> Option<Self> {
        let k = self.rankers();
        (decoded.out.len() == k).then_some(())?;
        Some(Self {
            turns: decoded.turns.resume(pair_count(k))?,
            intervals: decoded.intervals.resume(k)?,
            out: decoded.out,
            ..self
        })
    }
}

impl Exploration for SavagePairs {
    /// Step 1: a random pair of `𝒲` among those with `argmin t_i`, including comparisons in flight.
    fn ask(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        self.turns.draw_pair(in_flight, rng)
    }

    fn learn(&mut self, tally: &Tally, observation: &Observation) -> Option<usize> {
        let number = pair_index(observation.duel.first, observation.duel.second) as u32;
        // step 2
        self.turns.record(number);
        // step 3
        let Rules { radius, intersect, .. } = self.rules;
        if self.intervals.learn(number, radius, tally, intersect) {
            self.test(number);
            if let Some(known) = self.known() {
                return Some(known);
            }
        }
        self.accepted(tally)
    }

    fn guess(&self, tally: &Tally) -> usize {
        tally.copeland_leader()
    }
}
