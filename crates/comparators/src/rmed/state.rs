//! The state of RMED1, RMED2 and RMED2FH.

use crate::rmed::queue::InitialQueue;
use dueling_bandits::math::divergence;
use dueling_bandits::pairs::{pair_at, pair_count};
use dueling_bandits::policies::choose;
use dueling_bandits::{Bandit, Duel, InFlight, Observation, Outcome, PolicyRng, Selection, Tally};

/// Ticket of a duel of step 2.
const FORCED: u64 = 1;
/// Ticket of a duel of step 1.
const INITIAL: u64 = 2;

/// `ln ln t`; minus infinity up to `t = 1`, so that no comparison with it holds.
pub(super) fn log_log(t: f64) -> f64 {
    if t > 1.0 { libm::log(libm::log(t)) } else { f64::NEG_INFINITY }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Version {
    One,
    Two { alpha: f64 },
    FixedHorizon { log_log: f64, draws: u16 },
}

impl Version {
    /// `L`.
    fn initial_draws(self) -> u16 {
        match self {
            Version::FixedHorizon { draws, .. } => draws,
            Version::One | Version::Two { .. } => 1,
        }
    }
}

#[derive(Debug)]
pub(super) struct State {
    version: Version,
    /// `f(K)`.
    slack: f64,
    tally: Tally,
    /// The duels of step 1 that remain; `None` once all are drawn.
    initial: Option<InitialQueue>,
    /// `L_R`: the rankers that remain to be drawn in this loop.
    remaining: Vec<bool>,
    /// `L_N`: the rankers to draw in the next loop.
    next: Vec<bool>,
    /// RMED2FH: `b̂`, frozen after the initial phase.
    frozen: Option<Vec<Option<u16>>>,
    /// The term that each ranker adds to the `I_i` of row `i`, in nats; 0 for a ranker that does
    /// not lead against `i`.
    terms: Vec<f64>,
    /// `I_i`, in nats.
    divergence: Vec<f64>,
    /// `i*`.
    likeliest: usize,
}

impl State {
    pub(super) fn new(rankers: usize, version: Version) -> Self {
        Self {
            version,
            slack: 0.3 * libm::pow(rankers as f64, 1.01),
            tally: Tally::new(rankers),
            initial: Some(InitialQueue::new(rankers, version.initial_draws())),
            remaining: vec![true; rankers],
            next: vec![false; rankers],
            frozen: None,
            terms: vec![0.0; rankers * rankers],
            divergence: vec![0.0; rankers],
            likeliest: 0,
        }
    }

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

    /// Steps 5 and 6, after a draw of `drawn` as the first ranker of a duel.
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

    /// Steps 3-6 for one draw.
    fn draw(&mut self, duel: Duel) {
        match &mut self.initial {
            Some(queue) => {
                queue.draw(duel);
                if queue.is_empty() {
                    self.initial = None;
                    if let Version::FixedHorizon { .. } = self.version {
                        let k = self.tally.rankers();
                        self.frozen =
                            Some((0..k).map(|i| self.cheapest(i).map(|b| b as u16)).collect());
                    }
                }
            }
            None => self.work_off(duel.first),
        }
    }

    /// `b̂(i)`: the opponent that can rule out `i` at the lowest regret; the lowest index on a tie.
    fn cheapest(&self, i: usize) -> Option<usize> {
        let star = self.likeliest;
        let mut best: Option<(usize, f64)> = None;
        for j in (0..self.tally.rankers()).filter(|&j| self.tally.leads(j, i)) {
            let regret = self.mean(star, i) + self.mean(star, j) - 1.0;
            let ratio = regret / divergence::from_half(self.mean(i, j));
            if best.is_none_or(|(_, least)| ratio < least) {
                best = Some((j, ratio));
            }
        }
        best.map(|(j, _)| j)
    }

    /// Step 2 of RMED2: the first pair with `N < α ln ln t`. Skips pairs whose missing comparisons
    /// are all in flight.
    fn scarce(&self, in_flight: &InFlight) -> Option<Duel> {
        let Version::Two { alpha } = self.version else { return None };
        let needed = alpha * log_log((self.tally.steps() + 1) as f64);
        let is_scarce = |&Duel { first, second }: &Duel| {
            self.tally.plays(first, second) + f64::from(in_flight.of(first, second)) < needed
        };
        (0..pair_count(self.tally.rankers())).map(pair_at).find(is_scarce)
    }

    /// Step 3: the opponent of `l`.
    fn opponent(&self, l: usize) -> usize {
        let (cheapest, log_log) = match self.version {
            Version::One => (None, 0.0),
            Version::Two { .. } => (self.cheapest(l), log_log(self.tally.steps() as f64 + 1.0)),
            Version::FixedHorizon { log_log, .. } => {
                let frozen = self.frozen.as_ref().and_then(|frozen| frozen[l]);
                (frozen.map(usize::from), log_log)
            }
        };
        // Algorithm 3
        if let Some(b) = cheapest
            && log_log > 0.0
            && self.is_opponent(l, b)
            && self.tally.plays(l, self.likeliest) >= self.tally.plays(l, b) / log_log
        {
            return b;
        }
        // Algorithm 2
        let k = self.tally.rankers();
        let star = self.likeliest;
        if self.is_opponent(l, star) || !(0..k).any(|j| self.is_opponent(l, j)) {
            return star;
        }
        let mut weakest = (star, f64::INFINITY);
        for j in (0..k).filter(|&j| j != l) {
            let mean = self.mean(l, j);
            if mean < weakest.1 {
                weakest = (j, mean);
            }
        }
        weakest.0
    }
}

impl Bandit for State {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let Some(queue) = &self.initial {
            let Duel { first, second } = queue.select(in_flight, rng);
            return Selection { ticket: INITIAL, ..Selection::of(first, second) };
        }
        if let Some(Duel { first, second }) = self.scarce(in_flight) {
            return Selection { ticket: FORCED, ..Selection::of(first, second) };
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
        let outside_lists =
            self.initial.is_none() && matches!(observation.ticket, FORCED | INITIAL);
        if observation.outcome != Outcome::None && !outside_lists {
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
