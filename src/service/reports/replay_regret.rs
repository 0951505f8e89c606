//! The regret that another policy would have had, estimated from the answers of a log.

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::reports::regret::Band;
use crate::service::threads::IsAwaited;
use dueling_bandits::evidence::off_policy::{self, Answers, OffPolicyRun};
use dueling_bandits::evidence::{Estimate, Posterior};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::step_rng;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;

/// Runs of the policy.
pub(super) const RUNS: u64 = 20;
/// Fewest steps from which regret is estimated, in total and for each ranker.
const STEPS_MIN: u64 = 100;
const STEPS_MIN_PER_RANKER: u64 = 10;
/// Most pairs with their answers in a report.
const PAIRS_MAX: usize = 10;
/// Separates these random draws from other uses of the seed of an experiment.
const STREAM: u64 = 0x7265_706c_6179;

/// The answers of a pair in the log, and how many of them the runs used.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PairAnswers {
    pub ranker: String,
    pub against: String,
    pub available: u64,
    /// Mean number that a run used.
    pub used: f64,
}

/// Cumulative Copeland regret over the first `steps` steps: of the replayed policy and of the log.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OtherRegret {
    /// `queue-based`: runs of the policy get their answers from the log, each answer once, from a
    /// log with as many answers of each pair, drawn with replacement. All runs have the same number
    /// of steps: those that every run can make before it has used up the answers of a pair.
    #[schema(example = "queue-based")]
    pub method: &'static str,
    pub steps: u64,
    pub runs: u64,
    /// Of the replayed policy, over its runs and the posterior of the preferences.
    pub replayed: Band,
    /// Standard deviation between the runs.
    pub deviation: f64,
    /// Regret of the replayed policy minus that of the experiment, over the runs and draws. Below 0
    /// the replayed policy is the cheaper one.
    pub difference: Band,
    /// Share of runs and draws in which the replayed policy is the cheaper one.
    pub cheaper: f64,
    /// The pairs of which the runs used the largest share of answers, at most 10.
    pub answers: Vec<PairAnswers>,
    /// Of the experiment itself over its first `steps` steps, estimated in the same way.
    pub logged: Band,
    /// Of uniform pairs over `steps` steps: posterior mean.
    pub uniform: f64,
}

/// The regret that the policy of `spec` would have had over the steps of the log, but at most over
/// `steps_max`, or why it cannot be estimated. It ends with an error between two runs if its result
/// is no longer awaited.
pub(super) fn replayed_regret(
    spec: &ExperimentSpec,
    seed: u64,
    fold: &Fold,
    steps_max: Option<u64>,
    is_awaited: IsAwaited<'_>,
) -> Result<OtherRegret, String> {
    if !spec.roster_changes.is_none() {
        return Err(
            "the experiment has roster changes, and the counted answers do not say which rankers were active"
                .into(),
        );
    }
    let answers = Answers::new(spec.rankers.len(), |low, high| {
        let pair = fold.counts().pair(low, high);
        [pair.wins, pair.losses, pair.ties, pair.no_signal]
    });
    let runs = Runs { spec, seed, answers: &answers, is_awaited };
    let steps = runs.longest_common(fold.history().steps(), steps_max)?;
    let runs = runs.of_length(steps)?;
    let logged = shown_until(fold, steps);
    let showings: Vec<&[u64]> = runs.iter().map(|run| &*run.shown).chain([&*logged]).collect();
    let rng = &mut step_rng(seed ^ STREAM, fold.position());
    let posterior = Posterior::among(fold.policy().tally(), fold.roster());
    let draws = Posterior::draws(spec.rankers.len());
    // for each run, and at last for the log: the regret by each drawn matrix of preferences
    let drawn = posterior.regret_draws(&showings, draws, rng);
    let (of_runs, of_log) = drawn.split_at(runs.len());
    let of_log = &of_log[0];
    let differences: Vec<f64> =
        of_runs.iter().flat_map(|run| run.iter().zip(of_log).map(|(run, log)| run - log)).collect();
    let cheaper = differences.iter().filter(|&&difference| difference < 0.0).count();
    let uniform = posterior.regret(&[], draws, rng);
    Ok(OtherRegret {
        method: "queue-based",
        steps,
        runs: RUNS,
        replayed: Band::of(Estimate::of(of_runs.concat()), 1.0),
        deviation: deviation_of_means(of_runs),
        cheaper: cheaper as f64 / differences.len().max(1) as f64,
        difference: Band::of(Estimate::of(differences), 1.0),
        answers: answers_used(spec, &answers, &runs),
        logged: Band::of(Estimate::of(of_log.clone()), 1.0),
        uniform: uniform.uniform_step.mean * steps as f64,
    })
}

/// Runs of a policy that get their answers from a log.
struct Runs<'a> {
    spec: &'a ExperimentSpec,
    seed: u64,
    answers: &'a Answers,
    is_awaited: IsAwaited<'a>,
}

impl Runs<'_> {
    /// The run with this number, of at most so many steps.
    fn run(&self, number: u64, steps: u64) -> Result<OffPolicyRun, String> {
        if !(self.is_awaited)() {
            return Err("the caller has gone".to_owned());
        }
        let spec = self.spec;
        let seed = self.seed ^ STREAM ^ (number + 1);
        let policy = spec.policy.start(Setup { rankers: spec.rankers.len(), seed });
        let mut run = Run::new(policy, spec.verdict_target(), 0);
        // a policy that cannot hold it out was refused
        let _ = spec.held_out().map(|ranker| run.hold_out(ranker));
        let answers = self.answers.resampled(&mut step_rng(seed, 1));
        let rng = &mut step_rng(seed, 0);
        Ok(off_policy::run(&mut run, answers, spec.ties, seed, steps, rng))
    }

    /// The number of steps that every run can make, of those of the log but at most `steps_max`.
    fn longest_common(&self, of_log: u64, steps_max: Option<u64>) -> Result<u64, String> {
        let rankers = self.spec.rankers.len();
        let asked = of_log.min(steps_max.unwrap_or(u64::MAX));
        let enough = STEPS_MIN.max(STEPS_MIN_PER_RANKER * rankers as u64);
        if asked < enough {
            return Err(match steps_max {
                Some(most) if most < enough => format!(
                    "with {rankers} rankers a request can replay {most} steps, and fewer than {enough} are not enough; \
                     `rankduel replay` has no limit"
                ),
                _ => format!(
                    "the experiment has made {asked} steps, and fewer than {enough} are not enough"
                ),
            });
        }
        let mut shortest = asked;
        let mut used_up = None;
        for number in 0..RUNS {
            let run = self.run(number, shortest)?;
            if run.steps < shortest {
                (shortest, used_up) = (run.steps, run.used_up);
            }
            if shortest < enough {
                let id = |ranker: usize| &self.spec.rankers[ranker].id;
                let pair = used_up.map_or(String::new(), |duel| {
                    format!(" `{}` and `{}`", id(duel.first), id(duel.second))
                });
                return Err(format!(
                    "after {shortest} steps the policy requests a pair{pair} whose answers in the log are used up, and fewer than \
                     {enough} steps are not enough: the log was made by a policy that requested other pairs"
                ));
            }
        }
        Ok(shortest)
    }

    /// All runs, each of so many steps: longer ones would weigh more.
    fn of_length(&self, steps: u64) -> Result<Vec<OffPolicyRun>, String> {
        (0..RUNS).map(|number| self.run(number, steps)).collect()
    }
}

/// The standard deviation between the means of runs.
fn deviation_of_means(runs: &[Vec<f64>]) -> f64 {
    let means: Vec<f64> =
        runs.iter().map(|draws| draws.iter().sum::<f64>() / draws.len() as f64).collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares = means.iter().map(|run| (run - mean) * (run - mean)).sum::<f64>();
    (squares / (means.len() - 1) as f64).sqrt()
}

/// The pairs of which the runs used the largest share of answers.
fn answers_used(
    spec: &ExperimentSpec,
    answers: &Answers,
    runs: &[OffPolicyRun],
) -> Vec<PairAnswers> {
    let rankers = answers.rankers();
    let pairs = (1..rankers).flat_map(|high| (0..high).map(move |low| (low, high)));
    let mut used: Vec<PairAnswers> = pairs
        .map(|(low, high)| {
            let unused: u64 = runs.iter().map(|run| run.unused.of(low, high)).sum();
            let available = answers.of(low, high);
            PairAnswers {
                ranker: spec.rankers[low].id.clone(),
                against: spec.rankers[high].id.clone(),
                available,
                used: available as f64 - unused as f64 / runs.len().max(1) as f64,
            }
        })
        .filter(|pair| pair.used > 0.0)
        .collect();
    let share = |pair: &PairAnswers| pair.used / pair.available.max(1) as f64;
    used.sort_by(|one, other| share(other).total_cmp(&share(one)));
    used.truncate(PAIRS_MAX);
    used
}

/// Appearances of each ranker in the first `steps` steps of the log, interpolated between two
/// checkpoints.
fn shown_until(fold: &Fold, steps: u64) -> Vec<u64> {
    let history = fold.history();
    let checkpoints = history.checkpoints();
    let after = checkpoints.partition_point(|checkpoint| checkpoint.steps < steps);
    let nothing = vec![0; fold.counts().appearances().len()];
    let (from, shown_from) = match after.checked_sub(1).map(|before| &checkpoints[before]) {
        Some(before) => (before.steps, &before.shown),
        None => (0, &nothing),
    };
    let (to, shown_to) = match checkpoints.get(after) {
        Some(checkpoint) => (checkpoint.steps, &*checkpoint.shown),
        None => (history.steps(), fold.counts().appearances()),
    };
    let share = if to > from { (steps - from) as f64 / (to - from) as f64 } else { 0.0 };
    shown_from
        .iter()
        .zip(shown_to)
        .map(|(from, to)| from + ((to - from) as f64 * share).round() as u64)
        .collect()
}
