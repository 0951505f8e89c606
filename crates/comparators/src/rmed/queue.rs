//! The pairs that RMED draws first.

use rand::RngExt;

use dueling_bandits::pairs::{pair_at, pair_count, pair_index};
use dueling_bandits::{Duel, InFlight, PolicyRng};

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
