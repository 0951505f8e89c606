//! Pairs that RMED must draw regardless of its estimates.

use rand::RngExt;

use crate::{Duel, InFlight, PolicyRng, Tally};

/// The initial phase: draws every unordered pair a fixed number of times, in rounds.
#[derive(Debug)]
pub struct InitialQueue {
    rankers: usize,
    draws: u16,
    /// Draws of each pair so far, at most `draws`; pairs in lexicographic order.
    drawn: Vec<u16>,
    /// All pairs before this index have more than `round` draws.
    at: usize,
    /// The smallest number of draws of any pair.
    round: u16,
}

impl InitialQueue {
    /// A queue that draws every pair of `rankers` `draws` times; `draws` is at least 1.
    pub fn new(rankers: usize, draws: u16) -> Self {
        Self { rankers, draws, drawn: vec![0; rankers * (rankers - 1) / 2], at: 0, round: 0 }
    }

    /// The queue with these counts, as saved from [`InitialQueue::drawn`]; `None` if they are
    /// invalid or the queue is empty.
    pub fn restore(rankers: usize, draws: u16, drawn: Vec<u16>) -> Option<Self> {
        let fits = drawn.len() == rankers * (rankers - 1) / 2 && drawn.iter().all(|&n| n <= draws);
        fits.then_some(())?;
        let round = *drawn.iter().min()?;
        let mut queue = Self { rankers, draws, drawn, at: 0, round };
        queue.advance();
        (!queue.is_empty()).then_some(queue)
    }

    /// Draws of each pair so far.
    pub fn drawn(&self) -> &[u16] {
        &self.drawn
    }

    /// Whether every pair has all its draws.
    pub fn is_empty(&self) -> bool {
        self.round == self.draws
    }

    /// Record one draw of a pair; a draw of a pair that is no longer queued has no effect.
    pub fn draw(&mut self, duel: Duel) {
        let (low, high) = (duel.first.min(duel.second), duel.first.max(duel.second));
        let pair = low * (2 * self.rankers - low - 1) / 2 + high - low - 1;
        self.drawn[pair] = (self.drawn[pair] + 1).min(self.draws);
        self.advance();
    }

    fn advance(&mut self) {
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
            return self.pair(self.at);
        }
        let start = rng.random_range(0..self.drawn.len());
        let open = |wanted: u16| {
            self.pairs_from(start).find(|&(at, pair)| {
                let on_the_way = in_flight.of(pair.first, pair.second);
                self.drawn[at] < wanted && u32::from(wanted - self.drawn[at]) > on_the_way
            })
        };
        // if everything left is in flight, request it again: some of it may be lost
        let waiting = || self.pairs_from(start).find(|&(at, _)| self.drawn[at] < self.draws);
        let found = open(self.round + 1).or_else(|| open(self.draws)).or_else(waiting);
        found.map_or_else(|| self.pair(self.at), |(_, pair)| pair)
    }

    /// All pairs with their indices, in one cycle from `start`.
    fn pairs_from(&self, start: usize) -> impl Iterator<Item = (usize, Duel)> {
        let mut next = self.pair(start);
        (start..self.drawn.len()).chain(0..start).map(move |at| {
            let pair = next;
            next = if pair.second + 1 < self.rankers {
                Duel::new(pair.first, pair.second + 1)
            } else if pair.first + 2 < self.rankers {
                Duel::new(pair.first + 1, pair.first + 2)
            } else {
                Duel::new(0, 1)
            };
            (at, pair)
        })
    }

    /// The pair at a lexicographic index.
    fn pair(&self, at: usize) -> Duel {
        let (mut first, mut rest) = (0, at);
        while rest >= self.rankers - 1 - first {
            rest -= self.rankers - 1 - first;
            first += 1;
        }
        Duel::new(first, first + 1 + rest)
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
    first: Option<Duel>,
}

impl Scarce {
    /// The scarce pairs of a tally.
    pub fn new(alpha: f64, tally: &Tally) -> Self {
        let mut scarce = Self { alpha, needed: 0, first: None };
        scarce.follow(tally);
        scarce
    }

    /// Update after a folded step.
    pub fn follow(&mut self, tally: &Tally) {
        let t = tally.steps() as f64 + 1.0;
        let bound = if t >= 3.0 { self.alpha * libm::log(libm::log(t)) } else { 0.0 };
        let needed = (2.0 * bound).ceil().max(0.0) as u64;
        if needed != self.needed {
            self.needed = needed;
            self.first = self.find(tally, Duel::new(0, 1), |_| 0);
        } else if let Some(first) = self.first {
            self.first = self.find(tally, first, |_| 0);
        }
    }

    /// The pair to draw; skips pairs whose missing comparisons are all in flight.
    pub fn select(&self, tally: &Tally, in_flight: &InFlight) -> Option<Duel> {
        let first = self.first?;
        self.find(tally, first, |pair| 2 * u64::from(in_flight.of(pair.first, pair.second)))
    }

    /// The first pair from `from` on with too few comparisons, including those `on_the_way` (in
    /// halves).
    fn find(&self, tally: &Tally, from: Duel, on_the_way: impl Fn(Duel) -> u64) -> Option<Duel> {
        let k = tally.rankers();
        let row = (from.second..k).map(|j| Duel::new(from.first, j));
        let rest = (from.first + 1..k).flat_map(|i| (i + 1..k).map(move |j| Duel::new(i, j)));
        row.chain(rest).find(|&pair| {
            let plays = tally.half_plays(pair.first, pair.second);
            plays < self.needed && plays + on_the_way(pair) < self.needed
        })
    }
}
