//! Pairs that RMED must draw regardless of its estimates.

use rand::RngExt;

use dueling_bandits::pairs::{pair_at, pair_count, pair_index};
use dueling_bandits::{Duel, InFlight, PolicyRng, Tally};

/// The initial phase: draws every unordered pair a fixed number of times, in rounds.
#[derive(Debug)]
pub struct InitialQueue {
    draws: u16,
    /// Draws of each pair so far, at most `draws`.
    drawn: Vec<u16>,
    /// All pairs before this index have more than `round` draws.
    at: usize,
    /// The smallest number of draws of any pair.
    round: u16,
}

impl InitialQueue {
    /// A queue that draws every pair of `rankers` `draws` times; `draws` is at least 1.
    pub fn new(rankers: usize, draws: u16) -> Self {
        Self { draws, drawn: vec![0; pair_count(rankers)], at: 0, round: 0 }
    }

    /// Whether every pair has all its draws.
    pub fn is_empty(&self) -> bool {
        self.round == self.draws
    }

    /// Record one draw of a pair; a draw of a pair that is no longer queued has no effect.
    pub fn draw(&mut self, duel: Duel) {
        let drawn = &mut self.drawn[pair_index(duel.first, duel.second)];
        *drawn = (*drawn + 1).min(self.draws);
        while !self.is_empty() {
            while self.at < self.drawn.len() && self.drawn[self.at] > self.round {
                self.at += 1;
            }
            if self.at < self.drawn.len() {
                return;
            }
            self.at = 0;
            self.round += 1;
        }
    }

    /// The first pair of the round. With duels in flight: a pair of the round that is not in
    /// flight, searched from a random position.
    pub fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        if in_flight.total() == 0 {
            return pair_at(self.at);
        }
        let start = rng.random_range(0..self.drawn.len());
        let from_start = || (start..self.drawn.len()).chain(0..start);
        let open = |wanted: u16| {
            from_start().find(|&at| {
                let Duel { first, second } = pair_at(at);
                let on_the_way = in_flight.of(first, second);
                self.drawn[at] < wanted && u32::from(wanted - self.drawn[at]) > on_the_way
            })
        };
        // if everything left is in flight, request it again: some of it may be lost
        let waiting = || from_start().find(|&at| self.drawn[at] < self.draws);
        let found = open(self.round + 1).or_else(|| open(self.draws)).or_else(waiting);
        pair_at(found.unwrap_or(self.at))
    }
}

/// RMED2's step 2: the pairs with `N < α ln ln t`.
///
/// Only the first of them is kept. Comparisons are never taken back, so earlier pairs need no check
/// until the bound passes the next half.
#[derive(Debug)]
pub struct Scarce {
    alpha: f64,
    /// Required comparisons of a pair, in halves.
    needed: u64,
    first: Option<usize>,
}

impl Scarce {
    /// The scarce pairs before the first step.
    pub fn new(alpha: f64) -> Self {
        Self { alpha, needed: 0, first: None }
    }

    /// Update after a folded step.
    pub fn follow(&mut self, tally: &Tally) {
        let t = tally.steps() as f64 + 1.0;
        let bound = if t >= 3.0 { self.alpha * libm::log(libm::log(t)) } else { 0.0 };
        let needed = (2.0 * bound).ceil().max(0.0) as u64;
        if needed != self.needed {
            self.needed = needed;
            self.first = self.find(tally, 0, |_| 0);
        } else if let Some(first) = self.first {
            self.first = self.find(tally, first, |_| 0);
        }
    }

    /// The pair to draw; skips pairs whose missing comparisons are all in flight.
    pub fn select(&self, tally: &Tally, in_flight: &InFlight) -> Option<Duel> {
        let on_the_way = |pair: Duel| 2 * u64::from(in_flight.of(pair.first, pair.second));
        self.find(tally, self.first?, on_the_way).map(pair_at)
    }

    /// The first pair from `from` on with too few comparisons, including those `on_the_way` (in
    /// halves).
    fn find(&self, tally: &Tally, from: usize, on_the_way: impl Fn(Duel) -> u64) -> Option<usize> {
        (from..pair_count(tally.rankers())).find(|&at| {
            let pair = pair_at(at);
            let plays = tally.half_plays(pair.first, pair.second);
            plays < self.needed && plays + on_the_way(pair) < self.needed
        })
    }
}
