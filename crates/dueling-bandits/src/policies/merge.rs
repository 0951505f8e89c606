//! MergeRUCB (Zoghi, Whiteson, de Rijke, "MergeRUCB: A Method for Large-Scale Online Ranker
//! Evaluation", WSDM 2015) and MergeDTS (Li, Markov, de Rijke, Zoghi, "MergeDTS: A Method for
//! Effective Large-Scale Online Ranker Evaluation", ACM TOIS 2020). Step numbers are those of
//! `algorithms-comparators.md` §5 and §16.1.
//!
//! Rankers meet in small batches (nothing to do with batches of comparisons), losers are removed,
//! and batches are merged as they empty. Selecting draws the batch at random, so that requests that
//! are served at once spread; with `round_robin` batches take turns, as in a simulation. A ranker
//! that was removed never comes back.

mod batches;

use smallvec::SmallVec;

use crate::pairwise_sampling::{PairwiseSample, WinProbabilities};
use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::choose;
#[cfg(feature = "serde")]
use crate::saved_state::{load_state, save_state};
use crate::{
    DeferredUpdates, Duel, InFlight, Observation, Policy, PolicyRng, Selection, Tally, step_rng,
};
use batches::Batches;

const FORMAT: u32 = 1;

/// Parameters of MergeRUCB.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct MergeRucb {
    /// Rankers in a batch at the start, `p`.
    pub batch_size: usize,
    /// Width of the confidence bounds.
    pub alpha: f64,
    /// Probability of a wrong answer.
    pub delta: f64,
    /// `C` of `ln(t + C)`; from `alpha` and `delta` where not given.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub constant: Option<f64>,
    /// Whether batches take turns.
    pub round_robin: bool,
}

impl Default for MergeRucb {
    fn default() -> Self {
        Self { batch_size: 4, alpha: 1.01, delta: 0.01, constant: None, round_robin: false }
    }
}

/// Parameters of MergeDTS.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct MergeDts {
    /// Rankers in a batch at the start, `p`.
    pub batch_size: usize,
    /// Width of the confidence bounds.
    pub alpha: f64,
    /// `C` of `ln(t + C)`.
    pub constant: f64,
    /// Whether batches take turns.
    pub round_robin: bool,
}

impl Default for MergeDts {
    fn default() -> Self {
        Self {
            batch_size: 16,
            alpha: 0.262144, // 0.8⁶
            constant: 400_000.0,
            round_robin: false,
        }
    }
}

impl MergeRucb {
    /// `C(δ) = ⌈((4α-1) K² / ((2α-1) δ))^(1/(2α-1))⌉`.
    fn constant(&self, rankers: usize) -> f64 {
        self.constant.unwrap_or_else(|| {
            let slack = 2.0 * self.alpha - 1.0;
            let square = (rankers * rankers) as f64;
            libm::pow((4.0 * self.alpha - 1.0) * square / (slack * self.delta), 1.0 / slack).ceil()
        })
    }

    fn rules(&self, rankers: usize) -> Rules {
        Rules {
            kind: Kind::Rucb,
            batch_size: self.batch_size,
            alpha: self.alpha,
            constant: self.constant(rankers),
            round_robin: self.round_robin,
        }
    }
}

impl MergeDts {
    fn rules(&self) -> Rules {
        Rules {
            kind: Kind::Dts,
            batch_size: self.batch_size,
            alpha: self.alpha,
            constant: self.constant,
            round_robin: self.round_robin,
        }
    }
}

const ROUND_ROBIN: Parameter = Parameter {
    name: "round_robin",
    values: Values::Boolean,
    meaning: "`true`: batches take turns, as in the papers; `false`: one at random, which spreads requests.",
    default: Some("false"),
};

fn require_batch_size(batch_size: usize) -> Result<(), InvalidPolicy> {
    require((2..=64).contains(&batch_size), "batch_size", batch_size, "from 2 to 64")
}

fn require_constant(constant: f64) -> Result<(), InvalidPolicy> {
    require(
        constant >= 1.0 && constant.is_finite(),
        "constant",
        constant,
        "a finite number of at least 1",
    )
}

impl PolicyParameters for MergeRucb {
    const DESCRIPTION: Description = Description {
        summary: "RUCB inside small batches of rankers that are merged as losers are removed: for many rankers.",
        source: "Zoghi, Whiteson & de Rijke, MergeRUCB: A Method for Large-Scale Online Ranker Evaluation, WSDM 2015",
        assumes: "a Condorcet winner, and few pairs of equal rankers",
        parameters: &[
            Parameter {
                name: "batch_size",
                values: Values::Integer,
                meaning: "Rankers in a batch at the start; 4 or more for the guarantee, from 2 to 64.",
                default: Some("4"),
            },
            Parameter {
                name: "alpha",
                values: Values::Number,
                meaning: "Width of the confidence bounds, `sqrt(alpha ln(t + constant) / N)`; above 0, and above 0.5 \
                          unless `constant` is given.",
                default: Some("1.01"),
            },
            Parameter {
                name: "delta",
                values: Values::Number,
                meaning: "Probability of a wrong answer, between 0 and 1; unused when `constant` is given.",
                default: Some("0.01"),
            },
            Parameter {
                name: "constant",
                values: Values::Number,
                meaning: "Added to `t` in the bounds; at least 1.",
                default: Some(
                    "what the theory asks for with `alpha`, `delta` and the number of rankers",
                ),
            },
            ROUND_ROBIN,
        ],
        fixed_rankers: Some(
            "it divides the rankers into small batches when it begins, and only merges these",
        ),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        require_batch_size(self.batch_size)?;
        require(
            self.alpha > 0.0 && self.alpha.is_finite(),
            "alpha",
            self.alpha,
            "a finite number above 0",
        )?;
        require(self.delta > 0.0 && self.delta < 1.0, "delta", self.delta, "between 0 and 1")?;
        if self.constant.is_none() {
            let alpha = self.alpha;
            require(alpha > 0.5, "alpha", alpha, "above 0.5 where `constant` is not given")?;
            let wanted = "larger: the constant that it asks for is beyond all numbers";
            require(self.constant(rankers).is_finite(), "alpha", alpha, wanted)?;
        }
        require_constant(self.constant(rankers))
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Tournament::new(setup, self.rules(setup.rankers)))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Tournament::restore(setup, format, state, self.rules(setup.rankers))
    }
}

impl PolicyParameters for MergeDts {
    const DESCRIPTION: Description = Description {
        summary: "Thompson sampling inside small batches of rankers that are merged as losers are removed: for very \
                  many rankers.",
        source: "Li, Markov, de Rijke & Zoghi, MergeDTS: A Method for Effective Large-Scale Online Ranker Evaluation, \
                 ACM TOIS 2020",
        assumes: "a Condorcet winner",
        parameters: &[
            Parameter {
                name: "batch_size",
                values: Values::Integer,
                meaning: "Rankers in a batch at the start, from 2 to 64.",
                default: Some("16"),
            },
            Parameter {
                name: "alpha",
                values: Values::Number,
                meaning: "Width of the confidence bounds, `sqrt(alpha ln(t + constant) / N)`; above 0.",
                default: Some("0.262144"),
            },
            Parameter {
                name: "constant",
                values: Values::Number,
                meaning: "Added to `t` in the bounds; at least 1.",
                default: Some("400000"),
            },
            ROUND_ROBIN,
        ],
        fixed_rankers: Some(
            "it divides the rankers into small batches when it begins, and only merges these",
        ),
        not_served: None,
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require_batch_size(self.batch_size)?;
        require(
            self.alpha > 0.0 && self.alpha.is_finite(),
            "alpha",
            self.alpha,
            "a finite number above 0",
        )?;
        require_constant(self.constant)
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        Box::new(Tournament::new(setup, self.rules()))
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        Tournament::restore(setup, format, state, self.rules())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rucb,
    Dts,
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    kind: Kind,
    /// `p`.
    batch_size: usize,
    alpha: f64,
    /// `C`.
    constant: f64,
    round_robin: bool,
}

#[derive(Debug)]
struct Tournament {
    rules: Rules,
    seed: u64,
    tally: Tally,
    batches: Batches,
    /// MergeDTS: follows from the tally.
    win_probabilities: Option<WinProbabilities>,
}

impl Tournament {
    fn new(Setup { rankers, seed }: Setup, rules: Rules) -> Self {
        let mut batches = Batches::new(rankers, rules.batch_size, &mut step_rng(seed, 0));
        if rules.kind == Kind::Dts {
            batches.join_singletons();
        }
        Self::of(rules, seed, Tally::new(rankers), batches)
    }

    fn of(rules: Rules, seed: u64, tally: Tally, batches: Batches) -> Self {
        let win_probabilities =
            (rules.kind == Kind::Dts).then(|| WinProbabilities::new(tally.rankers(), &tally));
        Self { rules, seed, tally, batches, win_probabilities }
    }

    #[cfg(feature = "serde")]
    fn restore(setup: Setup, format: u32, state: &[u8], rules: Rules) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let (tally, batches): (Tally, Batches) = load_state(state)?;
        (tally.rankers() == setup.rankers && batches.fits(setup.rankers)).then_some(())?;
        Some(Box::new(Self::of(rules, setup.seed, tally, batches)))
    }

    /// `α ln(t + C)`.
    fn width(&self) -> f64 {
        self.rules.alpha * libm::log(self.tally.steps() as f64 + 1.0 + self.rules.constant)
    }

    /// Step 2 of MergeRUCB.
    fn select_rucb(
        &self,
        batch: &[u16],
        in_flight: &InFlight,
        rng: &mut PolicyRng,
    ) -> Option<Duel> {
        let members = || batch.iter().map(|&i| usize::from(i));
        let c = choose::uniform(members(), rng)?;
        let width = self.width();
        let others = members().filter(|&j| j != c);
        let d = choose::argmax(
            others.map(|j| (j, upper(&self.tally, j, c, width, in_flight.of(j, c)))),
            rng,
        )?;
        Some(Duel::new(c, d))
    }

    /// Points 2 and 3 of MergeDTS.
    fn select_dts(
        &self,
        win_probabilities: &WinProbabilities,
        batch: &[u16],
        rng: &mut PolicyRng,
    ) -> Option<Duel> {
        let members = || batch.iter().map(|&i| usize::from(i)).enumerate();
        let draw = PairwiseSample::new(win_probabilities, &self.tally, rng);
        let mut score = SmallVec::<[u16; crate::MAX_RANKERS]>::from_elem(0, batch.len());
        for (at, i) in members() {
            let row = draw.row(i);
            for (other, j) in members().skip(at + 1) {
                score[if row.wins(j) { at } else { other }] += 1;
            }
        }
        let c = choose::argmax(members().map(|(at, i)| (i, score[at])), rng)?;
        // the opponent that is most likely to lose
        let mut weakest: Option<(usize, f64)> = None;
        for (_, j) in members().filter(|&(_, j)| j != c) {
            let phi = crate::pairwise_sampling::theta(&self.tally, j, c, rng);
            if weakest.is_none_or(|(_, least)| phi < least) {
                weakest = Some((j, phi));
            }
        }
        weakest.map(|(d, _)| Duel::new(c, d))
    }
}

impl Tournament {
    /// Steps 3 to 6.
    fn record(&mut self, observation: &Observation) {
        let duel = observation.duel;
        if duel.is_self() {
            return self.observe_self_duels(duel.first, 1);
        }
        self.tally.record(duel, observation.outcome); // step 3
        let mut rng = step_rng(self.seed, self.tally.steps());
        let width = self.width();
        // step 4; a pair of two batches, as of a duel that comes late, counts in the tally alone
        if let Some(at) = self.batches.common(duel.first, duel.second) {
            let tally = &self.tally;
            self.batches.prune(at, duel, |i, j| upper(tally, i, j, width, 0) < 0.5, &mut rng);
        }
        if self.rules.kind == Kind::Dts {
            self.batches.join_singletons();
        }
        self.batches.advance(1); // step 5
        self.batches.merge(self.tally.rankers(), self.rules.batch_size, &mut rng); // step 6
    }
}

/// `u[i][j]` with `width = α ln(t + C)`; duels in flight count in the radius alone.
fn upper(tally: &Tally, i: usize, j: usize, width: f64, pending: u32) -> f64 {
    let pending = f64::from(pending);
    match tally.mean(i, j) {
        Some(mean) => mean + (width / (tally.plays(i, j) + pending)).sqrt(),
        None if pending > 0.0 => 1.0 + 1.0 / (1.0 + pending),
        None => f64::INFINITY,
    }
}

impl Policy for Tournament {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let batch = self.batches.current(self.rules.round_robin, rng);
        let duel = match &self.win_probabilities {
            _ if batch.len() == 1 => None,
            Some(win_probabilities) => self.select_dts(win_probabilities, batch, rng),
            None => self.select_rucb(batch, in_flight, rng),
        };
        let alone = usize::from(batch[0]);
        duel.map_or(Selection::of(alone, alone), |Duel { first, second }| {
            Selection::of(first, second)
        })
    }

    fn uses_in_flight(&self) -> bool {
        self.rules.kind == Kind::Rucb
    }

    fn observe(&mut self, observation: &Observation) {
        self.record(observation);
        if let Some(win_probabilities) = &mut self.win_probabilities {
            win_probabilities.update(&self.tally, observation.duel.first, observation.duel.second);
        }
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    fn champion(&self) -> usize {
        self.tally.copeland_leader_among(&self.batches.survivors())
    }

    fn deferred_updates(&mut self) -> Option<&mut dyn DeferredUpdates> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save(&self) -> Vec<u8> {
        save_state(&(&self.tally, &self.batches))
    }
}

impl DeferredUpdates for Tournament {
    fn observe_deferred(&mut self, observation: &Observation) {
        self.record(observation);
        if let Some(win_probabilities) = &mut self.win_probabilities {
            win_probabilities.update_later(observation.duel.first, observation.duel.second);
        }
    }

    fn catch_up(&mut self) {
        if let Some(win_probabilities) = &mut self.win_probabilities {
            win_probabilities.catch_up(&self.tally);
        }
    }
}
