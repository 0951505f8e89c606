//! The interval of the lift: how wide, and how often it misses the truth at any time.

use dueling_bandits::evidence::Score;
use dueling_bandits::evidence::lead::LeadEvidence;
use dueling_bandits::evidence::scores::WEIGHTS;
use dueling_bandits::orders::Arms;
use interleaving::FastRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, LogNormal, Poisson};
use rayon::prelude::*;
use serde::Serialize;

use super::wilson;
use crate::simulate::Progress;

/// Error of each interval.
const ERROR: f64 = 0.05;
/// Units after which the interval is looked at grow by this factor.
const STEP: f64 = 1.12;
/// Ordering units of each arm that experiments draw from.
const POOL: usize = 200_000;

/// A shop: units order a number of times that is Poisson with a gamma mean.
#[derive(Debug, Clone, Copy)]
pub struct LiftTrial {
    /// Relative lift of the mean number of orders.
    pub lift: f64,
    /// Mean number of orders of a unit, before the lift, over 1.35.
    pub orders: f64,
    /// Cut of the money of a unit, where the mean order is 40.
    pub cap: f64,
    /// Alone units of an experiment.
    pub units: u64,
    /// Experiments.
    pub runs: u64,
    /// Their seed.
    pub seed: u64,
}

/// The findings about orders or about money.
#[derive(Debug, Clone, Serialize)]
pub struct LiftFound {
    /// `orders` or `money`.
    pub of: &'static str,
    /// Experiments.
    pub runs: u64,
    /// The share of units of the control's arm that order.
    pub ordering: f64,
    /// The true lift.
    pub lift: f64,
    /// The share of experiments whose interval ever misses it, with its interval of 95 %.
    pub missed: [f64; 3],
    /// Median half widths after so many units.
    pub half_widths: Vec<(u64, f64)>,
}

struct Pool {
    amounts: Vec<f64>,
    ordering: f64,
    mean: f64,
}

impl LiftTrial {
    fn pool(&self, lift: f64) -> Option<Pool> {
        let mut rng = FastRng::seed_from_u64(3);
        let gamma = Gamma::new(0.6, 1.0 / 0.6).ok()?;
        let price = LogNormal::new(libm::log(40.0) - 0.5, 1.0).ok()?;
        let (mut amounts, mut units) = (Vec::new(), 0.0);
        while amounts.len() < POOL {
            units += 1.0;
            let mean: f64 = 1.35 * self.orders * lift * gamma.sample(&mut rng);
            let orders = Poisson::new(mean.max(1e-12)).ok()?.sample(&mut rng) as u64;
            if orders > 0 {
                let money: f64 = (0..orders).map(|_| price.sample(&mut rng)).sum();
                amounts.push((money / self.cap).min(1.0));
            }
        }
        let mean = amounts.iter().sum::<f64>() / units;
        Some(Pool { ordering: amounts.len() as f64 / units, mean, amounts })
    }

    /// Runs the experiments; `None` if the parameters are no distribution.
    pub fn run(&self, progress: &Progress) -> Option<Vec<LiftFound>> {
        let pools = [self.pool(1.0 + self.lift)?, self.pool(1.0)?];
        let share = |of: fn(&Pool) -> f64| of(&pools[0]) / (of(&pools[0]) + of(&pools[1]));
        let truth = [share(|it| it.ordering), share(|it| it.mean)];
        let shown = [3_000, 10_000, 30_000, 100_000, 300_000];
        let shown: Vec<u64> = shown.into_iter().filter(|&units| units <= self.units).collect();
        let one = |run: u64| {
            let mut rng = FastRng::seed_from_u64(self.seed ^ (40_000 + run));
            let edges = truth.map(|b| [b, 1.0 - b].map(LeadEvidence::in_room_above));
            let threshold = -libm::log(ERROR / 2.0);
            let (mut arms, mut missed) = (Arms::default(), [false; 2]);
            let (mut widths, mut look) = (Vec::new(), 500.0);
            for unit in 1..=self.units {
                let leader = rng.random_bool(0.5);
                let pool = &pools[usize::from(!leader)];
                let ordered = rng.random_bool(pool.ordering);
                let level = ordered.then(|| {
                    let share = pool.amounts[rng.random_range(0..POOL)];
                    let weight = (share * f64::from(Score::ONE)).round() as u32;
                    let score = Score::rounded(true, weight, false, |numerator| {
                        rng.random_range(0..Score::ONE) < numerator
                    });
                    WEIGHTS.iter().position(|&it| it == score.weight()).unwrap_or_default()
                });
                arms.count(leader, ordered, Some(level.unwrap_or_default()));
                if unit as f64 >= look {
                    look *= STEP;
                    // what is refuted is an interval: it misses the truth if it refutes it
                    let [won, lost] = arms.ordered.map(f64::from);
                    let [up, down] = &edges[0];
                    missed[0] |= up.ln(won, lost).max(down.ln(lost, won)) >= threshold;
                    if let Some([won, lost]) = &arms.money {
                        let [up, down] = &edges[1];
                        let ln = up
                            .ln_with_scores(0.0, 0.0, won, lost)
                            .max(down.ln_with_scores(0.0, 0.0, lost, won));
                        missed[1] |= ln >= threshold;
                    }
                }
                if shown.contains(&unit) {
                    let half = |(low, high): (f64, f64)| (high - low) / 2.0;
                    let money = arms.money(ERROR).map_or(f64::INFINITY, half);
                    widths.push([half(arms.orders(ERROR)), money]);
                }
            }
            progress.advance(1);
            (missed, widths)
        };
        let found: Vec<_> = (0..self.runs).into_par_iter().map(one).collect();
        let of = |place: usize, of| {
            let missed = found.iter().filter(|(missed, _)| missed[place]).count() as u64;
            let median = |at: usize| {
                let mut all: Vec<f64> = found.iter().map(|(_, widths)| widths[at][place]).collect();
                all.sort_by(f64::total_cmp);
                all[all.len() / 2]
            };
            LiftFound {
                of,
                runs: self.runs,
                ordering: pools[1].ordering,
                lift: truth[place] / (1.0 - truth[place]) - 1.0,
                missed: wilson(missed, self.runs),
                half_widths: shown.iter().enumerate().map(|(at, &it)| (it, median(at))).collect(),
            }
        };
        Some(vec![of(0, "orders"), of(1, "money")])
    }
}
