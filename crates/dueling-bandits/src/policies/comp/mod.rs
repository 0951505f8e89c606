//! PCOMP, SCOMP and SCOMP2 (Agarwal, Ghuge & Nagarajan, "Batched Dueling Bandits", ICML 2022): what
//! the three share.
//!
//! A round `r` compares pairs `c_r = ⌊q^r⌋` times each, `q = T^(1/B)`, and removes rankers that
//! others clearly beat. The three differ in which pairs a round compares and who may remove whom:
//! one [`Scheme`] each. Here are the horizon, the batches, the evidence and the rule that calls it
//! clear.
//!
//! Where the paper is silent:
//! - The horizon counts the comparisons that batches ask for. The last batch is cut to what is
//!   left. Self-duels while a batch waits and surplus comparisons are outside it. When it is used
//!   up the champion is shown alone, for ever.
//! - Removal never empties the field: where every ranker is clearly beaten (a cycle: there is no
//!   Condorcet winner), those that the fewest beat stay. Otherwise that is the paper's rule, as the
//!   fewest is then none.
//! - A pair has as many comparisons that say something as it has; skipped ties make them fewer than
//!   `c_r`, surplus ones more. The radius goes by that number and is the paper's where it is `c_r`.
//!   A pair with none removes nobody.
//! - Overall evidence is the tally, every surplus comparison included. Evidence of one round is
//!   what its batches learnt while they were open, surplus comparisons of their pairs included.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::math::divergence;
use crate::parameters::{InvalidPolicy, Parameter, Setup, Values, require};
use crate::policies::batch::{Ledger, Rows, runs};
use crate::saved_state::load_state;
use crate::saved_state::save_state;
use crate::{
    BatchPair, Duel, InFlight, Observation, Outcome, PairCounts, Policy, PolicyRng, Selection,
    Tally, Unsupported,
};

mod evidence;
pub mod pcomp;
pub mod scomp;
pub mod scomp2;
mod standing;

pub use evidence::{Elimination, Estimates};
use evidence::{Evidence, Rule};
use standing::Standing;

const FORMAT: u32 = 2;

/// Most comparisons of a horizon: counts of half wins have 32 bits, and a batch may ask all of them
/// of one pair.
pub const MAX_HORIZON: u64 = 2_000_000_000;

/// Why rankers cannot come and go.
const FIXED_RANKERS: &str = "a batch policy commits to its pairs and divides its horizon for the rankers it started \
                             with; start another experiment with the rankers you want";

/// The parameters that all three have, for their descriptions.
const HORIZON: Parameter = Parameter {
    name: "horizon",
    values: Values::Integer,
    meaning: "comparisons after which the policy stops exploring and shows its champion alone, from the number \
              of rankers to 2 000 000 000",
    default: None,
};
const BATCHES: Parameter = Parameter {
    name: "batches",
    values: Values::Integer,
    meaning: "B: rounds that the horizon is divided into, from 1 to the horizon; more of them, less regret",
    default: Some("the logarithm of the horizon to base 2, rounded down"),
};
const ELIMINATION: Parameter = Parameter {
    name: "elimination",
    values: Values::OneOf(&["kl", "kl-published", "hoeffding"]),
    meaning: "when a ranker is clearly beaten: `kl` (divergence against ln(T K^2)), `kl-published` (against \
              ln(K^2), as the paper's figures seem to; wrong about once in K^2 pairs) or `hoeffding` (the \
              paper's theory)",
    default: Some("kl"),
};
const ESTIMATES: Parameter = Parameter {
    name: "estimates",
    values: Values::OneOf(&["all", "fresh"]),
    meaning: "the comparisons that count as evidence: `all` of a pair, or `fresh`: only those of the round",
    default: Some("fresh with elimination=hoeffding, all otherwise"),
};
const SEED_EXPONENT: Parameter = Parameter {
    name: "seed_exponent",
    values: Values::Number,
    meaning: "e: a ranker is in the seed set with probability K^-e, from 0 to 1; the paper has 1/2, and 2/3 in \
              a theorem",
    default: Some("0.5"),
};

fn default_seed_exponent() -> f64 {
    0.5
}

/// Declares the parameters of a policy with a seed set.
macro_rules! seeded_parameters {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// `T`, in comparisons.
            pub horizon: u64,
            /// `B`; the logarithm of the horizon to base 2 where it is not given.
            #[serde(default)]
            pub batches: Option<u32>,
            /// When a ranker is clearly beaten.
            #[serde(default)]
            pub elimination: Elimination,
            /// The comparisons that count as evidence.
            #[serde(default)]
            pub estimates: Option<Estimates>,
            /// A ranker is a seed with probability `K` to the minus this.
            #[serde(default = "default_seed_exponent")]
            pub seed_exponent: f64,
        }

        impl $name {
            fn terms(&self) -> Terms {
                Terms {
                    horizon: self.horizon,
                    batches: self.batches,
                    elimination: self.elimination,
                    estimates: self.estimates,
                }
            }
        }
    };
}
use seeded_parameters;

/// The shared parameters of one experiment, as given.
#[derive(Debug, Clone, Copy)]
struct Terms {
    horizon: u64,
    batches: Option<u32>,
    elimination: Elimination,
    estimates: Option<Estimates>,
}

impl Terms {
    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        let least = rankers as u64;
        require(
            (least..=MAX_HORIZON).contains(&self.horizon),
            "horizon",
            self.horizon,
            &format!("from {least}, the number of rankers, to {MAX_HORIZON}"),
        )?;
        let batches = self.batches();
        require(
            batches >= 1 && u64::from(batches) <= self.horizon,
            "batches",
            batches,
            "at least 1 and at most the horizon",
        )
    }

    /// `B`.
    fn batches(&self) -> u32 {
        self.batches.unwrap_or_else(|| self.horizon.max(2).ilog2())
    }

    /// `c_r = ⌊q^r⌋`; all of the horizon from round `B` on.
    fn comparisons_per_pair(&self, round: u32) -> u64 {
        let batches = self.batches();
        if round >= batches {
            return self.horizon;
        }
        let power = libm::pow(self.horizon as f64, f64::from(round) / f64::from(batches));
        // a whole root must not fall below itself by a rounding error
        libm::floor(power * (1.0 + 1e-12)) as u64
    }

    fn rule(&self, rankers: usize) -> Rule {
        Rule::new(self.elimination, self.horizon, rankers, self.batches())
    }

    fn estimates(&self) -> Estimates {
        self.estimates.unwrap_or(match self.elimination {
            Elimination::Hoeffding => Estimates::Fresh,
            Elimination::Kl | Elimination::KlPublished => Estimates::All,
        })
    }
}

fn validate_seed_exponent(exponent: f64) -> Result<(), InvalidPolicy> {
    require((0.0..=1.0).contains(&exponent), "seed_exponent", exponent, "a number from 0 to 1")
}

/// The rankers still in the race, ascending, and the round that the next pairs belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Field {
    /// `A`; never empty.
    active: Vec<usize>,
    /// `r`, from 1: the exponent of `q`. PCOMP's `τ` is in it.
    round: u32,
}

impl Field {
    /// Remove from `A` who is beaten beyond `threshold` by any of `beaters`.
    fn eliminate(&mut self, beaters: &[usize], evidence: &Evidence<'_>, threshold: f64) {
        let losses =
            |&j: &usize| beaters.iter().filter(|&&i| evidence.margin(i, j) > threshold).count();
        let losses: Vec<usize> = self.active.iter().map(losses).collect();
        let fewest = losses.iter().copied().min();
        let mut losses = losses.into_iter();
        self.active.retain(|_| losses.next() == fewest);
    }

    /// The switch: go on with the rankers of `A` that are `better` than the seeds, unless `A` holds
    /// another that beats all of these beyond `threshold`, which includes that there are none. `τ =
    /// r`: the round is repeated.
    fn switch(&mut self, better: Vec<usize>, evidence: &Evidence<'_>, threshold: f64) {
        let beats_all = |i: &usize| better.iter().all(|&j| evidence.margin(*i, j) > threshold);
        if !self.active.iter().any(|i| !better.contains(i) && beats_all(i)) {
            self.active = better;
        }
    }

    /// Every pair of `of`, which is ascending.
    fn all_pairs(of: &[usize]) -> Vec<Duel> {
        let after = |at: usize| of[at + 1..].iter();
        (0..of.len()).flat_map(|at| after(at).map(move |&j| Duel::new(of[at], j))).collect()
    }
}

/// What a closed batch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// The last of its round.
    Round,
    /// The round goes on with another.
    PartOfRound,
}

/// Which pairs a round compares, and who may remove whom.
trait Scheme: std::fmt::Debug + Send + Sync + Serialize + DeserializeOwned {
    /// The pairs of the next batch, distinct. At least two rankers are active.
    fn pairs(&self, field: &Field) -> Vec<Duel>;

    /// Adapt to a batch that was answered.
    fn learn(&mut self, field: &mut Field, evidence: &Evidence<'_>) -> Closed;

    /// Whether a state that was read can be one, for an experiment with `rankers` rankers.
    fn is_sound(&self, rankers: usize) -> bool;
}

/// What is saved.
#[derive(Debug, Serialize, Deserialize)]
struct State<S> {
    tally: Tally,
    field: Field,
    scheme: S,
    ledger: Ledger,
    /// What the earlier batches of the open round have learnt.
    round_so_far: Rows,
    /// Comparisons that batches have asked for.
    asked: u64,
}

/// A running policy of one of the three schemes.
#[derive(Debug)]
struct Batched<S> {
    terms: Terms,
    rule: Rule,
    state: State<S>,
    /// Derived from the tally and the field.
    standing: Standing,
}

impl<S: Scheme + 'static> Batched<S> {
    fn start(terms: Terms, setup: Setup, scheme: S) -> Box<dyn Policy> {
        let field = Field { active: (0..setup.rankers).collect(), round: 1 };
        let tally = Tally::new(setup.rankers);
        let standing = Standing::new(&tally, &field.active);
        let state = State {
            tally,
            field,
            scheme,
            ledger: Ledger::default(),
            round_so_far: Rows::default(),
            asked: 0,
        };
        let mut policy = Self { terms, rule: terms.rule(setup.rankers), state, standing };
        policy.open_batch();
        Box::new(policy)
    }

    fn restore(terms: Terms, setup: Setup, format: u32, bytes: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let mut state: State<S> = load_state(bytes)?;
        let active = &state.field.active;
        let sound = state.tally.rankers() == setup.rankers
            && active.windows(2).all(|pair| pair[0] < pair[1])
            && active.last().is_some_and(|&last| last < setup.rankers)
            && state.scheme.is_sound(setup.rankers)
            && u64::from(state.field.round) <= terms.horizon + 1
            && state.asked <= terms.horizon;
        sound.then_some(())?;
        state.ledger = state.ledger.resume(setup.rankers)?;
        let standing = Standing::new(&state.tally, &state.field.active);
        Some(Box::new(Self { terms, rule: terms.rule(setup.rankers), state, standing }))
    }

    /// Commit to the next batch, if there is one; returns what the last one had learnt.
    fn open_batch(&mut self) -> Rows {
        let state = &mut self.state;
        let done = state.field.active.len() == 1;
        let duels = if done { Vec::new() } else { state.scheme.pairs(&state.field) };
        let each = self.terms.comparisons_per_pair(state.field.round);
        let (asked, learnt) = state.ledger.open(duels, each, self.terms.horizon - state.asked);
        state.asked += asked;
        learnt
    }

    /// Learn from the batch that has just been completed, and open the next.
    fn adapt(&mut self) {
        let state = &mut self.state;
        let evidence = match self.terms.estimates() {
            Estimates::All => Evidence::of_all(&self.rule, &state.tally),
            Estimates::Fresh => {
                Evidence::of_round(&self.rule, [&state.round_so_far, state.ledger.learnt()])
            }
        };
        let remaining = state.field.active.len();
        let closed = state.scheme.learn(&mut state.field, &evidence);
        if state.field.active.len() < remaining {
            self.standing = Standing::new(&state.tally, &state.field.active);
        }
        let learnt = self.open_batch();
        self.state.round_so_far = match closed {
            Closed::Round => Rows::default(),
            Closed::PartOfRound => learnt,
        };
    }

    fn fold(&mut self, observation: &Observation, mut count: u32) {
        while count > 0 {
            let was_open = self.state.ledger.number().is_some();
            let folded = self.state.ledger.record(observation, count);
            self.standing.record(&mut self.state.tally, observation, folded);
            if was_open && self.state.ledger.number().is_none() {
                self.adapt();
            }
            count -= folded;
        }
    }
}

impl<S: Scheme + 'static> Policy for Batched<S> {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        self.state.ledger.draw(in_flight, rng).unwrap_or_else(|| {
            let champion = self.champion();
            Selection::of(champion, champion)
        })
    }

    fn observe(&mut self, observation: &Observation) {
        self.fold(observation, 1);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.state.tally.skip(count);
    }

    fn observe_counts(
        &mut self,
        counts: &PairCounts,
        batch: Option<u32>,
        tie: &mut dyn FnMut(u64) -> Outcome,
    ) {
        let steps = self.state.tally.steps();
        runs(counts, steps, tie, |outcome, count| {
            self.fold(&Observation { duel: counts.duel, outcome, batch, ticket: 0 }, count);
        });
    }

    fn champion(&self) -> usize {
        self.standing.champion(&self.state.field.active)
    }

    fn runs_in_batches(&self) -> bool {
        true
    }

    fn batch(&self) -> Option<u32> {
        self.state.ledger.number()
    }

    fn batch_pairs(&self) -> Vec<BatchPair> {
        self.state.ledger.pairs()
    }

    fn enlist(&mut self) -> Result<(), Unsupported> {
        Err(Unsupported(FIXED_RANKERS.into()))
    }

    fn retire(&mut self, _ranker: usize) -> Result<(), Unsupported> {
        Err(Unsupported(FIXED_RANKERS.into()))
    }

    fn format(&self) -> u32 {
        FORMAT
    }

    fn save(&self) -> Vec<u8> {
        save_state(&self.state)
    }
}
