//! How long an experiment will take, before it begins.
//!
//! That depends on how far each rival is behind the best ranker, which nobody knows before: with
//! twelve rankers that are all close to the best one it takes ten times as long as with a single
//! close one. So a plan has several [`Rivals`], which span what is plausible, and says how long
//! each takes.
//!
//! The policy that will decide is simulated for a few differences, the largest first, as far as the
//! budget of steps goes. The steps until the verdict grow as the comparisons that prove the lead
//! over each rival alone, which [`comparisons_alone`] computes; the simulations have the factor,
//! which hardly depends on the difference. It gives all other differences.

use crate::evidence::Target;
use crate::evidence::lead::LeadEvidence;
use crate::forecast::draws::{Draw, Durations, Race};
use crate::forecast::forecast_budget;
use crate::policies::verdict::DoubleThompsonVerdict;
use crate::run::Run;
use crate::{InvalidPolicy, PolicyRng, PolicySpec, Setup};
use rand::RngExt;
use rand::seq::SliceRandom;

/// Number of draws for each difference, times the number of rankers, and the fewest and the most.
/// With fewer rankers, experiments of the same rivals differ more.
const DRAWS_TIMES_RANKERS: usize = 2000;
const DRAWS: (usize, usize) = (24, 400);
/// The share of the draws that must end; the longest are not needed.
const ENDED: f64 = 0.95;
/// Steps until the verdict, in times of the comparisons that prove the lead over each rival alone:
/// about so many, before any are simulated.
const FACTOR: f64 = 1.5;
/// The part of what is left of the budget for each difference that is larger than the one that is
/// asked for.
const PART_OF_OTHERS: f64 = 0.25;
/// The steps of a difference are estimated from those of a larger one. They are at most so many
/// times what is left of the budget; otherwise the difference is extrapolated, too.
const OVERRUN: u64 = 2;
/// The share of the draws below the upper end of the plan.
const HIGH: f64 = 0.9;
/// The largest difference of two rankers that a plan assumes, in win rate above 1/2.
pub const DIFFERENCE_MAX: f64 = 0.45;
/// Each ranker of a ladder is so many times as far behind the best as the one above it. Ladders of
/// equal steps and of factors from 1.5 to 2 take about as long.
const LADDER: f64 = 1.7;
/// How far behind the others are where one rival is close: so much, and at least so many times as
/// far as that one.
const FAR: (f64, f64) = (0.28, 3.0);
/// Of equal rivals, the factor grows by 2^0.2 = 1.15 where the difference is halved. Measured at
/// 0.03 after 0.06, in 500 experiments: 1.16 with 5 rankers, 1.34 with 9.
const GROWTH: f64 = 0.2;
/// The median evidence at the verdict is so many nats above its threshold, by that of the pair.
const ABOVE_THRESHOLD: f64 = 0.5;

/// Most answers that the policy waits for in a simulation, which keeps them.
const LATE_MAX: f64 = 1000.0;
/// The logarithm of the most comparisons of a pair that a plan considers.
const LN_COMPARISONS_MAX: f64 = 20.0;

/// How far the rivals of the best ranker are behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rivals {
    /// One is behind by the difference, and the others by 0.28, or three times the difference if
    /// that is more.
    OneClose,
    /// The first is behind by the difference, and each further one by 1.7 times as much as the one
    /// before.
    Ladder,
    /// All are behind by the difference.
    AllEqual,
    /// One is behind by the difference, and the others as the question says.
    Given,
}

/// The experiment that is planned.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Number of rankers.
    pub rankers: usize,
    /// By how much the best ranker beats the second best, above 1/2: above 0, at most
    /// [`DIFFERENCE_MAX`].
    pub difference: f64,
    /// By how much it beats each of the others, if that is known; empty otherwise. Those that are
    /// left out, or are less, are as close as the second best.
    pub others: Vec<f64>,
    /// The verdict that ends it.
    pub target: Target,
    /// Share of the pages of two different rankers whose answer counts, above 0: it has a winner,
    /// and the user has not answered before.
    pub counting: f64,
    /// Number of pages until the policy learns from one: those of the time that its answer takes.
    pub late: f64,
}

impl Question {
    /// The plausible rivals, from the shortest experiment to the longest.
    fn plausible(&self) -> &'static [Rivals] {
        match self.rankers {
            ..=2 => &[Rivals::AllEqual],
            _ if !self.others.is_empty() => &[Rivals::Given],
            _ => &[Rivals::OneClose, Rivals::Ladder, Rivals::AllEqual],
        }
    }

    /// By how much each rival is behind, from the closest, where that one is by `difference`.
    fn behind(&self, rivals: Rivals, difference: f64) -> Vec<f64> {
        let (least, times) = FAR;
        let other = |place: usize| match rivals {
            Rivals::OneClose => least.max(times * difference),
            Rivals::Ladder => difference * LADDER.powf(place as f64),
            Rivals::AllEqual => difference,
            Rivals::Given => self.others.get(place - 1).map_or(0.0, |&it| it).max(difference),
        };
        let others = (1..self.rankers - 1).map(|place| other(place).min(DIFFERENCE_MAX));
        std::iter::once(difference).chain(others).collect()
    }

    /// The comparisons that prove the lead over each rival alone, and what they cost if all are as
    /// close as the closest; `None` if no number of comparisons does.
    fn unit(&self, rivals: Rivals, difference: f64) -> Option<Pages> {
        let evidence = LeadEvidence::over(self.target.margin);
        let needed = ABOVE_THRESHOLD - libm::log(1.0 - self.target.confidence);
        let behind = self.behind(rivals, difference).into_iter();
        let alone = behind.map(|behind| comparisons_alone(&evidence, needed, behind));
        let comparisons: f64 = alone.sum::<Option<f64>>()?;
        Some(Pages { median: comparisons, high: comparisons, regret: comparisons * difference })
    }
}

/// How many pages it takes until the verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pages {
    /// Half of such experiments take fewer pages.
    pub median: f64,
    /// Nine of ten take fewer pages.
    pub high: f64,
    /// Condorcet regret until the verdict: on this many more pages a user preferred the best ranker
    /// to the shown ones than if it was shown alone. The mean of the simulations.
    pub regret: f64,
}

impl Pages {
    fn zip(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            median: of(self.median, other.median),
            high: of(self.high, other.high),
            regret: of(self.regret, other.regret),
        }
    }
}

/// The plan of an experiment with certain rivals.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    rivals: Rivals,
    question: Question,
    /// The differences that were simulated, descending, and the pages of each in units of
    /// [`Question::unit`].
    simulated: Vec<(f64, Pages)>,
}

impl Plan {
    /// Whom the best ranker has to beat.
    pub fn rivals(&self) -> Rivals {
        self.rivals
    }

    /// The smallest difference that was simulated: that of the question, or a larger one if that
    /// takes more than the budget. Pages of smaller differences are extrapolated.
    pub fn simulated(&self) -> f64 {
        self.simulated.last().map_or(DIFFERENCE_MAX, |&(difference, _)| difference)
    }

    /// The pages if the best ranker beats the second best by this difference; `None` if no number
    /// is enough. Between two simulated differences the factor follows the straight line in
    /// logarithms. Beyond them it stays, but for equal rivals: see [`GROWTH`].
    pub fn pages(&self, difference: f64) -> Option<Pages> {
        let next = self.simulated.partition_point(|&(simulated, _)| simulated > difference);
        let last = self.simulated.len() - 1;
        let (above, below) =
            (self.simulated[next.saturating_sub(1)], self.simulated[next.min(last)]);
        let share = match above.0 > below.0 {
            true => (above.0 / difference).ln() / (above.0 / below.0).ln(),
            false => 0.0,
        };
        let factor = above.1.zip(below.1, |above, below| above * (below / above).powf(share));
        let growth = match self.rivals {
            Rivals::AllEqual => (below.0 / difference).max(1.0).powf(GROWTH),
            _ => 1.0,
        };
        let unit = self.question.unit(self.rivals, difference)?;
        Some(factor.zip(unit, |factor, unit| growth * factor * unit))
    }

    /// The smallest difference that half of the experiments of this many pages show; `None` if not
    /// even the largest one.
    pub fn smallest_difference(&self, pages: f64) -> Option<f64> {
        let takes_longer =
            |difference: f64| self.pages(difference).is_none_or(|it| it.median > pages);
        if takes_longer(DIFFERENCE_MAX) {
            return None;
        }
        let (mut low, mut high) = (0.0, DIFFERENCE_MAX);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            *if takes_longer(middle) { &mut low } else { &mut high } = middle;
        }
        Some(high)
    }
}

/// After so many comparisons the expected wins of a ranker that leads by `difference` have the
/// evidence `needed`; `None` where it is below the smallest leads that the evidence looks for.
fn comparisons_alone(evidence: &LeadEvidence, needed: f64, difference: f64) -> Option<f64> {
    let is_enough = |ln_comparisons: f64| {
        let comparisons = ln_comparisons.exp();
        let wins = comparisons * (0.5 + difference);
        evidence.ln(wins, comparisons - wins) >= needed
    };
    let (mut low, mut high) = (0.0, LN_COMPARISONS_MAX);
    is_enough(high).then_some(())?;
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        *if is_enough(middle) { &mut high } else { &mut low } = middle;
    }
    Some(high.exp())
}

/// A budget for [`plan`] that takes some two seconds of one processor at most.
pub fn plan_budget(rankers: usize) -> u64 {
    3 * forecast_budget(rankers)
}

/// Plan for the rivals that are given, or else for each of the other [`Rivals`], with about
/// `budget` steps over all draws at most. `None` if `may_go_on`, which is asked every few dozen
/// steps, has said no.
pub fn plan(
    question: &Question,
    budget: u64,
    may_go_on: impl Fn() -> bool,
    rng: &mut PolicyRng,
) -> Result<Option<Vec<Plan>>, InvalidPolicy> {
    let spec = PolicySpec::DoubleThompsonVerdict(DoubleThompsonVerdict {
        confidence: question.target.confidence,
        margin: question.target.margin,
        ..Default::default()
    });
    spec.validate(question.rankers)?;
    let plausible = question.plausible();
    let mut left = budget;
    let mut plans = Vec::with_capacity(plausible.len());
    for (done, &rivals) in plausible.iter().enumerate() {
        // the shortest are first, and leave most of their parts to the longest
        let part = left / (plausible.len() - done) as u64;
        let simulation = Simulation { question, spec: &spec, rivals };
        let Some((simulated, steps)) = simulation.run(part, &may_go_on, rng) else {
            return Ok(None);
        };
        left = left.saturating_sub(steps);
        plans.push(Plan { rivals, question: question.clone(), simulated });
    }
    Ok(Some(plans))
}

/// Simulations of experiments with certain rivals.
struct Simulation<'a> {
    question: &'a Question,
    spec: &'a PolicySpec,
    rivals: Rivals,
}

impl Simulation<'_> {
    /// The simulated differences, descending, and the steps spent on them. The first one takes few
    /// steps and is always simulated.
    fn run(
        &self,
        budget: u64,
        may_go_on: &impl Fn() -> bool,
        rng: &mut PolicyRng,
    ) -> Option<(Vec<(f64, Pages)>, u64)> {
        let asked = self.question.difference;
        let doubled = std::iter::successors(Some(asked), |difference| Some(2.0 * difference));
        // one that is hardly below the largest adds nothing
        let mut differences: Vec<f64> =
            doubled.take_while(|&it| it == asked || it < 0.7 * DIFFERENCE_MAX).collect();
        if asked < DIFFERENCE_MAX {
            differences.push(DIFFERENCE_MAX);
        }
        let (least, most) = DRAWS;
        let most = (DRAWS_TIMES_RANKERS / self.question.rankers).clamp(least, most);
        let (mut simulated, mut spent, mut factor) = (Vec::new(), 0, FACTOR);
        for &difference in differences.iter().rev() {
            let Some(unit) = self.question.unit(self.rivals, difference) else { break };
            let left = budget.saturating_sub(spent);
            let affordable = |part: f64| (part * left as f64 / (factor * unit.median)) as usize;
            let is_first = simulated.is_empty();
            if !is_first && affordable(1.0) < least {
                break;
            }
            let part = if difference > asked { PART_OF_OTHERS } else { 1.0 };
            let draws = affordable(part).clamp(least, most);
            let allowed = if is_first { u64::MAX } else { OVERRUN * left };
            let (pages, steps) = self.simulate(difference, draws, allowed, may_go_on, rng)?;
            factor = steps as f64 / draws as f64 / unit.median;
            spent += steps;
            let Some(pages) = pages else { break };
            simulated.push((difference, pages.zip(unit, |pages, unit| pages / unit)));
        }
        Some((simulated, spent))
    }

    /// The pages of one difference, if enough draws ended within `allowed` steps, and the steps
    /// spent on it.
    fn simulate(
        &self,
        difference: f64,
        draws: usize,
        allowed: u64,
        may_go_on: &impl Fn() -> bool,
        rng: &mut PolicyRng,
    ) -> Option<(Option<Pages>, u64)> {
        let Question { rankers, counting, late, .. } = *self.question;
        // of two rankers there is nothing to choose
        let late = if rankers > 2 { (late * counting).min(LATE_MAX) as usize } else { 0 };
        let mut losses = Vec::with_capacity(draws);
        let all = (0..draws)
            .map(|number| {
                let mut below = self.question.behind(self.rivals, difference);
                below.push(0.0);
                below.shuffle(rng);
                let run = Run::of(self.spec.start(Setup { rankers, seed: rng.random() }));
                let draw = Draw::new(number, run, preferences(&below), late);
                losses.push(below);
                draw
            })
            .collect();
        let needed = (ENDED * draws as f64).ceil() as usize;
        let mut race = Race::new(all, needed, allowed);
        while race.go_on(rng) {
            may_go_on().then_some(())?;
        }
        let pages = |draw: &Draw| draw.self_duels as f64 + draw.comparisons() as f64 / counting;
        let regret = |draw: &Draw| {
            let shown = draw.appearances.iter().zip(&losses[draw.number]);
            let lost: f64 = shown.map(|(&shown, loss)| shown as f64 * loss / 2.0).sum();
            // a self-duel is almost always one of the best ranker, which loses nothing
            lost / counting
        };
        let durations = Durations::of(&race, pages);
        let regret = race.ended.iter().map(regret).sum::<f64>() / race.ended.len() as f64;
        let ends = durations.at(0.5, needed).zip(durations.at(HIGH, needed));
        Some((ends.map(|(median, high)| Pages { median, high, regret }), race.spent))
    }
}

/// The preferences of rankers that are so much worse than the best one.
fn preferences(below: &[f64]) -> Vec<f64> {
    let win = |i: f64, j: f64| (0.5 + j - i).clamp(0.5 - DIFFERENCE_MAX, 0.5 + DIFFERENCE_MAX);
    below.iter().flat_map(|&i| below.iter().map(move |&j| win(i, j))).collect()
}
