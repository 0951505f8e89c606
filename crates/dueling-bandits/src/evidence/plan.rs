//! The cheapest proof that some ranker is a Copeland winner: which pairs to compare, and how often.
//!
//! A proof for `a` that it wins `l` pairs consists of *claims* "x beats y": `a` beats `l` rankers,
//! and every other ranker `j` loses to `d = K - 1 - l` rankers. Then no ranker beats more than `l`
//! others. For a given `l` the choice separates: each `j` takes its `d` cheapest losses, and `a`
//! takes the `l` wins that are cheapest after what they save, since a win over `j` is also one of
//! the losses of `j`. So the cheapest proof of each `l` is found exactly.
//!
//! The price of a claim is the number of comparisons that it lacks. A comparison brings `k = 2
//! E[max(0, p - null)²]` nats, about the expected divergence over the posterior of the pair. It is
//! never 0, so a claim that looks wrong remains possible, at a price.

mod proof;
mod survey;

use crate::evidence::certificate::PairEvidence;
use crate::evidence::plan::survey::{Outlook, PlacedClaim, Survey};
use crate::evidence::verdict::VerdictTracker;
use crate::{InFlight, Tally};

/// Added to the risk of a claim, so that none has the weight 0.
const LEAST_RISK: f64 = 0.01;
/// Added to the regret of a claim, so that none has the weight infinity.
const LEAST_REGRET: f64 = 0.03;
/// How many missing comparisons one duel in flight stands for: their number is an estimate, often
/// too large, so it is better to wait for some first.
const IN_FLIGHT_WEIGHT: f64 = 2.0;

/// A claim "`winner` beats `loser`" of a proof.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Claim {
    /// The ranker that has to win the pair.
    pub winner: usize,
    /// The other one.
    pub loser: usize,
    /// The evidence that it needs, in nats.
    pub target: f64,
    /// Regret of a duel of the pair, as estimated when the plan was made.
    pub regret: f64,
    /// Estimated number of comparisons that it lacks. Follows from the counts.
    #[serde(skip)]
    pub missing: f64,
    /// Estimated probability that it is wrong. Follows from the counts.
    #[serde(skip)]
    risk: f64,
}

impl Claim {
    fn weight(&self, awaited: Awaited<'_>) -> f64 {
        let in_flight = f64::from(awaited.in_flight.of(self.winner, self.loser));
        let missing = self.missing - IN_FLIGHT_WEIGHT * awaited.counting * in_flight;
        missing.max(0.0) * (self.risk + LEAST_RISK) / (self.regret + LEAST_REGRET)
    }

    /// Reads the counts of the pair.
    fn refresh(&mut self, pairs: &PairEvidence, active: &[usize], margin: f64) {
        let place = |ranker: usize| active.binary_search(&ranker);
        if let (Ok(x), Ok(y)) = (place(self.winner), place(self.loser)) {
            let outlook = Outlook::of(pairs.wins(x, y), pairs.wins(y, x), 0.5 - margin);
            self.missing = outlook.comparisons(self.target - pairs.ln(x, y));
            self.risk = 1.0 - outlook.probability;
        }
    }
}

/// The duels whose answers are still to come.
#[derive(Debug, Clone, Copy)]
pub struct Awaited<'a> {
    /// How many they are.
    pub in_flight: &'a InFlight,
    /// The share of their answers that will count, as expected.
    pub counting: f64,
}

/// A proof that is to be completed.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    leader: Option<usize>,
    claims: Vec<Claim>,
}

impl Plan {
    /// The cheapest proof at the present counts among the rankers `active`.
    pub fn make(tracker: &VerdictTracker, tally: &Tally, active: &[usize]) -> Self {
        Self::of(tracker, &tracker.evidence(tally, active), active, tally.steps())
    }

    /// The same with the evidence of `pairs`, in place of what counts so far.
    pub(crate) fn of(
        tracker: &VerdictTracker,
        pairs: &PairEvidence,
        active: &[usize],
        steps: u64,
    ) -> Self {
        if active.len() < 2 {
            return Self::default();
        }
        let rule = tracker.rule();
        let survey = Survey::new(pairs, tracker.target().margin);
        let lacks = |claim: &PlacedClaim| survey.missing(claim.x, claim.y, claim.target) > 0.0;
        let Some((leader, mut proof)) = survey.cheapest(rule, pairs, steps) else {
            return Self::default();
        };
        if !proof.iter().any(lacks) {
            survey.raise_targets(rule, pairs, leader, &mut proof);
        }
        let claim = |&PlacedClaim { x, y, target }: &PlacedClaim| Claim {
            winner: active[x],
            loser: active[y],
            target,
            regret: survey.regret(x, y),
            missing: survey.missing(x, y, target),
            risk: 1.0 - survey.outlook(x, y).probability,
        };
        let claims = proof.iter().filter(|claim| lacks(claim)).map(claim).collect();
        Self { leader: Some(active[leader]), claims }
    }

    /// The pair `{i, j}` has new counts, or with `None` any pair has.
    pub(crate) fn update(
        &mut self,
        pairs: &PairEvidence,
        active: &[usize],
        margin: f64,
        changed: Option<(usize, usize)>,
    ) {
        let is_changed = |claim: &Claim| {
            changed.is_none_or(|(i, j)| {
                (claim.winner, claim.loser) == (i, j) || (claim.winner, claim.loser) == (j, i)
            })
        };
        for claim in self.claims.iter_mut().filter(|claim| is_changed(claim)) {
            claim.refresh(pairs, active, margin);
        }
    }

    /// The ranker to be proven; `None` before the first plan.
    pub fn leader(&self) -> Option<usize> {
        self.leader
    }

    /// The claims that lacked comparisons when the plan was made.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Comparisons that are missing at the present counts.
    pub fn missing(&self) -> f64 {
        self.claims.iter().map(|claim| claim.missing).sum()
    }

    /// Whether no claim lacks any comparison.
    pub fn is_complete(&self) -> bool {
        self.claims.iter().all(|claim| claim.missing <= 0.0)
    }

    /// The pair of a claim that lacks comparisons beyond those in flight, with a probability in
    /// proportion to their number and to the risk of the claim, and against its regret. `share` is
    /// uniform in [0, 1).
    pub fn draw(&self, awaited: Awaited<'_>, share: f64) -> Option<(usize, usize)> {
        let total: f64 = self.claims.iter().map(|claim| claim.weight(awaited)).sum();
        let mut rest = share * total;
        let mut drawn = None;
        for claim in &self.claims {
            let weight = claim.weight(awaited);
            if weight > 0.0 {
                drawn = Some((claim.winner, claim.loser));
                rest -= weight;
                if rest < 0.0 {
                    break;
                }
            }
        }
        drawn
    }

    /// Whether a decoded plan, before [`Plan::update`], fits these rankers.
    pub(crate) fn is_sound(&self, active: &[usize]) -> bool {
        let known = |ranker: usize| active.binary_search(&ranker).is_ok();
        self.leader.is_none_or(known)
            && self.claims.iter().all(|&Claim { winner, loser, target, regret, .. }| {
                known(winner)
                    && known(loser)
                    && winner != loser
                    && target.is_finite()
                    && (0.0..=1.0).contains(&regret)
            })
    }
}
