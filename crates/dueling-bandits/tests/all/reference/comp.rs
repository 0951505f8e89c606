//! PCOMP, SCOMP and SCOMP2 (Agarwal, Ghuge and Nagarajan, 2022, Algorithms 1, 2 and 3), whole runs
//! at a time: every comparison of a batch is a draw from a binomial distribution.

use std::collections::BTreeSet;

use dueling_bandits::PolicyRng;
use dueling_bandits::preference::PreferenceMatrix;
use rand::RngExt;
use rand_distr::{Binomial, Distribution};

use super::divergence_from_half;

/// Algorithm 1, 2 or 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Pcomp,
    Scomp,
    Scomp2,
}

/// The test of lines 5, 6 and 8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// The printed lines.
    Hoeffding,
    /// `N d(p̂, 1/2) > θ` over all comparisons of a pair.
    Divergence(f64),
}

/// How to read what the paper leaves open, and where ours departs from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Line 6 of Algorithm 3: any undefeated seed, by a coin; otherwise that of these which its
    /// clearest rival beats least clearly.
    pub any_candidate: bool,
    /// Whether `P̂` of the second batch of a round of Algorithm 3 is that of both batches.
    pub pooled: bool,
    /// Whether PCOMP after a switch takes `K` and `T` from its own inputs.
    pub inner_delta: bool,
}

impl Reading {
    /// The paper's words.
    pub const PAPER: Self = Self { any_candidate: true, pooled: false, inner_delta: true };
    /// Ours.
    pub const OURS: Self = Self { any_candidate: false, pooled: true, inner_delta: false };
}

/// One run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    /// Cumulative Condorcet regret.
    pub regret: f64,
    /// Whether line 9 or 11 started the second phase.
    pub switched: bool,
    /// Whether the seed set became empty, which starts it too.
    pub seeds_gone: bool,
    /// Whether `A*` was without the Condorcet winner, who was in `A`.
    pub lost_at_switch: bool,
    /// Whether the Condorcet winner was removed at any time.
    pub lost: bool,
}

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceComp<'a> {
    pub algorithm: Algorithm,
    pub test: Test,
    pub reading: Reading,
    /// `T`.
    pub horizon: u64,
    /// `B`.
    pub batches: u32,
    pub matrix: &'a PreferenceMatrix,
}

type Counts = Vec<Vec<u64>>;

struct State<'a> {
    of: ReferenceComp<'a>,
    winner: usize,
    /// `A` and `S`.
    a: BTreeSet<usize>,
    s: BTreeSet<usize>,
    wins: Counts,
    wins_in_batch: Counts,
    used: u64,
    /// `6 T K² B`.
    inverse_delta: f64,
    run: Run,
}

impl ReferenceComp<'_> {
    pub fn run(self, rng: &mut PolicyRng) -> Run {
        let k = self.matrix.rankers();
        let winner = self.matrix.condorcet_winner().expect("a Condorcet winner");
        let none = vec![vec![0; k]; k];
        let mut state = State {
            of: self,
            winner,
            a: (0..k).collect(),
            s: BTreeSet::new(),
            wins: none.clone(),
            wins_in_batch: none,
            used: 0,
            inverse_delta: self.inverse_delta(self.horizon, k),
            run: Run::default(),
        };
        if self.algorithm != Algorithm::Pcomp {
            // line 3
            while state.s.is_empty() {
                let chance = 1.0 / (k as f64).sqrt();
                state.s = (0..k).filter(|_| rng.random::<f64>() < chance).collect();
            }
        }
        let mut phase = self.algorithm;
        let mut r = 1;
        while state.used < self.horizon && state.a.len() > 1 {
            state.start_batch();
            let switches = match phase {
                Algorithm::Pcomp => state.round_of_pcomp(r, rng),
                Algorithm::Scomp => state.round_of_scomp(r, rng),
                Algorithm::Scomp2 => state.round_of_scomp2(r, rng),
            };
            if switches {
                phase = Algorithm::Pcomp;
                if self.reading.inner_delta {
                    let left = self.horizon - state.used;
                    state.inverse_delta = self.inverse_delta(left, state.a.len());
                }
            } else {
                r += 1;
            }
        }
        if let (1, Some(&last)) = (state.a.len(), state.a.first()) {
            let left = (self.horizon - state.used) as f64;
            state.run.regret += left * state.gap(last);
        }
        state.run.lost = !state.a.contains(&winner);
        state.run
    }

    fn inverse_delta(self, horizon: u64, rankers: usize) -> f64 {
        6.0 * horizon as f64 * (rankers as f64).powi(2) * f64::from(self.batches)
    }
}

impl State<'_> {
    /// `ε_j`.
    fn gap(&self, j: usize) -> f64 {
        self.of.matrix.win_probability(self.winner, j) - 0.5
    }

    /// `P̂` is that of the comparisons from here on.
    fn start_batch(&mut self) {
        for row in &mut self.wins_in_batch {
            row.fill(0);
        }
    }

    /// Compare each pair `c_r = ⌊q^r⌋` times, or what is left of the horizon.
    fn compare(&mut self, pairs: &BTreeSet<(usize, usize)>, r: u32, rng: &mut PolicyRng) {
        let (t, b) = (self.of.horizon, self.of.batches);
        let c = if r >= b { t } else { (t as f64).powf(f64::from(r) / f64::from(b)) as u64 };
        let asked = (c * pairs.len() as u64).min(t - self.used);
        let until = |n: usize| n as u64 * asked / pairs.len() as u64;
        for (n, &(i, j)) in pairs.iter().enumerate() {
            let times = until(n + 1) - until(n);
            let odds = self.of.matrix.win_probability(i, j);
            let won = Binomial::new(times, odds).expect("a probability").sample(rng);
            for counts in [&mut self.wins, &mut self.wins_in_batch] {
                counts[i][j] += won;
                counts[j][i] += times - won;
            }
            self.run.regret += times as f64 * (self.gap(i) + self.gap(j)) / 2.0;
        }
        self.used += asked;
    }

    /// `P̂[i][j] > 1/2 + multiple γ_r`, on the comparisons of the batch.
    fn exceeds(&self, i: usize, j: usize, multiple: f64) -> bool {
        let (won, lost) = (self.wins_in_batch[i][j] as f64, self.wins_in_batch[j][i] as f64);
        let n = won + lost;
        n > 0.0 && won / n > 0.5 + multiple * (self.inverse_delta.ln() / (2.0 * n)).sqrt()
    }

    /// How clearly `i` beats `j`, for the test by divergence.
    fn divergence(&self, i: usize, j: usize) -> f64 {
        let (won, lost) = (self.wins[i][j] as f64, self.wins[j][i] as f64);
        if won > lost { (won + lost) * divergence_from_half(won / (won + lost)) } else { 0.0 }
    }

    /// Remove from `A` and `S` those whom a member of `by` beats by `multiple` of `γ`. The test by
    /// divergence lets every member of `A` remove another. Of a cycle, the least beaten remain.
    fn eliminate(&mut self, by: &BTreeSet<usize>, multiple: f64) {
        let beaten = |j: usize| match self.of.test {
            Test::Hoeffding => by.iter().filter(|&&i| self.exceeds(i, j, multiple)).count(),
            Test::Divergence(theta) => {
                self.a.iter().filter(|&&i| self.divergence(i, j) > theta).count()
            }
        };
        let beaten: Vec<(usize, usize)> = self.a.iter().map(|&j| (beaten(j), j)).collect();
        let least = beaten.iter().map(|of| of.0).min();
        self.a = beaten.iter().filter(|of| Some(of.0) == least).map(|of| of.1).collect();
        self.s = self.s.intersection(&self.a).copied().collect();
    }

    /// If some `j ∈ A` beats all of `of` by `clear`, `A*` = those who beat all of `of` by `better`.
    fn switch(&mut self, of: &BTreeSet<usize>, clear: f64, better: f64) -> bool {
        let beats = |j: usize, by: f64| of.iter().all(|&i| self.exceeds(j, i, by));
        if of.is_empty() || !self.a.iter().any(|&j| beats(j, clear)) {
            self.run.seeds_gone |= self.s.is_empty();
            return self.s.is_empty();
        }
        let a_star: BTreeSet<usize> =
            self.a.iter().copied().filter(|&j| beats(j, better)).collect();
        self.run.switched = true;
        self.run.lost_at_switch = self.a.contains(&self.winner) && !a_star.contains(&self.winner);
        self.a = a_star;
        true
    }

    fn round_of_pcomp(&mut self, r: u32, rng: &mut PolicyRng) -> bool {
        self.compare(&pairs(&self.a, &self.a), r, rng);
        self.eliminate(&self.a.clone(), 1.0);
        false
    }

    fn round_of_scomp(&mut self, r: u32, rng: &mut PolicyRng) -> bool {
        let compared = self.s.clone();
        self.compare(&pairs(&compared, &self.a), r, rng);
        self.eliminate(&compared, 3.0);
        let of = if self.of.test == Test::Hoeffding { self.s.clone() } else { compared };
        self.switch(&of, 3.0, 1.0)
    }

    fn round_of_scomp2(&mut self, r: u32, rng: &mut PolicyRng) -> bool {
        if self.s.len() > 1 {
            self.compare(&pairs(&self.s, &self.s), r, rng);
        }
        let candidate = match self.of.reading.any_candidate {
            true => self.any_candidate(rng),
            false => self.least_beaten_candidate(),
        };
        if self.used == self.of.horizon {
            return false;
        }
        if !self.of.reading.pooled {
            self.start_batch();
        }
        let candidate = BTreeSet::from([candidate]);
        self.compare(&pairs(&candidate, &self.a), r, rng);
        self.eliminate(&candidate, 5.0);
        self.switch(&candidate, 5.0, 3.0)
    }

    /// Line 6: any undefeated seed, or any seed if all are defeated.
    fn any_candidate(&self, rng: &mut PolicyRng) -> usize {
        let all: Vec<usize> = self.s.iter().copied().collect();
        let defeated = |i: usize| all.iter().any(|&j| j != i && self.exceeds(j, i, 1.0));
        let undefeated: Vec<usize> = all.iter().copied().filter(|&i| !defeated(i)).collect();
        let among = if undefeated.is_empty() { all } else { undefeated };
        among[rng.random_range(0..among.len())]
    }

    /// Ours: an undefeated seed, of these the one that its clearest rival beats least clearly.
    fn least_beaten_candidate(&self) -> usize {
        let defeat = |i: usize| {
            let rivals = || self.s.iter().filter(move |&&j| j != i);
            let defeated = rivals().any(|&j| self.exceeds(j, i, 1.0));
            let clearest = rivals().map(|&j| match self.of.test {
                Test::Divergence(_) => self.divergence(j, i),
                Test::Hoeffding => {
                    self.wins_in_batch[j][i].saturating_sub(self.wins_in_batch[i][j]) as f64
                }
            });
            (defeated, clearest.fold(0.0, f64::max))
        };
        let seeds = self.s.iter().copied();
        seeds.reduce(|best, i| if defeat(i) < defeat(best) { i } else { best }).expect("a seed")
    }
}

/// The pairs of one of `these` and one of `those`, each once.
fn pairs(these: &BTreeSet<usize>, those: &BTreeSet<usize>) -> BTreeSet<(usize, usize)> {
    let of = |i: usize| those.iter().filter(move |&&j| j != i).map(move |&j| (i.min(j), i.max(j)));
    these.iter().flat_map(|&i| of(i)).collect()
}
