//! RUCB, Relative Upper Confidence Bound (Zoghi, Whiteson, Munos, de Rijke, "Relative Upper
//! Confidence Bound for the K-Armed Dueling Bandit Problem", ICML 2014, Algorithm 1). Step numbers
//! are those of `algorithms-comparators.md` §3.
//!
//! The paper's bounds are about a policy that knows every earlier outcome; that on the expected
//! regret requires `α > 1`. Duels in flight narrow the bounds of step 5 without evidence: a
//! heuristic outside the theorems.

use rand::RngExt;

use crate::parameters::{Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values};
use crate::policies::alpha::{ALPHA, DEFAULT_ALPHA, require_alpha};
use crate::policies::bounds::Bounds;
use crate::policies::choose;
#[cfg(feature = "serde")]
use crate::saved_state::{SaveLater, load_state, save_later};
use crate::{
    InFlight, MutableRoster, Observation, Policy, PolicyRng, RosterError, Selection, Tally,
};

const FORMAT: u32 = 1;

/// Parameters of RUCB.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct Rucb {
    /// Width of the confidence bounds; above 0.5.
    pub alpha: f64,
    /// Which of the two published forms.
    pub variant: RucbVariant,
}

impl Default for Rucb {
    fn default() -> Self {
        Self { alpha: DEFAULT_ALPHA, variant: RucbVariant::default() }
    }
}

/// The published forms of RUCB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum RucbVariant {
    /// The ICML paper: the hypothesised best ranker is first in every other duel.
    #[default]
    Icml,
    /// The earlier arXiv report: the first ranker is uniform among the possible winners.
    Arxiv,
}

impl PolicyParameters for Rucb {
    const DESCRIPTION: Description = Description {
        summary: "Relative upper confidence bound: a possible Condorcet winner against its \
                  strongest challenger.",
        source: "Zoghi, Whiteson, Munos & de Rijke, Relative Upper Confidence Bound for the K-Armed Dueling Bandit \
                 Problem, ICML 2014, Algorithm 1",
        assumes: "a Condorcet winner",
        parameters: &[
            ALPHA,
            Parameter {
                name: "variant",
                values: Values::OneOf(&["icml", "arxiv"]),
                meaning: "`icml`: the published algorithm, which selects its hypothesised best \
                          ranker first in every other duel; `arxiv`: the earlier report, which has \
                          no such hypothesis.",
                default: Some("icml"),
            },
        ],
        fixed_rankers: None,
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_alpha(self.alpha)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let mut state = State {
            bounds: Bounds::new(setup.rankers, self.alpha),
            variant: self.variant,
            hypothesis: None,
        };
        state.revise();
        Box::new(state)
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let (tally, retired, hypothesis): (Tally, Vec<u16>, Option<u16>) = load_state(state)?;
        (tally.rankers() >= setup.rankers).then_some(())?;
        let bounds = Bounds::from_parts(tally, &retired, self.alpha)?;
        let hypothesis = hypothesis.map(usize::from);
        let known = |i: usize| i < bounds.tally().rankers() && bounds.roster().is_active(i);
        hypothesis.is_none_or(known).then_some(())?;
        Some(Box::new(State { bounds, variant: self.variant, hypothesis }))
    }
}

#[derive(Debug)]
struct State {
    bounds: Bounds,
    variant: RucbVariant,
    /// `B`; always `None` in the arXiv version.
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
        if self.variant == RucbVariant::Icml {
            let leads =
                |b: usize| self.bounds.roster().is_active(b) && self.bounds.certain_losses(b) == 0;
            self.hypothesis = match (first, second) {
                (Some(only), None) => Some(only),
                _ => self.hypothesis.filter(|&b| leads(b)),
            };
        }
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

impl Policy for State {
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

    fn mutable_roster(&mut self) -> Option<&mut dyn MutableRoster> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater {
        let (tally, retired) = self.bounds.parts();
        save_later((tally.clone(), retired, self.hypothesis.map(|b| b as u16)))
    }
}

impl MutableRoster for State {
    fn enlist(&mut self) -> Result<(), RosterError> {
        self.bounds.enlist()?;
        self.revise();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.bounds.retire(ranker)?;
        self.revise();
        Ok(())
    }
}
