//! The cheapest proof of a winner, and how it is kept between two plans.
//!
//! A proof that `a` wins `l` pairs consists of `l` wins of `a`, and of `d = K - 1 - l` losses of
//! every other ranker, of which one may be to `a`.

use dueling_bandits::InFlight;

use super::field::Field;
use super::rule::Rule;

/// Winner, loser, and the evidence that the claim needs.
pub type Claim = (usize, usize, f64);

/// The cheapest proof: its price, its leader and its claims.
#[derive(Debug, Clone)]
pub struct Proof {
    pub price: f64,
    pub leader: usize,
    pub claims: Vec<Claim>,
}

/// What a claim costs at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Prices<'a> {
    pub field: &'a Field,
    pub margin: f64,
    pub steps: u64,
    /// The leader of the plan before.
    pub before: Option<usize>,
}

impl Prices<'_> {
    /// Expected Copeland scores; the ranker itself adds nothing.
    fn scores(&self) -> Vec<f64> {
        self.field.above_half.iter().map(|row| row.iter().sum::<f64>() - 0.5).collect()
    }

    /// Expected Copeland regret of a duel.
    pub fn regret(&self, x: usize, y: usize) -> f64 {
        let scores = self.scores();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let mean = (scores[x] + scores[y]) / 2.0;
        (highest - mean).max(0.0) / (self.field.rankers - 1) as f64
    }

    /// The price of every claim to the evidence `target`.
    pub fn table(&self, target: f64) -> Vec<Vec<f64>> {
        let scores = self.scores();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        let k = self.field.rankers;
        let price = |x: usize, y: usize| {
            let regret = (highest - (scores[x] + scores[y]) / 2.0).max(0.0) / (k - 1) as f64;
            self.field.missing(x, y, target) * (1.0 + 10.0 * regret)
        };
        let row = |x: usize| (0..k).map(|y| if x == y { 0.0 } else { price(x, y) }).collect();
        (0..k).map(row).collect()
    }

    /// Who may be proven.
    pub fn candidates(&self) -> Vec<usize> {
        if self.margin > 0.0 {
            return self.field.leading(0.5 - self.margin);
        }
        let scores = self.scores();
        let highest = scores.iter().copied().fold(0.0, f64::max);
        (0..scores.len()).filter(|&x| scores[x] >= highest - 0.5).collect()
    }

    /// The fewest wins of a proof: one less than the most wins in the counts, where an even pair
    /// goes to the larger place if the two have the same parity, else to the smaller one.
    pub fn fewest_wins(&self) -> usize {
        let wins = &self.field.wins;
        let is_won = |x: usize, y: usize| {
            wins[x][y] > wins[y][x] || wins[x][y] == wins[y][x] && (x % 2 == y % 2) == (x > y)
        };
        let won = |x: usize| (0..wins.len()).filter(|&y| y != x && is_won(x, y)).count();
        (0..wins.len()).map(won).max().unwrap_or(0).saturating_sub(1)
    }

    /// What the sum of the prices is multiplied with: `d` losses of each other ranker are needed.
    pub fn factor(&self, a: usize, d: usize) -> f64 {
        let caution = if d > 0 { 1.0 + 10.0 / (1.0 + self.steps as f64 / 10_000.0) } else { 1.0 };
        caution * if self.before == Some(a) { 0.7 } else { 1.0 }
    }

    /// The cheapest proof: `j` takes its cheapest losses, and `a` the wins that are cheapest less
    /// what they save, the price of the last of these losses.
    ///
    /// Sums run over the others in ascending order, and over wins in the order in which they are
    /// taken, cheapest first, so that proofs of equal prices compare as in the policy's own form.
    ///
    /// Each claim needs so much `more` evidence than its target. Prices are those without refuters.
    pub fn cheapest(&self, rule: &Rule, more: f64) -> Option<Proof> {
        let (k, e) = (self.field.rankers, &self.field.evidence);
        let loss = |x, y| rule.loss_target(e, (x, y)) + more;
        let win = |x, y, d| rule.win_target(e, (x, y), d) + more;
        let [(of_sole_win, of_loss), (of_win, _)] = [0, 1].map(|d| rule.plain_targets(d));
        let of_losses = self.table(of_loss + more);
        let of_wins = [of_sole_win, of_win].map(|target| self.table(target + more));
        let mut best: Option<Proof> = None;
        for a in self.candidates() {
            let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
            // the `d` cheapest rivals to whom `j` loses
            let losses = |j: usize, d: usize| -> Vec<usize> {
                let mut rivals: Vec<usize> = others.iter().copied().filter(|&x| x != j).collect();
                rivals.sort_by(|&x, &y| of_losses[x][j].total_cmp(&of_losses[y][j]));
                rivals.truncate(d);
                rivals
            };
            let price_of = |j: usize, rivals: &[usize]| -> f64 {
                rivals.iter().map(|&x| of_losses[x][j]).sum()
            };
            for l in self.fewest_wins().max(1)..k {
                let d = k - 1 - l;
                let mut price = 0.0;
                let mut wins: Vec<(f64, usize)> = Vec::new();
                for &j in &others {
                    let rivals = losses(j, d);
                    let all = price_of(j, &rivals);
                    let saved = if d == 0 { 0.0 } else { all - price_of(j, &rivals[..d - 1]) };
                    price += all;
                    wins.push((of_wins[d.min(1)][a][j] - saved, j));
                }
                wins.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
                wins.truncate(l);
                price =
                    (price + wins.iter().map(|(price, _)| price).sum::<f64>()) * self.factor(a, d);
                if best.as_ref().is_some_and(|best| best.price <= price) {
                    continue;
                }
                let mut claims: Vec<Claim> =
                    wins.iter().map(|&(_, j)| (a, j, win(a, j, d))).collect();
                for &j in &others {
                    let by_a = wins.iter().any(|&(_, won)| won == j);
                    let rivals = losses(j, d.saturating_sub(usize::from(by_a)));
                    claims.extend(rivals.into_iter().map(|x| (x, j, loss(x, j))));
                }
                best = Some(Proof { price, leader: a, claims });
            }
        }
        best
    }
}

/// A plan, as it was made. What its claims lack follows from the counts.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub leader: Option<usize>,
    /// Winner, loser, target, and the regret of a duel.
    pub claims: Vec<(usize, usize, f64, f64)>,
    pub missing_at_first: f64,
    pub needs_losses: bool,
}

impl Plan {
    /// The plan at these counts.
    pub fn of(prices: &Prices, rule: &Rule) -> Self {
        let field = prices.field;
        if field.rankers < 2 {
            return Self::default();
        }
        let is_complete = |proof: &Proof| {
            proof.claims.iter().all(|&(x, y, target)| field.missing(x, y, target) <= 0.0)
        };
        // a proof that is complete without a verdict needs up to 3 nats more for each claim
        let mut proof = None;
        for more in [0.0, 1.0, 2.0, 3.0] {
            proof = prices.cheapest(rule, more);
            if !proof.as_ref().is_some_and(is_complete) {
                break;
            }
        }
        let Some(mut proof) = proof else { return Self::default() };
        let needs_losses = proof.claims.iter().any(|&(x, _, _)| x != proof.leader);
        if is_complete(&proof) {
            ask_for_more(prices, rule, &mut proof);
        }
        let mut plan = Self { leader: Some(proof.leader), needs_losses, ..Self::default() };
        for (x, y, target) in proof.claims {
            let missing = field.missing(x, y, target);
            if missing > 0.0 {
                plan.claims.push((x, y, target, prices.regret(x, y)));
                plan.missing_at_first += missing;
            }
        }
        plan
    }

    /// Duels that are missing.
    pub fn missing(&self, field: &Field) -> f64 {
        self.claims.iter().map(|&(x, y, target, _)| field.missing(x, y, target)).sum()
    }

    pub fn is_complete(&self, field: &Field) -> bool {
        self.claims.iter().all(|&(x, y, target, _)| field.missing(x, y, target) <= 0.0)
    }

    /// `W` of each claim in a draw: what is missing beyond twice the duels in flight that are
    /// expected to count, by risk over regret. `counting` is their share. Places are those of
    /// `active`.
    pub fn weights(
        &self,
        field: &Field,
        active: &[usize],
        in_flight: &InFlight,
        counting: f64,
    ) -> Vec<f64> {
        let weight = |&(x, y, target, regret): &(usize, usize, f64, f64)| {
            let waiting = 2.0 * counting * f64::from(in_flight.of(active[x], active[y]));
            (field.missing(x, y, target) - waiting).max(0.0) * field.risk[x][y] / (regret + 0.03)
        };
        self.claims.iter().map(weight).collect()
    }
}

/// For each rival that the leader is not certified against: another nat for the claim whose gain
/// over its price is largest, until the capital suffices, 200 nats in all at most. Where no single
/// claim helps, a nat for all that concern the rival.
fn ask_for_more(prices: &Prices, rule: &Rule, proof: &mut Proof) {
    let mut evidence = prices.field.evidence.clone();
    let a = proof.leader;
    let mut left = 200;
    for rival in (0..rule.rankers).filter(|&j| j != a) {
        while left > 0 && rule.ln_capital(&evidence, a, rival) < rule.threshold() {
            left -= 1;
            let reached = rule.ln_capital(&evidence, a, rival);
            let concerned = |&at: &usize| proof.claims[at].0 == a || proof.claims[at].1 == rival;
            let concerned: Vec<usize> = (0..proof.claims.len()).filter(concerned).collect();
            let gain = |at: usize| {
                let (x, y, _) = proof.claims[at];
                let mut raised = evidence.clone();
                raised[x][y] += 1.0;
                let price = 1.0 / prices.field.rate[x][y] * (1.0 + 10.0 * prices.regret(x, y));
                (rule.ln_capital(&raised, a, rival) - reached) / price
            };
            // the first of the largest gains
            let mut best = (0.0, None);
            for &at in &concerned {
                let gain = gain(at);
                if gain > best.0 {
                    best = (gain, Some(at));
                }
            }
            let to_raise = best.1.map_or(concerned, |at| vec![at]);
            for at in to_raise {
                let (x, y, target) = &mut proof.claims[at];
                evidence[*x][*y] += 1.0;
                *target = evidence[*x][*y];
            }
        }
    }
}
