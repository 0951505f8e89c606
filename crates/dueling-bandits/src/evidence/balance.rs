//! Checks that may be looked at for ever: whether a coin is fair, and whether answers are missing
//! equally often for all pairs and on both sides of the page.
//!
//! Each check is an *e-process*: a number that starts at 1 and that, while nothing is wrong, ever
//! reaches `c` with probability at most `1/c` (Ville, "Étude critique de la notion de collectif",
//! 1939), whenever and however often somebody looks. So an alarm at `c` is false in at most a share
//! `1/c` of healthy experiments. A mean of e-processes is one too.
//!
//! # Answers
//!
//! [`AnswerBalance`] counts *complete* cohorts only: duels that were issued in the same short time,
//! after the time in which they could be answered is over. An answer counts at once and an expired
//! duel only a lifetime later, so the counts of open cohorts always show too many answers.
//!
//! How often a pair is issued depends on earlier answers, so the counts issued prove nothing. Under
//! the null hypothesis a duel is answered whatever its pair is: given what was issued in a block
//! and how many of it are missing, every set of that many duels is equally likely to be the missing
//! ones. Let `n_c` of the `N` duels of the block be of the cell `c` (a pair), and `l_c` of the `m`
//! missing ones. For any numbers `r_c > 0` that are fixed before the block,
//!
//! `Π_c r_c^(l_c) / (Σ_c n_c r_c / N)^m`
//!
//! has a mean of at most 1. It would be exactly 1 if the missing duels were drawn with replacement,
//! and drawing without replacement does not increase the mean of a convex function of a sum
//! (Hoeffding, "Probability inequalities for sums of bounded random variables", JASA 1963, theorem
//! 4). The product over all blocks is therefore an e-process. Blocks have [`BLOCK_DUELS`] or more:
//! a block of one duel says nothing.
//!
//! `r_c = (κ + O_c) / (κ + E_c)`, where `O_c` duels of the cell were missing in earlier blocks and
//! `E_c` were expected to be. While the shares at issue do not change, this is the predictive rule
//! of a multinomial with a Dirichlet prior around those shares (Lindon and Malek, "Anytime-valid
//! inference for multinomial count data", NeurIPS 2022, arXiv 2011.03567); it needs no constant
//! shares. The same is done for the answered duels, which say more where most duels are missing,
//! and with rankers instead of pairs: there `r` of a pair is the product of those of its rankers.
//!
//! The side of a ranker is a fair coin, tossed when the duel is issued. So among missing duels, and
//! among answered ones, each is `x` left of `y` with probability exactly 1/2 whatever came before,
//! and a bet on it that is fixed before the block is a martingale. With two rankers there is one
//! pair, and this is the only check of answers.

use std::collections::BTreeMap;

use crate::math::mixture::ln_against_fair_coin;

/// Duels of a block: complete cohorts are put together until there are this many.
pub const BLOCK_DUELS: u64 = 100;
/// Imagined duels before the first, of which as many were missing as expected: few find a large
/// fault soon, many find a small one at all.
const PRIORS: [f64; 2] = [5.0, 50.0];
/// Scales of [`coin_evidence`]: parameters of symmetric beta distributions, for large, middling and
/// small deviations from 1/2.
const COIN_SCALES: [f64; 3] = [1.0, 30.0, 1000.0];

/// Evidence beyond the exponential of this is reported as that.
const LN_MOST: f64 = 300.0;

/// Evidence that a coin with this many heads and tails is not fair: a mean of the mixtures of
/// likelihood ratios for three beta distributions around 1/2. A martingale under a fair coin.
///
/// ```
/// use dueling_bandits::evidence::balance::coin_evidence;
///
/// assert!(coin_evidence(5_060, 4_940) < 1.0 && coin_evidence(5_300, 4_700) > 1e5);
/// ```
pub fn coin_evidence(heads: u64, tails: u64) -> f64 {
    let (heads, tails) = (heads as f64, tails as f64);
    mean_exp(COIN_SCALES.map(|scale| ln_against_fair_coin(scale, heads, tails)))
}

/// Duels of one ordered pair that were issued in the same cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Cell {
    /// Number of duels that were issued.
    pub issued: u64,
    /// Number of these duels that were answered.
    pub answered: u64,
}

/// Duels of complete cohorts by (left, right) ranker.
pub type Cells = BTreeMap<(u16, u16), Cell>;

/// Whether answers are missing equally often for all pairs and on both sides.
#[derive(Debug, Clone, Default)]
pub struct AnswerBalance {
    /// Complete cohorts that go into the next block.
    next_block: Cells,
    /// All complete cohorts.
    totals: Cells,
    /// Bets on missing duels, and on answered ones.
    missing: ByFate,
    answered: ByFate,
    /// The largest evidence so far, and which of the two kinds contributed more to it.
    largest: (f64, Kind),
}

/// The factor that answers depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// The pair.
    #[default]
    Pairs,
    /// Which ranker is left.
    Sides,
}

/// The answers that deviate most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worst {
    /// The factor that answers depend on.
    pub kind: Kind,
    /// The pair that lacks most answers. For [`Kind::Sides`], the left ranker is first.
    pub pair: (u16, u16),
    /// The duels of the pair. For [`Kind::Sides`], those with its first ranker on the left.
    pub cell: Cell,
    /// The duels that the pair is compared with: those of all other pairs, or of the same pair with
    /// its sides swapped.
    pub others: Cell,
}

impl AnswerBalance {
    /// Add a complete cohort.
    pub fn add(&mut self, cohort: impl IntoIterator<Item = ((u16, u16), Cell)>) {
        for (pair, cell) in cohort {
            self.next_block.entry(pair).or_default().add(cell);
            self.totals.entry(pair).or_default().add(cell);
        }
        let issued: u64 = self.next_block.values().map(|cell| cell.issued).sum();
        if issued >= BLOCK_DUELS {
            let block = std::mem::take(&mut self.next_block);
            self.missing.bet(&block, |cell| cell.issued - cell.answered);
            self.answered.bet(&block, |cell| cell.answered);
            let now = self.of_pairs().midpoint(self.of_sides());
            if now > self.evidence() {
                let sides = self.of_sides() > self.of_pairs();
                self.largest = (now, if sides { Kind::Sides } else { Kind::Pairs });
            }
        }
    }

    /// Evidence that answers depend on the pair or on the sides: the largest so far, at least 1.
    pub fn evidence(&self) -> f64 {
        self.largest.0.max(1.0)
    }

    /// All duels of complete cohorts.
    pub fn total(&self) -> Cell {
        self.totals.values().fold(Cell::default(), |sum, cell| sum.plus(*cell))
    }

    /// The pair that lacks most answers, compared with what is expected; `None` before any is
    /// missing.
    pub fn worst(&self) -> Option<Worst> {
        match self.largest.1 {
            Kind::Pairs => self.worst_pair(),
            Kind::Sides => self.worst_side(),
        }
    }

    fn worst_pair(&self) -> Option<Worst> {
        let excess = |flow: &Flow| (flow.seen - flow.expected) / flow.expected.max(1.0).sqrt();
        let (&pair, _) = self
            .missing
            .pairs
            .iter()
            .filter(|(_, flow)| flow.seen > 0.0)
            .max_by(|(_, one), (_, other)| excess(one).total_cmp(&excess(other)))?;
        let of = |pair| self.totals.get(&pair).copied().unwrap_or_default();
        let cell = of(pair).plus(of((pair.1, pair.0)));
        let all = self.total();
        let others =
            Cell { issued: all.issued - cell.issued, answered: all.answered - cell.answered };
        Some(Worst { kind: Kind::Pairs, pair, cell, others })
    }

    /// The ordered pair whose share of answers is the most standard deviations below that of the
    /// same pair with its sides swapped.
    fn worst_side(&self) -> Option<Worst> {
        let share = |cell: &Cell| cell.answered as f64 / cell.issued as f64;
        let swapped = |pair: (u16, u16)| self.totals.get(&(pair.1, pair.0)).copied();
        let deviation = |pair: (u16, u16), cell: &Cell| {
            let other = swapped(pair).filter(|other| other.issued > 0)?;
            let both = cell.plus(other);
            let rate = share(&both).clamp(1e-3, 1.0 - 1e-3);
            let variance =
                rate * (1.0 - rate) * (1.0 / cell.issued as f64 + 1.0 / other.issued as f64);
            Some((share(&other) - share(cell)) / variance.sqrt())
        };
        let (pair, cell, _) = self
            .totals
            .iter()
            .filter(|(_, cell)| cell.issued > 0)
            .filter_map(|(&pair, cell)| Some((pair, *cell, deviation(pair, cell)?)))
            .max_by(|one, other| one.2.total_cmp(&other.2))?;
        Some(Worst { kind: Kind::Sides, pair, cell, others: swapped(pair)? })
    }

    fn of_pairs(&self) -> f64 {
        self.missing.pair_evidence().midpoint(self.answered.pair_evidence())
    }

    fn of_sides(&self) -> f64 {
        self.missing.side_evidence().midpoint(self.answered.side_evidence())
    }
}

impl Cell {
    fn add(&mut self, other: Self) {
        *self = self.plus(other);
    }

    /// The duels of both.
    pub fn plus(self, other: Self) -> Self {
        Self { issued: self.issued + other.issued, answered: self.answered + other.answered }
    }
}

/// Duels of a pair or of a ranker that had one fate: how many were seen, and how many were expected
/// under the null hypothesis.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    seen: f64,
    expected: f64,
}

impl Flow {
    /// `r_c` of the module, with `κ = prior`.
    fn rate(self, prior: f64) -> f64 {
        (prior + self.seen) / (prior + self.expected)
    }

    fn learn(&mut self, seen: f64, expected: f64) {
        self.seen += seen;
        self.expected += expected;
    }
}

/// The bets on the duels of one fate: the missing ones, or the answered ones.
#[derive(Debug, Clone, Default)]
struct ByFate {
    pairs: BTreeMap<(u16, u16), Flow>,
    rankers: BTreeMap<u16, Flow>,
    /// Duels with each ranker on the left and on the right.
    sides: BTreeMap<u16, [f64; 2]>,
    /// Natural logarithms of the evidence, by prior.
    ln_pairs: [f64; PRIORS.len()],
    ln_rankers: [f64; PRIORS.len()],
    ln_sides: [f64; PRIORS.len()],
}

impl ByFate {
    /// Bet on a block with what is known from earlier ones, then learn from it. `fate` counts the
    /// duels of a cell that had this fate.
    fn bet(&mut self, block: &Cells, fate: impl Fn(&Cell) -> u64) {
        let fate = |cell: &Cell| fate(cell) as f64;
        let issued: f64 = block.values().map(|cell| cell.issued as f64).sum();
        let seen: f64 = block.values().map(&fate).sum();
        if seen == 0.0 {
            return;
        }
        let flow = |flow: Option<&Flow>| flow.copied().unwrap_or_default();
        for (at, prior) in PRIORS.into_iter().enumerate() {
            let ranker = |ranker| flow(self.rankers.get(&ranker)).rate(prior);
            let by_pair = |(i, j)| flow(self.pairs.get(&unordered(i, j))).rate(prior);
            let by_ranker = |(i, j)| ranker(i) * ranker(j);
            // ln of the product over the cells in the module's documentation
            let ln_factor = |rate: &dyn Fn((u16, u16)) -> f64| {
                let (mut ln, mut mean) = (0.0, 0.0);
                for (&pair, cell) in block {
                    let rate = rate(pair);
                    ln += fate(cell) * libm::log(rate);
                    mean += cell.issued as f64 / issued * rate;
                }
                ln - seen * libm::log(mean)
            };
            self.ln_pairs[at] += ln_factor(&by_pair);
            self.ln_rankers[at] += ln_factor(&by_ranker);
            self.ln_sides[at] += self.ln_side_factor(prior, block, &fate);
        }
        for (&(left, right), cell) in block {
            let (own, expected) = (fate(cell), seen * cell.issued as f64 / issued);
            self.pairs.entry(unordered(left, right)).or_default().learn(own, expected);
            for (ranker, side) in [(left, 0), (right, 1)] {
                self.rankers.entry(ranker).or_default().learn(own, expected);
                self.sides.entry(ranker).or_default()[side] += own;
            }
        }
    }

    /// The bet that each ranker goes on to be on the left as often as in earlier blocks.
    fn ln_side_factor(&self, prior: f64, block: &Cells, fate: &impl Fn(&Cell) -> f64) -> f64 {
        let ln_odds = |ranker| {
            let [left, right] = self.sides.get(&ranker).copied().unwrap_or_default();
            libm::log((prior + left) / (prior + right))
        };
        let of_cell = |(&(left, right), cell): (&(u16, u16), &Cell)| {
            // ln of twice the logistic function
            let odds = (ln_odds(left) - ln_odds(right)) / 2.0;
            fate(cell) * (std::f64::consts::LN_2 - libm::log1p(libm::exp(-odds)))
        };
        block.iter().map(of_cell).sum()
    }

    fn pair_evidence(&self) -> f64 {
        mean_exp(self.ln_pairs.iter().chain(&self.ln_rankers).copied())
    }

    fn side_evidence(&self) -> f64 {
        mean_exp(self.ln_sides)
    }
}

/// The mean of the exponentials of these logarithms, finite.
fn mean_exp(logarithms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for ln in logarithms {
        // far beyond every threshold
        sum += libm::exp(ln.min(LN_MOST));
        count += 1.0;
    }
    sum / count
}

fn unordered(i: u16, j: u16) -> (u16, u16) {
    (i.min(j), i.max(j))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &[((u16, u16), u64, u64)]) -> Cells {
        rows.iter().map(|&(pair, issued, answered)| (pair, Cell { issued, answered })).collect()
    }

    fn ln_choose(n: u64, k: u64) -> f64 {
        let ln_factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
        ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
    }

    /// Over all ways in which 12 of 130 duels of three pairs can be the missing ones.
    #[test]
    fn a_bet_on_pairs_gains_nothing_on_average_if_every_duel_is_as_likely_to_be_missing() {
        let mut learned = ByFate::default();
        let missing = |cell: &Cell| cell.issued - cell.answered;
        learned.bet(&cells(&[((0, 1), 60, 40), ((2, 0), 50, 48), ((1, 2), 20, 10)]), missing);
        let before = learned.pair_evidence();
        let (mut mean, mut total) = (0.0, 0.0);
        for first in 0..=12 {
            for second in 0..=12 - first {
                let third = 12 - first - second;
                let ways = ln_choose(30, first) + ln_choose(80, second) + ln_choose(20, third);
                let probability = libm::exp(ways - ln_choose(130, 12));
                let mut next = learned.clone();
                let block =
                    [((0, 1), 30, 30 - first), ((0, 2), 80, 80 - second), ((1, 2), 20, 20 - third)];
                next.bet(&cells(&block), missing);
                mean += probability * next.pair_evidence();
                total += probability;
            }
        }
        assert!((total - 1.0).abs() < 1e-9, "{total}");
        let ratio = mean / before;
        assert!((0.9..=1.0 + 1e-9).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_bet_on_sides_is_fair_if_the_sides_are_coins() {
        let mut learned = ByFate::default();
        let all = |cell: &Cell| cell.issued;
        learned.bet(&cells(&[((0, 1), 30, 0), ((1, 0), 50, 0), ((2, 0), 9, 0)]), all);
        let before = learned.side_evidence();
        let mut mean = 0.0;
        // four duels of 0 and 1, three of 0 and 2
        for left in 0..=4 {
            for other in 0..=3 {
                let ways = ln_choose(4, left) + ln_choose(3, other);
                let mut next = learned.clone();
                next.bet(
                    &cells(&[
                        ((0, 1), left, 0),
                        ((1, 0), 4 - left, 0),
                        ((0, 2), other, 0),
                        ((2, 0), 3 - other, 0),
                    ]),
                    all,
                );
                mean += libm::exp(ways) / 128.0 * next.side_evidence();
            }
        }
        assert!((mean / before - 1.0).abs() < 1e-9, "{mean} after {before}");
    }
}
