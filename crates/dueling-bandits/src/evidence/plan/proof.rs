//! The cheapest proof at one moment.

use std::cmp::Ordering;

use crate::evidence::certificate::ClaimTargets;
use crate::evidence::plan::survey::Survey;

/// Proofs with losses of other rankers cost this many times more at first: they need more to be
/// known. The extra price halves in [`PATIENCE_STEPS`].
const CAUTION: f64 = 10.0;
const PATIENCE_STEPS: f64 = 10_000.0;
/// Price of the proof for the present leader of a plan, relative to others: plans that change
/// their leader for every small difference finish none.
const LOYALTY: f64 = 0.7;

/// A claim of a proof among places: winner, loser, and the evidence that it needs.
pub(super) type Step = (usize, usize, f64);

impl Survey<'_> {
    /// Leader and claims `(x, y, target)` of the proof that is the cheapest one by plain targets,
    /// where each claim needs so much `more` evidence than its target.
    pub(super) fn cheapest(
        &self,
        (targets, more): (&ClaimTargets, f64),
        steps: u64,
        before: Option<usize>,
    ) -> Option<(usize, Vec<Step>)> {
        let k = self.rankers();
        // what every candidate's losses are chosen from, so computed once
        let plain = targets.plain();
        let loss_prices = self.prices(plain.loss + more);
        let mut found = Vec::with_capacity(k);
        let fewest_wins = self.best.saturating_sub(1);
        let most_losses = k - 1 - fewest_wins;
        let caution = 1.0 + CAUTION / (1.0 + steps as f64 / PATIENCE_STEPS);
        let mut best: Option<(f64, Proof)> = None;
        for &a in &self.candidates {
            let others = others_than(a, k);
            let mut losses = LossSums::new(others.len(), most_losses);
            for &j in &others {
                cheapest_losses(&loss_prices[j * k..(j + 1) * k], (a, j), most_losses, &mut found);
                losses.push(&found);
            }
            for wins in fewest_wins..k {
                let needed = k - 1 - wins;
                let win = if needed == 0 { plain.alone } else { plain.win };
                let mut total = 0.0;
                let mut keys: Vec<(f64, usize)> = Vec::with_capacity(others.len());
                for (at, &j) in others.iter().enumerate() {
                    total += losses.sum(at, needed);
                    let saved = losses.saved_by_a_win(at, needed);
                    keys.push((self.price(a, j, win + more) - saved, at));
                }
                keep_cheapest(&mut keys, wins);
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
        let others = others_than(a, k);
        let win = |j: usize| if needed == 0 { targets.alone(a, j) } else { targets.win() };
        let claim = |&at: &usize| (a, others[at], win(others[at]) + more);
        let mut claims: Vec<_> = won.iter().map(claim).collect();
        for (at, &j) in others.iter().enumerate() {
            let count = needed.saturating_sub(usize::from(won.contains(&at)));
            cheapest_losses(&loss_prices[j * k..(j + 1) * k], (a, j), count, &mut found);
            claims.extend(found.iter().map(|&(_, x)| (x, j, targets.loss(x, j) + more)));
        }
        Some((a, claims))
    }

    /// The price of "x beats y" at `y * K + x`, where it needs the evidence `target`.
    fn prices(&self, target: f64) -> Vec<f64> {
        let k = self.rankers();
        let mut prices = Vec::with_capacity(k * k);
        for y in 0..k {
            let price = |x: usize| if x == y { 0.0 } else { self.price(x, y, target) };
            prices.extend((0..k).map(price));
        }
        prices
    }
}

/// All places but `a`.
fn others_than(a: usize, k: usize) -> Vec<usize> {
    let mut others = Vec::with_capacity(k);
    others.extend((0..k).filter(|&j| j != a));
    others
}

/// A proof: its leader, the number of its wins, and the places of the rankers that it beats among
/// all others.
struct Proof {
    a: usize,
    wins: usize,
    won: Vec<usize>,
}

/// Keeps the `count` cheapest, cheapest first. In full order, so that equal prices mean the same
/// choice in every version of `std`.
fn keep_cheapest(prices: &mut Vec<(f64, usize)>, count: usize) {
    if count > 0 && count < prices.len() {
        prices.select_nth_unstable_by(count - 1, by_price);
    }
    prices.truncate(count);
    prices.sort_unstable_by(by_price);
}

fn by_price(one: &(f64, usize), other: &(f64, usize)) -> Ordering {
    one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
}

/// Writes the `count` cheapest losses of `j` to `found`: price and to whom, cheapest first. `prices`
/// has the price of a loss to every ranker; those to `a` and to itself do not count.
fn cheapest_losses(
    prices: &[f64],
    (a, j): (usize, usize),
    count: usize,
    found: &mut Vec<(f64, usize)>,
) {
    let rivals = prices.iter().enumerate().filter(|&(x, _)| x != a && x != j);
    let rivals = rivals.map(|(x, &price)| (price, x));
    found.clear();
    match count {
        0 => {}
        // where one ranker beats all others, the usual case
        1 => found.extend(rivals.min_by(by_price)),
        _ => {
            found.extend(rivals);
            keep_cheapest(found, count);
        }
    }
}

/// Of every ranker: the sums of the prices of its 0, 1, 2, … cheapest losses.
struct LossSums {
    most: usize,
    /// Infinite where a ranker has fewer rivals.
    sums: Vec<f64>,
}

impl LossSums {
    fn new(rankers: usize, most: usize) -> Self {
        Self { most, sums: Vec::with_capacity(rankers * (most + 1)) }
    }

    /// The next ranker, with its `most` cheapest losses.
    fn push(&mut self, losses: &[(f64, usize)]) {
        let mut sum = 0.0;
        self.sums.push(sum);
        for count in 0..self.most {
            sum += losses.get(count).map_or(f64::INFINITY, |(price, _)| *price);
            self.sums.push(sum);
        }
    }

    /// Price of the `count` cheapest of the ranker pushed as number `at`.
    fn sum(&self, at: usize, count: usize) -> f64 {
        self.sums[at * (self.most + 1) + count]
    }

    /// Price of the last of the `count` cheapest, which a loss to the leader replaces.
    fn saved_by_a_win(&self, at: usize, count: usize) -> f64 {
        match self.sum(at, count) {
            _ if count == 0 => 0.0,
            // with fewer than `count` rivals, all are needed beside the leader
            sum if sum.is_infinite() => f64::INFINITY,
            sum => sum - self.sum(at, count - 1),
        }
    }
}
