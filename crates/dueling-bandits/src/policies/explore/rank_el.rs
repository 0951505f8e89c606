//! RankEl for Copeland: elicits the ranking by Copeland score, after Busa-Fekete, Szörényi &
//! Hüllermeier (AAAI 2014), used as a dueling bandit through the explore-then-exploit wrapper.
//!
//! **This is a reconstruction.** The sampling order, the constants and the stopping rule are those
//! of `algorithms-comparators.md` §13. They are sound, but not known to be the paper's.

use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::explore::confidence::{Intervals, Radius};
use crate::policies::explore::exploration::Exploration;
use crate::policies::explore::explore_then_exploit::ExploreThenExploit;
use crate::policies::explore::pairs::Pairs;
use crate::policies::explore::parameters::{DELTA, ExplorationParameters, HORIZON};
use crate::policies::explore::round_robin::RoundRobin;
use crate::{Duel, InFlight, Observation, Policy, PolicyRng, Tally};

/// A distance between two rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum Distance {
    /// The number of pairs that the two rankings order differently.
    #[default]
    Ndp,
    /// The largest difference between the two ranks of a ranker.
    Mrd,
}

/// Parameters of RankEl.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct RankEl {
    /// `T`, in steps.
    pub horizon: Option<u64>,
    /// `δ`.
    pub delta: Option<f64>,
    /// The distance between two rankings.
    pub distance: Distance,
    /// `ρ`.
    pub tolerance: usize,
}

impl RankEl {
    /// The parameters that all explorations have.
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: self.horizon, delta: self.delta }
    }

    fn elicitation(&self, setup: Setup) -> Elicitation {
        let pairs = Pairs { rankers: setup.rankers };
        let radius = self.shared().radius(pairs.count());
        Elicitation { pairs, radius, distance: self.distance, tolerance: self.tolerance }
    }
}

impl PolicyParameters for RankEl {
    const DESCRIPTION: Description = Description {
        summary: "Compares pairs in rounds until the ranking by Copeland score is known, then \
                  shows its first ranker alone. A reconstruction of RankEl.",
        source: "after Busa-Fekete, Szörényi & Hüllermeier, PAC Rank Elicitation through Adaptive \
                 Sampling of Stochastic Pairwise Preferences, AAAI 2014; reconstructed from its \
                 abstract",
        assumes: "no pair with probability 1/2",
        parameters: &[
            HORIZON,
            DELTA,
            Parameter {
                name: "distance",
                values: Values::OneOf(&["ndp", "mrd"]),
                meaning: "Distance between rankings: `ndp`, the number of pairs ordered \
                          differently, or `mrd`, the largest difference between the two ranks of \
                          a ranker. With true ties, `mrd` stays above 0.",
                default: Some("ndp"),
            },
            Parameter {
                name: "tolerance",
                values: Values::Integer,
                meaning: "rho: the distance from the true ranking at which exploration stops, at \
                          most the number of pairs.",
                default: Some("0"),
            },
        ],
        fixed_rankers: Some("it plans its comparisons for the initial rankers"),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)?;
        let most = Pairs { rankers }.count();
        require(
            self.tolerance <= most,
            "tolerance",
            self.tolerance,
            &format!("at most {most}, the number of pairs"),
        )
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        ExploreThenExploit::start(self.elicitation(setup), self.shared(), setup)
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        ExploreThenExploit::restore(self.elicitation(setup), self.shared(), setup, format, state)
    }
}

/// The exploration.
#[derive(Debug)]
struct Elicitation {
    pairs: Pairs,
    radius: Radius,
    distance: Distance,
    /// `ρ`.
    tolerance: usize,
}

/// The pairs still to be compared with their turns, and the intervals of all pairs.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct ElicitationState {
    turns: RoundRobin,
    intervals: Intervals,
    /// Whether a pair was decided since the end of the last round; also true until the end of the
    /// first round.
    is_news: bool,
}

impl Elicitation {
    /// `τ`: by `low_i + up_i` descending, ties by the number of rankers beaten more often than not,
    /// then by index.
    fn ranking(&self, intervals: &Intervals, tally: &Tally) -> Vec<usize> {
        let mut ranking: Vec<usize> = (0..self.pairs.rankers).collect();
        ranking.sort_by_cached_key(|&i| {
            std::cmp::Reverse((intervals.lower(i) + intervals.upper(i), tally.copeland_score(i)))
        });
        ranking
    }

    /// An upper bound on the distance of `ranking` from the true one.
    fn distance_bound(&self, intervals: &Intervals, ranking: &[usize]) -> usize {
        let (low, up) = (|i: usize| intervals.lower(i), |i: usize| intervals.upper(i));
        match self.distance {
            Distance::Ndp => {
                let after = |at: usize| ranking[at + 1..].iter();
                let discordant =
                    |at: usize| after(at).filter(|&&k| up(k) > low(ranking[at])).count();
                (0..ranking.len()).map(discordant).sum()
            }
            Distance::Mrd => {
                let away = |(at, &i): (usize, &usize)| {
                    let rank = at + 1;
                    let best = 1 + ranking.iter().filter(|&&j| low(j) > up(i)).count();
                    let worst = ranking.len() - ranking.iter().filter(|&&j| up(j) < low(i)).count();
                    rank.saturating_sub(best).max(worst.saturating_sub(rank))
                };
                ranking.iter().enumerate().map(away).max().unwrap_or(0)
            }
        }
    }

    /// Whether the order of `i` and some other ranker is still uncertain.
    fn is_ambiguous(&self, intervals: &Intervals, i: usize) -> bool {
        let (low, up) = (|i: usize| intervals.lower(i), |i: usize| intervals.upper(i));
        (0..self.pairs.rankers).filter(|&k| k != i).any(|k| {
            let is_equal = low(i) == up(i) && low(i) == low(k) && low(i) == up(k);
            low(i) < up(k) && low(k) < up(i) && !is_equal
        })
    }

    /// Choose the pairs of the next round: the undecided ones with an ambiguous ranker.
    fn choose_pairs(&self, state: &mut ElicitationState) {
        let intervals = &state.intervals;
        let ambiguous: Vec<bool> =
            (0..self.pairs.rankers).map(|i| self.is_ambiguous(intervals, i)).collect();
        state.turns.retain(|number| {
            let Duel { first, second } = self.pairs.pair(number);
            intervals.get(number).verdict().is_none() && (ambiguous[first] || ambiguous[second])
        });
    }
}

impl Exploration for Elicitation {
    type State = ElicitationState;

    fn start(&self) -> ElicitationState {
        ElicitationState {
            turns: RoundRobin::new(self.pairs.count()),
            intervals: Intervals::new(self.pairs),
            is_news: true,
        }
    }

    fn resume(&self, state: ElicitationState) -> Option<ElicitationState> {
        Some(ElicitationState {
            turns: state.turns.resume(self.pairs.count())?,
            intervals: state.intervals.resume(self.pairs)?,
            is_news: state.is_news,
        })
    }

    fn ask(&self, state: &ElicitationState, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        state.turns.draw_pair(self.pairs, in_flight, rng)
    }

    fn learn(
        &self,
        state: &mut ElicitationState,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize> {
        let number = self.pairs.number(observation.duel.first, observation.duel.second);
        state.is_news |= state.intervals.learn(self.pairs, number, self.radius, tally, true);
        let is_round_over = state.turns.record(number);
        if !(is_round_over && state.is_news) {
            return None;
        }
        state.is_news = false;
        self.choose_pairs(state);
        let ranking = self.ranking(&state.intervals, tally);
        let is_over = state.turns.open().is_empty()
            || self.distance_bound(&state.intervals, &ranking) <= self.tolerance;
        is_over.then(|| ranking[0])
    }

    fn guess(&self, state: &ElicitationState, tally: &Tally) -> usize {
        self.ranking(&state.intervals, tally)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::explore::confidence::tests::{bounds, sure};

    #[test]
    fn one_pair_of_rankers_is_ambiguous() {
        let (pairs, intervals) = sure(&["· 1 1 ?", "0 · ? 1", "0 ? · 1", "? 0 0 ·"]);
        assert_eq!(bounds(&intervals), (vec![2, 1, 1, 0], vec![3, 2, 2, 1]));
        for (distance, bound) in [(Distance::Ndp, 1), (Distance::Mrd, 2)] {
            let radius = Radius::finite(pairs.count(), 1000, 0.1);
            let rank_el = Elicitation { pairs, radius, distance, tolerance: 0 };
            let ranking = rank_el.ranking(&intervals, &Tally::new(4));
            assert_eq!(ranking, [0, 1, 2, 3]);
            assert_eq!(rank_el.distance_bound(&intervals, &ranking), bound);
            let ambiguous: Vec<usize> =
                (0..4).filter(|&i| rank_el.is_ambiguous(&intervals, i)).collect();
            assert_eq!(ambiguous, [1, 2]);
            // (0, 3) is open, but contains no ambiguous ranker
            let mut state = rank_el.start();
            state.intervals = intervals.clone();
            rank_el.choose_pairs(&mut state);
            assert_eq!(state.turns.open(), [pairs.number(1, 2)]);
        }
    }
}
