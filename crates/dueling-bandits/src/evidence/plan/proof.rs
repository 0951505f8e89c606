//! The cheapest proof at one moment.

use crate::evidence::plan::survey::Survey;

/// Proofs with losses of other rankers cost this many times more at first: they need more to be
/// known. The extra price halves in [`PATIENCE_STEPS`].
const CAUTION: f64 = 4.0;
const PATIENCE_STEPS: f64 = 10_000.0;
/// Price of the proof for the present leader of a plan, relative to others: plans that change
/// their leader for every small difference finish none.
const LOYALTY: f64 = 0.7;

/// A claim of a proof among places: winner, loser, and the evidence that it needs.
pub(super) type Step = (usize, usize, f64);

impl Survey<'_> {
    /// Leader and claims `(x, y, target)` of the cheapest proof, with the evidence that claims need
    /// where the leader beats all others (`alone`), and elsewhere (`among`).
    pub(super) fn cheapest(
        &self,
        (alone, among): (f64, f64),
        steps: u64,
        before: Option<usize>,
    ) -> Option<(usize, Vec<Step>)> {
        let k = self.rankers();
        let fewest_wins = self.best.saturating_sub(1);
        let most_losses = k - 1 - fewest_wins;
        let caution = 1.0 + CAUTION / (1.0 + steps as f64 / PATIENCE_STEPS);
        let mut best: Option<(f64, Proof)> = None;
        for &a in &self.candidates {
            let others: Vec<usize> = (0..k).filter(|&j| j != a).collect();
            let losses: Vec<Losses> = others
                .iter()
                .map(|&j| {
                    let rivals = others.iter().filter(|&&x| x != j);
                    Losses::cheapest(rivals.map(|&x| (self.price(x, j, among), x)), most_losses)
                })
                .collect();
            for wins in fewest_wins..k {
                let needed = k - 1 - wins;
                let target = if needed == 0 { alone } else { among };
                let mut total = 0.0;
                let mut keys: Vec<(f64, usize)> = Vec::with_capacity(others.len());
                for (at, &j) in others.iter().enumerate() {
                    total += losses[at].sum(needed);
                    keys.push((self.price(a, j, target) - losses[at].saved_by_a_win(needed), at));
                }
                // in full order, so that equal prices mean the same wins in every version of `std`
                let order = |one: &(f64, usize), other: &(f64, usize)| {
                    one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
                };
                if wins > 0 && wins < keys.len() {
                    keys.select_nth_unstable_by(wins - 1, order);
                }
                keys.truncate(wins);
                keys.sort_unstable_by(order);
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
            let losses = Losses::cheapest(rivals.map(|&x| (self.price(x, j, among), x)), count);
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
