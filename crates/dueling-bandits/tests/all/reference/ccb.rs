//! CCB (Zoghi, Karnin, Whiteson and de Rijke, 2015, Algorithm 1), with the steps of
//! `crates/dueling-bandits/algorithms.md` §3.

use dueling_bandits::{Duel, Outcome, Policy, PolicyRng, Tally, step_rng};
use rand::RngExt;

use super::{Reference, ReferenceBounds, ReferencePolicy};

#[derive(Debug, Clone)]
pub struct ReferenceCcb {
    pub reference: Reference,
    /// The bounds of `reference` at the current step.
    bounds: ReferenceBounds,
    pub seed: u64,
    pub contenders: Vec<bool>,
    pub beaten_by: Vec<Vec<usize>>,
    pub most_losses: usize,
    /// Counts of cases: resets by 4A, resets by 4B, removals, sets dropped, sets thinned.
    pub happened: [u32; 5],
}

/// The saved state of the policy: tally, retired rankers, `B`, `B^i`, `L_C`.
type Saved = (Tally, Vec<u16>, Vec<bool>, Vec<Vec<u16>>, usize);

impl ReferenceCcb {
    pub fn new(reference: Reference, seed: u64) -> Self {
        let k = reference.wins.len();
        Self {
            contenders: vec![true; k],
            beaten_by: vec![Vec::new(); k],
            most_losses: k,
            bounds: reference.bounds(),
            reference,
            seed,
            happened: [0; 5],
        }
    }

    /// The reference implementation in the state of a policy.
    pub fn of(policy: &dyn Policy, alpha: f64, seed: u64) -> Self {
        let (_, _, contenders, beaten_by, most_losses): Saved =
            postcard::from_bytes(&policy.save()).expect("the saved layout");
        let indices = |set: &Vec<u16>| set.iter().map(|&j| usize::from(j)).collect();
        let beaten_by = beaten_by.iter().map(indices).collect();
        Self {
            contenders,
            beaten_by,
            most_losses,
            ..Self::new(Reference::of(policy.tally(), alpha), seed)
        }
    }

    fn reset(&mut self) {
        let k = self.reference.rankers();
        self.contenders = vec![true; k];
        self.beaten_by = vec![Vec::new(); k];
        self.most_losses = k;
    }

    fn others(&self, i: usize) -> impl Iterator<Item = usize> {
        (0..self.reference.rankers()).filter(move |&j| j != i && !self.reference.retired[j])
    }

    fn upper_score(&self, i: usize) -> usize {
        self.others(i).filter(|&j| self.bounds.upper(i, j) >= 0.5).count()
    }

    fn lower_score(&self, i: usize) -> usize {
        self.others(i).filter(|&j| self.bounds.lower(i, j) >= 0.5).count()
    }

    fn candidates(&self) -> Vec<usize> {
        Reference::best(&self.reference.active(), |i| self.upper_score(i))
    }

    fn step_4(&mut self) {
        let k = self.reference.rankers();
        // A
        let disproven =
            (0..k).any(|i| self.beaten_by[i].iter().any(|&j| self.bounds.lower(i, j) > 0.5));
        if disproven {
            self.happened[0] += 1;
            self.reset();
        }
        // B
        let most_wins = (0..k).map(|j| self.lower_score(j)).max().unwrap_or(0);
        for i in 0..k {
            if self.contenders[i] && self.upper_score(i) < most_wins {
                self.happened[2] += 1;
                self.contenders[i] = false;
                if self.beaten_by[i].len() != self.most_losses + 1 {
                    self.beaten_by[i] = (0..k).filter(|&j| self.bounds.upper(i, j) < 0.5).collect();
                }
            }
        }
        if !self.contenders.contains(&true) {
            self.happened[1] += 1;
            self.reset();
        }
        // C
        let mut rng = step_rng(self.seed, self.reference.steps);
        for i in self.candidates() {
            if self.upper_score(i) != self.lower_score(i) {
                continue;
            }
            self.contenders[i] = true;
            self.beaten_by[i].clear();
            self.most_losses = k - 1 - self.upper_score(i);
            let wanted = self.most_losses + 1;
            for j in (0..k).filter(|&j| j != i) {
                let size = self.beaten_by[j].len();
                if size < wanted {
                    self.happened[3] += u32::from(size > 0);
                    self.beaten_by[j].clear();
                } else if size > wanted {
                    self.happened[4] += 1;
                    let set = &mut self.beaten_by[j];
                    for kept in 0..wanted {
                        let other = rng.random_range(kept..size);
                        set.swap(kept, other);
                    }
                    set.truncate(wanted);
                    set.sort_unstable();
                }
            }
        }
    }
}

impl ReferencePolicy for ReferenceCcb {
    /// Steps 5-8.
    fn select(&self, rng: &mut PolicyRng) -> Duel {
        let bounds = &self.bounds;
        let arms = self.reference.active();
        let mut open = Vec::new();
        for &i in &arms {
            for &j in &self.beaten_by[i] {
                if bounds.lower(i, j) <= 0.5 && 0.5 <= bounds.upper(i, j) {
                    open.push(Duel::new(i, j));
                }
            }
        }
        if rng.random_bool(0.25) && !open.is_empty() {
            return open[rng.random_range(0..open.len())];
        }
        let mut candidates = self.candidates();
        let both: Vec<_> = candidates.iter().copied().filter(|&i| self.contenders[i]).collect();
        if !both.is_empty() && rng.random_bool(2.0 / 3.0) {
            candidates = both;
        }
        let c = candidates[rng.random_range(0..candidates.len())];
        let legal = |set: &[usize]| -> Vec<usize> {
            set.iter().copied().filter(|&j| bounds.lower(j, c) <= 0.5).collect()
        };
        let mut opponents =
            if rng.random_bool(0.5) { legal(&self.beaten_by[c]) } else { legal(&arms) };
        if opponents.is_empty() {
            opponents = legal(&arms);
        }
        let mut best = Reference::best(&opponents, |j| bounds.upper(j, c));
        if best.len() > 1 {
            best.retain(|&d| d != c);
        }
        Duel::new(c, best[rng.random_range(0..best.len())])
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
        self.bounds = self.reference.bounds();
        self.step_4();
    }
}
