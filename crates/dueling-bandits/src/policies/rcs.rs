//! RCS, Relative Confidence Sampling (Zoghi, Whiteson, de Rijke, Munos, "Relative Confidence
//! Sampling for Efficient On-Line Ranker Evaluation", WSDM 2014). Step numbers are those of
//! `algorithms-comparators.md` §4, which also describes what is known of the published text.
//!
//! No bound on its regret is published. Duels in flight narrow the bounds of step 3 without
//! evidence, a heuristic.

use crate::pairwise_sampling::{PairwiseSample, WinProbabilities};
use crate::parameters::{Description, InvalidPolicy, PolicyParameters, Setup};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::bounds::Bounds;
use crate::policies::choose;
#[cfg(feature = "serde")]
use crate::saved_state::{SaveLater, load_state, save_later};
use crate::{
    DeferredUpdates, InFlight, MutableRoster, Observation, Policy, PolicyRng, RosterError,
    Selection, Tally,
};

const FORMAT: u32 = 1;

/// Parameters of RCS.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Rcs {
    /// Width of the confidence bounds; above 0.5.
    pub alpha: f64,
}

impl Default for Rcs {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA }
    }
}

impl PolicyParameters for Rcs {
    const DESCRIPTION: Description = Description {
        summary: "Relative confidence sampling: a sampled Condorcet winner against its strongest \
                  challenger.",
        source: "Zoghi, Whiteson, de Rijke & Munos, Relative Confidence Sampling for Efficient On-Line Ranker \
                 Evaluation, WSDM 2014",
        assumes: "a Condorcet winner",
        parameters: &[ALPHA],
        fixed_rankers: None,
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let bounds = Bounds::new(setup.rankers, self.alpha);
        Box::new(State::new(bounds, vec![0; setup.rankers]))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let (tally, retired, championships): (Tally, Vec<u16>, Vec<u64>) = load_state(state)?;
        let counted = championships.iter().all(|&count| count <= tally.steps());
        let fits =
            tally.rankers() >= setup.rankers && championships.len() == tally.rankers() && counted;
        fits.then_some(())?;
        Some(Box::new(State::new(Bounds::from_parts(tally, &retired, self.alpha)?, championships)))
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

impl Policy for State {
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

    fn mutable_roster(&mut self) -> Option<&mut dyn MutableRoster> {
        Some(self)
    }

    fn deferred_updates(&mut self) -> Option<&mut dyn DeferredUpdates> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater {
        let (tally, retired) = self.bounds.parts();
        save_later((tally.clone(), retired, self.championships.clone()))
    }
}

impl MutableRoster for State {
    fn enlist(&mut self) -> Result<(), RosterError> {
        self.bounds.enlist()?;
        self.win_probabilities.enlist();
        self.championships.push(0);
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.bounds.retire(ranker).map(drop)
    }
}

impl DeferredUpdates for State {
    fn observe_deferred(&mut self, observation: &Observation) {
        let duel = observation.duel;
        self.bounds.record(duel, observation.outcome);
        self.championships[duel.first] += 1;
        if observation.outcome.half_wins() != (0, 0) {
            self.win_probabilities.update_later(duel.first, duel.second);
        }
    }

    fn catch_up(&mut self) {
        self.win_probabilities.catch_up(self.bounds.tally());
    }
}
