//! The state of RMED1, RMED2 and RMED2FH.

use crate::bandit::Bandit;
use crate::rmed::queue::{InitialQueue, Scarce};
use dueling_bandits::math::divergence;
use dueling_bandits::policies::choose;
use dueling_bandits::{Duel, InFlight, Observation, Outcome, PolicyRng, Selection, Tally};

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
    /// `I* + ln t + f(K)` of an earlier step.
    most: f64,
    /// Before this step, `most` separates the same rankers as the current step's bound does; `None`
    /// after an outcome.
    most_until: Option<f64>,
    /// `i*`.
    likeliest: usize,
    /// RMED2: the first pair with too few comparisons.
    scarce: Option<Scarce>,
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
            most: 0.0,
            most_until: None,
            likeliest: 0,
            scarce: match version {
                Version::Two { alpha } => Some(Scarce::new(alpha)),
                Version::One | Version::FixedHorizon { .. } => None,
            },
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
        self.most_until = None;
    }

    /// Update the bound of `J_i` to the step that was just folded. Keeps the old bound while the
    /// same rankers are within it.
    fn update_most(&mut self) {
        let t = self.tally.steps() as f64;
        if self.most_until.is_some_and(|until| t < until) {
            return;
        }
        let before_log = self.divergence[self.likeliest] + self.slack;
        self.most = before_log + libm::log(t);
        // look ahead only in a run of self-duels: an outcome would void the result at once
        self.most_until = Some(if self.most_until.is_none() {
            t
        } else {
            let outside =
                self.divergence.iter().copied().filter(|&divergence| divergence > self.most);
            let nearest = outside.fold(f64::INFINITY, f64::min);
            // stop before the step at which the next ranker comes within the bound, by a margin
            // larger than the rounding error
            libm::exp(nearest - before_log) * (1.0 - 1e-6)
        });
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
        self.update_most();
        let mut loop_goes_on = false;
        for ((&remains, next), &divergence) in
            self.remaining.iter().zip(&mut self.next).zip(&self.divergence)
        {
            loop_goes_on |= remains;
            *next |= !remains && divergence <= self.most;
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
        if let Some(Duel { first, second }) =
            self.scarce.as_ref().and_then(|scarce| scarce.select(&self.tally, in_flight))
        {
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
        if let Some(scarce) = &mut self.scarce {
            scarce.follow(&self.tally);
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
        if let Some(scarce) = &mut self.scarce {
            scarce.follow(&self.tally);
        }
    }

    fn champion(&self) -> usize {
        self.likeliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dueling_bandits::step_rng;

    /// The count matrices of the worked examples: row = winner, with the number of self-duels that
    /// brings `t` to its value.
    const A: ([[u32; 4]; 4], u64) = ([[0, 9, 8, 4], [3, 0, 7, 2], [2, 5, 0, 6], [4, 6, 2, 0]], 1);
    const C: ([[u32; 4]; 4], u64) =
        ([[0, 40, 5, 30], [20, 0, 8, 25], [45, 42, 0, 48], [20, 25, 2, 0]], 19);
    const D: ([[u32; 4]; 4], u64) =
        ([[0, 14, 15, 4], [6, 0, 3, 9], [5, 17, 0, 16], [6, 11, 4, 0]], 0);

    fn answer(first: usize, second: usize, outcome: Outcome) -> Observation {
        Observation { duel: Duel::new(first, second), outcome, batch: None, ticket: 0 }
    }

    /// A policy with these counts, after its initial phase, with `list` as its list.
    fn at_loop(
        version: Version,
        (wins, self_duels): ([[u32; 4]; 4], u64),
        list: &[usize],
    ) -> State {
        let mut state = State::new(4, version);
        for (i, row) in wins.iter().enumerate() {
            for (j, &wins) in row.iter().enumerate() {
                for _ in 0..wins {
                    state.observe(&answer(i, j, Outcome::First));
                }
            }
        }
        state.observe_self_duels(0, self_duels);
        state.initial = None;
        state.remaining = (0..4).map(|i| list.contains(&i)).collect();
        state.next = vec![false; 4];
        state
    }

    fn selected(state: &State) -> Duel {
        state.select(&InFlight::new(), &mut step_rng(1, 0)).duel
    }

    /// RMED2 without forced draws, so that only its rule determines the selection.
    const RMED2: Version = Version::Two { alpha: 0.001 };

    #[test]
    fn worked_opponents() {
        let opponents = |version: Version, counts: ([[u32; 4]; 4], u64)| {
            [0, 1, 2, 3].map(|l| {
                let duel = selected(&at_loop(version, counts, &[l]));
                assert_eq!(duel.first, l);
                duel.second
            })
        };
        assert_eq!(opponents(Version::One, A), [3, 0, 0, 0]);
        assert_eq!(opponents(RMED2, A), [3, 0, 0, 2]);
        assert_eq!(opponents(Version::One, C), [2, 2, 2, 2]);
        assert_eq!(opponents(Version::One, D), [3, 0, 0, 2]);
        assert_eq!(opponents(RMED2, D), [3, 2, 0, 2]);
        // A with 24 comparisons of 2 and 3 at t = 76: the ratio test fails and the likeliest winner
        // is the opponent
        let counts = [[0, 9, 8, 4], [3, 0, 7, 2], [2, 5, 0, 18], [4, 6, 6, 0]];
        assert_eq!(opponents(RMED2, (counts, 1))[3], 0);
        for (counts, star) in [(A, 0), (C, 2), (D, 0)] {
            assert_eq!(at_loop(Version::One, counts, &[0]).champion(), star);
        }
    }

    /// The rankers that satisfy `J` at `t`: after a draw of the only ranker in the list, they are
    /// the next list.
    #[test]
    fn worked_lists() {
        let plausible = |counts: ([[u32; 4]; 4], u64)| {
            let mut state = at_loop(Version::One, counts, &[0]);
            state.observe_self_duels(0, 1);
            (0..4).filter(|&i| state.remaining[i]).collect::<Vec<_>>()
        };
        // the folded step has the index t of the example
        assert_eq!(plausible(A), [0, 1, 2, 3]);
        assert_eq!(plausible(C), [2]);
        assert_eq!(plausible(D), [0, 2, 3]);
    }

    #[test]
    fn frozen_opponents_are_those_of_the_initial_phase() {
        let mut state = State::new(4, Version::FixedHorizon { log_log: 1.0, draws: 3 });
        let wins = [[0, 3, 3, 0], [0, 0, 3, 2], [0, 0, 0, 2], [3, 1, 1, 0]];
        for round in 0..3 {
            for (i, j) in (1..4).flat_map(|j| (0..j).map(move |i| (i, j))) {
                assert!(state.frozen.is_none());
                let outcome = if round < wins[i][j] { Outcome::First } else { Outcome::Second };
                state.observe(&answer(i, j, outcome));
            }
        }
        assert!(state.initial.is_none());
        // b̂(1): 0 has (p[3][1] + p[3][0] - 1)/ln 2 = (1/3 + 1 - 1)/ln 2, its only opponent; b̂(2):
        // 0 against 1, with (1/3 + 1/3 - 1)/ln 2; b̂(3): 1 and 2 tie, so the lowest
        assert_eq!(state.frozen, Some(vec![Some(3), Some(0), Some(1), Some(1)]));
    }

    #[test]
    fn rmed2_forces_pairs_with_too_few_comparisons() {
        let counts = [[0, 30, 30, 30], [5, 0, 4, 30], [5, 1, 0, 30], [5, 5, 5, 0]];
        let mut state = at_loop(Version::Two { alpha: 3.0 }, (counts, 0), &[0]);
        // t = 181: 3 ln ln 181 = 4.9 comparisons
        assert_eq!(selected(&state), Duel::new(0, 0));
        state.observe_self_duels(0, 400); // 3 ln ln 581 = 5.5
        let forced = state.select(&InFlight::new(), &mut step_rng(4, 0));
        assert_eq!(forced.duel, Duel::new(1, 2));
        // a pair in flight is not requested twice
        let mut in_flight = InFlight::new();
        in_flight.add(2, 1, 1);
        let other = state.select(&in_flight, &mut step_rng(4, 0)).duel;
        assert_ne!(other, Duel::new(1, 2));
        // forced draws do not change the lists
        let before = (state.remaining.clone(), state.next.clone());
        state.observe(&forced.observed(Outcome::First));
        assert_eq!((state.remaining.clone(), state.next.clone()), before);
        assert_ne!(selected(&state), Duel::new(1, 2));
    }

    /// A late outcome whose first ranker is not in the list counts and is tested, but draws
    /// nothing.
    #[test]
    fn late_outcomes_draw_nothing() {
        let mut state = at_loop(Version::One, D, &[2]);
        state.observe(&answer(0, 1, Outcome::First));
        assert_eq!(state.remaining, [false, false, true, false]);
        assert_eq!(state.next, [true, false, false, true]);
    }
}
