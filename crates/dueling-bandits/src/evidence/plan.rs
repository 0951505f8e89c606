//! The cheapest proof that some ranker is a Copeland winner: which pairs to compare, and how often.
//!
//! A proof for `a` that it wins `l` pairs consists of *claims* "x beats y": `a` beats `l` rankers,
//! and every other ranker `j` loses to `d = K - 1 - l` rankers. Then no ranker beats more than `l`
//! others. For a given `l` the choice separates: each `j` takes its `d` cheapest losses, and `a`
//! takes the `l` wins that are cheapest after what they save, since a win over `j` is also one of
//! the losses of `j`. So the cheapest proof of each `l` is found exactly.
//!
//! The price of a claim is the number of comparisons that it lacks, and more where they show bad
//! rankers. A comparison brings `k = 2 E[max(0, p - null)²]` nats, about the expected divergence
//! over the posterior of the pair. It is never 0, so a claim that looks wrong remains possible, at
//! a price.

mod enough;
mod proof;
mod survey;

use crate::evidence::outlooks::Outlooks;
use crate::evidence::plan::proof::Step;
use crate::evidence::plan::survey::Survey;
use crate::evidence::verdict::VerdictTracker;
use crate::{InFlight, Tally};

/// Added to the regret of a claim, so that none has the weight infinity.
const LEAST_REGRET: f64 = 0.03;
/// How many missing comparisons one duel in flight stands for.
const IN_FLIGHT_WEIGHT: f64 = 2.0;
/// A plan is outdated once it lacks this many times the comparisons that it lacked at first.
const OUTDATED: f64 = 1.5;

/// How much more evidence all claims need when all have enough and there is no verdict yet, in
/// nats. If that is not enough either, single claims need more.
const MORE_EVIDENCE: [f64; 3] = [1.0, 2.0, 3.0];

/// A claim "`winner` beats `loser`" of a proof.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    pub missing: f64,
    /// Estimated probability that it is wrong, and a little more. Follows from the counts.
    risk: f64,
}

impl Claim {
    fn weight(&self, awaited: Awaited<'_>) -> f64 {
        // the number of missing comparisons is an estimate, often too large: wait for some first
        let in_flight = f64::from(awaited.in_flight.of(self.winner, self.loser));
        let waiting = IN_FLIGHT_WEIGHT * awaited.counting * in_flight;
        let missing = self.missing - waiting;
        missing.max(0.0) * self.risk / (self.regret + LEAST_REGRET)
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    leader: Option<usize>,
    claims: Vec<Claim>,
    /// Where the claim of a winner and a loser is, ascending. Follows from the claims, as do the
    /// sums.
    places: Vec<((usize, usize), usize)>,
    sums: Sums,
    /// Comparisons that were missing when it was made.
    missing_at_first: f64,
    /// Whether losses of other rankers are part of the proof.
    needs_losses: bool,
}

/// Sums over all claims at the present counts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums {
    missing: f64,
    /// Claims that lack comparisons.
    incomplete: usize,
}

impl Sums {
    fn of(claims: &[Claim]) -> Self {
        claims.iter().fold(Self::default(), |sums, claim| Self {
            missing: sums.missing + claim.missing,
            incomplete: sums.incomplete + usize::from(claim.missing > 0.0),
        })
    }
}

/// What is saved of a [`Plan`]: the rest follows from the counts.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedPlan {
    leader: Option<u16>,
    missing_at_first: f64,
    needs_losses: bool,
    /// Winner, loser, target and regret of each claim.
    claims: Vec<(u16, u16, f64, f64)>,
}

impl Plan {
    /// The cheapest proof at the present counts among the rankers `active`. `leader` is the leader
    /// of the plan before.
    pub fn make(
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        leader: Option<usize>,
    ) -> Self {
        let outlooks = Outlooks::new(&tracker.evidence(tally, active), tracker.target().margin);
        Self::of(&outlooks, tracker, tally, active, leader)
    }

    /// The same where the `outlooks` of `active` are up to date.
    pub fn of(
        outlooks: &Outlooks,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        leader: Option<usize>,
    ) -> Self {
        if active.len() < 2 {
            return Self::default();
        }
        let evidence = tracker.evidence(tally, active);
        let leader = leader.and_then(|leader| active.binary_search(&leader).ok());
        let survey = Survey::new(outlooks, &evidence, tracker.target());
        let targets = tracker.claim_targets(evidence.with_evidence(outlooks.evidence()));
        let proof_with = |more: f64| survey.cheapest((&targets, more), tally.steps(), leader);
        let is_complete =
            |claims: &[Step]| claims.iter().all(|&(x, y, target)| survey.has(x, y, target));
        let mut proof = proof_with(0.0);
        for more in MORE_EVIDENCE {
            if proof.as_ref().is_some_and(|(_, claims)| is_complete(claims)) {
                proof = proof_with(more);
            }
        }
        let Some((leader, mut claims)) = proof else { return Self::default() };
        let needs_losses = claims.iter().any(|&(x, _, _)| x != leader);
        if is_complete(&claims) {
            survey.ask_for_more(tracker, &evidence, leader, &mut claims);
        }
        let leader = Some(active[leader]);
        let mut plan = Self { leader, needs_losses, ..Self::default() };
        for (x, y, target) in claims {
            let missing = outlooks.missing(x, y, target);
            if missing > 0.0 {
                let (regret, risk) = (survey.regret(x, y), outlooks.outlook(x, y).risk());
                let (winner, loser) = (active[x], active[y]);
                plan.claims.push(Claim { winner, loser, target, regret, missing, risk });
                plan.missing_at_first += missing;
            }
        }
        plan.arrange();
        plan
    }

    /// Note where the claims are, and sum over them.
    fn arrange(&mut self) {
        let claims = self.claims.iter().map(|claim| (claim.winner, claim.loser));
        self.places = claims.zip(0..).collect();
        self.places.sort_unstable();
        self.sums = Sums::of(&self.claims);
    }

    /// The claim "`winner` beats `loser`" among the claims.
    fn place(&self, winner: usize, loser: usize) -> Option<usize> {
        let at = self.places.binary_search_by_key(&(winner, loser), |&(claim, _)| claim).ok()?;
        Some(self.places[at].1)
    }

    /// The pair `{i, j}` has new counts, which `outlooks` contains.
    pub fn update(&mut self, outlooks: &Outlooks, active: &[usize], i: usize, j: usize) {
        let claims = [self.place(i, j), self.place(j, i)];
        for at in claims.into_iter().flatten() {
            self.claims[at].refresh(outlooks, active);
        }
        if claims != [None; 2] {
            self.sums = Sums::of(&self.claims);
        }
    }

    /// Whether it claims "`winner` beats `loser`".
    pub fn claims_that(&self, winner: usize, loser: usize) -> bool {
        self.place(winner, loser).is_some()
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
        self.sums.missing
    }

    /// Whether the counts have turned against the plan: it now lacks more than when it was made.
    pub fn is_outdated(&self) -> bool {
        self.missing() > OUTDATED * self.missing_at_first
    }

    /// Whether losses of other rankers are part of the proof; otherwise the leader is to beat all.
    pub fn needs_losses(&self) -> bool {
        self.needs_losses
    }

    /// Whether no claim lacks any comparison.
    pub fn is_complete(&self) -> bool {
        self.sums.incomplete == 0
    }

    /// The claim of the leader and `rival`, if it lacks comparisons beyond those in flight.
    pub fn against(&self, rival: usize, awaited: Awaited<'_>) -> Option<(usize, usize)> {
        let leader = self.leader?;
        let places = [self.place(leader, rival), self.place(rival, leader)];
        let claim = &self.claims[places.into_iter().flatten().min()?];
        (claim.weight(awaited) > 0.0).then_some((claim.winner, claim.loser))
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

    /// What is to be saved.
    pub fn saved(&self) -> SavedPlan {
        let claim =
            |claim: &Claim| (claim.winner as u16, claim.loser as u16, claim.target, claim.regret);
        SavedPlan {
            leader: self.leader.map(|leader| leader as u16),
            missing_at_first: self.missing_at_first,
            needs_losses: self.needs_losses,
            claims: self.claims.iter().map(claim).collect(),
        }
    }

    /// The plan that was saved; `None` if it does not fit the rankers.
    pub fn restore(saved: &SavedPlan, outlooks: &Outlooks, active: &[usize]) -> Option<Self> {
        let known = |ranker: u16| active.binary_search(&ranker.into()).is_ok();
        let leader = saved.leader.map(usize::from);
        let is_sound = saved.leader.is_none_or(known)
            && saved.missing_at_first.is_finite()
            && (saved.claims.is_empty() || outlooks.rankers() == active.len())
            && saved.claims.iter().all(|&(winner, loser, target, regret)| {
                known(winner)
                    && known(loser)
                    && winner != loser
                    && target.is_finite()
                    && (0.0..=1.0).contains(&regret)
            });
        is_sound.then_some(())?;
        let mut plan = Self {
            leader,
            missing_at_first: saved.missing_at_first,
            needs_losses: saved.needs_losses,
            ..Self::default()
        };
        for &(winner, loser, target, regret) in &saved.claims {
            let (winner, loser) = (winner.into(), loser.into());
            let mut claim = Claim { winner, loser, target, regret, missing: 0.0, risk: 0.0 };
            claim.refresh(outlooks, active);
            plan.claims.push(claim);
        }
        plan.arrange();
        Some(plan)
    }
}

impl Claim {
    fn refresh(&mut self, outlooks: &Outlooks, active: &[usize]) {
        let place = |ranker: usize| active.binary_search(&ranker);
        if let (Ok(x), Ok(y)) = (place(self.winner), place(self.loser)) {
            self.missing = outlooks.missing(x, y, self.target);
            self.risk = outlooks.outlook(x, y).risk();
        }
    }
}
