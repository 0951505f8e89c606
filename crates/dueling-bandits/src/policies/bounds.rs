//! Win counts with their confidence bounds, kept incrementally (`algorithms.md` §1, "Cheap
//! bounds").
//!
//! Most policies need only the side of 1/2 on which `u[i][j] = p̂ + sqrt(α ln t / N)` lies. With
//! `τ = N (p̂ - 1/2)²`, a pair is *decided* while `τ > α ln t`. `τ` changes only when the pair is
//! played, and `α ln t` only grows. Decided pairs are therefore kept in a min-heap on `τ`, and the
//! lowest become undecided again as `t` grows. This makes a step O(log K) instead of O(K²).
//!
//! In a decided pair, `u < 1/2` for the trailing ranker and `l > 1/2` for the leading one. In an
//! undecided pair, `l ≤ 1/2 ≤ u` for both. The papers differ here in `<` and `≤`. That matters only
//! if `α ln t` equals a rational number. No `t ≥ 2` makes it one, and rounding can do so at most
//! for single steps.

use crate::pairs::pair_index;
use crate::policies::choose;
use crate::{Duel, InFlight, Outcome, PolicyRng, Roster, RosterError, Tally};

/// Win counts, the active rankers, and the decided pairs. Takes eight bytes a pair, in addition to
/// the tally's eight.
#[derive(Debug, Clone)]
pub struct Bounds {
    alpha: f64,
    /// `α ln t` as of [`Bounds::width_at`].
    width: f64,
    /// The number of steps that `width` belongs to.
    width_at: u64,
    /// Before this many steps, the growth of `t` alone releases no pair; 0 if unknown.
    quiet_until: u64,
    /// Whether the newest step decided a pair, released one, or reversed one.
    moved: bool,
    tally: Tally,
    roster: Roster,
    /// The decided pairs `(low, high)`, a binary min-heap on `τ`.
    heap: Vec<(u16, u16)>,
    /// The position in `heap` of the pair `low < high`, or [`UNDECIDED`]; at index
    /// `high (high - 1) / 2 + low`.
    place: Vec<u32>,
    /// For each ranker, the number of rankers that it certainly beats: `#{j : l[i][j] > 1/2}`.
    wins: Vec<u32>,
    /// For each ranker, the number of rankers that certainly beat it: `#{j : u[i][j] < 1/2}`.
    losses: Vec<u32>,
    /// Pairs that the newest step made undecided through the growth of `t` alone.
    released: Vec<(usize, usize)>,
}

const UNDECIDED: u32 = u32::MAX;

impl Bounds {
    /// The bounds before any comparison. `alpha` is the papers' `α`, above 0.
    pub fn new(rankers: usize, alpha: f64) -> Self {
        Self::of(Tally::new(rankers), Roster::new(rankers), alpha)
    }

    /// The bounds of a tally; `None` if `retired` does not fit it. Inverse of [`Bounds::parts`].
    pub fn from_parts(tally: Tally, retired: &[u16], alpha: f64) -> Option<Self> {
        let roster = Roster::with_retired(tally.rankers(), retired)?;
        Some(Self::of(tally, roster, alpha))
    }

    /// The tally and the retired rankers: the part to save, from which the rest follows.
    pub fn parts(&self) -> (&Tally, Vec<u16>) {
        (&self.tally, self.roster.retired())
    }

    fn of(tally: Tally, roster: Roster, alpha: f64) -> Self {
        let k = tally.rankers();
        let mut bounds = Self {
            alpha,
            width: 0.0,
            width_at: 0,
            quiet_until: 0,
            moved: true,
            tally,
            roster,
            heap: Vec::new(),
            place: vec![UNDECIDED; k * (k - 1) / 2],
            wins: vec![0; k],
            losses: vec![0; k],
            released: Vec::new(),
        };
        bounds.widen();
        for high in 1..k {
            for low in 0..high {
                bounds.settle(low, high);
            }
        }
        bounds
    }

    /// Wins and steps.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The rankers, active and retired.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The active rankers, ascending.
    pub fn active(&self) -> &[usize] {
        self.roster.active()
    }

    /// `α ln t`.
    pub fn width(&self) -> f64 {
        if self.width_at == self.tally.steps() { self.width } else { self.width_now() }
    }

    // this value affects the state, so it uses the one logarithm that is the same on every machine
    fn width_now(&self) -> f64 {
        self.alpha * libm::log(self.tally.steps() as f64 + 1.0)
    }

    /// Whether `i` certainly beats `j`: `l[i][j] > 1/2`, the same as `u[j][i] < 1/2`. Both must be
    /// active.
    pub fn beats(&self, i: usize, j: usize) -> bool {
        self.is_decided(i, j) && self.tally.leads(i, j)
    }

    /// Whether `u` and `l` of the pair lie on the same side of 1/2. A pair with a retired ranker is
    /// never decided.
    pub fn is_decided(&self, i: usize, j: usize) -> bool {
        i != j && self.place[pair_index(i, j)] != UNDECIDED
    }

    /// Pessimistic Copeland score, unnormalised: `#{j ≠ i : l[i][j] > 1/2}`.
    pub fn certain_wins(&self, i: usize) -> usize {
        self.wins[i] as usize
    }

    /// `#{j ≠ i : u[i][j] < 1/2}`.
    pub fn certain_losses(&self, i: usize) -> usize {
        self.losses[i] as usize
    }

    /// Optimistic Copeland score, unnormalised: `#{j ≠ i : u[i][j] ≥ 1/2}`.
    pub fn possible_wins(&self, i: usize) -> usize {
        self.active().len() - 1 - self.certain_losses(i)
    }

    /// The smallest [`Bounds::certain_losses`] of any ranker. It belongs to the largest optimistic
    /// Copeland score.
    pub fn least_losses(&self) -> usize {
        self.active().iter().map(|&i| self.certain_losses(i)).min().unwrap_or(0)
    }

    /// `u[i][j]`; infinite for a pair without comparisons. Duels in flight count as comparisons in
    /// the radius only. A pair without comparisons but with duels in flight has
    /// `1 + 1 / (1 + pending)` (`lab/notes/comparators.md` §1.7).
    pub fn upper(&self, i: usize, j: usize, in_flight: &InFlight) -> f64 {
        self.upper_at(self.width(), i, j, in_flight)
    }

    fn upper_at(&self, width: f64, i: usize, j: usize, in_flight: &InFlight) -> f64 {
        if i == j {
            return 0.5;
        }
        let pending = f64::from(in_flight.of(i, j));
        match self.tally.mean(i, j) {
            Some(mean) => mean + (width / (self.tally.plays(i, j) + pending)).sqrt(),
            None if pending > 0.0 => 1.0 + 1.0 / (1.0 + pending),
            None => f64::INFINITY,
        }
    }

    /// `argmax_j u[j][c]` over all active rankers: the challenger of RUCB step 5. The value of `c`
    /// itself is 1/2, so `c` is chosen if all others are below 1/2. A tie with `c` goes to the
    /// other ranker; other ties are broken at random.
    pub fn challenger(&self, c: usize, in_flight: &InFlight, rng: &mut PolicyRng) -> usize {
        if self.certain_wins(c) == self.active().len() - 1 {
            return c;
        }
        // a ranker that certainly loses to `c` has a value below 1/2, that of `c` itself
        let others = self.active().iter().copied().filter(|&j| !self.beats(c, j));
        self.challenger_among(others, c, in_flight, rng).unwrap_or(c)
    }

    /// [`Bounds::challenger`] among `rankers`; `c` only if it is one of them. `None` if `rankers`
    /// is empty.
    pub fn challenger_among(
        &self,
        rankers: impl Iterator<Item = usize>,
        c: usize,
        in_flight: &InFlight,
        rng: &mut PolicyRng,
    ) -> Option<usize> {
        let width = self.width();
        // `c` is checked last and needs no random draw: it loses every tie
        let mut itself = false;
        let others = rankers
            .inspect(|&j| itself |= j == c)
            .filter(|&j| j != c)
            .map(|j| (j, self.upper_at(width, j, c, in_flight)));
        let best = choose::argmax(others.map(|(j, upper)| ((j, upper), upper)), rng);
        match best {
            Some((j, upper)) if upper >= 0.5 || !itself => Some(j),
            _ => itself.then_some(c),
        }
    }

    /// The pairs that the newest step made undecided through the growth of `t` alone; never the
    /// played pair.
    pub fn released(&self) -> &[(usize, usize)] {
        &self.released
    }

    /// Whether the newest step decided a pair, released one, or reversed one. If not, everything
    /// that depends only on the sides of 1/2 is unchanged.
    pub fn moved(&self) -> bool {
        self.moved
    }

    /// Fold one comparison, which is one step. A comparison of a ranker with itself adds nothing to
    /// the counts.
    pub fn record(&mut self, duel: Duel, outcome: Outcome) {
        if duel.is_self() {
            return self.skip(1);
        }
        let (i, j) = (duel.first, duel.second);
        let before = self.leader(i, j);
        self.quiet_until = 0;
        self.tally.record(duel, outcome);
        self.widen();
        // the played pair first: the heap must be in order before its lowest pairs are read
        if before.is_some() && self.leader(i, j) == before && self.is_beyond_width(i, j) {
            self.sift(self.place[pair_index(i, j)] as usize);
        } else {
            self.forget(i, j, before);
            self.settle(i, j);
        }
        self.release();
        self.moved = !self.released.is_empty() || self.leader(i, j) != before;
    }

    /// `count` steps without a comparison.
    pub fn skip(&mut self, count: u64) {
        self.tally.skip(count);
        if self.tally.steps() < self.quiet_until {
            self.released.clear();
            self.moved = false;
            return;
        }
        self.widen();
        self.release();
        self.moved = !self.released.is_empty();
        // the lowest pair is released at t = exp(τ / α); the margin makes the exact comparison
        // decide near that step
        self.quiet_until = self.heap.first().map_or(u64::MAX, |&lowest| {
            (libm::exp(self.tau(lowest) / self.alpha) * (1.0 - 1e-9) - 2.0) as u64 // saturates
        });
    }

    /// Add one ranker, with the next index.
    pub fn enlist(&mut self) -> Result<(), RosterError> {
        self.roster.enlist()?;
        let old = self.tally.rankers();
        self.tally.enlist();
        self.place.resize(self.place.len() + old, UNDECIDED);
        self.moved = true;
        self.wins.push(0);
        self.losses.push(0);
        Ok(())
    }

    /// Remove `ranker` from all counts of [`Bounds`]; its tally stays. Returns whether it was
    /// active until now.
    pub fn retire(&mut self, ranker: usize) -> Result<bool, RosterError> {
        if !self.roster.retire(ranker)? {
            return Ok(false);
        }
        self.moved = true;
        self.quiet_until = 0;
        for other in 0..self.tally.rankers() {
            if self.is_decided(ranker, other) {
                self.forget(ranker, other, self.leader(ranker, other));
            }
        }
        Ok(true)
    }

    /// The leading ranker of a decided pair; `None` if the pair is undecided.
    fn leader(&self, i: usize, j: usize) -> Option<usize> {
        self.is_decided(i, j).then(|| if self.tally.leads(i, j) { i } else { j })
    }

    fn widen(&mut self) {
        self.width = self.width_now();
        self.width_at = self.tally.steps();
    }

    /// Whether `τ > α ln t`.
    fn is_beyond_width(&self, i: usize, j: usize) -> bool {
        self.tau((i as u16, j as u16)) > self.width
    }

    /// Add a pair that is not in the heap to it, if the pair is decided.
    fn settle(&mut self, i: usize, j: usize) {
        let taking_part = self.roster.is_active(i) && self.roster.is_active(j);
        if !taking_part || !self.is_beyond_width(i, j) {
            return;
        }
        let (low, high) = (i.min(j), i.max(j));
        let at = self.heap.len();
        self.heap.push((low as u16, high as u16));
        self.place[pair_index(low, high)] = at as u32;
        self.sift_up(at);
        let (leader, trailer) = if self.tally.leads(i, j) { (i, j) } else { (j, i) };
        self.wins[leader] += 1;
        self.losses[trailer] += 1;
    }

    /// Remove a decided pair from the heap and the counts.
    fn forget(&mut self, i: usize, j: usize, leader: Option<usize>) {
        let Some(leader) = leader else { return };
        self.wins[leader] -= 1;
        self.losses[if leader == i { j } else { i }] -= 1;
        let at = self.place[pair_index(i, j)] as usize;
        self.place[pair_index(i, j)] = UNDECIDED;
        self.heap.swap_remove(at);
        if at < self.heap.len() {
            self.set_place(at);
            self.sift(at);
        }
    }

    /// Release the decided pairs with `τ ≤ α ln t`.
    fn release(&mut self) {
        self.released.clear();
        while let Some(&pair) = self.heap.first()
            && self.tau(pair) <= self.width
        {
            let (low, high) = (usize::from(pair.0), usize::from(pair.1));
            self.forget(low, high, self.leader(low, high));
            self.released.push((low, high));
        }
    }

    /// `τ = N (p̂ - 1/2)²`, from counts in half wins: with `h = 2W` it is `(h_ij - h_ji)² / (8
    /// (h_ij + h_ji))`.
    fn tau(&self, (low, high): (u16, u16)) -> f64 {
        let (i, j) = (usize::from(low), usize::from(high));
        let lead = f64::from(self.tally.half_wins(i, j)) - f64::from(self.tally.half_wins(j, i));
        let plays = self.tally.half_plays(i, j);
        if plays == 0 { 0.0 } else { lead * lead / (8.0 * plays as f64) }
    }

    fn sift(&mut self, at: usize) {
        let at = self.sift_up(at);
        self.sift_down(at);
    }

    fn sift_up(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.tau(self.heap[parent]) <= self.tau(self.heap[at]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
        at
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let left = 2 * at + 1;
            let children = left..(left + 2).min(self.heap.len());
            let mut least = at;
            for child in children {
                if self.tau(self.heap[child]) < self.tau(self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.swap(at, least);
            at = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.set_place(a);
        self.set_place(b);
    }

    fn set_place(&mut self, at: usize) {
        let (low, high) = self.heap[at];
        self.place[pair_index(usize::from(low), usize::from(high))] = at as u32;
    }
}
