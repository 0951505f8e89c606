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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::pair_at;
    use crate::policies::explore::confidence::Interval;
    use crate::policies::explore::confidence::tests::{bounds, sure};

    fn exploration(rankers: usize, is_condorcet: bool) -> SavagePairs {
        let radius = Radius::finite(pair_count(rankers), 10_000, 1e-4);
        SavagePairs { rankers, radius, intersect: true, epsilon: 0, is_condorcet }
    }

    /// The pairs that can still change the winner, given these intervals.
    fn open_pairs(
        rankers: usize,
        intervals: &Intervals,
        is_condorcet: bool,
    ) -> (Vec<(usize, usize)>, Option<usize>) {
        let savage = exploration(rankers, is_condorcet);
        let mut state = savage.start();
        for number in 0..pair_count(rankers) as u32 {
            if state.intervals.set(number, intervals.get(number)) {
                savage.test(&mut state, number);
            }
        }
        let pairs = state.turns.open().iter().map(|&number| pair_at(number as usize));
        let mut open: Vec<_> = pairs.map(|duel| (duel.first, duel.second)).collect();
        open.sort_unstable();
        (open, savage.accepted(&state, &Tally::new(rankers)))
    }

    fn supplement_b3() -> Intervals {
        sure(&["· 1 1 1 0", "0 · 1 1 0", "0 0 · ? ?", "0 0 ? · 1", "1 1 ? 0 ·"])
    }

    #[test]
    fn supplement_b3_leaves_one_pair() {
        assert_eq!(open_pairs(5, &supplement_b3(), false), (vec![(2, 4)], None));
        // no ranker can have four wins: every pair is closed, and a ranker with the most possible
        // wins is accepted
        assert_eq!(open_pairs(5, &supplement_b3(), true), (vec![], Some(0)));
    }

    #[test]
    fn supplement_b4_is_decided_for_condorcet_only() {
        let b4 = sure(&["· ? ? ? 1", "? · 0 ? ?", "? 1 · 0 ?", "? ? 1 · 0", "0 ? ? 1 ·"]);
        assert_eq!(open_pairs(5, &b4, true), (vec![], Some(0)));
        let copeland = vec![(0, 1), (0, 2), (0, 3), (1, 3), (1, 4), (2, 4)];
        assert_eq!(open_pairs(5, &b4, false), (copeland, None));
    }

    /// The ranker that is known to win, given these intervals.
    fn known(intervals: &Intervals, is_condorcet: bool, epsilon: usize) -> Option<usize> {
        SavagePairs { epsilon, ..exploration(5, is_condorcet) }.known(intervals)
    }

    #[test]
    fn a_winner_is_known_while_one_of_its_pairs_is_open() {
        // ranker 0 surely has 3 wins, and each other at most 2: the open pair (0, 4) can only add
        // to 0's lead
        let open = sure(&["· 1 1 1 ?", "0 · 1 0 1", "0 0 · 1 1", "0 1 0 · 1", "? 0 0 0 ·"]);
        assert_eq!(bounds(&open), (vec![3, 2, 2, 2, 0], vec![4, 2, 2, 2, 1]));
        assert_eq!(known(&open, false, 0), Some(0));
        // the sufficient test keeps the pair
        assert_eq!(open_pairs(5, &open, false), (vec![(0, 4)], None));
        // with (1, 3) open, 1 may tie with 0
        let tie = sure(&["· 1 1 1 ?", "0 · 1 ? 1", "0 0 · 1 1", "0 ? 0 · 1", "? 0 0 0 ·"]);
        assert_eq!(known(&tie, false, 0), None);
        // a ranker that ties with the best is one of the winners only up to ε
        assert_eq!(known(&supplement_b3(), false, 0), None);
        assert_eq!(known(&supplement_b3(), false, 1), Some(0));
    }

    #[test]
    fn equation_12_tolerates_epsilon_defeats() {
        let three_of_four =
            sure(&["· 1 1 1 ?", "0 · ? ? ?", "0 ? · ? ?", "0 ? ? · ?", "? ? ? ? ·"]);
        for (epsilon, accepted) in [(0, None), (1, Some(0)), (2, Some(0))] {
            assert_eq!(known(&three_of_four, true, epsilon), accepted, "{epsilon}");
        }
    }

    #[test]
    fn three_rankers_after_120_comparisons_a_pair() {
        let wins = [(0, 1, 95), (0, 2, 70), (1, 2, 80)];
        let mut tally = Tally::new(3);
        for (i, j, won) in wins {
            tally.record_run(Duel::new(i, j), crate::Outcome::First, won);
            tally.record_run(Duel::new(i, j), crate::Outcome::Second, 120 - won);
        }
        let radius = exploration(3, false).radius;
        let mut intervals = Intervals::new(3);
        for (i, j, _) in wins {
            let measured = radius.of(&tally, Duel::new(i, j));
            assert!((measured.1 - 0.290_204).abs() < 5e-7);
            intervals.set(pair_index(i, j) as u32, Interval::UNIT.narrowed(measured, false));
        }
        for (i, j, low, high) in [
            (0, 1, 0.501_462, 1.081_871),
            (0, 2, 0.293_129, 0.873_538),
            (1, 2, 0.376_462, 0.956_871),
        ] {
            let interval = intervals.get(pair_index(i, j) as u32);
            assert!((interval.low - low).abs() < 5e-7 && (interval.high - high).abs() < 5e-7);
        }
        assert_eq!(bounds(&intervals), (vec![1, 0, 0], vec![2, 1, 2]));
        assert_eq!(open_pairs(3, &intervals, false), (vec![(0, 2), (1, 2)], None));
        assert_eq!(open_pairs(3, &intervals, true), (vec![(0, 2)], None));
    }
}
