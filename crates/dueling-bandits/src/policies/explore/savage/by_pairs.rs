//! SAVAGE with one unknown per pair: the box `H`, the independence tests and the acceptance.

use crate::policies::explore::confidence::{Intervals, Radius};
use crate::policies::explore::exploration::Exploration;
use crate::policies::explore::largest_other::LargestOther;
use crate::policies::explore::pairs::Pairs;
use crate::policies::explore::round_robin::RoundRobin;
use crate::policies::explore::sampled::Sampler;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// SAVAGE with one unknown per pair.
#[derive(Debug)]
pub(super) struct SavagePairs {
    pub(super) pairs: Pairs,
    pub(super) radius: Radius,
    pub(super) intersect: bool,
    /// `ε`.
    pub(super) epsilon: usize,
    pub(super) test: IndependenceTest,
}

/// `IndepTest(f, H, ·)`: the test for pairs that can no longer change the winner.
///
/// The formal tests first determine which rankers are *out*. A pair is independent once it is
/// decided, once both its rankers are out (Copeland, Borda), or once one of them is (Condorcet).
#[derive(Debug)]
pub(super) enum IndependenceTest {
    /// A ranker is out if `upper_i < max lower`. A decided pair is independent too.
    Copeland,
    /// A ranker is out if `upper_i < K - 1`.
    Condorcet,
    /// A ranker is out if `B_i ≤ A_k` for some other `k`. Once all rankers but one are out, every
    /// pair is independent.
    Borda,
    /// Copeland, by random matrices.
    Sampled(Sampler),
}

/// The active set `𝒲` with its turns, the box `H`, and the rankers that are out.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SavageState {
    turns: RoundRobin,
    intervals: Intervals,
    out: Vec<bool>,
    /// `[A_i, B_i]`: bounds of the Borda sums. Derived. Each is always summed in the order of the
    /// rankers, so that a restored state has the same bounds to the last bit.
    #[cfg_attr(feature = "serde", serde(skip))]
    borda: Vec<(f64, f64)>,
}

impl SavagePairs {
    /// `A_i = 1/2 + Σ_j a[i][j]`, and `B_i` likewise.
    fn borda_sums(&self, intervals: &Intervals, i: usize) -> (f64, f64) {
        let others = (0..self.pairs.rankers).filter(|&j| j != i);
        others.fold((0.5, 0.5), |(low, high), j| {
            let interval = intervals.get(self.pairs.number(i, j));
            if i < j {
                (low + interval.low, high + interval.high)
            } else {
                (low + (1.0 - interval.high), high + (1.0 - interval.low))
            }
        })
    }

    /// Mark the rankers for which `is_out` holds as out, and close the pairs that become
    /// independent.
    fn put_out(
        &self,
        state: &mut SavageState,
        both: bool,
        is_out: impl Fn(&SavageState, usize) -> bool,
    ) {
        let rankers = self.pairs.rankers;
        let newly: Vec<usize> =
            (0..rankers).filter(|&i| !state.out[i] && is_out(state, i)).collect();
        for &i in &newly {
            state.out[i] = true;
        }
        for &i in &newly {
            for j in (0..rankers).filter(|&j| j != i && (!both || state.out[j])) {
                state.turns.close(self.pairs.number(i, j));
            }
        }
    }

    /// Step 4 of the algorithm, after an outcome of the pair `number`; `sure_changed` is whether
    /// the outcome changed the decision on the pair.
    fn test(&self, state: &mut SavageState, number: u32, sure_changed: bool, tally: &Tally) {
        match &self.test {
            IndependenceTest::Copeland if sure_changed => {
                if state.intervals.get(number).verdict().is_some() {
                    state.turns.close(number);
                }
                let most = state.intervals.most_sure_wins();
                self.put_out(state, true, |state, i| state.intervals.upper(i) < most);
            }
            IndependenceTest::Condorcet if sure_changed => {
                let all = self.pairs.rankers - 1;
                self.put_out(state, false, |state, i| state.intervals.upper(i) < all);
            }
            IndependenceTest::Copeland | IndependenceTest::Condorcet => {}
            IndependenceTest::Borda => {
                let Duel { first, second } = self.pairs.pair(number);
                for i in [first, second] {
                    state.borda[i] = self.borda_sums(&state.intervals, i);
                }
                let lows = LargestOther::of(state.borda.iter().map(|sums| sums.0));
                self.put_out(state, true, |state, i| state.borda[i].1 <= lows.than(i));
                if state.out.iter().filter(|&&out| !out).count() <= 1 {
                    state.turns.retain(|_| false);
                }
            }
            IndependenceTest::Sampled(sampler) => {
                let relevant =
                    sampler.relevant(&state.intervals, state.turns.open(), tally.steps());
                state.turns.retain(|number| relevant[number as usize]);
            }
        }
    }

    /// The ranker that wins in every matrix of `H`: `|f(H)| = 1`. The tests of pairs are only
    /// sufficient, so it can be known while pairs are open. With `ε`, a ranker whose score is at
    /// most `ε` below that of any other; for a Condorcet winner that is Equation 12.
    ///
    /// `None` for Borda, whose pairs are closed as soon as its winner is known.
    fn known(&self, state: &SavageState) -> Option<usize> {
        let rankers = self.pairs.rankers;
        let most: Vec<f64> = match self.test {
            IndependenceTest::Borda => return None,
            // every matrix of F has a ranker that beats all others
            IndependenceTest::Condorcet => vec![(rankers - 1) as f64; rankers],
            IndependenceTest::Copeland | IndependenceTest::Sampled(_) => {
                (0..rankers).map(|i| state.intervals.upper(i) as f64).collect()
            }
        };
        let others = LargestOther::of(most.into_iter());
        let lead = |i: usize| state.intervals.lower(i) as f64 - others.than(i);
        let best = (1..rankers).fold(0, |best, i| if lead(i) > lead(best) { i } else { best });
        let epsilon = self.epsilon as f64;
        (lead(best) > 0.0 || (epsilon > 0.0 && lead(best) + epsilon >= 0.0)).then_some(best)
    }

    /// The accepted ranker once no pair is open.
    fn accepted(&self, state: &SavageState, tally: &Tally) -> Option<usize> {
        state.turns.open().is_empty().then(|| match self.test {
            IndependenceTest::Borda => borda_leader(tally),
            _ => {
                let standing = |i: usize| (state.intervals.upper(i), tally.copeland_score(i));
                (1..self.pairs.rankers)
                    .fold(0, |best, i| if standing(i) > standing(best) { i } else { best })
            }
        })
    }
}

/// The ranker with the largest mean `p̂` over the others (1/2 without comparisons), ties by lowest
/// index.
fn borda_leader(tally: &Tally) -> usize {
    let rankers = tally.rankers();
    let mean = |i: usize| -> f64 {
        (0..rankers).filter(|&j| j != i).map(|j| tally.mean(i, j).unwrap_or(0.5)).sum()
    };
    let means: Vec<f64> = (0..rankers).map(mean).collect();
    (1..rankers).fold(0, |best, i| if means[i] > means[best] { i } else { best })
}

impl Exploration for SavagePairs {
    #[cfg(feature = "serde")]
    const FORMAT: u32 = 2;

    type State = SavageState;

    fn start(&self) -> SavageState {
        let rankers = self.pairs.rankers;
        let intervals = Intervals::new(self.pairs);
        let borda = (0..rankers).map(|i| self.borda_sums(&intervals, i)).collect();
        let turns = RoundRobin::new(self.pairs.count());
        SavageState { turns, intervals, out: vec![false; rankers], borda }
    }

    fn resume(&self, state: SavageState) -> Option<SavageState> {
        let rankers = self.pairs.rankers;
        (state.out.len() == rankers).then_some(())?;
        let intervals = state.intervals.resume(self.pairs)?;
        let borda = (0..rankers).map(|i| self.borda_sums(&intervals, i)).collect();
        let turns = state.turns.resume(self.pairs.count())?;
        Some(SavageState { turns, intervals, out: state.out, borda })
    }

    /// Step 1: a random pair of `𝒲` among those with `argmin t_i`, including comparisons in flight.
    fn ask(&self, state: &SavageState, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        state.turns.draw_pair(self.pairs, in_flight, rng)
    }

    fn learn(
        &self,
        state: &mut SavageState,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize> {
        let number = self.pairs.number(observation.duel.first, observation.duel.second);
        // step 2
        state.turns.record(number);
        // step 3
        let sure_changed =
            state.intervals.learn(self.pairs, number, self.radius, tally, self.intersect);
        self.test(state, number, sure_changed, tally);
        let known = if sure_changed { self.known(state) } else { None };
        known.or_else(|| self.accepted(state, tally))
    }

    fn guess(&self, _state: &SavageState, tally: &Tally) -> usize {
        match self.test {
            IndependenceTest::Borda => borda_leader(tally),
            _ => tally.copeland_leader(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::explore::confidence::Interval;
    use crate::policies::explore::confidence::tests::{bounds, sure};

    fn exploration(pairs: Pairs, test: IndependenceTest, intersect: bool) -> SavagePairs {
        SavagePairs {
            pairs,
            radius: Radius::finite(pairs.count(), 10_000, 1e-4),
            intersect,
            epsilon: 0,
            test,
        }
    }

    /// The pairs that can still change the winner, given these intervals.
    fn open_pairs(
        (pairs, intervals): (Pairs, Intervals),
        test: IndependenceTest,
    ) -> (Vec<(usize, usize)>, Option<usize>) {
        let savage = exploration(pairs, test, true);
        let mut state = savage.start();
        let tally = Tally::new(pairs.rankers);
        for number in 0..pairs.count() as u32 {
            let sure = state.intervals.set(pairs, number, intervals.get(number));
            savage.test(&mut state, number, sure, &tally);
        }
        let mut open: Vec<u32> = state.turns.open().to_vec();
        open.sort_unstable();
        let named =
            open.iter().map(|&number| pairs.pair(number)).map(|duel| (duel.first, duel.second));
        (named.collect(), savage.accepted(&state, &tally))
    }

    fn supplement_b3() -> (Pairs, Intervals) {
        sure(&["· 1 1 1 0", "0 · 1 1 0", "0 0 · ? ?", "0 0 ? · 1", "1 1 ? 0 ·"])
    }

    #[test]
    fn supplement_b3_leaves_one_pair() {
        assert_eq!(open_pairs(supplement_b3(), IndependenceTest::Copeland), (vec![(2, 4)], None));
        // no ranker can have four wins: every pair is closed, and a ranker with the most possible
        // wins is accepted
        assert_eq!(open_pairs(supplement_b3(), IndependenceTest::Condorcet), (vec![], Some(0)));
        for seed in 0..20 {
            let sampler = Sampler { pairs: Pairs { rankers: 5 }, seed, starts: 20, steps: 200 };
            let (_, intervals) = supplement_b3();
            let all: Vec<u32> = (0..10).collect();
            let relevant = sampler.relevant(&intervals, &all, 1);
            let kept: Vec<u32> =
                all.into_iter().filter(|&number| relevant[number as usize]).collect();
            assert_eq!(kept, [Pairs { rankers: 5 }.number(2, 4)], "seed {seed}");
        }
    }

    #[test]
    fn supplement_b4_is_decided_for_condorcet_only() {
        let b4 = || sure(&["· ? ? ? 1", "? · 0 ? ?", "? 1 · 0 ?", "? ? 1 · 0", "0 ? ? 1 ·"]);
        assert_eq!(open_pairs(b4(), IndependenceTest::Condorcet), (vec![], Some(0)));
        let copeland = vec![(0, 1), (0, 2), (0, 3), (1, 3), (1, 4), (2, 4)];
        assert_eq!(open_pairs(b4(), IndependenceTest::Copeland), (copeland, None));
    }

    /// The ranker that is known to win, given these intervals.
    fn known(
        (pairs, intervals): (Pairs, Intervals),
        test: IndependenceTest,
        epsilon: usize,
    ) -> Option<usize> {
        let savage = SavagePairs { epsilon, ..exploration(pairs, test, true) };
        let mut state = savage.start();
        for number in 0..pairs.count() as u32 {
            state.intervals.set(pairs, number, intervals.get(number));
        }
        savage.known(&state)
    }

    #[test]
    fn a_winner_is_known_while_one_of_its_pairs_is_open() {
        // ranker 0 surely has 3 wins, and each other at most 2: the open pair (0, 4) can only add
        // to 0's lead
        let open = || sure(&["· 1 1 1 ?", "0 · 1 0 1", "0 0 · 1 1", "0 1 0 · 1", "? 0 0 0 ·"]);
        assert_eq!(bounds(&open().1), (vec![3, 2, 2, 2, 0], vec![4, 2, 2, 2, 1]));
        assert_eq!(known(open(), IndependenceTest::Copeland, 0), Some(0));
        // the sufficient test keeps the pair
        assert_eq!(open_pairs(open(), IndependenceTest::Copeland), (vec![(0, 4)], None));
        // with (1, 3) open, 1 may tie with 0
        let tie = || sure(&["· 1 1 1 ?", "0 · 1 ? 1", "0 0 · 1 1", "0 ? 0 · 1", "? 0 0 0 ·"]);
        assert_eq!(known(tie(), IndependenceTest::Copeland, 0), None);
        // a ranker that ties with the best is one of the winners only up to ε
        assert_eq!(known(supplement_b3(), IndependenceTest::Copeland, 0), None);
        assert_eq!(known(supplement_b3(), IndependenceTest::Copeland, 1), Some(0));
    }

    #[test]
    fn equation_12_tolerates_epsilon_defeats() {
        let three_of_four =
            || sure(&["· 1 1 1 ?", "0 · ? ? ?", "0 ? · ? ?", "0 ? ? · ?", "? ? ? ? ·"]);
        for (epsilon, accepted) in [(0, None), (1, Some(0)), (2, Some(0))] {
            let found = known(three_of_four(), IndependenceTest::Condorcet, epsilon);
            assert_eq!(found, accepted, "{epsilon}");
        }
    }

    #[test]
    fn three_rankers_after_120_comparisons_a_pair() {
        let pairs = Pairs { rankers: 3 };
        let wins = [(0, 1, 95), (0, 2, 70), (1, 2, 80)];
        let mut tally = Tally::new(3);
        for (i, j, won) in wins {
            tally.record_run(Duel::new(i, j), crate::Outcome::First, won);
            tally.record_run(Duel::new(i, j), crate::Outcome::Second, 120 - won);
        }
        let savage = exploration(pairs, IndependenceTest::Copeland, false);
        let mut intervals = Intervals::new(pairs);
        for (i, j, _) in wins {
            let measured = savage.radius.of(&tally, Duel::new(i, j));
            assert!((measured.1 - 0.290_204).abs() < 5e-7);
            intervals.set(pairs, pairs.number(i, j), Interval::UNIT.narrowed(measured, false));
        }
        for (i, j, low, high) in [
            (0, 1, 0.501_462, 1.081_871),
            (0, 2, 0.293_129, 0.873_538),
            (1, 2, 0.376_462, 0.956_871),
        ] {
            let interval = intervals.get(pairs.number(i, j));
            assert!((interval.low - low).abs() < 5e-7 && (interval.high - high).abs() < 5e-7);
        }
        assert_eq!(bounds(&intervals), (vec![1, 0, 0], vec![2, 1, 2]));
        let known = || (pairs, intervals.clone());
        assert_eq!(open_pairs(known(), IndependenceTest::Copeland), (vec![(0, 2), (1, 2)], None));
        assert_eq!(open_pairs(known(), IndependenceTest::Condorcet), (vec![(0, 2)], None));
    }

    #[test]
    fn borda_of_pairs_is_over_when_one_ranker_is_left() {
        let pairs = Pairs { rankers: 3 };
        let mut intervals = Intervals::new(pairs);
        for (i, j, low, high) in [(0, 1, 0.7, 0.8), (0, 2, 0.6, 0.7), (1, 2, 0.45, 0.65)] {
            intervals.set(pairs, pairs.number(i, j), Interval { low, high });
        }
        let savage = exploration(pairs, IndependenceTest::Borda, true);
        for (i, low, high) in [(0, 1.8, 2.0), (1, 1.15, 1.45), (2, 1.15, 1.45)] {
            let sums = savage.borda_sums(&intervals, i);
            assert!((sums.0 - low).abs() < 1e-12 && (sums.1 - high).abs() < 1e-12, "{i}: {sums:?}");
        }
        let (open, accepted) = open_pairs((pairs, intervals), IndependenceTest::Borda);
        assert_eq!((open, accepted), (vec![], Some(0)));
    }
}
