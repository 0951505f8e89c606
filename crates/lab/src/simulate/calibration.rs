//! Calibration of the estimates of [`dueling_bandits::evidence`]: simulated experiments with known
//! preferences compare the estimates of the service with the truth.

use rand::SeedableRng;
use rayon::prelude::*;

pub use self::results::{Calibration, RegretCalibration, TotalRegret, VerdictCalibration};
pub(super) use self::results::{median, share_at_most};
pub(super) use self::truth::is_wrong;
use self::truth::{Look, LookForecast, Truth};
use super::drift::Drift;
use super::progress::Progress;
use super::run::STEPS_PER_UPDATE;
use super::tournament::Entrant;
use comparators::environment::Environment;
use comparators::feedback::Feedback;
use comparators::{RunSeeds, fingerprint};
use dueling_bandits::evidence::{Target, VerdictTracker};
use dueling_bandits::forecast::{Forecast, Present, forecast, forecast_budget};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Bandit, InFlight, PolicyRng, Roster, TieRule};

mod results;
mod truth;

/// Simulated experiments of one policy on one matrix.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The matrix, as the user named it.
    pub name: String,
    /// The true preferences, at the beginning if they drift.
    pub matrix: PreferenceMatrix,
    /// How the preferences change. The looks assume that they do not.
    pub drift: Option<Drift>,
    pub entrant: Entrant,
    /// Number of steps of each experiment.
    pub horizon: u64,
    /// The steps at which estimates are compared with the truth, ascending, at most the horizon.
    pub looks: Vec<u64>,
    pub runs: u64,
    pub seed: u64,
    /// The target of the verdict.
    pub target: Target,
    /// Ties and lost clicks. Delay is ignored.
    pub feedback: Feedback,
}

struct Experiment {
    looks: Vec<Look>,
    verdict: Option<Decision>,
    /// True Copeland regret at the horizon.
    regret: f64,
}

/// The verdict of one experiment.
#[derive(Clone, Copy)]
struct Decision {
    step: u64,
    is_wrong: bool,
    was_never_right: bool,
    /// True Copeland regret so far.
    regret: f64,
}

impl Trial {
    /// Number of steps of all experiments together.
    pub fn total_steps(&self) -> u64 {
        self.horizon.saturating_mul(self.runs)
    }

    /// Runs the experiments in the current rayon pool. Returns `None` if it was stopped before the
    /// first experiment had finished.
    pub fn run(&self, progress: &Progress) -> Option<Calibration> {
        let experiments = self.experiments(progress, |seeds| self.experiment(seeds, progress));
        (!experiments.is_empty()).then(|| Calibration::of(self, &experiments))
    }

    /// Runs `experiment` with the random numbers of each experiment, up to a stop.
    pub(super) fn experiments<T: Send>(
        &self,
        progress: &Progress,
        experiment: impl Fn(RunSeeds) -> Option<T> + Sync,
    ) -> Vec<T> {
        let fingerprint = fingerprint(&self.matrix);
        (0..self.runs)
            .into_par_iter()
            .filter(|_| !progress.is_stopped())
            .filter_map(|number| experiment(RunSeeds::new(self.seed, &fingerprint, number)))
            .collect()
    }

    fn experiment(&self, seeds: RunSeeds, progress: &Progress) -> Option<Experiment> {
        let rankers = self.matrix.rankers();
        let mut policy = self.entrant.spec.start(Setup { rankers, seed: seeds.folding });
        let mut environment = Environment::shuffled(&self.matrix, &self.feedback, seeds);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        // Estimates have their own generator, so that looks do not change the experiment.
        let mut estimating = PolicyRng::seed_from_u64(seeds.selecting ^ seeds.folding);
        let in_flight = InFlight::new();
        let ties: TieRule = self.feedback.tie_rule;

        let mut judge = Judge::new(&self.matrix, self.target);
        let roster = Roster::new(rankers);
        let mut shown = vec![0; rankers];
        let mut tracker = VerdictTracker::new(self.target, rankers);
        let mut experiment = Experiment { looks: Vec::new(), verdict: None, regret: 0.0 };
        let mut looks = self.looks.iter().copied().peekable();
        let mut reported = 0;
        for step in 1..=self.horizon {
            if let Some(matrix) = self.drifted(step) {
                judge.change(&matrix, self.target);
                environment.change(matrix);
            }
            if step - reported == STEPS_PER_UPDATE {
                progress.advance(STEPS_PER_UPDATE);
                reported = step;
                if progress.is_stopped() {
                    return None;
                }
            }
            let selection = policy.select(&in_flight, &mut selecting);
            let duel = selection.duel;
            shown[duel.first] += 1;
            shown[duel.second] += 1;
            let name = |ranker: usize| environment.name(ranker);
            experiment.regret += judge.truth.copeland.of_step(name(duel.first), name(duel.second));
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                if let Some(answer) = environment.answer(duel) {
                    let outcome = ties.resolve(answer, seeds.folding, policy.tally().steps());
                    policy.observe(&selection.observed(outcome));
                }
                tracker.observe(policy.tally(), roster.active(), duel);
                if experiment.verdict.is_none()
                    && let Some(verdict) = tracker.verdict()
                {
                    let winners = verdict.winners.iter();
                    let winners = winners.map(|&winner| environment.name(winner.into()));
                    experiment.verdict = Some(judge.decision(winners, step, experiment.regret));
                }
            }
            if looks.next_if_eq(&step).is_some() {
                let name = |i: usize| environment.name(i);
                let forecast = match experiment.verdict {
                    Some(_) => None,
                    None => self.forecast(&*policy, &tracker, &roster, seeds, &mut estimating),
                };
                let forecast = forecast.map(|Forecast { estimate, low, high, .. }| LookForecast {
                    step,
                    estimate,
                    low,
                    high: high.unwrap_or(f64::INFINITY),
                });
                let look = judge.truth.look(policy.tally(), &shown, name, &mut estimating);
                experiment.looks.push(Look { forecast, ..look });
            }
        }
        progress.advance(self.horizon - reported);
        Some(experiment)
    }

    fn forecast(
        &self,
        policy: &dyn Bandit,
        tracker: &VerdictTracker,
        roster: &Roster,
        seeds: RunSeeds,
        rng: &mut PolicyRng,
    ) -> Option<Forecast> {
        // the copies of a forecast are saved and restored, which a comparator cannot be
        let (spec, state) = (self.entrant.spec.served()?, policy.run()?.policy().save());
        let setup = Setup { rankers: self.matrix.rankers(), seed: seeds.folding };
        let copy = || spec.restore(setup, &state);
        let present = Present { tally: policy.tally(), roster, tracker };
        forecast(present, copy, forecast_budget(setup.rankers), rng).ok()
    }

    /// The preferences at `step`, if they differ from those of the step before.
    fn drifted(&self, step: u64) -> Option<PreferenceMatrix> {
        self.drift.as_ref()?.changed(&self.matrix, step)
    }
}

/// Compares an experiment with the true preferences, which may change. Rankers are those of the
/// matrix.
struct Judge {
    truth: Truth,
    /// Whether a verdict for each ranker is right now.
    is_right: Vec<bool>,
    /// Whether it was right at any step so far.
    was_right: Vec<bool>,
}

impl Judge {
    fn new(matrix: &PreferenceMatrix, target: Target) -> Self {
        let is_right: Vec<bool> =
            (0..matrix.rankers()).map(|ranker| !is_wrong(matrix, target, ranker)).collect();
        Self { truth: Truth::new(matrix), was_right: is_right.clone(), is_right }
    }

    /// From this step on, these are the true preferences.
    fn change(&mut self, matrix: &PreferenceMatrix, target: Target) {
        let mut before = std::mem::replace(self, Self::new(matrix, target)).was_right;
        before.iter_mut().zip(&self.is_right).for_each(|(was, is)| *was |= is);
        self.was_right = before;
    }

    /// A verdict with these winners, which is wrong if any of them is.
    fn decision(
        &self,
        winners: impl Iterator<Item = usize> + Clone,
        step: u64,
        regret: f64,
    ) -> Decision {
        let any_not = |right: &[bool]| winners.clone().any(|winner| !right[winner]);
        let (is_wrong, was_never_right) = (any_not(&self.is_right), any_not(&self.was_right));
        Decision { step, is_wrong, was_never_right, regret }
    }
}
