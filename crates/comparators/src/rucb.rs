//! RUCB, Relative Upper Confidence Bound (Zoghi, Whiteson, Munos, de Rijke, "Relative Upper
//! Confidence Bound for the K-Armed Dueling Bandit Problem", ICML 2014, Algorithm 1). Step numbers
//! are those of `lab/notes/comparators.md` §3.
//!
//! The paper's bounds are about a policy that knows every earlier outcome; that on the expected
//! regret requires `α > 1`. Duels in flight narrow the bounds of step 5 without evidence: a
//! heuristic outside the theorems.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::policies::choose;
use dueling_bandits::{
    Bandit, Bounds, InFlight, InvalidPolicy, Observation, PolicyRng, Selection, Setup, Tally,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rucb {
    /// Width of the confidence bounds; above 0.5.
    pub alpha: f64,
}

impl Default for Rucb {
    fn default() -> Self {
        Self { alpha: 0.51 }
    }
}

impl Parameters for Rucb {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        let alpha = self.alpha;
        require(alpha > 0.5 && alpha.is_finite(), "alpha", alpha, "a finite number above 0.5")
    }

    fn start(&self, setup: Setup) -> Box<dyn Bandit> {
        let bounds = Bounds::new(setup.rankers, self.alpha);
        let mut state = State { bounds, hypothesis: None };
        state.revise();
        Box::new(state)
    }
}

#[derive(Debug)]
struct State {
    bounds: Bounds,
    /// `B`.
    hypothesis: Option<usize>,
}

impl State {
    /// `C`: the rankers that may still be the Condorcet winner.
    fn candidates(&self) -> impl Iterator<Item = usize> {
        self.bounds.active().iter().copied().filter(|&c| self.bounds.certain_losses(c) == 0)
    }

    /// Steps 1-3. Returns whether `C` is empty: only then can bounds that widen without a new
    /// comparison change `B` again.
    fn revise(&mut self) -> bool {
        let mut candidates = self.candidates();
        let (first, second) = (candidates.next(), candidates.next());
        drop(candidates);
        let leads = |b: usize| self.bounds.certain_losses(b) == 0;
        self.hypothesis = match (first, second) {
            (Some(only), None) => Some(only),
            _ => self.hypothesis.filter(|&b| leads(b)),
        };
        first.is_none()
    }

    /// Step 4.
    fn candidate(&self, rng: &mut PolicyRng) -> usize {
        let chosen = match self.hypothesis {
            // `B` is in `C`; if it is the only member, always select it
            Some(b) if self.candidates().nth(1).is_none() || rng.random::<bool>() => Some(b),
            b => choose::uniform(self.candidates().filter(|&c| Some(c) != b), rng),
        };
        chosen
            .or_else(|| choose::uniform(self.bounds.active().iter().copied(), rng))
            .unwrap_or(self.bounds.active()[0])
    }
}

impl Bandit for State {
    fn tally(&self) -> &Tally {
        self.bounds.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let c = self.candidate(rng);
        Selection::of(c, self.bounds.challenger(c, in_flight, rng)) // step 5
    }

    fn observe(&mut self, observation: &Observation) {
        self.bounds.record(observation.duel, observation.outcome);
        if self.bounds.moved() {
            self.revise();
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        for done in 1..=count {
            self.bounds.skip(1);
            if done == count && !self.bounds.moved() {
                return;
            }
            if !self.revise() {
                return self.bounds.skip(count - done);
            }
        }
    }

    fn champion(&self) -> usize {
        self.tally().copeland_leader_among(self.bounds.active())
    }
}
