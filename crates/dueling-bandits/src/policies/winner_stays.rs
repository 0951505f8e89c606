//! Winner Stays (Chen, Frazier: "Dueling Bandits with Weak Regret", ICML 2017): a tournament in
//! rounds in which the winner of a duel meets the next challenger.
//!
//! WS-W keeps `C[i]`, wins minus losses, and selects the two rankers with the largest values. It
//! breaks ties in favour of the incumbent of the previous duel, then of its challenger, then at
//! random. As a result, in round `ℓ` an incumbent meets the other rankers one after another. Each
//! meeting ends when one of the two has `C = -ℓ`. The round ends when all rankers but one have that
//! value; the winner then has `C = (K-1)ℓ`. WS-S shows the winner of round `ℓ` alone for `⌊β^ℓ⌋`
//! steps before the next round.
//!
//! - Random draws happen in the fold, and the state keeps the next pair. Therefore all requests on
//!   one state get the same pair.
//! - Only a win counts. A page without a click or a tie does not change the tournament. This
//!   includes the tie rule `half`: half a win for both rankers moves neither. With `coin`, ties
//!   move it on.
//! - An outcome counts in the tournament only if its pair, in either order, is the current pair. A
//!   late outcome of any other pair, or one that arrives during a winner's steps, counts in the
//!   tally only. With `D` duels in flight, most outcomes are late.
//! - A self-duel of the winner is one of its steps; any other self-duel is a step without
//!   information.

use rand::RngExt;

use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
#[cfg(feature = "serde")]
use crate::saved_state::{SaveLater, load_state, save_later};
use crate::{InFlight, Observation, Outcome, Policy, PolicyRng, Selection, Tally, step_rng};

const FORMAT: u32 = 1;

/// Which regret Winner Stays is to keep small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum StaysFor {
    /// WS-W: a step costs nothing if either ranker is the best.
    Weak,
    /// WS-S: a step costs as much as both of its rankers, so the winner of a round is shown alone.
    #[default]
    Strong,
}

/// Parameters of Winner Stays.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct WinnerStays {
    /// WS-W (`weak`) or WS-S (`strong`).
    pub regret: StaysFor,
    /// Growth of the winner's steps from round to round, in WS-S.
    pub beta: f64,
}

impl Default for WinnerStays {
    fn default() -> Self {
        Self { regret: StaysFor::default(), beta: 1.1 }
    }
}

impl PolicyParameters for WinnerStays {
    const DESCRIPTION: Description = Description {
        summary: "A tournament in which the winner stays for the next challenger, and is shown \
                  alone between rounds. It plays one duel at a time, and only wins count: with tie \
                  rule `half`, ties are ignored.",
        source: "Chen, Frazier, Dueling Bandits with Weak Regret (ICML 2017), WS-W and WS-S",
        assumes: "a Condorcet winner; better with a total order",
        parameters: &[
            Parameter {
                name: "regret",
                values: Values::OneOf(&["weak", "strong"]),
                meaning: "`strong` (WS-S): the winner of a round is shown alone; `weak` (WS-W): it \
                          is not.",
                default: Some("strong"),
            },
            Parameter {
                name: "beta",
                values: Values::Number,
                meaning: "Above 1: the winner of round l is shown alone for `floor(beta^l)` steps. \
                          Large values gamble on early winners, small values explore for longer; \
                          no effect with `regret=weak`.",
                default: Some("1.1"),
            },
        ],
        fixed_rankers: Some("its tournament is among the initial rankers"),
        not_served: Some(
            "it requests one pair at a time: with many duels in flight, nearly all outcomes come \
             too late to count",
        ),
    };

    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(
            self.beta.is_finite() && self.beta > 1.0,
            "beta",
            self.beta,
            "a finite number above 1",
        )
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        let k = setup.rankers;
        let mut state = State {
            tally: Tally::new(k),
            balances: vec![0; k],
            round: 1,
            power: 1.0,
            alone: 0,
            incumbent: 0,
            challenger: 0,
        };
        state.draw_pair(None, &mut step_rng(setup.seed, 0));
        Box::new(Tournament { parameters: self.clone(), seed: setup.seed, state })
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        (format == FORMAT).then_some(())?;
        let state: State = load_state(state)?;
        let k = setup.rankers;
        let sound = state.tally.rankers() == k
            && state.balances.len() == k
            && state.balances.iter().all(|balance| balance.unsigned_abs() <= 1 << 52)
            && (1..=1 << 52).contains(&state.round)
            && state.power >= 1.0
            && usize::from(state.incumbent) < k
            && usize::from(state.challenger) < k
            && state.incumbent != state.challenger;
        sound.then(|| -> Box<dyn Policy> {
            Box::new(Tournament { parameters: self.clone(), seed: setup.seed, state })
        })
    }
}

#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct State {
    tally: Tally,
    /// `C`.
    balances: Vec<i64>,
    /// `ℓ`, the number of the current round.
    round: i64,
    /// `β` to the power of the number of completed rounds.
    power: f64,
    /// Steps left in which the winner of the last round is shown alone.
    alone: u64,
    /// `i`, a ranker with the largest balance; between rounds the winner, `Z`.
    incumbent: u16,
    /// `j`.
    challenger: u16,
}

impl State {
    /// Draw the next pair, given the pair `previous`.
    fn draw_pair(&mut self, previous: Option<(u16, u16)>, rng: &mut PolicyRng) {
        self.incumbent = self.leader(None, previous, rng);
        self.challenger = self.leader(Some(self.incumbent), previous, rng);
    }

    /// A ranker with the largest balance, not `excluded`.
    fn leader(
        &self,
        excluded: Option<u16>,
        previous: Option<(u16, u16)>,
        rng: &mut PolicyRng,
    ) -> u16 {
        let others = || (0..self.balances.len() as u16).filter(|&i| Some(i) != excluded);
        let largest = others().map(|i| self.balances[usize::from(i)]).max();
        let tied: Vec<u16> =
            others().filter(|&i| Some(self.balances[usize::from(i)]) == largest).collect();
        let stays =
            previous.and_then(|(i, j)| [i, j].into_iter().find(|ranker| tied.contains(ranker)));
        stays.unwrap_or_else(|| match tied[..] {
            [only] => only,
            _ => tied[rng.random_range(0..tied.len())],
        })
    }
}

#[derive(Debug)]
struct Tournament {
    parameters: WinnerStays,
    seed: u64,
    state: State,
}

impl Tournament {
    fn fold_win(&mut self, winner: usize, loser: usize) {
        let state = &mut self.state;
        state.balances[winner] += 1;
        state.balances[loser] -= 1;
        if state.balances[winner] == (state.balances.len() as i64 - 1) * state.round {
            state.round += 1;
            if self.parameters.regret == StaysFor::Strong {
                state.power *= self.parameters.beta;
                state.alone = state.power as u64; // the cast rounds down and saturates
            }
        }
        let mut rng = step_rng(self.seed, state.tally.steps());
        state.draw_pair(Some((state.incumbent, state.challenger)), &mut rng);
    }
}

impl Policy for Tournament {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, _in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let (i, j) = (usize::from(self.state.incumbent), usize::from(self.state.challenger));
        if self.state.alone > 0 { Selection::of(i, i) } else { Selection::of(i, j) }
    }

    fn uses_in_flight(&self) -> bool {
        false
    }

    fn observe(&mut self, observation: &Observation) {
        let (first, second) = (observation.duel.first, observation.duel.second);
        self.state.tally.record(observation.duel, observation.outcome);
        let asked = (usize::from(self.state.incumbent), usize::from(self.state.challenger));
        if self.state.alone > 0 || (asked != (first, second) && asked != (second, first)) {
            return;
        }
        match observation.outcome {
            Outcome::First => self.fold_win(first, second),
            Outcome::Second => self.fold_win(second, first),
            Outcome::Half | Outcome::Void | Outcome::None => {}
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.state.tally.skip(count);
        if ranker == usize::from(self.state.incumbent) {
            self.state.alone = self.state.alone.saturating_sub(count);
        }
    }

    fn champion(&self) -> usize {
        usize::from(self.state.incumbent)
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater {
        save_later(self.state.clone())
    }
}
