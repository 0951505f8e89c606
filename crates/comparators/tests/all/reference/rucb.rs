//! RUCB (Zoghi et al., ICML 2014, Algorithm 1) and RCS (Zoghi et al., WSDM 2014), with the steps of
//! `crates/lab/notes/comparators.md` §3 and §4.

use dueling_bandits::{Duel, Outcome, PolicyRng};
use rand::RngExt;

use super::{Reference, ReferenceBounds, ReferencePolicy};

/// Step 5 of RUCB: `argmax_j u[j][c]`; `c` itself only if no other ranker reaches its value.
fn challenger(
    reference: &Reference,
    bounds: &ReferenceBounds,
    c: usize,
    rng: &mut PolicyRng,
) -> usize {
    let mut best = Reference::best(&reference.active(), |j| bounds.upper(j, c));
    if best.len() > 1 {
        best.retain(|&d| d != c);
    }
    best[rng.random_range(0..best.len())]
}

#[derive(Debug, Clone)]
pub struct ReferenceRucb {
    pub reference: Reference,
    bounds: ReferenceBounds,
    /// `C`.
    pub candidates: Vec<usize>,
    /// `B`.
    pub hypothesis: Option<usize>,
}

impl ReferenceRucb {
    pub fn new(reference: Reference) -> Self {
        let bounds = reference.bounds();
        let mut state = Self { reference, bounds, candidates: Vec::new(), hypothesis: None };
        state.candidates = state.possible_winners();
        state
    }

    fn possible_winners(&self) -> Vec<usize> {
        let arms = self.reference.active();
        arms.iter()
            .copied()
            .filter(|&c| arms.iter().all(|&j| self.bounds.upper(c, j) >= 0.5))
            .collect()
    }
}

impl ReferencePolicy for ReferenceRucb {
    fn select(&self, rng: &mut PolicyRng) -> Duel {
        let c = match (&self.candidates[..], self.hypothesis) {
            ([], _) => rng.random_range(0..self.reference.rankers()),
            ([only], _) => *only,
            (_, Some(b)) if rng.random_bool(0.5) => b,
            (all, b) => {
                let others: Vec<_> = all.iter().copied().filter(|&c| Some(c) != b).collect();
                others[rng.random_range(0..others.len())]
            }
        };
        Duel::new(c, challenger(&self.reference, &self.bounds, c, rng))
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
        self.bounds = self.reference.bounds();
        self.candidates = self.possible_winners();
        self.hypothesis = match self.candidates[..] {
            [only] => Some(only),
            _ => self.hypothesis.filter(|b| self.candidates.contains(b)),
        };
    }
}

#[derive(Debug, Clone)]
pub struct ReferenceRcs {
    pub reference: Reference,
    /// `champ`.
    pub championships: Vec<u64>,
}

impl ReferencePolicy for ReferenceRcs {
    fn select(&self, rng: &mut PolicyRng) -> Duel {
        let k = self.reference.rankers();
        let arms = self.reference.active();
        let mut beats = vec![vec![true; k]; k];
        for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
            beats[i][j] = self.reference.theta(i, j, rng) > 0.5;
            beats[j][i] = !beats[i][j];
        }
        let champion = arms.iter().copied().find(|&i| beats[i].iter().all(|&wins| wins));
        let c = champion.unwrap_or_else(|| {
            let seldom = Reference::best(&arms, |i| std::cmp::Reverse(self.championships[i]));
            seldom[rng.random_range(0..seldom.len())]
        });
        Duel::new(c, challenger(&self.reference, &self.reference.bounds(), c, rng))
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.reference.record(duel, outcome);
        self.championships[duel.first] += 1;
    }
}
