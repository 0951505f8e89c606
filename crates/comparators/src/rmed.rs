//! RMED1, Relative Minimum Empirical Divergence (Komiyama, Honda, Kashima, Nakagawa, "Regret Lower
//! Bound and Optimal Algorithm in Dueling Bandit Problem", COLT 2015, Algorithms 1 and 2). Step
//! numbers are those of `lab/notes/comparators.md` §6.
//!
//! Steps 1 and 2 select, steps 3-5 fold. Where the paper is silent:
//!
//! - With nothing in flight, lists and queues are processed in ascending order, as in a simulation.
//!   Otherwise the order is random, so that concurrent requests get different pairs.
//! - A page without a click is not a draw: it changes neither a list nor a queue. A tie is a draw
//!   under every tie rule.
//! - A duel of the initial phase has the ticket `INITIAL`. After that phase it does not change the
//!   lists.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;
use dueling_bandits::math::divergence;
use dueling_bandits::pairs::{pair_at, pair_count, pair_index};
use dueling_bandits::policies::choose;
use dueling_bandits::{
    Bandit, Duel, InFlight, Observation, Outcome, PolicyRng, Selection, Setup, Tally,
};

/// Ticket of a duel of step 1.
const INITIAL: u64 = 1;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rmed1 {}

impl Parameters for Rmed1 {
    fn start(&self, Setup { rankers, .. }: Setup) -> Box<dyn Bandit> {
        Box::new(State {
            slack: 0.3 * libm::pow(rankers as f64, 1.01),
            tally: Tally::new(rankers),
            initial: Some(InitialPairs { drawn: vec![false; pair_count(rankers)], at: 0 }),
            remaining: vec![true; rankers],
            next: vec![false; rankers],
            terms: vec![0.0; rankers * rankers],
            divergence: vec![0.0; rankers],
            likeliest: 0,
        })
    }
}

/// Step 1: every unordered pair once.
#[derive(Debug)]
struct InitialPairs {
    drawn: Vec<bool>,
    /// The first pair that is not drawn.
    at: usize,
}

impl InitialPairs {
    fn is_empty(&self) -> bool {
        self.at == self.drawn.len()
    }

    fn draw(&mut self, duel: Duel) {
        self.drawn[pair_index(duel.first, duel.second)] = true;
        while self.drawn.get(self.at) == Some(&true) {
            self.at += 1;
        }
    }

    /// The first pair. With duels in flight: a pair that is not in flight, searched from a random
    /// position.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        if in_flight.total() == 0 {
            return pair_at(self.at);
        }
        let start = rng.random_range(0..self.drawn.len());
        let left = || (start..self.drawn.len()).chain(0..start).filter(|&at| !self.drawn[at]);
        let is_open = |at: &usize| {
            let Duel { first, second } = pair_at(*at);
            in_flight.of(first, second) == 0
        };
        // if everything left is in flight, request it again: some of it may be lost
        pair_at(left().find(is_open).or_else(|| left().next()).unwrap_or(self.at))
    }
}

#[derive(Debug)]
struct State {
    /// `f(K)`.
    slack: f64,
    tally: Tally,
    /// The duels of step 1 that remain; `None` once all are drawn.
    initial: Option<InitialPairs>,
    /// `L_R`: the rankers that remain to be drawn in this loop.
    remaining: Vec<bool>,
    /// `L_N`: the rankers to draw in the next loop.
    next: Vec<bool>,
    /// The term that each ranker adds to the `I_i` of row `i`, in nats; 0 for a ranker that does
    /// not lead against `i`.
    terms: Vec<f64>,
    /// `I_i`, in nats.
    divergence: Vec<f64>,
    /// `i*`.
    likeliest: usize,
}

impl State {
    /// Whether `j ∈ Ô_i`: `j ≠ i` and `p̂[i][j] ≤ 1/2`.
    fn is_opponent(&self, i: usize, j: usize) -> bool {
        i != j && !self.tally.leads(i, j)
    }

    /// `p̂`; 1/2 without comparisons.
    fn mean(&self, i: usize, j: usize) -> f64 {
        self.tally.mean(i, j).unwrap_or(0.5)
    }

    fn update_term(&mut self, i: usize, j: usize) {
        let at = i * self.tally.rankers() + j;
        self.terms[at] = if self.tally.leads(j, i) {
            self.tally.plays(i, j) * divergence::from_half(self.mean(i, j))
        } else {
            0.0
        };
    }

    /// Sum `I_i` again, in ascending order, so that rounding does not depend on the order of the
    /// log.
    fn update_divergence(&mut self, i: usize) {
        let k = self.tally.rankers();
        self.divergence[i] = self.terms[i * k..][..k].iter().sum();
    }

    /// `i*`; the lowest index on a tie.
    fn least_divergence(&self) -> usize {
        let mut least = 0;
        for i in 1..self.divergence.len() {
            if self.divergence[i] < self.divergence[least] {
                least = i;
            }
        }
        least
    }

    /// Steps 4 and 5, after a draw of `drawn` as the first ranker of a duel.
    fn work_off(&mut self, drawn: usize) {
        self.remaining[drawn] = false;
        // J_i at the step that was just folded
        let most =
            self.divergence[self.likeliest] + self.slack + libm::log(self.tally.steps() as f64);
        let mut loop_goes_on = false;
        for ((&remains, next), &divergence) in
            self.remaining.iter().zip(&mut self.next).zip(&self.divergence)
        {
            loop_goes_on |= remains;
            *next |= !remains && divergence <= most;
        }
        if !loop_goes_on {
            // never empty: i* was tested too, and it is always within the bound
            std::mem::swap(&mut self.remaining, &mut self.next);
            self.next.fill(false);
        }
    }

    /// Steps 3-5 for one draw.
    fn draw(&mut self, duel: Duel) {
        match &mut self.initial {
            Some(pairs) => {
                pairs.draw(duel);
                if pairs.is_empty() {
                    self.initial = None;
                }
            }
            None => self.work_off(duel.first),
        }
    }

    /// Step 2: the opponent of `l`. It is `i*` if that may beat `l`, or if no ranker may; otherwise
    /// the toughest opponent, against which `l` wins least often.
    fn opponent(&self, l: usize) -> usize {
        let k = self.tally.rankers();
        let star = self.likeliest;
        if self.is_opponent(l, star) || !(0..k).any(|j| self.is_opponent(l, j)) {
            return star;
        }
        let (mut toughest, mut least) = (star, f64::INFINITY);
        for j in (0..k).filter(|&j| j != l) {
            let mean = self.mean(l, j);
            if mean < least {
                (toughest, least) = (j, mean);
            }
        }
        toughest
    }
}

impl Bandit for State {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let Some(pairs) = &self.initial {
            let Duel { first, second } = pairs.select(in_flight, rng);
            return Selection { ticket: INITIAL, ..Selection::of(first, second) };
        }
        let mut list = (0..self.remaining.len()).filter(|&l| self.remaining[l]);
        let l = if in_flight.total() == 0 { list.next() } else { choose::uniform(list, rng) };
        let l = l.unwrap_or(self.likeliest);
        Selection::of(l, self.opponent(l))
    }

    fn observe(&mut self, observation: &Observation) {
        let duel = observation.duel;
        if duel.is_self() {
            return self.observe_self_duels(duel.first, 1);
        }
        self.tally.record(duel, observation.outcome);
        if observation.outcome.half_wins() != (0, 0) {
            let Duel { first, second } = duel;
            for (i, j) in [(first, second), (second, first)] {
                self.update_term(i, j);
                self.update_divergence(i);
            }
            self.likeliest = self.least_divergence();
        }
        let is_late = self.initial.is_none() && observation.ticket == INITIAL;
        if observation.outcome != Outcome::None && !is_late {
            self.draw(duel);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        for _ in 0..count {
            self.tally.skip(1);
            if self.initial.is_none() {
                self.work_off(ranker);
            }
        }
    }

    fn champion(&self) -> usize {
        self.likeliest
    }
}
