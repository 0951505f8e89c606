//! The cheapest proof at one moment.

use std::cmp::Ordering;

use crate::evidence::certificate::{CopelandRule, PairEvidence};
use crate::evidence::plan::survey::{PlacedClaim, Survey};

/// Proofs with losses of other rankers cost this many times more at first: they need more to be
/// known. Without it verdicts take 6 % more duels, and regret is 10 % larger. The extra price
/// halves in [`CAUTIOUS_STEPS`].
const CAUTION: f64 = 10.0;
const CAUTIOUS_STEPS: f64 = 10_000.0;

/// A proof that needs more losses of each ranker than this is seldom the cheapest.
const FEW_LOSSES: usize = 4;
/// Allows for rounding where a price is compared with a bound.
const ROUNDED: f64 = 1.0 - 1e-9;

impl Survey {
    /// Leader and claims of the proof that is the cheapest one by plain targets.
    pub(super) fn cheapest(
        &self,
        rule: &CopelandRule,
        pairs: &PairEvidence,
        steps: u64,
    ) -> Option<(usize, Vec<PlacedClaim>)> {
        let k = self.rankers;
        let search = Search {
            rankers: k,
            alone: rule.plain_claim_alone(),
            win: rule.claim_win(),
            // every candidate's losses are chosen from these, so they are computed once
            loss_prices: self.prices(rule.plain_claim_loss()),
            most_losses: k - 1 - self.best.saturating_sub(1),
            caution: 1.0 + CAUTION / (1.0 + steps as f64 / CAUTIOUS_STEPS),
        };
        let mut best = None;
        for &a in &self.candidates {
            self.find_cheaper(&search, a, &mut best);
        }
        let (_, Proof { a, wins, won }) = best?;
        let needed = k - 1 - wins;
        let others = others_than(a, k);
        let win = |j: usize| match needed {
            0 => rule.claim_alone(pairs, a, j),
            _ => rule.claim_win(),
        };
        let claim = |&at: &usize| PlacedClaim { x: a, y: others[at], target: win(others[at]) };
        let mut claims: Vec<_> = won.iter().map(claim).collect();
        let mut found = Vec::with_capacity(k);
        for (at, &j) in others.iter().enumerate() {
            let count = needed.saturating_sub(usize::from(won.contains(&at)));
            search.cheapest_losses((a, j), count, &mut found);
            let loss = |&(_, x): &(f64, usize)| PlacedClaim {
                x,
                y: j,
                target: rule.claim_loss(pairs, x, j),
            };
            claims.extend(found.iter().map(loss));
        }
        Some((a, claims))
    }

    /// Replaces `best`, a price and a proof, where a proof for `a` is cheaper.
    fn find_cheaper(&self, search: &Search, a: usize, best: &mut Option<(f64, Proof)>) {
        let k = self.rankers;
        let others = others_than(a, k);
        let (mut losses, mut found) = (LossSums::default(), Vec::with_capacity(k));
        for needed in 0..=search.most_losses {
            if needed > losses.most || losses.is_empty() {
                losses.most = search.most_losses.min(FEW_LOSSES.max(2 * needed));
                losses.sums.clear();
                for &j in &others {
                    search.cheapest_losses((a, j), losses.most, &mut found);
                    losses.push(&found);
                }
            }
            let (win, caution) = match needed {
                0 => (search.alone, 1.0),
                _ => (search.win, search.caution),
            };
            let least_total = losses.least_total(needed) * caution * ROUNDED;
            if best.as_ref().is_some_and(|(least, _)| least_total > *least) {
                // and so do all proofs that need more losses
                break;
            }
            let mut total = 0.0;
            // by the place of each other ranker: the price of a win over it, less what that saves
            let mut keys: Vec<(f64, usize)> = Vec::with_capacity(others.len());
            for (at, &j) in others.iter().enumerate() {
                total += losses.sum(at, needed);
                let saved = losses.saved_by_a_win(at, needed);
                keys.push((self.missing(a, j, win) - saved, at));
            }
            let wins = k - 1 - needed;
            keep_cheapest(&mut keys, wins);
            total += keys.iter().map(|(key, _)| key).sum::<f64>();
            total *= caution;
            // of proofs with the same price the one of the first leader, with the fewest wins
            let is_cheaper =
                |(least, proof): &(f64, Proof)| total < *least || total == *least && proof.a == a;
            if total.is_finite() && best.as_ref().is_none_or(is_cheaper) {
                let won: Vec<usize> = keys.iter().map(|&(_, at)| at).collect();
                *best = Some((total, Proof { a, wins, won }));
            }
        }
    }

    /// The price of "x beats y" at `y * K + x`, where it needs the evidence `target`.
    fn prices(&self, target: f64) -> Vec<f64> {
        let k = self.rankers;
        let mut prices = Vec::with_capacity(k * k);
        for y in 0..k {
            let price = |x: usize| if x == y { 0.0 } else { self.missing(x, y, target) };
            prices.extend((0..k).map(price));
        }
        prices
    }
}

/// The parts that the proofs of all candidates share.
struct Search {
    rankers: usize,
    /// The evidence that a win of a leader over all others needs, and of any other leader.
    alone: f64,
    win: f64,
    /// [`Survey::prices`] of losses.
    loss_prices: Vec<f64>,
    /// How many losses of every other ranker a proof can need.
    most_losses: usize,
    /// Factor of the price of proofs with losses.
    caution: f64,
}

impl Search {
    /// Writes the `count` cheapest losses of `j` to `found`: price and to whom, cheapest first.
    /// Those to `a` and to itself do not count.
    fn cheapest_losses(&self, (a, j): (usize, usize), count: usize, found: &mut Vec<(f64, usize)>) {
        let prices = self.loss_prices[j * self.rankers..][..self.rankers].iter();
        let rivals = prices.enumerate().filter(|&(x, _)| x != a && x != j);
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

/// Of every ranker: the sums of the prices of its 0, 1, 2, … cheapest losses.
#[derive(Default)]
struct LossSums {
    /// How many losses of each ranker are known.
    most: usize,
    /// Infinite where a ranker has fewer rivals.
    sums: Vec<f64>,
}

impl LossSums {
    fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// A proof in which each ranker has to lose `count` pairs costs at least as much: one of these
    /// losses can be a win of the leader, which costs nothing more at best. It ascends with
    /// `count`.
    fn least_total(&self, count: usize) -> f64 {
        match count.checked_sub(1) {
            Some(others) => self.sums.chunks_exact(self.most + 1).map(|sums| sums[others]).sum(),
            None => 0.0,
        }
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
