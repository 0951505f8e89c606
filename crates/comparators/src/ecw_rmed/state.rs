//! The state of ECW-RMED.

use crate::ecw_rmed::EcwRmed;
use crate::ecw_rmed::exploration::Tournament;
use dueling_bandits::math::divergence;
use dueling_bandits::policies::choose;
use dueling_bandits::{Bandit, Duel, InFlight, Observation, Outcome, PolicyRng, Selection, Tally};

/// Ticket of a duel of step 1.
const FORCED: u64 = 1;

#[derive(Debug)]
pub(super) struct State {
    parameters: EcwRmed,
    tally: Tally,
    /// `L_R`: the pairs to draw in this loop, at [`place`].
    remaining: Vec<bool>,
    /// `L_N`: the pairs to draw in the next loop.
    next: Vec<bool>,
}

/// Index of the pair `{i, j}` in a list. Lists include the pair of each ranker with itself.
fn place(i: usize, j: usize) -> usize {
    let (low, high) = (i.min(j), i.max(j));
    high * (high + 1) / 2 + low
}

/// All pairs of `rankers`, including each ranker with itself, in the order of [`place`]. The larger
/// index is first.
fn places(rankers: usize) -> impl Iterator<Item = Duel> {
    (0..rankers).flat_map(|i| (0..=i).map(move |j| Duel::new(i, j)))
}

impl State {
    pub(super) fn new(rankers: usize, parameters: EcwRmed) -> Self {
        let remaining: Vec<bool> = places(rankers).map(|pair| !pair.is_self()).collect();
        let next = vec![false; remaining.len()];
        Self { parameters, tally: Tally::new(rankers), remaining, next }
    }

    /// Step 1: whether a pair has too few comparisons, or a mean too close to 1/2, at the next step
    /// `t`. Its duels in flight, `on_the_way`, count as comparisons.
    fn is_scarce(&self, i: usize, j: usize, t: f64, on_the_way: u32) -> bool {
        let plays = self.tally.plays(i, j) + f64::from(on_the_way);
        let log = libm::log(t);
        if plays == 0.0 || plays < self.parameters.alpha * log.sqrt() {
            return true;
        }
        // ln ln t, but at least 1: it is small, negative or -∞ for the first steps
        let near = self.parameters.beta / libm::log(log).max(1.0);
        let close = match self.tally.mean(i, j) {
            Some(mean) => mean == 0.5 || (mean - 0.5).abs() < near,
            None => true,
        };
        close && on_the_way == 0
    }

    /// Step 1: the first scarce pair. With duels in flight, a random scarce pair whose missing
    /// comparisons are not all in flight.
    fn scarce(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Option<Duel> {
        let t = self.tally.steps() as f64 + 1.0;
        let mut scarce = places(self.tally.rankers()).filter(|pair| {
            let Duel { first, second } = *pair;
            !pair.is_self() && self.is_scarce(first, second, t, in_flight.of(first, second))
        });
        if in_flight.total() == 0 { scarce.next() } else { choose::uniform(scarce, rng) }
    }

    /// Steps 3 and 4, after a draw of the pair at `drawn`, which was in the list.
    fn draw(&mut self, drawn: usize) {
        self.remaining[drawn] = false;
        self.plan_next();
        if !self.remaining.contains(&true) {
            // never empty: every plan includes the pair of a winner with itself
            std::mem::swap(&mut self.remaining, &mut self.next);
            self.next.fill(false);
        }
    }

    /// Step 3, and the part of step 4 that adds to the next list.
    fn plan_next(&mut self) {
        let k = self.tally.rankers();
        let log_t = libm::log(self.tally.steps() as f64);
        let mean = |i: usize, j: usize| self.tally.mean(i, j).unwrap_or(0.5);
        let divergence: Vec<f64> =
            (0..k * k).map(|at| divergence::from_half(mean(at / k, at % k))).collect();
        let tournament =
            Tournament::new(k, |i, j| divergence[i * k + j], |i, j| self.tally.leads(i, j));
        // evidence in units of the amount needed; at t = 1 any evidence suffices
        let unclipped = |i: usize, j: usize| self.tally.plays(i, j) * divergence[i * k + j] / log_t;
        let evidence = |i: usize, j: usize| unclipped(i, j).min(1.0);
        let outside_box = self.parameters.literal
            && places(k).any(|pair| unclipped(pair.first, pair.second) > 1.0);
        let sure =
            |&i1: &usize| !outside_box && tournament.least_evidence(i1, evidence) >= 1.0 - 1e-12;
        let sure_of = tournament.candidates().find(sure);
        let (winner, plan) = match sure_of {
            Some(winner) => (winner, None),
            None => {
                let plans = tournament.candidates().map(|i1| (i1, tournament.efficient_plan(i1)));
                match plans.min_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost)) {
                    Some((winner, plan)) => (winner, Some(plan)),
                    None => (0, None), // a tournament always has a Copeland winner
                }
            }
        };
        for pair in places(k) {
            let Duel { first: i, second: j } = pair;
            let planned = match &plan {
                _ if pair.is_self() => i == winner,
                Some(plan) => plan.comparisons(i, j) > self.tally.plays(i, j) / log_t,
                None => false,
            };
            if planned && !self.remaining[place(i, j)] {
                self.next[place(i, j)] = true;
            }
        }
    }
}

impl Bandit for State {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let Some(Duel { first, second }) = self.scarce(in_flight, rng) {
            return Selection { ticket: FORCED, ..Selection::of(first, second) };
        }
        // step 2
        let mut list = places(self.tally.rankers())
            .filter(|pair| self.remaining[place(pair.first, pair.second)]);
        let pair = if in_flight.total() == 0 { list.next() } else { choose::uniform(list, rng) };
        let champion = || Duel::new(self.champion(), self.champion());
        let Duel { first, second } = pair.unwrap_or_else(champion);
        Selection::of(first, second)
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        if duel.is_self() {
            return self.observe_self_duels(duel.first, 1);
        }
        self.tally.record(duel, observation.outcome);
        let at = place(duel.first, duel.second);
        let is_draw = observation.outcome != Outcome::None && observation.ticket != FORCED;
        if is_draw && self.remaining[at] {
            self.draw(at);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        let at = place(ranker, ranker);
        for done in 1..=count {
            self.tally.skip(1);
            if self.remaining[at] {
                self.draw(at);
            } else {
                // the pair is not in the list, and self-duels alone do not add it
                return self.tally.skip(count - done);
            }
        }
    }
}
