//! D-TS-Verdict, written from `docs/verdict-policy.md`. It has no
//! paper.
//!
//! Every step starts from the win counts. What a step cannot know from them is kept: the plan as it
//! was made (leader, claims, targets), when that was, whether a majority has turned since, the
//! counts at the newest change of the roster, the comparisons since, and the verdict.
//!
//! The explorer is D-TS+. It is the crate's `d-ts-plus`, through its public face: the same
//! observations and the same generator give the same duels, and it has a reference form of its own
//! ([`double_thompson`](super::double_thompson)).
//!
//! The stopping rule is the bound of the documentation, since that decides when a verdict comes.
//! The tests hold it against the crate's rule, and with few rankers against all truths.

pub mod field;
pub mod plan;
pub mod refuters;
pub mod rule;

use dueling_bandits::evidence::{Target, Verdict};
use dueling_bandits::{Duel, InFlight, Observation, Policy, PolicyRng};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use self::field::{Field, Outlook};
use self::plan::{Plan, Prices};
use self::refuters::Refuters;
use self::rule::Rule;
use super::Reference;

#[derive(Debug)]
pub struct ReferenceVerdict {
    pub reference: Reference,
    explorer: Box<dyn Policy>,
    target: Target,
    urgency: f64,
    /// Changes of the roster, and `W` at the newest one.
    changes: u32,
    before: Vec<Vec<f64>>,
    /// Comparisons since then.
    comparisons: u64,
    /// What follows the leader, with a margin and three or more rankers.
    pub refuters: Option<Refuters>,
    /// How well the records agree with the pairs, at the newest plan.
    agreement: f64,
    pub verdict: Option<Verdict>,
    /// The rivals that the verdict rests on, and `W` at the verdict.
    at_verdict: Option<(Vec<usize>, Vec<Vec<f64>>)>,
    pub plan: Plan,
    planned_at: u64,
    is_stale: bool,
}

impl ReferenceVerdict {
    /// `explorer` is D-TS+ with the counts so far, which are those of a roster that never changed.
    pub fn new(explorer: Box<dyn Policy>, target: Target, urgency: f64) -> Self {
        let reference = Reference::of(explorer.tally(), 0.51);
        let k = reference.rankers();
        let all: f64 = reference.wins.iter().flatten().sum();
        let mut form = Self {
            explorer,
            target,
            urgency,
            changes: 0,
            before: vec![vec![0.0; k]; k],
            comparisons: all as u64,
            // counts alone do not say who led when
            refuters: (all == 0.0).then(|| following(k)).flatten(),
            agreement: 1.0,
            verdict: None,
            at_verdict: None,
            plan: Plan::default(),
            planned_at: 0,
            is_stale: false,
            reference,
        };
        form.check();
        if form.reference.steps > 0 && form.verdict.is_none() {
            form.make_plan();
        }
        form
    }

    /// The active rankers; a place is an index into them.
    fn active(&self) -> Vec<usize> {
        self.reference.active()
    }

    /// What the counts since the roster last changed say.
    pub fn field(&self) -> Field {
        let active = self.active();
        let since = |i: usize, j: usize| {
            let before = self.before.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0.0);
            self.reference.wins[i][j] - before
        };
        let row = |&i: &usize| active.iter().map(|&j| since(i, j)).collect();
        Field::of(active.iter().map(row).collect(), self.target.margin)
    }

    /// The stopping rule of the present stretch.
    pub fn rule(&self) -> Rule<'_> {
        let change = f64::from(self.changes);
        // as the policy computes it: 1 - 0.9 is not exactly 0.1
        let share = match self.changes {
            0 => 0.9,
            _ => (1.0 - 0.9) / (change * (change + 1.0)),
        };
        Rule {
            rankers: self.active().len().max(2),
            error: (1.0 - self.target.confidence) * share,
            margin: self.target.margin,
            refuters: self.refuters.as_ref(),
        }
    }

    /// Copeland scores of all counts.
    fn score(&self, i: usize) -> usize {
        let wins = &self.reference.wins;
        self.active().into_iter().filter(|&j| wins[i][j] > wins[j][i]).count()
    }

    pub fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        let steps = self.reference.steps as f64;
        let active = self.active();
        if let Some(verdict) = &self.verdict {
            return self.guard(verdict, in_flight, rng);
        }
        // a pair at random, three times from step t to 2t, over ln 2
        if rng.random::<f64>() * (steps + 1.0) < 3.0 && active.len() > 1 {
            let first = rng.random_range(0..active.len());
            let others: Vec<usize> =
                active.iter().copied().filter(|&j| j != active[first]).collect();
            return Duel::new(active[first], others[rng.random_range(0..others.len())]);
        }
        let explored = self.explore(in_flight, rng);
        if !explored.is_self() && rng.random::<f64>() >= self.urgency {
            return explored;
        }
        let field = self.field();
        let patience = self.patience(&field);
        if patience < 1.0 && rng.random::<f64>() >= patience {
            return explored;
        }
        self.prove(&field, explored, in_flight, rng)
    }

    /// By the records of the rankers as far as they agree with the pairs, else by D-TS+.
    fn explore(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        let trust = ((self.agreement - 0.75) / (0.92 - 0.75)).clamp(0.0, 1.0);
        if self.active().len() <= 256 && rng.random::<f64>() < 0.9 * trust {
            let records = self.records();
            let first = self.sampled_best(&records, rng);
            if !self.cannot_lead(first) {
                return Duel::new(first, self.sampled_best(&records, rng));
            }
        }
        self.explorer.select(in_flight, rng).duel
    }

    /// Wins and losses of every active ranker against all other active ones.
    fn records(&self) -> Vec<(f64, f64)> {
        let (active, wins) = (self.active(), &self.reference.wins);
        let record = |&i: &usize| {
            let others = || active.iter().copied().filter(move |&j| j != i);
            (others().map(|j| wins[i][j]).sum(), others().map(|j| wins[j][i]).sum())
        };
        active.iter().map(record).collect()
    }

    /// The ranker with the largest of one sample of win rates: normal, with the mean and the
    /// variance of `Beta(wins + 1, losses + 1)`.
    fn sampled_best(&self, records: &[(f64, f64)], rng: &mut PolicyRng) -> usize {
        let mut rates = records.iter().map(|&(won, lost)| {
            let n = won + lost + 2.0;
            let mean = (won + 1.0) / n;
            let normal: f64 = StandardNormal.sample(rng);
            mean + (mean * (1.0 - mean) / (n + 1.0)).sqrt() * normal
        });
        let first = rates.next().unwrap_or(0.0);
        let (mut best, mut place) = (first, 0);
        for (at, rate) in rates.enumerate() {
            if rate > best {
                (best, place) = (rate, at + 1);
            }
        }
        self.active()[place]
    }

    /// The share of clear majorities whose winner has the better record, where three count as if
    /// they agreed.
    fn agreement_of_records(&self) -> f64 {
        let (active, wins, records) = (self.active(), &self.reference.wins, self.records());
        let rate = |x: usize| (records[x].0 + 1.0) / (records[x].0 + records[x].1 + 2.0);
        let (mut agreeing, mut all) = (3.0, 3.0);
        for x in 0..active.len() {
            for y in (0..active.len()).filter(|&y| y != x) {
                let (won, lost) = (wins[active[x]][active[y]], wins[active[y]][active[x]]);
                if won > lost && (won - lost).powi(2) >= 2.7 * (won + lost) {
                    all += 1.0;
                    agreeing += f64::from(u8::from(rate(x) > rate(y)));
                }
            }
        }
        agreeing / all
    }

    /// Whether so many pairs of the ranker are clearly lost that it cannot reach the score of the
    /// leader.
    fn cannot_lead(&self, x: usize) -> bool {
        let (active, wins) = (self.active(), &self.reference.wins);
        let Some(leader) = self.plan.leader.map(|place| active[place]) else { return false };
        let is_lost = |y: usize| {
            let lead = wins[y][x] - wins[x][y];
            lead > 0.0 && lead * lead >= 4.0 * (wins[y][x] + wins[x][y])
        };
        let not_lost = active.iter().filter(|&&y| y != x && !is_lost(y)).count();
        x != leader && not_lost < self.score(leader)
    }

    fn patience(&self, field: &Field) -> f64 {
        if self.plan.leader.is_none() {
            return 0.0;
        }
        let (k, steps) = (field.rankers as f64, self.reference.steps as f64);
        let share = match self.target.margin > 0.0 {
            true => f64::max(1.0, k / 20.0).sqrt().sqrt(),
            false => f64::min(1.0, (k / 20.0).recip()),
        };
        let ratio = share * steps.clamp(70_000.0, 3e6) / (steps + self.plan.missing(field));
        if ratio >= 1.0 { 1.0 } else { (ratio * ratio * ratio).max(0.05 * ratio) }
    }

    /// "The choice".
    fn prove(
        &self,
        field: &Field,
        explored: Duel,
        in_flight: &InFlight,
        rng: &mut PolicyRng,
    ) -> Duel {
        let active = self.active();
        let counted: f64 = field.wins.iter().flatten().sum();
        let counting = match self.comparisons {
            0 => 1.0,
            answers => (counted / answers as f64).min(1.0),
        };
        let weights = self.plan.weights(field, &active, in_flight, counting);
        let duel_of = |at: usize| {
            let (x, y, ..) = self.plan.claims[at];
            Duel::new(active[x], active[y])
        };
        let leader = self.plan.leader.map(|x| active[x]);
        if leader != Some(explored.first) {
            let of_both = (0..weights.len()).find(|&at| {
                let Duel { first, second } = duel_of(at);
                let (low, high) = (first.min(second), first.max(second));
                leader.is_some_and(|leader| {
                    (low, high) == (leader.min(explored.first), leader.max(explored.first))
                })
            });
            if let Some(at) = of_both
                && weights[at] > 0.0
                && !explored.is_self()
            {
                return duel_of(at);
            }
            // what the explorer knows and the verdict does not count
            let is_sure = explored.is_self() && self.changes > 0;
            let may_lead = active.len() <= 20 && !self.cannot_lead(explored.first);
            if may_lead && !self.plan.needs_losses && !is_sure {
                return explored;
            }
        }
        match draw(&weights, rng.random()) {
            Some(at) => duel_of(at),
            None if self.plan.is_complete(field) => {
                let leader = leader.unwrap_or(explored.first);
                match self.nearest_rival(leader) {
                    // only the check is missing
                    Some(rival) if explored.is_self() => Duel::new(leader, rival),
                    _ => explored,
                }
            }
            // everything is in flight
            None if rng.random::<f64>() < 0.5 => Duel::new(explored.first, explored.first),
            None => {
                let weights = self.plan.weights(field, &active, &InFlight::new(), 1.0);
                draw(&weights, rng.random())
                    .map_or_else(|| Duel::new(explored.first, explored.first), duel_of)
            }
        }
    }

    /// "After the verdict".
    fn guard(&self, verdict: &Verdict, in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        let winner = verdict.winner();
        if self.stands(winner) && rng.random::<f64>() >= 0.001 {
            let since = self.reference.steps - verdict.steps;
            let rival = self.to_prove(winner, since, in_flight);
            let rival = rival.or_else(|| self.doubted(winner, since, rng));
            return Duel::new(winner, rival.unwrap_or(winner));
        }
        self.explorer.select(in_flight, rng).duel
    }

    /// The rival of the verdict against which `winner` lacks most evidence from the duels since,
    /// unless those in flight should bring it.
    fn to_prove(&self, winner: usize, since: u64, in_flight: &InFlight) -> Option<usize> {
        let target = libm::log(since as f64 / 300_000.0);
        let (rivals, then) = self.at_verdict.as_ref()?;
        let now = &self.reference.wins;
        let mut least: Option<(f64, f64, usize)> = None;
        for &y in rivals {
            let (won, lost) = (now[winner][y] - then[winner][y], now[y][winner] - then[y][winner]);
            let pair = Field::of(vec![vec![0.0, won], vec![lost, 0.0]], self.target.margin);
            if least.is_none_or(|(evidence, ..)| pair.evidence[0][1] < evidence) {
                least = Some((pair.evidence[0][1], pair.missing(0, 1, target), y));
            }
        }
        let (evidence, missing, y) = least?;
        let waits = f64::from(in_flight.of(winner, y));
        (target > 0.0 && evidence < target && missing > waits).then_some(y)
    }

    /// The least certain of the leads without which `winner` would not have the largest score, with
    /// the probability that it is none.
    fn doubted(&self, winner: usize, since: u64, rng: &mut PolicyRng) -> Option<usize> {
        if self.target.margin == 0.0 || since <= 300_000 {
            return None;
        }
        let wins = &self.reference.wins;
        let turned = |y: usize| {
            let of = |x: usize| match x {
                _ if x == winner => self.score(x) - usize::from(wins[x][y] > wins[y][x]),
                _ => self.score(x) + usize::from(x == y),
            };
            self.active().into_iter().any(|x| of(x) > of(winner))
        };
        let mut least: Option<(f64, usize)> = None;
        for y in self.active().into_iter().filter(|&y| y != winner) {
            let (won, lost) = (wins[winner][y], wins[y][winner]);
            let certainty = (won - lost) / f64::max(1.0, won + lost).sqrt();
            if won < lost || !turned(y) {
                continue;
            }
            if least.is_none_or(|(certainty_so_far, _)| certainty < certainty_so_far) {
                least = Some((certainty, y));
            }
        }
        let (_, y) = least?;
        let pair = Outlook::of(wins[y][winner], wins[winner][y], 0.5);
        (rng.random::<f64>() < pair.probability).then_some(y)
    }

    /// The rivals against which `winner` has half of the evidence that the rule asks for.
    fn rests_on(&self, winner: usize) -> Vec<usize> {
        let (active, field) = (self.active(), self.field());
        let x = active.iter().position(|&i| i == winner).expect("an active winner");
        let half = -0.5 * self.rule().error.ln();
        let rivals = (0..active.len()).filter(|&y| y != x && field.evidence[x][y] >= half);
        rivals.map(|y| active[y]).collect()
    }

    fn stands(&self, winner: usize) -> bool {
        let wins = &self.reference.wins;
        let mut rivals = self.at_verdict.iter().flat_map(|(rivals, _)| rivals);
        let is_highest = self.active().into_iter().all(|i| self.score(i) <= self.score(winner));
        is_highest && rivals.all(|&y| wins[winner][y] >= wins[y][winner])
    }

    /// The beaten ranker with the least evidence that the winner beats it.
    fn nearest_rival(&self, winner: usize) -> Option<usize> {
        let (active, field) = (self.active(), self.field());
        let x = active.iter().position(|&i| i == winner)?;
        let beaten = (0..active.len()).filter(|&y| field.wins[x][y] > field.wins[y][x]);
        let evidence = |y: &usize| field.evidence[x][*y];
        beaten.min_by(|y, z| evidence(y).total_cmp(&evidence(z))).map(|y| active[y])
    }

    pub fn champion(&self) -> usize {
        match &self.verdict {
            Some(verdict) if self.stands(verdict.winner()) => verdict.winner(),
            _ => self.explorer.champion(),
        }
    }

    /// Fold one answer.
    pub fn observe(&mut self, observation: &Observation) {
        let Duel { first, second } = observation.duel;
        let side = |of: &Reference| of.wins[first][second].partial_cmp(&of.wins[second][first]);
        let before = side(&self.reference);
        self.reference.record(observation.duel, observation.outcome);
        self.explorer.observe(observation);
        if self.reference.retired[first] || self.reference.retired[second] {
            return;
        }
        // a check after each comparison, more rarely with more than 22 rankers
        let k = self.active().len() as u64;
        self.comparisons += 1;
        if self.verdict.is_none()
            && let Some(mut refuters) = self.refuters.take()
        {
            refuters.follow(&self.field(), self.comparisons);
            self.refuters = Some(refuters);
        }
        if k <= 22 || self.comparisons.is_multiple_of(k * k / 64) {
            self.check();
        }
        if self.verdict.is_none() {
            self.plan_if_due(first, second, side(&self.reference) != before);
        }
    }

    /// Fold self-duels.
    pub fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.reference.steps += count;
        self.explorer.observe_self_duels(ranker, count);
    }

    fn check(&mut self) {
        let (active, rule) = (self.active(), self.rule());
        let steps = self.reference.steps;
        if active.len() < 2 {
            return;
        }
        let field = self.field();
        match &self.verdict {
            None => {
                let winners = rule.winners(&field);
                let Some(&leader) = winners.first() else { return };
                self.verdict = Some(Verdict {
                    winners: winners.iter().map(|&x| active[x] as u16).collect(),
                    steps,
                    comparisons: self.comparisons,
                    condorcet_steps: rule.certifies_condorcet(&field, leader).then_some(steps),
                });
                let rests_on = self.rests_on(active[leader]);
                self.at_verdict = Some((rests_on, self.reference.wins.clone()));
                self.plan = Plan::default();
            }
            Some(Verdict { condorcet_steps: Some(_), .. }) => {}
            Some(verdict) => {
                let winner = verdict.winner();
                let place = active.iter().position(|&i| i == winner);
                let beats_all = place.is_some_and(|x| rule.certifies_condorcet(&field, x));
                if let (true, Some(verdict)) = (beats_all, &mut self.verdict) {
                    verdict.condorcet_steps = Some(steps);
                }
            }
        }
    }

    /// "A plan is made anew …". The pair has a new outcome, which may have turned its majority.
    fn plan_if_due(&mut self, first: usize, second: usize, turned: bool) {
        let (active, field) = (self.active(), self.field());
        let k = active.len() as u64;
        if turned {
            // with many rankers, only near the top
            let of_leader = self.plan.leader.map_or(0, |x| self.score(active[x]));
            let top = self.score(first).max(self.score(second)) + 1 >= of_leader;
            self.is_stale |= k <= 20 || top;
        }
        self.is_stale |= self.plan.missing(&field) > 1.5 * self.plan.missing_at_first;
        let since = self.reference.steps - self.planned_at;
        let grown = (self.reference.steps as f64 * 0.05) as u64;
        let is_due = self.plan.leader.is_none()
            || self.is_stale
            || since >= grown.max(16)
            || self.plan.is_complete(&field) && since >= 8;
        if is_due && since >= (k * k / 32).max(4) {
            self.make_plan();
        }
    }

    fn make_plan(&mut self) {
        let field = self.field();
        let prices = Prices {
            field: &field,
            margin: self.target.margin,
            steps: self.reference.steps,
            before: self.plan.leader,
        };
        self.plan = Plan::of(&prices, &self.rule());
        self.agreement = self.agreement_of_records();
        self.planned_at = self.reference.steps;
        self.is_stale = false;
    }

    /// Add a ranker.
    pub fn enlist(&mut self) {
        self.explorer.enlist().expect("D-TS+ takes more rankers");
        self.reference.wins.iter_mut().for_each(|row| row.push(0.0));
        let k = self.reference.rankers() + 1;
        self.reference.wins.push(vec![0.0; k]);
        self.reference.retired.push(false);
        self.roster_changed();
    }

    /// Retire a ranker that is active.
    pub fn retire(&mut self, ranker: usize) {
        self.explorer.retire(ranker).expect("D-TS+ retires rankers");
        self.reference.retired[ranker] = true;
        self.roster_changed();
    }

    fn roster_changed(&mut self) {
        self.changes += 1;
        self.before = self.reference.wins.clone();
        self.comparisons = 0;
        self.refuters = following(self.active().len());
        self.verdict = None;
        self.at_verdict = None;
        self.plan = Plan::default();
        self.is_stale = true;
    }
}

/// Refuters at the start of a stretch, if there are any.
fn following(rankers: usize) -> Option<Refuters> {
    (rankers > 2).then(|| Refuters::new(rankers))
}

/// The place of a weight, with a probability in proportion to it; `None` if all are 0.
fn draw(weights: &[f64], share: f64) -> Option<usize> {
    let mut rest = share * weights.iter().sum::<f64>();
    let mut drawn = None;
    for at in (0..weights.len()).filter(|&at| weights[at] > 0.0) {
        drawn = Some(at);
        rest -= weights[at];
        if rest < 0.0 {
            break;
        }
    }
    drawn
}
