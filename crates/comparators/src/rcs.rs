//! RCS, Relative Confidence Sampling (Zoghi, Whiteson, de Rijke, Munos, "Relative Confidence
//! Sampling for Efficient On-Line Ranker Evaluation", WSDM 2014). Step numbers are those of
//! `lab/notes/comparators.md` §4, which also describes what is known of the published text.
//!
//! No bound on its regret is published. Duels in flight narrow the bounds of step 3 without
//! evidence, a heuristic.

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::pairwise_sampling::{PairwiseSample, WinProbabilities};
use dueling_bandits::parameters::require;
use dueling_bandits::policies::choose;
use dueling_bandits::{
    Bandit, Bounds, InFlight, InvalidPolicy, Observation, PolicyRng, Selection, Setup, Tally,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rcs {
    /// Width of the confidence bounds; above 0.5.
    pub alpha: f64,
}

impl Default for Rcs {
    fn default() -> Self {
        Self { alpha: 0.51 }
    }
}

impl Parameters for Rcs {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        let alpha = self.alpha;
        require(alpha > 0.5 && alpha.is_finite(), "alpha", alpha, "a finite number above 0.5")
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let bounds = Bounds::new(setup.rankers, self.alpha);
        Box::new(State::new(bounds, vec![0; setup.rankers]))
    }
}

#[derive(Debug)]
struct State {
    bounds: Bounds,
    /// Follows from the tally.
    win_probabilities: WinProbabilities,
    /// `champ`: how often each was the first of a folded duel.
    championships: Vec<u64>,
}

impl State {
    fn new(bounds: Bounds, championships: Vec<u64>) -> Self {
        Self {
            win_probabilities: WinProbabilities::new(bounds.tally().rankers(), bounds.tally()),
            bounds,
            championships,
        }
    }

    /// Steps 1 and 2. Only a ranker that beats all others in the sampled tournament matters. The
    /// first pass finds the only possible one. The second pass checks it against the rankers that
    /// it has not met. No pair is drawn twice.
    fn champion_of_sample(&self, rng: &mut PolicyRng) -> Option<usize> {
        let active = self.bounds.active();
        let draw = PairwiseSample::new(&self.win_probabilities, self.bounds.tally(), rng);
        let (mut best, mut beaten) = (0, None); // places in `active`
        let mut row = draw.row(active[0]);
        for (at, &i) in active.iter().enumerate().skip(1) {
            if !row.wins(i) {
                (best, beaten) = (at, Some(best));
                row = draw.row(i);
            }
        }
        let wins_all = (0..best).filter(|&at| Some(at) != beaten).all(|at| row.wins(active[at]));
        wins_all.then_some(active[best])
    }
}

impl Bandit for State {
    fn tally(&self) -> &Tally {
        self.bounds.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let c = self.champion_of_sample(rng).unwrap_or_else(|| {
            let seldom =
                self.bounds.active().iter().map(|&i| (i, std::cmp::Reverse(self.championships[i])));
            choose::argmax(seldom, rng).unwrap_or(self.bounds.active()[0])
        });
        Selection::of(c, self.bounds.challenger(c, in_flight, rng)) // step 3
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        self.championships[duel.first] += 1;
        if observation.outcome.half_wins() != (0, 0) {
            self.win_probabilities.update(self.bounds.tally(), duel.first, duel.second);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.bounds.skip(count);
        self.championships[ranker] += count;
    }

    fn champion(&self) -> usize {
        self.tally().copeland_leader_among(self.bounds.active())
    }
}
