//! RankEl for Copeland: elicits the ranking by Copeland score, after Busa-Fekete, Szörényi &
//! Hüllermeier (AAAI 2014), used as a dueling bandit through the explore-then-exploit wrapper.
//!
//! **This is a reconstruction.** The sampling order, the constants and the stopping rule are those
//! of `lab/notes/comparators.md` §13. They are sound, but not known to be the paper's.

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::pairs::{pair_at, pair_count, pair_index};
use dueling_bandits::policies::explore::{
    Exploration, ExplorationParameters, ExploreThenExploit, Intervals, Radius, RoundRobin,
};
use dueling_bandits::{
    Bandit, Duel, InFlight, InvalidPolicy, Observation, PolicyRng, Setup, Tally,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RankEl {
    /// `T`, in steps.
    pub horizon: Option<u64>,
    /// `δ`.
    pub delta: Option<f64>,
}

impl RankEl {
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: self.horizon, delta: self.delta }
    }
}

impl Parameters for RankEl {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)
    }

    fn start(&self, Setup { rankers, .. }: Setup) -> Box<dyn Bandit> {
        let radius = self.shared().radius(pair_count(rankers));
        let elicitation = Elicitation::new(rankers, radius);
        Box::new(ExploreThenExploit::new(elicitation, self.horizon, rankers))
    }
}

#[derive(Debug)]
struct Elicitation {
    rankers: usize,
    radius: Radius,
    /// The pairs still to be compared, with their turns.
    turns: RoundRobin,
    intervals: Intervals,
    /// Whether a pair was decided since the end of the last round; also true until the end of the
    /// first round.
    is_news: bool,
}

impl Elicitation {
    fn new(rankers: usize, radius: Radius) -> Self {
        Self {
            rankers,
            radius,
            turns: RoundRobin::new(pair_count(rankers)),
            intervals: Intervals::new(rankers),
            is_news: true,
        }
    }

    /// `τ`: by `low_i + up_i` descending, ties by the number of rankers beaten more often than not,
    /// then by index.
    fn ranking(&self, tally: &Tally) -> Vec<usize> {
        let intervals = &self.intervals;
        let mut ranking: Vec<usize> = (0..self.rankers).collect();
        ranking.sort_by_cached_key(|&i| {
            std::cmp::Reverse((intervals.lower(i) + intervals.upper(i), tally.copeland_score(i)))
        });
        ranking
    }

    /// An upper bound on the number of pairs that `ranking` and the true ranking order differently.
    fn distance_bound(&self, ranking: &[usize]) -> usize {
        let (low, up) = (|i| self.intervals.lower(i), |i| self.intervals.upper(i));
        let discordant =
            |at: usize| ranking[at + 1..].iter().filter(|&&k| up(k) > low(ranking[at])).count();
        (0..ranking.len()).map(discordant).sum()
    }

    /// Whether the order of `i` and some other ranker is still uncertain.
    fn is_ambiguous(&self, i: usize) -> bool {
        let low = |i: usize| self.intervals.lower(i);
        let up = |i: usize| self.intervals.upper(i);
        (0..self.rankers).filter(|&k| k != i).any(|k| {
            let is_equal = low(i) == up(i) && low(i) == low(k) && low(i) == up(k);
            low(i) < up(k) && low(k) < up(i) && !is_equal
        })
    }

    /// Choose the pairs of the next round: the undecided ones with an ambiguous ranker.
    fn choose_pairs(&mut self) {
        let ambiguous: Vec<bool> = (0..self.rankers).map(|i| self.is_ambiguous(i)).collect();
        let intervals = &self.intervals;
        self.turns.retain(|number| {
            let Duel { first, second } = pair_at(number as usize);
            intervals.get(number).verdict().is_none() && (ambiguous[first] || ambiguous[second])
        });
    }
}

impl Exploration for Elicitation {
    fn ask(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        self.turns.draw_pair(in_flight, rng)
    }

    fn learn(&mut self, tally: &Tally, observation: &Observation) -> Option<usize> {
        let number = pair_index(observation.duel.first, observation.duel.second) as u32;
        self.is_news |= self.intervals.learn(number, self.radius, tally, true);
        let is_round_over = self.turns.record(number);
        if !(is_round_over && self.is_news) {
            return None;
        }
        self.is_news = false;
        self.choose_pairs();
        let ranking = self.ranking(tally);
        let is_over = self.turns.open().is_empty() || self.distance_bound(&ranking) == 0;
        is_over.then(|| ranking[0])
    }

    fn guess(&self, tally: &Tally) -> usize {
        self.ranking(tally)[0]
    }
}
