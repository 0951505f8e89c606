//! SCB, Scalable Copeland Bandits (Zoghi, Karnin, Whiteson, de Rijke: "Copeland Dueling Bandits",
//! NIPS 2015, Algorithm 3): for many rankers, with or without a Condorcet winner.
//!
//! Round `r` has `T_r = 2^(2^r)` steps. It identifies a Copeland winner from scratch
//! ([`identification`], Algorithms 2 and 4) with failure probability `ln(T_r)/T_r`. For the rest of
//! the round it plays the winner against itself. The paper leaves some choices open; this
//! implementation makes these:
//!
//! - The first round is the first with `T_r ≥ max(K, 256)`: shorter rounds cannot learn anything.
//! - Every step of the experiment is a query of the round, including a page without a click.
//! - Each remaining ranker collects its own reward, and the duels in progress take turns. A request
//!   that finds `n` steps of the round folded and `m` duels in flight gets number `n + m` of them.
//!   Therefore concurrent requests share the work.
//! - An outcome is evidence in the round in which it is folded, no matter who requested it or when,
//!   as long as its pair is undecided in that round. The outcome of a decided pair, or of a round
//!   whose winner is known, counts only in the tally and as a step.
//! - A self-duel is a step of the round without information.

mod identification;

use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::saved_state::{load_state, save_state};
use crate::{Bandit, InFlight, Observation, Policy, PolicyRng, Selection, Tally, step_rng};
use identification::Identification;

/// The last round, because its `2^(2^6)` steps exceed the range of the step counter.
const LAST_ROUND: u32 = 6;

/// Parameters of SCB.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scb {
    /// A pair is a tie once it is known that neither wins with a probability above 1/2 plus this.
    /// 0: never.
    pub resolution: f64,
}

impl Default for Scb {
    fn default() -> Self {
        Self { resolution: 0.005 }
    }
}

impl PolicyParameters for Scb {
    const DESCRIPTION: Description = Description {
        summary: "Works in rounds of squared length: identifies a Copeland winner from pairs that \
                  are played until decided, then shows it alone for the rest of the round. Its \
                  cost grows with K, not with K squared.",
        source: "Zoghi, Karnin, Whiteson, de Rijke, Copeland Dueling Bandits (NIPS 2015), Algorithms 2, 3 and 4",
        assumes: "no pair is nearer to 1/2 than half the resolution, 0.0025 by default: such a pair \
                  counts as a tie",
        parameters: &[Parameter {
            name: "resolution",
            values: Values::Number,
            meaning: "A probability from 0 to below 0.5: a pair that is known to be closer to 1/2 \
                      than this is a tie; 0 plays every pair until one ranker wins, as in the \
                      paper.",
            default: Some("0.005"),
        }],
        fixed_rankers: Some("its rounds are planned for the initial rankers"),
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        let resolution = self.resolution;
        require((0.0..0.5).contains(&resolution), "resolution", resolution, "from 0 to below 0.5")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let number = first_round(setup.rankers);
        let mut rng = step_rng(setup.seed, 0);
        Box::new(ScalableCopeland {
            seed: setup.seed,
            resolution: self.resolution,
            tally: Tally::new(setup.rankers),
            number,
            round: Identification::new(setup.rankers, failure(number), self.resolution, &mut rng),
            previous_answer: None,
        })
    }

    fn restore(&self, setup: Setup, state: &[u8]) -> Option<Box<dyn Policy>> {
        let saved: ScalableCopeland = load_state(state)?;
        let (k, number) = (setup.rankers, saved.number);
        let sound = saved.tally.rankers() == k
            && (first_round(k)..=LAST_ROUND).contains(&number)
            && saved.previous_answer.is_none_or(|answer| answer < k);
        sound.then_some(())?;
        let round = saved.round.resume(k, failure(number), self.resolution)?;
        (round.steps() < length(number)).then_some(())?;
        let (seed, resolution) = (setup.seed, self.resolution);
        Some(Box::new(ScalableCopeland { seed, resolution, round, ..saved }))
    }
}

/// `T_r = 2^(2^r)`, in steps; the last round lasts as long as steps can be counted.
fn length(number: u32) -> u64 {
    1u64.checked_shl(1 << number).unwrap_or(u64::MAX)
}

/// `ln(1/δ_r)` with `δ_r = ln(T_r)/T_r` (Algorithm 3, line 2).
fn failure(number: u32) -> f64 {
    let log_length = f64::from(1u32 << number) * std::f64::consts::LN_2;
    log_length - libm::log(log_length)
}

/// The first `r` with `T_r ≥ max(K, 256)`.
fn first_round(rankers: usize) -> u32 {
    if rankers <= 256 { 3 } else { 4 }
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct ScalableCopeland {
    #[serde(skip)]
    seed: u64,
    #[serde(skip)]
    resolution: f64,
    tally: Tally,
    /// `r`.
    number: u32,
    round: Identification,
    /// The winner found by the latest earlier round that found one.
    previous_answer: Option<usize>,
}

impl ScalableCopeland {
    /// Algorithm 3, lines 1 and 2: start the next round once the current one is over.
    fn turn_round(&mut self) {
        if self.round.steps() < length(self.number) || self.number == LAST_ROUND {
            return;
        }
        self.previous_answer = self.round.answer().or(self.previous_answer);
        self.number += 1;
        let mut rng = step_rng(self.seed, self.tally.steps());
        self.round = Identification::new(
            self.tally.rankers(),
            failure(self.number),
            self.resolution,
            &mut rng,
        );
    }
}

impl Bandit for ScalableCopeland {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        match self.round.answer() {
            Some(winner) => Selection::of(winner, winner),
            None => {
                let (ranker, opponent) = self.round.asked(in_flight.total());
                Selection::of(ranker, opponent)
            }
        }
    }

    fn observe(&mut self, observation: &Observation) {
        self.tally.record(observation.duel, observation.outcome);
        let (seed, step) = (self.seed, self.tally.steps());
        self.round.observe(observation.duel, observation.outcome, || step_rng(seed, step));
        self.turn_round();
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        let mut left = count;
        while left > 0 {
            let here = left.min(length(self.number).saturating_sub(self.round.steps()).max(1));
            self.tally.skip(here);
            self.round.skip(here);
            self.turn_round();
            left -= here;
        }
    }

    fn champion(&self) -> usize {
        self.round.answer().or(self.previous_answer).unwrap_or_else(|| self.tally.copeland_leader())
    }
}

impl Policy for ScalableCopeland {
    fn save(&self) -> Vec<u8> {
        save_state(self)
    }
}
