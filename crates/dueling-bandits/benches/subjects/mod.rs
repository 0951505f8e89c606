//! The measured subjects: a step of every policy in a defined state, and a step of its reference
//! implementation in the same state.
#![allow(dead_code, reason = "each bench uses its part")]

#[path = "../../tests/all/reference/mod.rs"]
mod reference;

use std::hint::black_box;

use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Bandit, Duel, InFlight, Outcome, Policy, PolicyRng, PolicySpec};
use rand::{RngExt, SeedableRng};
use reference::ccb::ReferenceCcb;
use reference::double_thompson::ReferenceDoubleThompson;
pub use reference::{Reference, ReferencePolicy};
use serde_json::json;

/// The reference implementation of a policy, in the policy's state.
pub type MakeReference = fn(&dyn Policy) -> Box<dyn ReferencePolicy>;

const ALPHA: f64 = 0.51;
const SEED: u64 = 1;

/// The policies that have a goal, with their reference implementations.
pub const WITH_REFERENCE: &[(&str, MakeReference)] = &[
    ("d-ts", |policy| {
        Box::new(ReferenceDoubleThompson {
            reference: Reference::of(policy.tally(), ALPHA),
            plus: false,
        })
    }),
    ("d-ts-plus", |policy| {
        Box::new(ReferenceDoubleThompson {
            reference: Reference::of(policy.tally(), ALPHA),
            plus: true,
        })
    }),
    ("ccb", |policy| Box::new(ReferenceCcb::of(policy, ALPHA, SEED))),
];

/// Every other kind.
pub fn other_kinds() -> impl Iterator<Item = &'static str> {
    PolicySpec::KINDS
        .iter()
        .map(|&(kind, _)| kind)
        .filter(|kind| WITH_REFERENCE.iter().all(|(known, _)| known != kind))
}

/// Whether the policy supports this number of rankers.
pub fn takes(kind: &str, rankers: usize) -> bool {
    spec(kind, rankers).validate(rankers).is_ok()
}

/// A kind with its default parameters. Its horizon, if it has one, is twice the number of steps
/// played.
fn spec(kind: &str, rankers: usize) -> PolicySpec {
    let horizon = json!(2 * Phase::Steady.steps(rankers));
    PolicySpec::from_text_with(kind, &[("horizon", horizon)]).expect("a kind with defaults")
}

/// Pages of the champion alone before [`Phase::Late`].
const ALONE: u64 = 400_000;

/// The number of steps before the measured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// After `4 K` steps.
    Early,
    /// After 100,000 steps, 10,000 from 500 rankers on.
    Steady,
    /// Long after the winner is found: after 100,000 steps and then 400,000 pages of the champion
    /// alone. With `d-ts-verdict` that is after its verdict.
    Late,
}

impl Phase {
    pub fn steps(self, rankers: usize) -> usize {
        match self {
            Phase::Early => 4 * rankers,
            Phase::Steady if rankers < 500 => 100_000,
            Phase::Steady => 10_000,
            Phase::Late => 100_000,
        }
    }
}

/// The state in which steps are measured, reached by playing the policy on `btl:K:1`, or for
/// [`Phase::Late`] on an order in which every ranker beats the later ones with 0.7.
pub struct Scene {
    pub matrix: PreferenceMatrix,
    spec: PolicySpec,
    setup: Setup,
    state: Vec<u8>,
    /// Number of measured steps that change the state little: a tenth of the steps before them.
    pub lasts: usize,
}

impl Scene {
    /// Play the policy up to the phase.
    pub fn of(kind: &str, rankers: usize, phase: Phase) -> Self {
        let mut scene = Self::at_start(kind, rankers);
        if phase == Phase::Late {
            scene.matrix = PreferenceMatrix::from_pairs(rankers, |_, _| 0.7).expect("in [0, 1]");
        }
        let steps = phase.steps(rankers);
        let (mut policy, mut rng, idle) = (scene.run(), rng(), InFlight::new());
        for _ in 0..steps {
            step(&mut policy, &idle, &scene.matrix, &mut rng);
        }
        if phase == Phase::Late {
            policy.observe_self_duels(policy.champion(), ALONE);
        }
        scene.state = policy.policy().save();
        scene.lasts = (steps / 10).clamp(100, 10_000);
        scene
    }

    fn at_start(kind: &str, rankers: usize) -> Self {
        let spec = spec(kind, rankers);
        let setup = Setup { rankers, seed: SEED };
        let policy = spec.start(setup);
        let matrix = PreferenceMatrix::named(&format!("btl:{rankers}:1")).expect("a known name");
        Self { matrix: matrix.expect("a valid size"), spec, setup, state: policy.save(), lasts: 0 }
    }

    /// The scene in a state from [`Scene::state`].
    pub fn in_state(kind: &str, rankers: usize, state: Vec<u8>) -> Self {
        Self { state, ..Self::at_start(kind, rankers) }
    }

    pub fn state(&self) -> &[u8] {
        &self.state
    }

    pub fn run(&self) -> Run {
        let policy = self.spec.restore(self.setup, &self.state);
        Run::of(policy.expect("a saved state"))
    }
}

pub fn rng() -> PolicyRng {
    PolicyRng::seed_from_u64(7)
}

fn outcome(matrix: &PreferenceMatrix, duel: Duel, rng: &mut PolicyRng) -> Outcome {
    let first_wins = rng.random::<f64>() < matrix.win_probability(duel.first, duel.second);
    if first_wins { Outcome::First } else { Outcome::Second }
}

/// One step of a policy, with nothing in flight: select, draw an outcome from the matrix, fold.
#[inline]
pub fn step(
    policy: &mut dyn Bandit,
    idle: &InFlight,
    matrix: &PreferenceMatrix,
    rng: &mut PolicyRng,
) {
    let selection = black_box(policy.select(idle, rng));
    let outcome = match selection.duel.is_self() {
        true => Outcome::None,
        false => outcome(matrix, selection.duel, rng),
    };
    policy.observe_shown(selection, outcome);
}

/// One step of a reference implementation.
#[inline]
pub fn reference_step(
    form: &mut dyn ReferencePolicy,
    matrix: &PreferenceMatrix,
    rng: &mut PolicyRng,
) {
    let duel = black_box(form.select(rng));
    form.fold(duel, if duel.is_self() { Outcome::None } else { outcome(matrix, duel, rng) });
}
