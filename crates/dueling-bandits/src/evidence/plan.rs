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

use crate::evidence::certificate::PairEvidence;
use crate::evidence::verdict::VerdictTracker;
use crate::{InFlight, Tally};

/// How much more a comparison counts for each unit of regret that it costs.
const REGRET_WEIGHT: f64 = 10.0;
/// Proofs with losses of other rankers cost this many times more at first: they need more to be
/// known. The extra price halves in [`PATIENCE_STEPS`].
const CAUTION: f64 = 4.0;
const PATIENCE_STEPS: f64 = 10_000.0;
/// Price of the proof for the present leader of a plan, relative to others: plans that change
/// their leader for every small difference finish none.
const LOYALTY: f64 = 0.7;
/// Rankers whose expected Copeland score is this close to the largest are candidates.
const CANDIDATES_WITHIN: f64 = 0.5;
/// Added to regret and risk, so that no claim has the weight 0 or infinity.
const LEAST_REGRET: f64 = 0.03;
const LEAST_RISK: f64 = 0.01;
/// Evidence that a comparison brings at least.
const LEAST_RATE: f64 = 1e-9;
/// How much more evidence is asked for when all claims have enough and there is no verdict yet, in
/// nats, and how often.
const MORE_EVIDENCE: std::ops::Range<u32> = 0..60;

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
    fn weight(&self, in_flight: &InFlight) -> f64 {
        let missing = self.missing - f64::from(in_flight.of(self.winner, self.loser));
        missing.max(0.0) * self.risk / (self.regret + LEAST_REGRET)
    }
}

/// A proof that is to be completed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    leader: Option<usize>,
    claims: Vec<Claim>,
    /// Comparisons that were missing when it was made.
    missing: f64,
    /// Whether losses of other rankers are part of the proof.
    needs_losses: bool,
}

/// What is saved of a [`Plan`]: the rest follows from the counts.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedPlan {
    leader: Option<u16>,
    missing: f64,
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
        if active.len() < 2 {
            return Self::default();
        }
        let evidence = tracker.evidence(tally, active);
        let leader = leader.and_then(|leader| active.iter().position(|&i| i == leader));
        let survey = Survey::new(&evidence, tracker.target().margin);
        let proof = survey.cheapest(tracker.claim_thresholds(), tally.steps(), leader);
        let Some((leader, claims)) = proof else { return Self::default() };
        let needs_losses = claims.iter().any(|&(x, _, _)| x != leader);
        let mut plan = Self { leader: Some(active[leader]), needs_losses, ..Self::default() };
        for (x, y, target) in claims {
            let (missing, risk) = survey.lack(&evidence, x, y, target);
            if missing > 0.0 {
                let regret = survey.regret(x, y);
                let (winner, loser) = (active[x], active[y]);
                plan.claims.push(Claim { winner, loser, target, regret, missing, risk });
                plan.missing += missing;
            }
        }
        plan
    }

    /// The pair `{i, j}` has new counts.
    pub fn update(
        &mut self,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
        i: usize,
        j: usize,
    ) {
        let is_pair = |claim: &&mut Claim| {
            (claim.winner, claim.loser) == (i, j) || (claim.winner, claim.loser) == (j, i)
        };
        for claim in self.claims.iter_mut().filter(is_pair) {
            claim.refresh(tracker, tally, active);
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

    /// Comparisons that were missing when the plan was made.
    pub fn missing(&self) -> f64 {
        self.missing
    }

    /// Whether losses of other rankers are part of the proof; otherwise the leader is to beat all.
    pub fn needs_losses(&self) -> bool {
        self.needs_losses
    }

    /// Whether no claim lacks any comparison.
    pub fn is_complete(&self) -> bool {
        self.claims.iter().all(|claim| claim.missing <= 0.0)
    }

    /// No leader and no claims.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The claim of the leader and `rival`, if it lacks comparisons beyond those in flight.
    pub fn against(&self, rival: usize, in_flight: &InFlight) -> Option<(usize, usize)> {
        let leader = self.leader?;
        let is_pair = |claim: &&Claim| {
            (claim.winner, claim.loser) == (leader, rival)
                || (claim.winner, claim.loser) == (rival, leader)
        };
        let claim = self.claims.iter().find(is_pair)?;
        (claim.weight(in_flight) > 0.0).then_some((claim.winner, claim.loser))
    }

    /// The pair of a claim that lacks comparisons beyond those in flight, with a probability in
    /// proportion to their number and to the risk of the claim, and against its regret. `share` is
    /// uniform in [0, 1).
    pub fn draw(&self, in_flight: &InFlight, share: f64) -> Option<(usize, usize)> {
        let total: f64 = self.claims.iter().map(|claim| claim.weight(in_flight)).sum();
        let mut rest = share * total;
        let mut drawn = None;
        for claim in &self.claims {
            let weight = claim.weight(in_flight);
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
            missing: self.missing,
            needs_losses: self.needs_losses,
            claims: self.claims.iter().map(claim).collect(),
        }
    }

    /// The plan that was saved; `None` if it does not fit the rankers.
    pub fn restore(
        saved: &SavedPlan,
        tracker: &VerdictTracker,
        tally: &Tally,
        active: &[usize],
    ) -> Option<Self> {
        let known = |ranker: u16| active.binary_search(&ranker.into()).is_ok();
        let leader = saved.leader.map(usize::from);
        let is_sound = saved.leader.is_none_or(known)
            && saved.missing.is_finite()
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
            claims: Vec::new(),
            missing: saved.missing,
            needs_losses: saved.needs_losses,
        };
        for &(winner, loser, target, regret) in &saved.claims {
            let (winner, loser) = (winner.into(), loser.into());
            let mut claim = Claim { winner, loser, target, regret, missing: 0.0, risk: 0.0 };
            claim.refresh(tracker, tally, active);
            plan.claims.push(claim);
        }
        Some(plan)
    }
}

impl Claim {
    fn refresh(&mut self, tracker: &VerdictTracker, tally: &Tally, active: &[usize]) {
        let evidence = tracker.evidence(tally, active);
        let place = |ranker: usize| active.binary_search(&ranker);
        if let (Ok(x), Ok(y)) = (place(self.winner), place(self.loser)) {
            let null = 0.5 - tracker.target().margin;
            let outlook = Outlook::of(evidence.wins(x, y), evidence.wins(y, x), null);
            self.missing = (self.target - evidence.ln(x, y)).max(0.0) / outlook.rate;
            self.risk = 1.0 - outlook.probability + LEAST_RISK;
        }
    }
}

/// What further comparisons of a pair promise.
#[derive(Debug, Clone, Copy)]
struct Outlook {
    /// Probability that the first ranker wins the pair with more than the null.
    probability: f64,
    /// Expected evidence of a comparison, in nats.
    rate: f64,
}

impl Outlook {
    /// With the normal approximation of the posterior `Beta(wins + 1, losses + 1)`.
    fn of(wins: f64, losses: f64, null: f64) -> Self {
        let count = wins + losses + 2.0;
        let mean = (wins + 1.0) / count;
        let variance = mean * (1.0 - mean) / (count + 1.0);
        let (lead, deviation) = (mean - null, variance.sqrt());
        let z = lead / deviation;
        let probability = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
        let above = (lead * lead + variance) * probability + lead * deviation * density;
        Self { probability, rate: (2.0 * above).max(LEAST_RATE) }
    }
}

/// A claim of a proof among places: winner, loser, and the evidence that it needs.
type Step = (usize, usize, f64);

/// All pairs at one moment. Rankers are places in the list of active ones.
struct Survey {
    rankers: usize,
    margin: f64,
    /// By `x * K + y`: `ln E(x≻y)`, and the nats that a comparison adds to it.
    evidence: Vec<f64>,
    rate: Vec<f64>,
    /// Expected Copeland scores, and the largest of them.
    scores: Vec<f64>,
    highest: f64,
    /// The largest empirical Copeland score, where an even pair has a fixed side.
    best: usize,
}

impl Survey {
    fn new(pairs: &PairEvidence, margin: f64) -> Self {
        let rankers = pairs.rankers();
        let (mut evidence, mut rate) = (vec![0.0; rankers * rankers], vec![0.0; rankers * rankers]);
        let (mut scores, mut wins) = (vec![0.0; rankers], vec![0_usize; rankers]);
        for x in 1..rankers {
            for y in 0..x {
                let (won, lost) = (pairs.wins(x, y), pairs.wins(y, x));
                let outlook = Outlook::of(won, lost, 0.5 - margin);
                let reverse = Outlook::of(lost, won, 0.5 - margin);
                (rate[x * rankers + y], rate[y * rankers + x]) = (outlook.rate, reverse.rate);
                if won + lost > 0.0 {
                    evidence[x * rankers + y] = pairs.ln(x, y);
                    evidence[y * rankers + x] = pairs.ln(y, x);
                }
                let above = match margin > 0.0 {
                    true => Outlook::of(won, lost, 0.5).probability,
                    false => outlook.probability,
                };
                scores[x] += above;
                scores[y] += 1.0 - above;
                // an even pair needs some side; which one does not matter
                let first = if won == lost { (x + y) % 2 == 0 } else { won > lost };
                wins[if first { x } else { y }] += 1;
            }
        }
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let best = wins.iter().copied().max().unwrap_or(0);
        Self { rankers, margin, evidence, rate, scores, highest, best }
    }

    /// Expected Copeland regret of a duel.
    fn regret(&self, x: usize, y: usize) -> f64 {
        let mean = (self.scores[x] + self.scores[y]) / 2.0;
        (self.highest - mean).max(0.0) / (self.rankers - 1) as f64
    }

    /// The comparisons that a claim lacks, and its risk.
    fn lack(&self, pairs: &PairEvidence, x: usize, y: usize, target: f64) -> (f64, f64) {
        let at = x * self.rankers + y;
        let null = 0.5 - self.margin;
        let outlook = Outlook::of(pairs.wins(x, y), pairs.wins(y, x), null);
        let missing = (target - self.evidence[at]).max(0.0) / self.rate[at];
        (missing, 1.0 - outlook.probability + LEAST_RISK)
    }

    /// Leader and claims `(x, y, target)` of the cheapest proof that lacks something.
    fn cheapest(
        &self,
        (alone, among): (f64, f64),
        steps: u64,
        before: Option<usize>,
    ) -> Option<(usize, Vec<Step>)> {
        let mut found = None;
        for more in MORE_EVIDENCE {
            let (alone, among) = (alone + f64::from(more), among + f64::from(more));
            let proof = self.cheapest_at(alone, among, steps, before)?;
            let lacks = |&(x, y, target): &Step| self.evidence[x * self.rankers + y] < target;
            let is_open = proof.1.iter().any(lacks);
            found = Some(proof);
            if is_open {
                break;
            }
        }
        found
    }

    fn cheapest_at(
        &self,
        alone: f64,
        among: f64,
        steps: u64,
        before: Option<usize>,
    ) -> Option<(usize, Vec<Step>)> {
        let k = self.rankers;
        let price = |x: usize, y: usize, target: f64| {
            let missing = (target - self.evidence[x * k + y]).max(0.0) / self.rate[x * k + y];
            missing * (1.0 + REGRET_WEIGHT * self.regret(x, y))
        };
        let candidates = (0..k).filter(|&a| self.scores[a] >= self.highest - CANDIDATES_WITHIN);
        let fewest_wins = self.best.saturating_sub(1);
        let most_losses = k - 1 - fewest_wins;
        let caution = 1.0 + CAUTION / (1.0 + steps as f64 / PATIENCE_STEPS);
        let mut best: Option<(f64, Proof)> = None;
        for a in candidates {
            let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
            let losses: Vec<Losses> = others
                .iter()
                .map(|&j| {
                    let rivals = others.iter().filter(|&&x| x != j);
                    Losses::cheapest(rivals.map(|&x| (price(x, j, among), x)), most_losses)
                })
                .collect();
            for wins in fewest_wins..k {
                let needed = k - 1 - wins;
                let target = if needed == 0 { alone } else { among };
                let mut total = 0.0;
                let mut keys: Vec<(f64, usize)> = Vec::with_capacity(others.len());
                for (at, &j) in others.iter().enumerate() {
                    total += losses[at].sum(needed);
                    keys.push((price(a, j, target) - losses[at].saved_by_a_win(needed), at));
                }
                if wins > 0 && wins < keys.len() {
                    keys.select_nth_unstable_by(wins - 1, |one, other| one.0.total_cmp(&other.0));
                }
                keys.truncate(wins);
                total += keys.iter().map(|(key, _)| key).sum::<f64>();
                if needed > 0 {
                    total *= caution;
                }
                if before == Some(a) {
                    total *= LOYALTY;
                }
                if total.is_finite() && best.as_ref().is_none_or(|(least, _)| total < *least) {
                    let won: Vec<usize> = keys.iter().map(|&(_, at)| at).collect();
                    best = Some((total, Proof { a, wins, won }));
                }
            }
        }
        let (_, Proof { a, wins, won }) = best?;
        let needed = k - 1 - wins;
        let target = if needed == 0 { alone } else { among };
        let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
        let mut claims: Vec<_> = won.iter().map(|&at| (a, others[at], target)).collect();
        for (at, &j) in others.iter().enumerate() {
            let count = needed.saturating_sub(usize::from(won.contains(&at)));
            let rivals = others.iter().filter(|&&x| x != j);
            let losses = Losses::cheapest(rivals.map(|&x| (price(x, j, among), x)), count);
            claims.extend(losses.rivals.iter().map(|&x| (x, j, among)));
        }
        Some((a, claims))
    }
}

/// A proof: its leader, the number of its wins, and the places of the rankers that it beats among
/// all others.
struct Proof {
    a: usize,
    wins: usize,
    won: Vec<usize>,
}

/// The cheapest losses of one ranker.
struct Losses {
    /// Sums of the prices of the 0, 1, 2, … cheapest.
    sums: Vec<f64>,
    /// To whom, cheapest first.
    rivals: Vec<usize>,
}

impl Losses {
    fn cheapest(prices: impl Iterator<Item = (f64, usize)>, count: usize) -> Self {
        let order = |one: &(f64, usize), other: &(f64, usize)| {
            one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
        };
        if count == 0 {
            return Self { sums: vec![0.0], rivals: Vec::new() };
        }
        let mut prices: Vec<_> = prices.collect();
        if count < prices.len() {
            prices.select_nth_unstable_by(count - 1, order);
            prices.truncate(count);
        }
        prices.sort_unstable_by(order);
        let mut sums = vec![0.0];
        sums.extend(prices.iter().scan(0.0, |sum, (price, _)| {
            *sum += price;
            Some(*sum)
        }));
        Self { sums, rivals: prices.into_iter().map(|(_, rival)| rival).collect() }
    }

    /// Price of the `count` cheapest; infinite if there are fewer.
    fn sum(&self, count: usize) -> f64 {
        self.sums.get(count).copied().unwrap_or(f64::INFINITY)
    }

    /// Price of the last of the `count` cheapest, which a loss to the leader replaces.
    fn saved_by_a_win(&self, count: usize) -> f64 {
        match (count, self.sums.get(count)) {
            (0, _) => 0.0,
            (_, Some(sum)) => sum - self.sums[count - 1],
            // with fewer than `count` rivals, all are needed beside the leader
            (_, None) => f64::INFINITY,
        }
    }
}
