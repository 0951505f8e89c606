//! Plans compared with experiments: how many pages these took, in times of what was planned.

use interleaving::FastRng;
use rand::SeedableRng;
use rayon::prelude::*;
use serde::Serialize;

use super::calibration::median;
use super::orders;
use super::progress::Progress;
use comparators::environment::Environment;
use comparators::feedback::Feedback;
use comparators::{RunSeeds, fingerprint};
use dueling_bandits::evidence::Target;
use dueling_bandits::forecast::plan::{Plan, Question, Rivals, plan, plan_budget};
use dueling_bandits::policies::verdict::DoubleThompsonVerdict;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::run::Run;
use dueling_bandits::{Answer, Bandit, InFlight, Outcome, PolicyRng, PolicySpec, Setup, step_rng};

/// The seed of the plans of the service.
const PLAN_SEED: u64 = 0x706c_616e;
/// The lead over each rival that is far behind, where its rivals are compared.
const FAR: f64 = 0.3;
/// How far the last rival is behind the first, where a leader is far ahead.
const CLUSTER: f64 = 0.02;

/// A world: how far each rival is behind the best ranker, by its place, from the closest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// One rival is close, and all others are behind by 0.3.
    OneClose,
    /// One rival is close, the others are four times as far behind, and the plan knows that.
    Given,
    /// A geometric ladder: each is 1.5 times as far behind as the one before.
    LadderOfHalves,
    /// A geometric ladder: each is twice as far behind as the one before.
    LadderOfDoubles,
    /// Strengths of Bradley and Terry in geometric progression.
    BradleyTerry,
    /// All rivals are equal.
    AllEqual,
    /// A leader far ahead of rivals that are close to each other.
    FarLeader,
}

impl World {
    pub const ALL: [Self; 7] = [
        Self::OneClose,
        Self::Given,
        Self::LadderOfHalves,
        Self::LadderOfDoubles,
        Self::BradleyTerry,
        Self::AllEqual,
        Self::FarLeader,
    ];

    /// The rivals of the plan that it is compared with.
    pub fn rivals(self, rankers: usize) -> Rivals {
        match self {
            _ if rankers == 2 => Rivals::AllEqual,
            Self::OneClose => Rivals::OneClose,
            Self::Given => Rivals::Given,
            Self::LadderOfHalves | Self::LadderOfDoubles | Self::BradleyTerry => Rivals::Ladder,
            Self::AllEqual | Self::FarLeader => Rivals::AllEqual,
        }
    }

    /// The preferences where the best ranker beats the second best by `difference`.
    pub fn matrix(self, rankers: usize, difference: f64) -> PreferenceMatrix {
        let last = (rankers - 1) as f64;
        let rival = |place: f64| match self {
            Self::OneClose if place > 0.0 => FAR.max(difference),
            Self::Given if place > 0.0 => 4.0 * difference,
            Self::LadderOfHalves => difference * 1.5_f64.powf(place),
            Self::LadderOfDoubles => difference * 2.0_f64.powf(place),
            Self::FarLeader => difference + CLUSTER * place / last,
            Self::OneClose | Self::Given | Self::BradleyTerry | Self::AllEqual => difference,
        };
        let behind = |ranker: usize| ranker.checked_sub(1).map_or(0.0, |place| rival(place as f64));
        let step = ((0.5 + difference) / (0.5 - difference)).ln();
        let win = |i: usize, j: usize| match self {
            Self::BradleyTerry => 1.0 / (1.0 + (step * (i as f64 - j as f64)).exp()),
            _ => (0.5 + behind(j) - behind(i)).clamp(0.02, 0.98),
        };
        PreferenceMatrix::from_pairs(rankers, win).expect("probabilities")
    }
}

/// Experiments on one matrix, with the plans for its number of rankers and its difference.
#[derive(Debug, Clone)]
pub struct PlanTrial {
    /// Of the report.
    pub name: String,
    /// The true preferences, which have a Condorcet winner.
    pub matrix: PreferenceMatrix,
    /// The plan that it is compared with; all if `None`.
    pub rivals: Option<Rivals>,
    pub target: Target,
    /// Pages a day of experiments that orders decide, at the default target; `None` by clicks.
    pub by_orders: Option<f64>,
    pub runs: u64,
    pub seed: u64,
}

/// The pages of experiments, and those of their plan.
#[derive(Debug, Clone, Serialize)]
pub struct PlanComparison {
    pub set: String,
    pub rankers: usize,
    /// By how much the best ranker beats the second best.
    pub difference: f64,
    pub plan: String,
    /// The smallest difference that the plan simulated.
    pub simulated: f64,
    pub planned: f64,
    pub took: f64,
    /// The share of the experiments that took more than nine of ten should.
    pub above_high: f64,
}

impl PlanTrial {
    /// Runs the experiments in the current rayon pool; nothing if it was stopped.
    pub fn run(&self, progress: &Progress) -> Vec<PlanComparison> {
        let rankers = self.matrix.rankers();
        let Some(best) = self.matrix.condorcet_winner() else { return Vec::new() };
        let rivals = (0..rankers).filter(|&rival| rival != best);
        let lead = |rival| self.matrix.win_probability(best, rival) - 0.5;
        let mut leads: Vec<f64> = rivals.map(lead).collect();
        leads.sort_unstable_by(f64::total_cmp);
        let difference = leads[0];
        let is_known = self.rivals == Some(Rivals::Given);
        let others = if is_known { leads.split_off(1) } else { Vec::new() };
        // one page in 40 has an order, of which three in four count, as plans assume
        let counting = if self.by_orders.is_some() { 0.75 / 40.0 } else { 1.0 };
        let late = self.by_orders.map_or(0.0, |a_day| 0.5 * a_day);
        let target = self.target;
        let question = Question { rankers, difference, others, target, counting, late };
        let go_on = || !progress.is_stopped();
        let rng = &mut step_rng(PLAN_SEED, 0);
        let Ok(Some(plans)) = plan(&question, plan_budget(rankers), go_on, rng) else {
            return Vec::new();
        };
        let fingerprint = fingerprint(&self.matrix);
        let took: Vec<u64> = (0..self.runs)
            .into_par_iter()
            .filter_map(|run| {
                let seeds = RunSeeds::new(self.seed, &fingerprint, run);
                match self.by_orders {
                    None => self.experiment(seeds, progress),
                    Some(a_day) => {
                        let mut rng = FastRng::seed_from_u64(seeds.selecting);
                        orders::homes::pages(&self.matrix, a_day, counting, &mut rng)
                    }
                }
            })
            .collect();
        let compare = |plan: &Plan| {
            let pages = plan.pages(difference)?;
            let above = took.iter().filter(|&&took| took as f64 > pages.high).count();
            Some(PlanComparison {
                set: self.name.clone(),
                rankers,
                difference,
                plan: format!("{:?}", plan.rivals()),
                simulated: plan.simulated(),
                planned: pages.median,
                took: median(took.iter().copied(), self.runs)? as f64,
                above_high: above as f64 / self.runs as f64,
            })
        };
        let wanted = |plan: &&Plan| self.rivals.is_none_or(|rivals| rivals == plan.rivals());
        plans.iter().filter(wanted).filter_map(compare).collect()
    }

    /// The steps until the verdict; `None` if it was stopped.
    fn experiment(&self, seeds: RunSeeds, progress: &Progress) -> Option<u64> {
        let Target { confidence, margin } = self.target;
        let policy = DoubleThompsonVerdict { confidence, margin, ..Default::default() };
        let setup = Setup { rankers: self.matrix.rankers(), seed: seeds.folding };
        let mut run = Run::of(PolicySpec::DoubleThompsonVerdict(policy).start(setup));
        let feedback = Feedback::default();
        let mut environment = Environment::shuffled(&self.matrix, &feedback, seeds);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let none = InFlight::new();
        while run.verdict().verdict().is_none() {
            if run.tally().steps().is_multiple_of(1024) && progress.is_stopped() {
                return None;
            }
            let selection = run.select(&none, &mut selecting);
            match environment.answer(selection.duel) {
                _ if selection.duel.is_self() => run.observe_self_duels(selection.duel.first, 1),
                Some(Answer::First) => run.observe(&selection.observed(Outcome::First)),
                _ => run.observe(&selection.observed(Outcome::Second)),
            }
        }
        progress.advance(run.tally().steps());
        Some(run.tally().steps())
    }
}
