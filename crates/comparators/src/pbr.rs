//! Copeland PBR: preference-based racing (Busa-Fekete, Szörényi, Weng, Cheng & Hüllermeier, ICML
//! 2013), used as a dueling bandit through the explore-then-exploit wrapper. See
//! `lab/notes/comparators.md` §12.
//!
//! A pair that has left the race keeps its decision. Later outcomes of the pair count in the tally
//! only.

use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::pairs::{pair_at, pair_count, pair_index};
use dueling_bandits::policies::explore::{
    Exploration, ExplorationParameters, ExploreThenExploit, Radius, RoundRobin,
};
use dueling_bandits::{
    Bandit, Duel, InFlight, InvalidPolicy, Observation, PolicyRng, Setup, Tally,
};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pbr {
    /// `T`, in steps.
    pub horizon: u64,
    /// `δ`; `1 / T` if absent.
    pub delta: Option<f64>,
}

impl Pbr {
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: Some(self.horizon), delta: self.delta }
    }
}

impl Parameters for Pbr {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)
    }

    fn start(&self, Setup { rankers, .. }: Setup) -> Box<dyn Bandit> {
        let race = Race {
            // ln(2 K² n_max / δ) with n_max = T
            radius: Radius::finite(rankers * rankers, self.horizon, self.shared().delta()),
            turns: RoundRobin::new(pair_count(rankers)),
            verdicts: vec![Verdicts::default(); rankers],
        };
        Box::new(ExploreThenExploit::new(race, Some(self.horizon), rankers))
    }
}

#[derive(Debug)]
struct Race {
    radius: Radius,
    /// `𝒜` with its turns.
    turns: RoundRobin,
    verdicts: Vec<Verdicts>,
}

/// The certain results of one ranker.
#[derive(Debug, Clone, Copy, Default)]
struct Verdicts {
    /// `w_i`: the number of rankers that it certainly beats.
    won: usize,
    /// `z_i`: the number of rankers that certainly beat it.
    lost: usize,
}

/// `𝒞`: the ranker is certainly the best. Two conditions of the paper, here and in [`is_discarded`],
/// are stricter by one: they never select a ranker.
fn is_selected(of: &[Verdicts], i: usize) -> bool {
    (0..of.len()).filter(|&j| j != i).all(|j| of.len() - 1 < of[i].won + of[j].lost)
}

/// `𝒟`: the ranker is certainly not the best.
fn is_discarded(of: &[Verdicts], i: usize) -> bool {
    (0..of.len()).filter(|&j| j != i).any(|j| of.len() - 1 < of[i].lost + of[j].won)
}

impl Race {
    /// Steps 1 to 3, at the end of a round.
    fn judge(&mut self, tally: &Tally) {
        // step 1: only pairs in the race have changed
        let mut is_changed = false;
        let verdicts = &mut self.verdicts;
        self.turns.retain(|number| {
            let duel = pair_at(number as usize);
            let (mean, radius) = self.radius.of(tally, duel);
            let (winner, loser) = match (mean - radius > 0.5, mean + radius < 0.5) {
                (true, _) => (duel.first, duel.second),
                (_, true) => (duel.second, duel.first),
                _ => return true,
            };
            verdicts[winner].won += 1;
            verdicts[loser].lost += 1;
            is_changed = true;
            false
        });
        if is_changed {
            // steps 2 and 3
            let of = &self.verdicts;
            let settled: Vec<bool> =
                (0..of.len()).map(|i| is_selected(of, i) || is_discarded(of, i)).collect();
            self.turns.retain(|number| {
                let Duel { first, second } = pair_at(number as usize);
                !(settled[first] && settled[second])
            });
        }
    }
}

impl Exploration for Race {
    fn ask(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        self.turns.draw_pair(in_flight, rng)
    }

    fn learn(&mut self, tally: &Tally, observation: &Observation) -> Option<usize> {
        let number = pair_index(observation.duel.first, observation.duel.second) as u32;
        if !self.turns.record(number) {
            return None;
        }
        self.judge(tally);
        // step 4; the horizon comes before n_max
        self.turns.open().is_empty().then(|| self.guess(tally))
    }

    /// The ranker with the most `p̂ > 1/2` in their row, ties by lowest index.
    fn guess(&self, tally: &Tally) -> usize {
        let scores: Vec<usize> = (0..tally.rankers()).map(|i| tally.copeland_score(i)).collect();
        (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
    }
}
