//! RUCB (Zoghi et al., ICML 2014, Algorithm 1) and RCS (Zoghi et al., WSDM 2014), with the steps of
//! `docs/algorithms-comparators.md` §3 and §4.

use rand::RngExt;
use rankduel::policy::{Chance, Duel, Outcome, Policy, Tally};

use super::{Plain, PlainBounds, PlainForm};

/// Step 5 of RUCB: `argmax_j u[j][c]`, `c` itself only where no other is as high.
fn challenger(plain: &Plain, bounds: &PlainBounds, c: usize, chance: &mut Chance) -> usize {
    let mut best = Plain::best(&plain.active(), |j| bounds.upper(j, c));
    if best.len() > 1 {
        best.retain(|&d| d != c);
    }
    best[chance.random_range(0..best.len())]
}

#[derive(Debug, Clone)]
pub struct PlainRucb {
    pub plain: Plain,
    bounds: PlainBounds,
    /// `C`.
    pub candidates: Vec<usize>,
    /// `B`.
    pub hypothesis: Option<usize>,
    /// Whether the hypothesis is played every other time, as in the ICML paper.
    pub plays_hypothesis: bool,
}

impl PlainRucb {
    pub fn new(plain: Plain, plays_hypothesis: bool) -> Self {
        let bounds = plain.bounds();
        let mut state = Self { plain, bounds, candidates: Vec::new(), hypothesis: None, plays_hypothesis };
        state.candidates = state.possible_winners();
        state
    }

    /// The state of a policy, which saves its tally, the retired rankers and `B`.
    pub fn of(policy: &dyn Policy, alpha: f64, plays_hypothesis: bool) -> Self {
        let (_, _, hypothesis): (Tally, Vec<u16>, Option<u16>) =
            postcard::from_bytes(&policy.save()).expect("the saved layout");
        let hypothesis = hypothesis.map(usize::from);
        Self { hypothesis, ..Self::new(Plain::of(policy, alpha), plays_hypothesis) }
    }

    fn possible_winners(&self) -> Vec<usize> {
        let arms = self.plain.active();
        arms.iter().copied().filter(|&c| arms.iter().all(|&j| self.bounds.upper(c, j) >= 0.5)).collect()
    }
}

impl PlainForm for PlainRucb {
    fn select(&self, chance: &mut Chance) -> Duel {
        let b = self.hypothesis.filter(|_| self.plays_hypothesis);
        let c = match (&self.candidates[..], b) {
            ([], _) => chance.random_range(0..self.plain.rankers()),
            ([only], _) => *only,
            (_, Some(b)) if chance.random_bool(0.5) => b,
            (all, b) => {
                let others: Vec<_> = all.iter().copied().filter(|&c| Some(c) != b).collect();
                others[chance.random_range(0..others.len())]
            }
        };
        Duel::new(c, challenger(&self.plain, &self.bounds, c, chance))
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.plain.record(duel, outcome);
        self.bounds = self.plain.bounds();
        self.candidates = self.possible_winners();
        self.hypothesis = match self.candidates[..] {
            [only] => Some(only),
            _ => self.hypothesis.filter(|b| self.candidates.contains(b)),
        };
    }
}

#[derive(Debug, Clone)]
pub struct PlainRcs {
    pub plain: Plain,
    /// `champ`.
    pub championships: Vec<u64>,
}

impl PlainRcs {
    /// The state of a policy, which saves its tally, the retired rankers and `champ`.
    pub fn of(policy: &dyn Policy, alpha: f64) -> Self {
        let (_, _, championships): (Tally, Vec<u16>, Vec<u64>) =
            postcard::from_bytes(&policy.save()).expect("the saved layout");
        Self { plain: Plain::of(policy, alpha), championships }
    }
}

impl PlainForm for PlainRcs {
    fn select(&self, chance: &mut Chance) -> Duel {
        let k = self.plain.rankers();
        let arms = self.plain.active();
        let mut beats = vec![vec![true; k]; k];
        for (i, j) in (0..k).flat_map(|i| (0..i).map(move |j| (i, j))) {
            beats[i][j] = self.plain.theta(i, j, chance) > 0.5;
            beats[j][i] = !beats[i][j];
        }
        let champion = arms.iter().copied().find(|&i| beats[i].iter().all(|&wins| wins));
        let c = champion.unwrap_or_else(|| {
            let seldom = Plain::best(&arms, |i| std::cmp::Reverse(self.championships[i]));
            seldom[chance.random_range(0..seldom.len())]
        });
        Duel::new(c, challenger(&self.plain, &self.plain.bounds(), c, chance))
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        self.plain.record(duel, outcome);
        self.championships[duel.first] += 1;
    }
}
