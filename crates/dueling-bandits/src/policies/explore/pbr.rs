//! Copeland PBR: preference-based racing (Busa-Fekete, Szörényi, Weng, Cheng & Hüllermeier, ICML
//! 2013), used as a dueling bandit through the explore-then-exploit wrapper. See
//! `algorithms-comparators.md` §12.
//!
//! A pair that has left the race keeps its decision. Later outcomes of the pair count in the tally
//! only.

use crate::parameters::{
    Description, InvalidPolicy, Parameter, PolicyParameters, Setup, Values, require,
};
use crate::policies::explore::confidence::Radius;
use crate::policies::explore::exploration::Exploration;
use crate::policies::explore::explore_then_exploit::ExploreThenExploit;
use crate::policies::explore::pairs::Pairs;
use crate::policies::explore::parameters::{DELTA, ExplorationParameters, MAX_HORIZON};
use crate::policies::explore::round_robin::RoundRobin;
use crate::{Duel, InFlight, Observation, Policy, PolicyRng, Tally};

/// The rule that selects and discards rankers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum SelectionRule {
    /// A ranker is selected or discarded as soon as the decisions leave no other possibility.
    #[default]
    Corrected,
    /// As printed in the paper. Two of its conditions are stricter by one: for `κ = 1` it never
    /// selects a ranker.
    Printed,
}

/// Parameters of Copeland PBR.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct Pbr {
    /// `T`, in steps.
    pub horizon: u64,
    /// `δ`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub delta: Option<f64>,
    /// `κ`.
    #[cfg_attr(feature = "serde", serde(default = "one"))]
    pub kappa: usize,
    /// `n_max`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub most_comparisons: Option<u64>,
    /// The rule that selects and discards rankers.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rule: SelectionRule,
}

fn one() -> usize {
    1
}

impl Pbr {
    /// The default parameters for a horizon.
    pub fn new(horizon: u64) -> Self {
        Self {
            horizon,
            delta: None,
            kappa: one(),
            most_comparisons: None,
            rule: SelectionRule::default(),
        }
    }

    /// The parameters that all explorations have.
    fn shared(&self) -> ExplorationParameters {
        ExplorationParameters { horizon: Some(self.horizon), delta: self.delta }
    }

    fn most_comparisons(&self) -> u64 {
        self.most_comparisons.unwrap_or(self.horizon)
    }

    fn race(&self, setup: Setup) -> Race {
        let (kappa, rule) = (self.kappa, self.rule);
        let most_comparisons = self.most_comparisons();
        // ln(2 K² n_max / δ)
        let radius =
            Radius::finite(setup.rankers * setup.rankers, most_comparisons, self.shared().delta());
        Race { pairs: Pairs { rankers: setup.rankers }, radius, most_comparisons, kappa, rule }
    }
}

impl PolicyParameters for Pbr {
    const DESCRIPTION: Description = Description {
        summary: "Compares every pair in the race once per round, until the best ranker is \
                  selected or all others are discarded, then shows it alone.",
        source: "Busa-Fekete, Szörényi, Weng, Cheng & Hüllermeier, Top-k Selection based on \
                 Adaptive Sampling of Noisy Preferences, ICML 2013 (PBR, Copeland)",
        assumes: "no pair with probability 1/2",
        parameters: &[
            Parameter {
                name: "horizon",
                values: Values::Integer,
                meaning: "T: the number of steps after which the best empirical ranker is shown \
                          alone, if none was accepted earlier; from the number of rankers to 2 000 \
                          000 000.",
                default: None,
            },
            Parameter { default: Some("1 / horizon"), ..DELTA },
            Parameter {
                name: "kappa",
                values: Values::Integer,
                meaning: "Number of rankers that the race selects, from 1 to one less than the \
                          number of rankers; the first of them is shown alone.",
                default: Some("1"),
            },
            Parameter {
                name: "most_comparisons",
                values: Values::Integer,
                meaning: "Comparisons of one pair after which the race stops, from 1 to 2 000 000 \
                          000.",
                default: Some("the horizon"),
            },
            Parameter {
                name: "rule",
                values: Values::OneOf(&["corrected", "printed"]),
                meaning: "The rule that selects and discards rankers: `corrected`, or `printed`, \
                          the paper's rule, which takes longer.",
                default: Some("corrected"),
            },
        ],
        fixed_rankers: Some("it plans its comparisons for the initial rankers"),
        not_served: None,
    };

    fn validate(&self, rankers: usize) -> Result<(), InvalidPolicy> {
        self.shared().validate(rankers)?;
        let wanted = "from 1 to one less than the number of rankers";
        require((1..rankers).contains(&self.kappa), "kappa", self.kappa, wanted)?;
        let most = self.most_comparisons();
        require((1..=MAX_HORIZON).contains(&most), "most_comparisons", most, "from 1 to 2000000000")
    }

    fn start(&self, setup: Setup) -> Box<dyn Policy> {
        ExploreThenExploit::start(self.race(setup), self.shared(), setup)
    }

    #[cfg(feature = "serde")]
    fn restore(&self, setup: Setup, format: u32, state: &[u8]) -> Option<Box<dyn Policy>> {
        ExploreThenExploit::restore(self.race(setup), self.shared(), setup, format, state)
    }
}

/// The exploration.
#[derive(Debug)]
struct Race {
    pairs: Pairs,
    radius: Radius,
    /// `n_max`.
    most_comparisons: u64,
    /// `κ`.
    kappa: usize,
    rule: SelectionRule,
}

/// `𝒜` with its turns, and the verdicts.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct RaceState {
    turns: RoundRobin,
    verdicts: Vec<Verdicts>,
}

/// The certain results of one ranker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Verdicts {
    /// `w_i`: the number of rankers that it certainly beats.
    won: usize,
    /// `z_i`: the number of rankers that certainly beat it.
    lost: usize,
}

impl Race {
    /// `𝒞`: the ranker is certainly among the `κ` best.
    fn is_selected(&self, of: &[Verdicts], i: usize) -> bool {
        let k = self.pairs.rankers;
        let others = || of.iter().enumerate().filter(move |&(j, _)| j != i).map(|(_, other)| other);
        match self.rule {
            SelectionRule::Corrected => {
                others().filter(|other| k - 1 < of[i].won + other.lost).count() >= k - self.kappa
            }
            SelectionRule::Printed => {
                of.iter().filter(|other| k < of[i].won + other.lost).count() > k - self.kappa
            }
        }
    }

    /// `𝒟`: the ranker is certainly not among the `κ` best.
    fn is_discarded(&self, of: &[Verdicts], i: usize) -> bool {
        let k = self.pairs.rankers;
        let others = || of.iter().enumerate().filter(move |&(j, _)| j != i).map(|(_, other)| other);
        match self.rule {
            SelectionRule::Corrected => {
                others().filter(|other| k - 1 < of[i].lost + other.won).count() >= self.kappa
            }
            SelectionRule::Printed => {
                of.iter().filter(|other| k < of[i].lost + other.won).count() > self.kappa
            }
        }
    }

    /// Steps 1 to 3, at the end of a round.
    fn judge(&self, state: &mut RaceState, tally: &Tally) {
        // step 1: only pairs in the race have changed
        let mut is_changed = false;
        let verdicts = &mut state.verdicts;
        state.turns.retain(|number| {
            let duel = self.pairs.pair(number);
            let (mean, radius) = self.radius.of(tally, duel);
            let (winner, loser) = match (mean - radius > 0.5, mean + radius < 0.5) {
                (true, _) => (duel.first, duel.second),
                (_, true) => (duel.second, duel.first),
                _ => return true,
            };
            verdicts[winner].won += 1;
            verdicts[loser].lost += 1;
            is_changed = true;
            false
        });
        if is_changed {
            // steps 2 and 3
            let of = &state.verdicts;
            let settled: Vec<bool> = (0..of.len())
                .map(|i| self.is_selected(of, i) || self.is_discarded(of, i))
                .collect();
            state.turns.retain(|number| {
                let Duel { first, second } = self.pairs.pair(number);
                !(settled[first] && settled[second])
            });
        }
    }
}

impl Exploration for Race {
    type State = RaceState;

    fn start(&self) -> RaceState {
        RaceState {
            turns: RoundRobin::new(self.pairs.count()),
            verdicts: vec![Verdicts::default(); self.pairs.rankers],
        }
    }

    fn resume(&self, state: RaceState) -> Option<RaceState> {
        let rankers = self.pairs.rankers;
        let is_sound = |of: &Verdicts| of.won < rankers && of.lost < rankers;
        (state.verdicts.len() == rankers && state.verdicts.iter().all(is_sound)).then_some(())?;
        Some(RaceState { turns: state.turns.resume(self.pairs.count())?, verdicts: state.verdicts })
    }

    fn ask(&self, state: &RaceState, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        state.turns.draw_pair(self.pairs, in_flight, rng)
    }

    fn learn(
        &self,
        state: &mut RaceState,
        tally: &Tally,
        observation: &Observation,
    ) -> Option<usize> {
        let number = self.pairs.number(observation.duel.first, observation.duel.second);
        if !state.turns.record(number) {
            return None;
        }
        self.judge(state, tally);
        // step 4
        let compared = |&number: &u32| u64::from(state.turns.compared(number));
        let is_over =
            state.turns.open().iter().map(compared).max().is_none_or(|n| n > self.most_comparisons);
        is_over.then(|| self.guess(state, tally))
    }

    /// The first of the `κ` rankers with the most `p̂ > 1/2` in their row, ties by lowest index.
    fn guess(&self, _state: &RaceState, tally: &Tally) -> usize {
        let scores: Vec<usize> = (0..tally.rankers()).map(|i| tally.copeland_score(i)).collect();
        (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::explore::confidence::tests::sure;

    /// (`𝒞`, `𝒟`) if the decided pairs are those of `rows`.
    fn sets(rows: &[&str], kappa: usize, rule: SelectionRule) -> (Vec<usize>, Vec<usize>) {
        let (pairs, intervals) = sure(rows);
        let k = pairs.rankers;
        let of: Vec<Verdicts> = (0..k)
            .map(|i| Verdicts { won: intervals.lower(i), lost: k - 1 - intervals.upper(i) })
            .collect();
        let radius = Radius::finite(k * k, 1000, 0.1);
        let race = Race { pairs, radius, most_comparisons: 1000, kappa, rule };
        let all = || 0..k;
        (
            all().filter(|&i| race.is_selected(&of, i)).collect(),
            all().filter(|&i| race.is_discarded(&of, i)).collect(),
        )
    }

    const FOUR: [&str; 4] = ["· 1 1 1", "0 · ? 1", "0 ? · ?", "0 0 ? ·"];
    const SIX: [&str; 6] =
        ["· 1 1 1 1 1", "0 · 1 1 1 1", "0 0 · ? 1 1", "0 0 ? · ? ?", "0 0 0 ? · ?", "0 0 0 ? ? ·"];

    #[test]
    fn radii_are_those_of_the_paper() {
        let radius = Radius::finite(4 * 4, 1000, 0.1);
        for (n, expected) in [(10.0, 0.796_118), (100.0, 0.251_755)] {
            assert!((radius.after(n) - expected).abs() < 5e-7);
        }
    }

    #[test]
    fn the_printed_rule_never_selects_the_one_best() {
        use SelectionRule::Printed;
        assert_eq!(sets(&FOUR, 1, Printed), (vec![], vec![]));
        assert_eq!(sets(&FOUR, 2, Printed), (vec![], vec![]));
        assert_eq!(sets(&SIX, 1, Printed), (vec![], vec![4, 5]));
        assert_eq!(sets(&SIX, 2, Printed), (vec![], vec![]));
    }

    #[test]
    fn the_corrected_rule_selects_and_discards_as_soon_as_it_is_certain() {
        use SelectionRule::Corrected;
        assert_eq!(sets(&FOUR, 1, Corrected), (vec![0], vec![1, 2, 3]));
        assert_eq!(sets(&FOUR, 2, Corrected), (vec![0], vec![]));
        assert_eq!(sets(&SIX, 1, Corrected), (vec![0], vec![1, 2, 3, 4, 5]));
        assert_eq!(sets(&SIX, 2, Corrected), (vec![0, 1], vec![2, 3, 4, 5]));
    }
}
