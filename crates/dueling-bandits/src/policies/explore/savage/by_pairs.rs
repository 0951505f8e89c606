//! SAVAGE with one unknown per pair: the box `H`, the independence tests and the acceptance.

use crate::pairs::{pair_count, pair_index};
use crate::policies::explore::confidence::{Intervals, LargestOther, Radius};
use crate::policies::explore::explore_then_exploit::Exploration;
use crate::policies::explore::round_robin::RoundRobin;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// SAVAGE with one unknown per pair.
///
/// The independence test first determines which rankers are *out*: those with `upper_i < max lower`
/// for a Copeland winner, and those with `upper_i < K - 1` for a Condorcet winner. A pair can no
/// longer change the winner once it is decided or both its rankers are out (Copeland), or once one
/// of them is (Condorcet).
#[derive(Debug)]
pub(super) struct SavagePairs {
    pub(super) rankers: usize,
    pub(super) radius: Radius,
    pub(super) intersect: bool,
    /// `ε`.
    pub(super) epsilon: usize,
    pub(super) is_condorcet: bool,
}

/// The active set `𝒲` with its turns, the box `H`, and the rankers that are out.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct SavageState {
    turns: RoundRobin,
    intervals: Intervals,
    out: Vec<bool>,
}

impl SavagePairs {
    /// Step 4 of the algorithm, after an outcome that changed the decision on the pair `number`.
    fn test(&self, state: &mut SavageState, number: u32) {
        if !self.is_condorcet && state.intervals.get(number).verdict().is_some() {
            state.turns.close(number);
        }
        let least = match self.is_condorcet {
            true => self.rankers - 1,
            false => state.intervals.most_sure_wins(),
        };
        let newly: Vec<usize> = (0..self.rankers)
            .filter(|&i| !state.out[i] && state.intervals.upper(i) < least)
            .collect();
        for &i in &newly {
            state.out[i] = true;
        }
        for &i in &newly {
            for j in (0..self.rankers).filter(|&j| j != i && (self.is_condorcet || state.out[j])) {
                state.turns.close(pair_index(i, j) as u32);
            }
        }
    }

    /// The ranker that wins in every matrix of `H`: `|f(H)| = 1`. The tests of pairs are only
    /// sufficient, so it can be known while pairs are open. With `ε`, a ranker whose score is at
    /// most `ε` below that of any other; for a Condorcet winner that is Equation 12.
    fn known(&self, intervals: &Intervals) -> Option<usize> {
        // some ranker of every matrix with a Condorcet winner beats all others
        let upper =
            |i: usize| if self.is_condorcet { self.rankers - 1 } else { intervals.upper(i) };
        let others = LargestOther::of((0..self.rankers).map(|i| upper(i) as f64));
        let lead = |i: usize| intervals.lower(i) as f64 - others.than(i);
        let best = (1..self.rankers).fold(0, |best, i| if lead(i) > lead(best) { i } else { best });
        let epsilon = self.epsilon as f64;
        (lead(best) > 0.0 || (epsilon > 0.0 && lead(best) + epsilon >= 0.0)).then_some(best)
    }

    /// The accepted ranker once no pair is open.
    fn accepted(&self, state: &SavageState, tally: &Tally) -> Option<usize> {
        let standing = |i: usize| (state.intervals.upper(i), tally.copeland_score(i));
        state.turns.open().is_empty().then(|| {
            (1..self.rankers).fold(0, |best, i| if standing(i) > standing(best) { i } else { best })
        })
    }
}

impl Exploration for SavagePairs {
    const FORMAT: u32 = 1;

    type State = SavageState;

    fn start(&self) -> SavageState {
        SavageState {
            turns: RoundRobin::new(pair_count(self.rankers)),
            intervals: Intervals::new(self.rankers),
            out: vec![false; self.rankers],
        }
    }

    fn resume(&self, state: SavageState) -> Option<SavageState> {
        (state.out.len() == self.rankers).then_some(())?;
        Some(SavageState {
            turns: state.turns.resume(pair_count(self.rankers))?,
            intervals: state.intervals.resume(self.rankers)?,
            out: state.out,
        })
    }

    /// Step 1: a random pair of `𝒲` among those with `argmin t_i`, including comparisons in flight.
    fn ask(&self, state: &SavageState, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        state.turns.draw_pair(in_flight, rng)
    }

    fn learn(
        &self,
        state: &mut SavageState,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize> {
        let number = pair_index(observation.duel.first, observation.duel.second) as u32;
        // step 2
        state.turns.record(number);
        // step 3
        if state.intervals.learn(number, self.radius, tally, self.intersect) {
            self.test(state, number);
            if let Some(known) = self.known(&state.intervals) {
                return Some(known);
            }
        }
        self.accepted(state, tally)
    }

    fn guess(&self, _state: &SavageState, tally: &Tally) -> usize {
        tally.copeland_leader()
    }
}
