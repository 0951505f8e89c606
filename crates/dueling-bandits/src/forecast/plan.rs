//! How long an experiment will take, before it begins.
//!
//! The plan simulates the policy that will decide, on plausible preferences: the best ranker beats
//! the second best by the smallest difference of interest, and the others are spread below.

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::evidence::Target;
use crate::forecast::draws::{Draw, Durations, race};
use crate::forecast::forecast_budget;
use crate::policies::verdict::DoubleThompsonVerdict;
use crate::run::Run;
use crate::{InvalidPolicy, PolicyRng, PolicySpec, Setup};

/// Number of draws for the difference that is asked for, and for each other one. With 40, the
/// median is within 15 % of that of many draws two times in three.
const DRAWS: usize = 40;
const DRAWS_OF_CURVE: usize = 24;
/// The share of the draws below the upper end of the plan.
const HIGH: f64 = 0.9;
/// The differences of the curve, in times of the one that is asked for, from the largest, which
/// takes the fewest pages.
const CURVE_FACTORS: [f64; 5] = [4.0, 2.0, 1.4, 0.7, 0.5];
/// The largest difference of two rankers that a plan assumes, in win rate above 1/2.
const DIFFERENCE_MAX: f64 = 0.45;
/// Range of the spread of the other rankers below the second best, for each of them and in units of
/// the difference that is asked for. Each draw takes a value of it, log-uniformly. With this range,
/// experiments on held-back sets took 0.90 times the plan by the median
/// (`crates/lab/notes/verdict.md`); with 0.5 to 3, sets for tuning took 1.21 times it, with 0.2 to 1
/// they took 0.87 times it.
const SPREAD: (f64, f64) = (0.3, 2.0);

/// The experiment that is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// Number of rankers.
    pub rankers: usize,
    /// By how much the best ranker beats the second best, above 1/2: above 0, at most 0.45.
    pub difference: f64,
    /// The verdict that ends it.
    pub target: Target,
    /// Share of the pages of two different rankers whose answer counts, above 0: it has a winner,
    /// and the user has not answered before.
    pub counting: f64,
}

/// How many pages it takes until the verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pages {
    /// By how much the best ranker beats the second best, above 1/2.
    pub difference: f64,
    /// Half of such experiments take fewer pages.
    pub median: f64,
    /// Nine of ten take fewer pages; `None` where too few simulations ended to tell.
    pub high: Option<f64>,
    /// Condorcet regret until the verdict: on this many more pages a user preferred the best ranker
    /// to the shown ones than if it was shown alone. The mean of the simulations that ended.
    pub regret: f64,
}

/// A plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For the difference that was asked for; an error with the number of pages after which most
    /// simulations had no verdict.
    pub pages: Result<Pages, f64>,
    /// Where simulations ended: for smaller and larger differences too, ascending.
    pub curve: Vec<Pages>,
}

impl Plan {
    /// The smallest difference that experiments of this many pages can show, half of the time; `None`
    /// before 2 simulated differences. Between and beyond these it follows the straight line in
    /// logarithms: pages grow with the inverse square of the difference.
    pub fn smallest_difference(&self, pages: f64) -> Option<f64> {
        let [.., _, _] = self.curve[..] else { return None };
        // the pair of differences around, or the nearest one
        let at = self.curve.iter().rposition(|point| point.median >= pages).unwrap_or(0);
        let at = at.min(self.curve.len() - 2);
        let [low, high] = [self.curve[at], self.curve[at + 1]];
        let slope = (low.median / high.median).ln() / (low.difference / high.difference).ln();
        // sampling noise: never a flat line
        let slope = slope.min(-0.5);
        let difference = low.difference * (pages / low.median).powf(1.0 / slope);
        Some(difference.clamp(0.0, DIFFERENCE_MAX))
    }
}

/// A budget for [`plan`] that takes at most some three seconds of one processor.
pub fn plan_budget(rankers: usize) -> u64 {
    3 * forecast_budget(rankers)
}

/// Plan with about `budget` steps over all draws at most, and only as long as `may_go_on`, which is
/// asked every few dozen steps.
pub fn plan(
    question: &Question,
    budget: u64,
    may_go_on: impl Fn() -> bool,
    rng: &mut PolicyRng,
) -> Result<Plan, InvalidPolicy> {
    let spec = PolicySpec::DoubleThompsonVerdict(DoubleThompsonVerdict {
        confidence: question.target.confidence,
        margin: question.target.margin,
        ..Default::default()
    });
    spec.validate(question.rankers)?;
    let mut left = budget;
    let mut of = |difference, draws| {
        let asked = Question { difference, ..*question };
        let (pages, steps) = simulate(&asked, &spec, draws, left, &may_go_on, rng);
        left = left.saturating_sub(steps);
        pages
    };
    let pages = of(question.difference, DRAWS);
    let mut curve: Vec<Pages> = pages.ok().into_iter().collect();
    for times in CURVE_FACTORS {
        let difference = times * question.difference;
        if difference <= DIFFERENCE_MAX && may_go_on() {
            curve.extend(of(difference, DRAWS_OF_CURVE).ok());
        }
    }
    curve.sort_unstable_by(|a, b| a.difference.total_cmp(&b.difference));
    Ok(Plan { pages, curve })
}

/// The pages of one difference, and the steps that were spent on it.
fn simulate(
    question: &Question,
    spec: &PolicySpec,
    draws: usize,
    budget: u64,
    may_go_on: impl Fn() -> bool,
    rng: &mut PolicyRng,
) -> (Result<Pages, f64>, u64) {
    let rankers = question.rankers;
    let mut losses = Vec::with_capacity(draws);
    let all = (0..draws)
        .map(|number| {
            let below = plausible(rankers, question.difference, rng);
            let run = Run::of(spec.start(Setup { rankers, seed: rng.random() }));
            let draw = Draw::new(number, run, preferences(&below));
            losses.push(below);
            draw
        })
        .collect();
    let raced = race(all, draws * 19 / 20, budget, may_go_on, rng);
    let steps = raced.ended.iter().chain(&raced.open).map(|draw| draw.steps).sum();
    let pages = |draw: &Draw| {
        draw.self_duels as f64 + (draw.steps - draw.self_duels) as f64 / question.counting
    };
    let durations = Durations::of(&raced, pages);
    let regret = |draw: &Draw| {
        let shown = draw.appearances.iter().zip(&losses[draw.number]);
        let lost: f64 = shown.map(|(&shown, loss)| shown as f64 * loss / 2.0).sum();
        // a self-duel is almost always one of the best ranker, which loses nothing
        lost / question.counting
    };
    let ended = raced.ended.len().max(1) as f64;
    let found = durations.at(0.5, draws / 4).map(|median| Pages {
        difference: question.difference,
        median,
        high: durations.at(HIGH, draws / 2),
        regret: raced.ended.iter().map(regret).sum::<f64>() / ended,
    });
    (found.ok_or_else(|| durations.reached()), steps)
}

/// By how much each ranker is worse than the best one, which has 0, in a random order.
fn plausible(rankers: usize, difference: f64, rng: &mut PolicyRng) -> Vec<f64> {
    let (least, most) = SPREAD;
    let spread = least * (most / least).powf(rng.random()) * difference * (rankers - 2) as f64;
    let mut below: Vec<f64> = (0..rankers)
        .map(|ranker| match ranker {
            0 => 0.0,
            1 => difference,
            _ => difference + spread * rng.random::<f64>(),
        })
        .map(|below| below.min(DIFFERENCE_MAX))
        .collect();
    below.shuffle(rng);
    below
}

/// The preferences of rankers that are so much worse than the best one.
fn preferences(below: &[f64]) -> Vec<f64> {
    let win = |i: f64, j: f64| (0.5 + j - i).clamp(0.5 - DIFFERENCE_MAX, 0.5 + DIFFERENCE_MAX);
    below.iter().flat_map(|&i| below.iter().map(move |&j| win(i, j))).collect()
}
