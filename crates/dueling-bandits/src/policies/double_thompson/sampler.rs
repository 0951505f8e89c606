//! The policy: win counts, two samples, and their selection.
//!
//! Step numbers are those of `algorithms.md` §2. All samples use its sign shortcut, so selections
//! have exactly the distribution of the reference implementation.

use crate::beta_sampling::theta_above_half;
use crate::pairwise_sampling::{PairwiseSample, WinProbabilities};
use crate::parameters::Setup;
use crate::policies::bounds::Bounds;
use crate::saved_state::{load_state, save_state};
use crate::{
    Bandit, InFlight, MAX_RANKERS, Observation, Policy, PolicyRng, RosterError, Selection, Tally,
};

/// Up to this many rankers, use the small score arrays, which are faster to clear.
const FEW: usize = 32;

/// How D-TS breaks ties for the first candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// D-TS: at random.
    AtRandom,
    /// D-TS+: by the expected cost of exploration.
    ByRegret,
}

/// D-TS and D-TS+.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    pub(super) bounds: Bounds,
    /// Follows from the tally.
    pub(super) win_probabilities: WinProbabilities,
    pub(super) ties: Ties,
}

impl Sampler {
    pub(crate) fn new(bounds: Bounds, ties: Ties) -> Self {
        let (rankers, tally) = (bounds.tally().rankers(), bounds.tally());
        Self { win_probabilities: WinProbabilities::new(rankers, tally), bounds, ties }
    }

    pub(crate) fn restore(setup: Setup, state: &[u8], alpha: f64, ties: Ties) -> Option<Self> {
        let (tally, retired): (Tally, Vec<u16>) = load_state(state)?;
        (tally.rankers() >= setup.rankers).then_some(())?;
        Some(Self::new(Bounds::from_parts(tally, &retired, alpha)?, ties))
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// Phase 2, steps 4 and 5. The first candidate competes with the value 1/2, so only a `φ` above
    /// 1/2 can win. Therefore draw the sign of each `φ` first, and its value only if it is above
    /// 1/2.
    fn second_candidate(&self, first: usize, rng: &mut PolicyRng) -> usize {
        let draw = PairwiseSample::new(&self.win_probabilities, self.tally(), rng);
        let row = draw.row(first);
        let (mut best, mut highest) = (first, 0.5);
        for &i in self.bounds.active() {
            if i == first || row.wins(i) || self.bounds.beats(i, first) {
                continue;
            }
            let (wins, losses) = (self.tally().wins(i, first), self.tally().wins(first, i));
            let phi = theta_above_half(wins, losses, rng);
            if phi > highest {
                (best, highest) = (i, phi);
            }
        }
        best
    }
}

impl Bandit for Sampler {
    fn tally(&self) -> &Tally {
        self.bounds.tally()
    }

    fn select(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let few = self.tally().rankers() <= FEW;
        let first = if few {
            self.first_candidate::<FEW>(rng)
        } else {
            self.first_candidate::<MAX_RANKERS>(rng)
        };
        Selection::of(first, self.second_candidate(first, rng))
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        if observation.outcome.half_wins() != (0, 0) {
            self.win_probabilities.update(self.bounds.tally(), duel.first, duel.second);
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.bounds.skip(count);
    }

    fn champion(&self) -> usize {
        self.tally().copeland_leader_among(self.bounds.active())
    }
}

impl Policy for Sampler {
    fn uses_in_flight(&self) -> bool {
        false
    }

    fn enlist(&mut self) -> Result<(), RosterError> {
        self.bounds.enlist()?;
        self.win_probabilities.enlist();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.bounds.retire(ranker).map(drop)
    }

    fn observe_deferred(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        if observation.outcome.half_wins() != (0, 0) {
            self.win_probabilities.update_later(duel.first, duel.second);
        }
    }

    fn catch_up(&mut self) {
        self.win_probabilities.catch_up(self.bounds.tally());
    }

    fn save(&self) -> Vec<u8> {
        let (tally, retired) = self.bounds.parts();
        save_state(&(tally, retired))
    }
}
