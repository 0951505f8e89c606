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
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::parameters::require;
use dueling_bandits::{
    Bandit, InFlight, InvalidPolicy, Observation, Outcome, PolicyRng, Selection, Setup, Tally,
    step_rng,
};

/// Which regret Winner Stays is to keep small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StaysFor {
    /// WS-W: a step costs nothing if either ranker is the best.
    Weak,
    /// WS-S: a step costs as much as both of its rankers, so the winner of a round is shown alone.
    #[default]
    Strong,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Parameters for WinnerStays {
    fn validate(&self, _rankers: usize) -> Result<(), InvalidPolicy> {
        require(
            self.beta.is_finite() && self.beta > 1.0,
            "beta",
            self.beta,
            "a finite number above 1",
        )
    }

    fn start(&self, Setup { rankers: k, seed }: Setup) -> Box<dyn Bandit> {
        let mut tournament = Tournament {
            parameters: self.clone(),
            seed,
            tally: Tally::new(k),
            balances: vec![0; k],
            round: 1,
            power: 1.0,
            alone: 0,
            incumbent: 0,
            challenger: 0,
        };
        tournament.draw_pair(&[]);
        Box::new(tournament)
    }
}

#[derive(Debug)]
struct Tournament {
    parameters: WinnerStays,
    seed: u64,
    tally: Tally,
    /// `C`.
    balances: Vec<i64>,
    /// `ℓ`, the number of the current round.
    round: i64,
    /// `β` to the power of the number of completed rounds; 1 in WS-W.
    power: f64,
    /// Steps left in which the winner of the last round is shown alone.
    alone: u64,
    /// `i`, a ranker with the largest balance; between rounds the winner, `Z`.
    incumbent: usize,
    /// `j`.
    challenger: usize,
}

impl Tournament {
    /// Draw the next pair, given the pair `previous`.
    fn draw_pair(&mut self, previous: &[usize]) {
        let mut rng = step_rng(self.seed, self.tally.steps());
        self.incumbent = self.leader(None, previous, &mut rng);
        self.challenger = self.leader(Some(self.incumbent), previous, &mut rng);
    }

    /// A ranker with the largest balance, not `excluded`.
    fn leader(&self, excluded: Option<usize>, previous: &[usize], rng: &mut PolicyRng) -> usize {
        let others = || (0..self.balances.len()).filter(|&i| Some(i) != excluded);
        let largest = others().map(|i| self.balances[i]).max();
        let tied: Vec<usize> = others().filter(|&i| Some(self.balances[i]) == largest).collect();
        let stays = previous.iter().copied().find(|ranker| tied.contains(ranker));
        stays.unwrap_or_else(|| match tied[..] {
            [only] => only,
            _ => tied[rng.random_range(0..tied.len())],
        })
    }

    fn fold_win(&mut self, winner: usize, loser: usize) {
        self.balances[winner] += 1;
        self.balances[loser] -= 1;
        if self.balances[winner] == (self.balances.len() as i64 - 1) * self.round {
            self.round += 1;
            if self.parameters.regret == StaysFor::Strong {
                self.power *= self.parameters.beta;
                self.alone = self.power as u64; // the cast rounds down and saturates
            }
        }
        self.draw_pair(&[self.incumbent, self.challenger]);
    }
}

impl Bandit for Tournament {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, _in_flight: &InFlight, _rng: &mut PolicyRng) -> Selection {
        let (i, j) = (self.incumbent, self.challenger);
        if self.alone > 0 { Selection::of(i, i) } else { Selection::of(i, j) }
    }

    fn observe(&mut self, observation: &Observation) {
        let (first, second) = (observation.duel.first, observation.duel.second);
        self.tally.record(observation.duel, observation.outcome);
        let asked = (self.incumbent, self.challenger);
        if self.alone > 0 || (asked != (first, second) && asked != (second, first)) {
            return;
        }
        match observation.outcome {
            Outcome::First => self.fold_win(first, second),
            Outcome::Second => self.fold_win(second, first),
            Outcome::Half | Outcome::Void | Outcome::None => {}
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.tally.skip(count);
        if ranker == self.incumbent {
            self.alone = self.alone.saturating_sub(count);
        }
    }

    fn champion(&self) -> usize {
        self.incumbent
    }
}
