//! RMED1, RMED2 and RMED2FH (Komiyama et al., COLT 2015, Algorithms 1 to 3), with the steps of
//! `crates/lab/notes/comparators.md` §6.

use dueling_bandits::{Duel, Outcome, PolicyRng};

use super::{Reference, ReferencePolicy, divergence_from_half};

#[derive(Debug, Clone, Copy)]
pub enum Version {
    One,
    /// With `α`.
    Two(f64),
    /// With `α` and `T`.
    FixedHorizon(f64, f64),
}

#[derive(Debug, Clone)]
pub struct ReferenceRmed {
    pub reference: Reference,
    /// `I_i`, computed from the counts of `reference`.
    divergence: Vec<f64>,
    version: Version,
    queue: Vec<(usize, usize)>,
    /// `b̂` of RMED2FH.
    frozen: Vec<Option<usize>>,
    remaining: Vec<usize>,
    next: Vec<usize>,
}

impl ReferenceRmed {
    pub fn new(rankers: usize, version: Version) -> Self {
        let draws = match version {
            Version::FixedHorizon(alpha, horizon) => (alpha * horizon.ln().ln()).ceil() as usize,
            Version::One | Version::Two(_) => 1,
        };
        Self {
            version,
            frozen: Vec::new(),
            reference: Reference::new(rankers, 1.0),
            divergence: vec![0.0; rankers],
            queue: (0..draws).flat_map(|_| pairs(rankers)).collect(),
            remaining: (0..rankers).collect(),
            next: Vec::new(),
        }
    }

    fn opponents(&self, i: usize) -> impl Iterator<Item = usize> {
        (0..self.reference.rankers()).filter(move |&j| j != i && self.reference.mean(i, j) <= 0.5)
    }

    fn divergences(&self) -> Vec<f64> {
        let term = |i: usize, j: usize| {
            self.reference.plays(i, j) * divergence_from_half(self.reference.mean(i, j))
        };
        (0..self.reference.rankers()).map(|i| self.opponents(i).map(|j| term(i, j)).sum()).collect()
    }

    fn star(&self) -> usize {
        Reference::best(&self.reference.active(), |i| -self.divergence[i])[0]
    }

    /// `b̂(i)`.
    fn cheapest(&self, i: usize) -> Option<usize> {
        let (reference, star) = (&self.reference, self.star());
        let others: Vec<_> = self.opponents(i).filter(|&j| reference.mean(i, j) < 0.5).collect();
        let gaps = |j: usize| reference.mean(star, i) + reference.mean(star, j) - 1.0;
        let ratio = |j: usize| gaps(j) / divergence_from_half(reference.mean(i, j));
        Reference::best(&others, |j| -ratio(j)).first().copied()
    }

    /// Step 2.
    fn scarce(&self) -> Option<(usize, usize)> {
        let Version::Two(alpha) = self.version else { return None };
        let t = self.reference.steps as f64 + 1.0;
        let needed = if t < 3.0 { 0.0 } else { alpha * t.ln().ln() };
        pairs(self.reference.rankers()).find(|&(i, j)| self.reference.plays(i, j) < needed)
    }

    /// The opponent of `l` by Algorithm 3.
    fn cheap_opponent(&self, l: usize) -> Option<usize> {
        let (b, x) = match self.version {
            Version::One => (None, 0.0),
            Version::Two(_) => (self.cheapest(l), (self.reference.steps as f64 + 1.0).ln().ln()),
            Version::FixedHorizon(_, horizon) => (self.frozen[l], horizon.ln().ln()),
        };
        let plays = |j: usize| self.reference.plays(l, j);
        let fits =
            |&b: &usize| self.opponents(l).any(|j| j == b) && plays(self.star()) >= plays(b) / x;
        b.filter(|b| x > 0.0 && fits(b))
    }
}

fn pairs(rankers: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rankers).flat_map(move |j| (0..j).map(move |i| (i, j)))
}

impl ReferencePolicy for ReferenceRmed {
    fn select(&self, _rng: &mut PolicyRng) -> Duel {
        if let Some(&(i, j)) = self.queue.first() {
            return Duel::new(i, j);
        }
        if let Some((i, j)) = self.scarce() {
            return Duel::new(i, j);
        }
        let (l, star) = (self.remaining[0], self.star());
        if let Some(b) = self.cheap_opponent(l) {
            return Duel::new(l, b);
        }
        let opponents: Vec<_> = self.opponents(l).collect();
        if opponents.is_empty() || opponents.contains(&star) {
            return Duel::new(l, star);
        }
        let others: Vec<_> = (0..self.reference.rankers()).filter(|&j| j != l).collect();
        Duel::new(l, Reference::best(&others, |j| -self.reference.mean(l, j))[0])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        let is_forced = self.queue.is_empty() && self.scarce().is_some();
        self.reference.record(duel, outcome);
        self.divergence = self.divergences();
        if outcome == Outcome::None && !duel.is_self() {
            return;
        }
        if !self.queue.is_empty() {
            self.queue.remove(0);
            if self.queue.is_empty() {
                self.frozen = (0..self.reference.rankers()).map(|i| self.cheapest(i)).collect();
            }
            return;
        }
        if is_forced {
            return;
        }
        self.remaining.retain(|&l| l != duel.first);
        let k = self.reference.rankers();
        let threshold = (self.reference.steps as f64).ln() + 0.3 * (k as f64).powf(1.01);
        let least = self.divergence[self.star()];
        let listed = |list: &[usize]| -> Vec<bool> {
            let mut flags = vec![false; k];
            list.iter().for_each(|&i| flags[i] = true);
            flags
        };
        let (remaining, next) = (listed(&self.remaining), listed(&self.next));
        for j in 0..k {
            let plausible = self.divergence[j] - least <= threshold;
            if !remaining[j] && plausible && !next[j] {
                self.next.push(j);
            }
        }
        if self.remaining.is_empty() {
            self.next.sort_unstable();
            self.remaining = std::mem::take(&mut self.next);
        }
    }
}
