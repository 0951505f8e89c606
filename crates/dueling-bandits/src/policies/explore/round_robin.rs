//! Round-robin over open items: the least compared ones have their turn first.

use rand::RngExt;

use crate::pairs::pair_at;
use crate::{Duel, InFlight, PolicyRng};

/// Largest number of positions that one draw examines.
const LOOKS: usize = 64;

/// The position of a closed item.
const CLOSED: u32 = u32::MAX;

/// Items `0..n` (pairs or rankers) that are compared in turns. When a pass begins, it is the turn
/// of the least compared items. The pass ends once each of them was compared once more. Every
/// answered comparison counts, whatever its outcome. Otherwise a pair of equal rankers whose ties
/// are skipped would hold up the others.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct RoundRobin {
    /// Number of answered comparisons of each item.
    compared: Vec<u32>,
    /// The open items. Those whose turn it is come first.
    open: Vec<u32>,
    /// Number of items in `open` whose turn it is.
    turn: usize,
    /// The position of each item in `open`. Derived from `open`.
    #[serde(skip)]
    place: Vec<u32>,
}

impl RoundRobin {
    /// All `items` are open, and none is compared.
    pub fn new(items: usize) -> Self {
        // at most MAX_RANKERS² / 2
        let open: Vec<u32> = (0..items as u32).collect();
        Self { compared: vec![0; items], place: open.clone(), open, turn: items }
    }

    /// The open items, in arbitrary order.
    pub fn open(&self) -> &[u32] {
        &self.open
    }

    /// Number of answered comparisons of `item`.
    pub fn compared(&self, item: u32) -> u32 {
        self.compared[item as usize]
    }

    /// Record an answered comparison of `item`. Returns whether it ended a pass.
    pub fn record(&mut self, item: u32) -> bool {
        let compared = &mut self.compared[item as usize];
        *compared = compared.saturating_add(1);
        let place = self.place[item as usize];
        if place == CLOSED || place as usize >= self.turn {
            return false;
        }
        self.turn -= 1;
        self.swap(place as usize, self.turn);
        self.begin_pass_if_over()
    }

    /// Close `item`; no effect if it is closed already.
    pub fn close(&mut self, item: u32) {
        let place = self.place[item as usize];
        if place == CLOSED {
            return;
        }
        let mut place = place as usize;
        if place < self.turn {
            self.turn -= 1;
            self.swap(place, self.turn);
            place = self.turn;
        }
        self.swap(place, self.open.len() - 1);
        self.open.pop();
        self.place[item as usize] = CLOSED;
        self.begin_pass_if_over();
    }

    /// Close every open item for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let closed: Vec<u32> = self.open.iter().copied().filter(|&item| !keep(item)).collect();
        for item in closed {
            self.close(item);
        }
    }

    /// A random item whose turn it is and that is not in flight. If there is none, the item of a
    /// sample with the fewest comparisons, including those in flight. `None` if all items are
    /// closed.
    ///
    /// Examines at most a fixed number of positions, from a random one on.
    pub fn draw(&self, in_flight: impl Fn(u32) -> u32, rng: &mut PolicyRng) -> Option<u32> {
        let mut from_random = |places: usize| {
            let start = if places > 1 { rng.random_range(0..places) } else { 0 };
            (start..places).chain(0..start).take(LOOKS).map(|place| self.open[place])
        };
        let idle = from_random(self.turn).find(|&item| in_flight(item) == 0);
        idle.or_else(|| {
            from_random(self.open.len())
                .min_by_key(|&item| u64::from(self.compared(item)) + u64::from(in_flight(item)))
        })
    }

    /// [`RoundRobin::draw`] for items that are pairs, by their indices.
    pub fn draw_pair(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        let pending = |index: u32| {
            let Duel { first, second } = pair_at(index as usize);
            in_flight.of(first, second)
        };
        pair_at(self.draw(pending, rng).unwrap_or(0) as usize)
    }

    fn begin_pass_if_over(&mut self) -> bool {
        if self.turn > 0 {
            return false;
        }
        let least = self.open.iter().map(|&item| self.compared(item)).min();
        for place in 0..self.open.len() {
            if Some(self.compared(self.open[place])) == least {
                self.swap(place, self.turn);
                self.turn += 1;
            }
        }
        true
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.open.swap(one, other);
        for place in [one, other] {
            self.place[self.open[place] as usize] = place as u32;
        }
    }

    /// Check a decoded value for `items` items, and derive the fields that are not saved. `None` if
    /// it is invalid.
    pub fn resume(mut self, items: usize) -> Option<Self> {
        let sound = self.compared.len() == items
            && self.turn <= self.open.len()
            && (self.turn > 0 || self.open.is_empty());
        sound.then_some(())?;
        self.place = vec![CLOSED; items];
        for (place, &item) in (0..).zip(&self.open) {
            *self.place.get_mut(item as usize).filter(|place| **place == CLOSED)? = place;
        }
        Some(self)
    }
}
