//! SAVAGE: sensitivity analysis of variables for generic exploration (Urvoy, Clérot, Féraud &
//! Naamane, ICML 2013), used as a dueling bandit through the explore-then-exploit wrapper. See
//! `algorithms-comparators.md` §11.

use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::explore::borda::BordaArms;
use crate::policies::explore::confidence::{Intervals, Radius};
use crate::policies::explore::exploration::Exploration;
use crate::policies::explore::explore_then_exploit::ExploreThenExploit;
use crate::policies::explore::largest_other::LargestOther;
use crate::policies::explore::pairs::Pairs;
use crate::policies::explore::parameters::{DELTA, ExplorationParameters, HORIZON};
use crate::policies::explore::round_robin::RoundRobin;
use crate::policies::explore::sampled::Sampler;
use crate::{Duel, InFlight, Observation, Policy, PolicyRng, Tally};

/// The kind of winner to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Winner {
    /// The ranker that beats the most others.
    #[default]
    Copeland,
    /// The ranker that beats all others; it must exist.
    Condorcet,
    /// The ranker that wins most often against a random opponent. Estimates one value per ranker.
    Borda,
    /// The same winner as `Borda`. Estimates one value per pair.
    BordaPairs,
}

/// The test for pairs that can no longer change the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Predicate {
    /// By the formula of the winner.
    #[default]
    Exact,
    /// By random matrices within the intervals: slow, and may drop a pair that still matters.
    Sampled,
}

/// Parameters of SAVAGE.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Savage {
    /// `T`, in steps.
    pub horizon: Option<u64>,
    /// `δ`.
    pub delta: Option<f64>,
    /// The kind of winner to find.
    pub winner: Winner,
    /// Whether each new interval is intersected with the previous one.
    pub intersect: bool,
    /// The test for whether a pair can still change the winner.
    pub predicate: Predicate,
    /// `m` of the sampled predicate.
    pub sample_starts: u32,
    /// `M` of the sampled predicate.
    pub sample_steps: u32,
}

impl Default for Savage {
    fn default() -> Self {
        Self {
            horizon: None,
            delta: None,
            winner: Winner::Copeland,
            intersect: true,
            predicate: Predicate::Exact,
            sample_starts: 10,
            sample_steps: 1000,
        }
    }
}

/// Largest number of rankers for the sampled predicate, which examines whole matrices at every
/// step.
const MOST_SAMPLED_RANKERS: usize = 50;

impl Savage {
    /// The parameters that all explorations have.
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: self.horizon, delta: self.delta }
    }

    fn arms(&self, setup: Setup) -> BordaArms {
        BordaArms::new(setup.rankers, self.shared().radius(setup.rankers), self.intersect)
    }

    fn pairs(&self, setup: Setup) -> SavagePairs {
        let pairs = Pairs { rankers: setup.rankers };
        let sampler = Sampler {
            pairs,
            seed: setup.seed,
            starts: self.sample_starts,
            steps: self.sample_steps,
        };
        let test = match (self.predicate, self.winner) {
            (Predicate::Sampled, _) => IndependenceTest::Sampled(sampler),
            (Predicate::Exact, Winner::Copeland) => IndependenceTest::Copeland,
            (Predicate::Exact, Winner::Condorcet) => IndependenceTest::Condorcet,
            (Predicate::Exact, Winner::Borda | Winner::BordaPairs) => IndependenceTest::Borda,
        };
        let radius = self.shared().radius(pairs.count());
        SavagePairs { pairs, radius, intersect: self.intersect, test }
    }
}

impl PolicyParameters for Savage {
    const DESCRIPTION: Description = Description {
        summary: "Compares pairs in turns, drops those that can no longer change the winner, then \
                  shows the winner alone.",
        source: "Urvoy, Clérot, Féraud & Naamane, Generic Exploration and K-armed Voting Bandits, \
                 ICML 2013 (SAVAGE)",
        assumes: "nothing; a Condorcet winner with winner=condorcet",
        parameters: &[
            HORIZON,
            DELTA,
            Parameter {
                name: "winner",
                values: Values::OneOf(&["copeland", "condorcet", "borda", "borda-pairs"]),
                meaning: "The winner to find: `copeland`, `condorcet`, `borda` (one unknown per \
                          ranker, which duels random opponents) or `borda-pairs` (one unknown per \
                          pair).",
                default: Some("copeland"),
            },
            Parameter {
                name: "intersect",
                values: Values::Boolean,
                meaning: "Whether each new interval is intersected with the previous one, as in \
                          the paper; otherwise only the latest interval counts.",
                default: Some("true"),
            },
            Parameter {
                name: "predicate",
                values: Values::OneOf(&["exact", "sampled"]),
                meaning: "`exact`, or `sampled`: by random matrices, which is slow and less \
                          certain, for simulations. `sampled` requires `winner=copeland` and at \
                          most 50 rankers.",
                default: Some("exact"),
            },
            Parameter {
                name: "sample_starts",
                values: Values::Integer,
                meaning: "With `predicate=sampled`: number of random matrices per step, from 1 to \
                          1000.",
                default: Some("10"),
            },
            Parameter {
                name: "sample_steps",
                values: Values::Integer,
                meaning: "With `predicate=sampled`: number of changes tried on each matrix, from 1 \
                          to 100 000.",
                default: Some("1000"),
            },
        ],
        fixed_rankers: Some("it plans its comparisons for the initial rankers"),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)?;
        if self.predicate == Predicate::Sampled {
            if self.winner != Winner::Copeland {
                return Err(InvalidPolicy::new(
                    "predicate",
                    "`predicate=sampled` requires `winner=copeland`",
                ));
            }
            if rankers > MOST_SAMPLED_RANKERS {
                let detail = format!(
                    "`predicate=sampled` allows at most {MOST_SAMPLED_RANKERS} rankers; this \
                     experiment has {rankers}"
                );
                return Err(InvalidPolicy::new("predicate", detail));
            }
        }
        let (starts, steps) = (self.sample_starts, self.sample_steps);
        require((1..=1000).contains(&starts), "sample_starts", starts, "from 1 to 1000")?;
        require((1..=100_000).contains(&steps), "sample_steps", steps, "from 1 to 100000")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        match self.winner {
            Winner::Borda => ExploreThenExploit::start(self.arms(setup), self.shared(), setup),
            Winner::Copeland | Winner::Condorcet | Winner::BordaPairs => {
                ExploreThenExploit::start(self.pairs(setup), self.shared(), setup)
            }
        }
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        match self.winner {
            Winner::Borda => {
                ExploreThenExploit::restore(self.arms(setup), self.shared(), setup, format, state)
            }
            Winner::Copeland | Winner::Condorcet | Winner::BordaPairs => {
                ExploreThenExploit::restore(self.pairs(setup), self.shared(), setup, format, state)
            }
        }
    }
}

/// SAVAGE with one unknown per pair.
#[derive(Debug)]
struct SavagePairs {
    pairs: Pairs,
    radius: Radius,
    intersect: bool,
    test: IndependenceTest,
}

/// `IndepTest(f, H, ·)`: the test for pairs that can no longer change the winner.
///
/// The exact tests first determine which rankers are *out*. A pair is independent once it is
/// decided, once both its rankers are out (Copeland, Borda), or once one of them is (Condorcet).
#[derive(Debug)]
enum IndependenceTest {
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
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavageState {
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

    /// The accepted ranker, if there is one.
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
        self.accepted(state, tally)
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
        SavagePairs { pairs, radius: Radius::finite(pairs.count(), 10_000, 1e-4), intersect, test }
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
