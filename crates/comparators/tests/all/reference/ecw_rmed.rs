//! ECW-RMED (Komiyama et al., ICML 2016, Algorithm 1), with the steps of
//! `crates/lab/notes/comparators.md` §7. The optimum is the crate's own, which has its own tests.

use comparators::ecw_rmed::exploration::Tournament;
use dueling_bandits::{Duel, Outcome, PolicyRng};

use super::{Reference, ReferencePolicy, divergence_from_half};

type Pair = (usize, usize);

#[derive(Debug, Clone)]
pub struct ReferenceEcwRmed {
    reference: Reference,
    /// Whether the feasible set has the box that the paper prints.
    literal: bool,
    remaining: Vec<Pair>,
    next: Vec<Pair>,
}

impl ReferenceEcwRmed {
    pub fn new(rankers: usize, literal: bool) -> Self {
        let reference = Reference::new(rankers, 3.0);
        let remaining = pairs(rankers).filter(|(i, j)| i != j).collect();
        Self { reference, literal, remaining, next: Vec::new() }
    }

    /// Step 1.
    fn scarce(&self) -> Option<Pair> {
        let log = (self.reference.steps as f64 + 1.0).ln();
        pairs(self.reference.rankers()).filter(|(i, j)| i != j).find(|&(i, j)| {
            let (plays, mean) = (self.reference.plays(i, j), self.reference.mean(i, j));
            let near = 0.01 / log.ln().max(1.0);
            plays == 0.0 || plays < 3.0 * log.sqrt() || mean == 0.5 || (mean - 0.5).abs() < near
        })
    }

    /// `L_NC` of step 3.
    fn candidates(&self) -> Vec<Pair> {
        let k = self.reference.rankers();
        let log = (self.reference.steps as f64).ln();
        let divergence = |i: usize, j: usize| divergence_from_half(self.reference.mean(i, j));
        let tournament = Tournament::new(k, divergence, |i, j| self.reference.mean(i, j) > 0.5);
        let amount = |i: usize, j: usize| self.reference.plays(i, j) * divergence(i, j) / log;
        let in_box = !self.literal || pairs(k).all(|(i, j)| amount(i, j) <= 1.0);
        let least = |i1: usize| tournament.least_evidence(i1, |i, j| amount(i, j).min(1.0));
        if let Some(sure) = tournament.candidates().find(|&i1| in_box && least(i1) >= 1.0 - 1e-12) {
            return vec![(sure, sure)];
        }
        let plans = tournament.candidates().map(|i1| (i1, tournament.efficient_plan(i1)));
        let (i1, plan) =
            plans.min_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost)).expect("a winner");
        let more = |&(i, j): &Pair| {
            i == j && i == i1 || i != j && plan.comparisons(i, j) > self.reference.plays(i, j) / log
        };
        pairs(k).filter(more).collect()
    }

    /// The newest step was a draw of the list.
    fn draw(&mut self, drawn: Pair) {
        self.remaining.retain(|&pair| pair != drawn);
        let new = |pair: &Pair| !self.remaining.contains(pair) && !self.next.contains(pair);
        let new: Vec<Pair> = self.candidates().into_iter().filter(new).collect();
        self.next.extend(new);
        if self.remaining.is_empty() {
            self.remaining = std::mem::take(&mut self.next);
            self.remaining.sort_unstable();
        }
    }
}

/// `i ≥ j`, in the fixed order of the lists.
fn pairs(rankers: usize) -> impl Iterator<Item = Pair> {
    (0..rankers).flat_map(|i| (0..=i).map(move |j| (i, j)))
}

impl ReferencePolicy for ReferenceEcwRmed {
    fn select(&self, _rng: &mut PolicyRng) -> Duel {
        let (i, j) = self.scarce().unwrap_or_else(|| self.remaining[0]);
        Duel::new(i, j)
    }

    fn fold(&mut self, duel: Duel, outcome: Outcome) {
        let is_forced = self.scarce().is_some();
        let pair = (duel.first.max(duel.second), duel.first.min(duel.second));
        self.reference.record(duel, outcome);
        let is_draw = duel.is_self() || outcome != Outcome::None;
        if is_draw && !is_forced && self.remaining.contains(&pair) {
            self.draw(pair);
        }
    }
}
