//! Calibration of the estimates of [`dueling_bandits::evidence`]: simulated experiments with known
//! preferences compare the estimates of the service with the truth.

use rand::SeedableRng;
use rayon::prelude::*;
use serde::Serialize;
use special::Beta as _;

use super::drift::Drift;
use super::environment::{Environment, RunSeeds, fingerprint};
use super::feedback::Feedback;
use super::information_bound::information_bound;
use super::progress::Progress;
use super::tournament::Entrant;
use dueling_bandits::evidence::{
    Estimate, Forecast, Posterior, Present, Target, VerdictTracker, forecast,
};
use dueling_bandits::parameters::Setup;
use dueling_bandits::preference::{PreferenceMatrix, Regret};
use dueling_bandits::{InFlight, Observation, Policy, PolicyRng, Roster, Tally, TieRule};

/// Tolerance for rounding where the truth is exactly at a bound.
const ROUNDING: f64 = 1e-9;

/// With more rankers there is no information bound: the linear program takes too long.
const MOST_BOUNDED: usize = 32;

/// Simulated experiments of one policy on one matrix.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The matrix, as the user named it.
    pub name: String,
    /// The true preferences, at the beginning if they drift.
    pub matrix: PreferenceMatrix,
    /// How the preferences change. The looks assume that they do not.
    pub drift: Option<Drift>,
    /// The policy.
    pub entrant: Entrant,
    /// Number of steps of each experiment.
    pub horizon: u64,
    /// The steps at which estimates are compared with the truth, ascending, at most the horizon.
    pub looks: Vec<u64>,
    /// Number of experiments.
    pub runs: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// What the verdict must achieve.
    pub target: Target,
    /// Most simulated steps of one forecast, over all its draws; 0 for no forecasts.
    pub forecast_steps: u64,
    /// Ties and lost clicks. Delay is ignored.
    pub feedback: Feedback,
}

/// The result of the experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The matrix, as the user named it.
    pub matrix: String,
    /// The policy, as the user wrote it.
    pub policy: String,
    /// Number of rankers.
    pub rankers: usize,
    /// Number of experiments, as done.
    pub runs: u64,
    /// Number of steps of each.
    pub horizon: u64,
    /// The estimates of regret, at each look.
    pub regret: Vec<RegretCalibration>,
    /// True Copeland regret of the whole experiments.
    pub total_regret: TotalRegret,
    /// The verdicts.
    pub verdict: VerdictCalibration,
}

/// Estimates of cumulative regret after `step` steps, over all experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegretCalibration {
    /// Number of steps.
    pub step: u64,
    /// Mean of the true Copeland regret.
    pub truth: f64,
    /// Mean of its plug-in estimate.
    pub plug_in: f64,
    /// Mean of its posterior mean.
    pub posterior: f64,
    /// Mean length of its 95 % credible interval.
    pub length: f64,
    /// Share of experiments whose interval includes the truth.
    pub coverage: f64,
    /// Share of experiments whose interval is below the truth, so that the cost is understated.
    pub below: f64,
    /// Condorcet regret, if the matrix has a Condorcet winner and there are estimates: mean truth,
    /// mean estimate, coverage, and share of experiments with an estimate.
    pub condorcet: Option<[f64; 4]>,
}

/// Verdicts over all experiments, each at the first step at which it was certain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictCalibration {
    /// The requested confidence.
    pub confidence: f64,
    /// The requested margin.
    pub margin: f64,
    /// Number of experiments with a verdict.
    pub decided: u64,
    /// Number of verdicts for a ranker that is not a Copeland winner at that step.
    pub wrong: u64,
    /// Number of verdicts for a ranker that was no Copeland winner at any step so far. Differs from
    /// `wrong` only if the preferences drift.
    pub never_right: u64,
    /// Upper end of the exact 95 % interval (Clopper and Pearson) of the share of wrong verdicts
    /// among all experiments.
    pub wrong_share_at_most: f64,
    /// Median number of steps to the verdict. An experiment without a verdict counts as longer than
    /// all others; `None` if the median has none.
    pub median_steps: Option<u64>,
    /// 90 % quantile of the same.
    pub p90_steps: Option<u64>,
    /// Mean true Copeland regret up to the verdict, over the experiments with a verdict.
    pub regret_at_verdict: Option<f64>,
    /// Least mean number of duels to a verdict of any policy and rule, self-duels not included;
    /// `None` if no number is enough, or with more than 32 rankers.
    pub information_bound: Option<f64>,
    /// Median over the looks before a verdict of (remaining steps to the verdict) / (forecast
    /// number of steps), and the number of these looks.
    pub forecast_ratio: Option<(f64, usize)>,
    /// Share of these looks whose true number of steps was within the range of the forecast.
    pub forecast_within: Option<f64>,
}

/// True Copeland regret at the horizon, over all experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TotalRegret {
    /// Mean.
    pub mean: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// 90 % quantile.
    pub p90: f64,
    /// 99 % quantile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// The estimates of one experiment at one step.
#[derive(Debug, Clone)]
struct Look {
    truth: f64,
    plug_in: f64,
    estimate: Estimate,
    condorcet: Option<(f64, Estimate)>,
    /// Number of steps so far, and the low end, estimate and high end of the forecast.
    forecast: Option<(u64, f64, f64, f64)>,
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
        let fingerprint = fingerprint(&self.matrix);
        let experiments: Vec<Experiment> = (0..self.runs)
            .into_par_iter()
            .filter_map(|number| {
                self.experiment(RunSeeds::new(self.seed, &fingerprint, number), progress)
            })
            .collect();
        (!experiments.is_empty()).then(|| self.report(&experiments))
    }

    fn experiment(&self, seeds: RunSeeds, progress: &Progress) -> Option<Experiment> {
        let rankers = self.matrix.rankers();
        let mut policy = self.entrant.spec.start(Setup { rankers, seed: seeds.folding });
        let mut environment = Environment::new(&self.matrix, &self.feedback, true, seeds);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        // Estimates have their own generator, so that looks do not change the experiment.
        let mut estimating = PolicyRng::seed_from_u64(seeds.selecting ^ seeds.folding);
        let in_flight = InFlight::new();
        let ties: TieRule = self.feedback.tie_rule;

        let mut truth = Truth::new(&self.matrix);
        let mut right = self.right(&self.matrix);
        let mut was_right = right.clone();
        let roster = Roster::new(rankers);
        let mut shown = vec![0; rankers];
        let mut tracker = VerdictTracker::new(self.target, rankers);
        let mut experiment = Experiment { looks: Vec::new(), verdict: None, regret: 0.0 };
        let mut looks = self.looks.iter().copied().peekable();
        let mut reported = 0;
        for step in 1..=self.horizon {
            if let Some(matrix) = self.drifted(step) {
                truth = Truth::new(&matrix);
                right = self.right(&matrix);
                was_right.iter_mut().zip(&right).for_each(|(was, is)| *was |= is);
                environment.change(matrix);
            }
            if step - reported == 256 {
                progress.advance(256);
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
            experiment.regret += truth.copeland.of_step(name(duel.first), name(duel.second));
            if duel.is_self() {
                policy.observe_self_duels(duel.first, 1);
            } else {
                if let Some(answer) = environment.answer(duel) {
                    let outcome = ties.resolve(answer, seeds.folding, policy.tally().steps());
                    let (batch, ticket) = (selection.batch, selection.ticket);
                    policy.observe(&Observation { duel, outcome, batch, ticket });
                }
                tracker.observe(policy.tally(), roster.active(), 1);
                if experiment.verdict.is_none()
                    && let Some(verdict) = tracker.verdict()
                {
                    let any_not = |right: &[bool]| {
                        let mut winners = verdict.winners.iter();
                        winners.any(|&winner| !right[environment.name(winner.into())])
                    };
                    experiment.verdict = Some(Decision {
                        step,
                        is_wrong: any_not(&right),
                        was_never_right: any_not(&was_right),
                        regret: experiment.regret,
                    });
                }
            }
            if looks.next_if_eq(&step).is_some() {
                let name = |i: usize| environment.name(i);
                let forecast = (experiment.verdict.is_none() && self.forecast_steps > 0)
                    .then(|| self.forecast(&*policy, &tracker, &roster, seeds, &mut estimating))
                    .flatten()
                    .map(|f| (step, f.low, f.estimate, f.high.unwrap_or(f64::INFINITY)));
                let look = truth.look(policy.tally(), &shown, name, &mut estimating);
                experiment.looks.push(Look { forecast, ..look });
            }
        }
        progress.advance(self.horizon - reported);
        Some(experiment)
    }

    fn forecast(
        &self,
        policy: &dyn Policy,
        tracker: &VerdictTracker,
        roster: &Roster,
        seeds: RunSeeds,
        rng: &mut PolicyRng,
    ) -> Option<Forecast> {
        let (format, state) = (policy.format(), policy.save());
        let setup = Setup { rankers: self.matrix.rankers(), seed: seeds.folding };
        let copy = || self.entrant.spec.restore(setup, format, &state);
        let present = Present { tally: policy.tally(), roster, tracker };
        forecast(present, copy, self.forecast_steps, rng).ok()
    }

    /// The preferences at `step`, if they differ from those of the step before.
    fn drifted(&self, step: u64) -> Option<PreferenceMatrix> {
        self.drift.as_ref()?.changed(&self.matrix, step)
    }

    /// Of each ranker, whether a verdict for it would be right.
    fn right(&self, matrix: &PreferenceMatrix) -> Vec<bool> {
        (0..matrix.rankers()).map(|ranker| !is_wrong(matrix, self.target, ranker)).collect()
    }

    fn report(&self, experiments: &[Experiment]) -> Calibration {
        let runs = experiments.len() as u64;
        let looks = self.looks.iter().enumerate().map(|(at, &step)| {
            let looks: Vec<&Look> =
                experiments.iter().map(|experiment| &experiment.looks[at]).collect();
            RegretCalibration::of(step, &looks)
        });
        let decided: Vec<Decision> =
            experiments.iter().filter_map(|experiment| experiment.verdict).collect();
        let count = |of: fn(&Decision) -> bool| decided.iter().filter(|one| of(one)).count() as u64;
        let wrong = count(|decision| decision.is_wrong);
        let mut steps: Vec<u64> = decided.iter().map(|decision| decision.step).collect();
        steps.sort_unstable();
        // experiments without a verdict come last
        let steps_at = |share: f64| steps.get((share * (runs - 1) as f64).round() as usize);
        // Pairs (truth / forecast, whether the truth is within the range).
        let mut forecasts: Vec<(f64, bool)> = experiments
            .iter()
            .filter_map(|experiment| Some((experiment.verdict?.step, &experiment.looks)))
            .flat_map(|(end, looks)| {
                looks.iter().filter_map(move |look| {
                    let (step, low, estimate, high) = look.forecast?;
                    let took = end.checked_sub(step)? as f64;
                    Some((took / estimate, (low..=high).contains(&took)))
                })
            })
            .collect();
        forecasts.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let error = 1.0 - self.target.confidence;
        let within = forecasts.iter().filter(|(_, within)| *within).count();
        Calibration {
            matrix: self.name.clone(),
            policy: self.entrant.text.clone(),
            rankers: self.matrix.rankers(),
            runs,
            horizon: self.horizon,
            regret: looks.collect(),
            total_regret: TotalRegret::of(experiments.iter().map(|one| one.regret).collect()),
            verdict: VerdictCalibration {
                confidence: self.target.confidence,
                margin: self.target.margin,
                decided: decided.len() as u64,
                wrong,
                never_right: count(|decision| decision.was_never_right),
                wrong_share_at_most: share_at_most(wrong, runs),
                median_steps: steps_at(0.5).copied(),
                p90_steps: steps_at(0.9).copied(),
                regret_at_verdict: (!decided.is_empty()).then(|| {
                    decided.iter().map(|decision| decision.regret).sum::<f64>()
                        / decided.len() as f64
                }),
                information_bound: (self.matrix.rankers() <= MOST_BOUNDED)
                    .then(|| information_bound(&self.matrix, error, self.target.margin))
                    .flatten(),
                forecast_ratio: (!forecasts.is_empty())
                    .then(|| (forecasts[forecasts.len() / 2].0, forecasts.len())),
                forecast_within: (!forecasts.is_empty())
                    .then(|| within as f64 / forecasts.len() as f64),
            },
        }
    }
}

impl TotalRegret {
    fn of(mut regret: Vec<f64>) -> Self {
        regret.sort_unstable_by(f64::total_cmp);
        let runs = regret.len() as f64;
        let mean = regret.iter().sum::<f64>() / runs;
        let squares: f64 = regret.iter().map(|value| (value - mean).powi(2)).sum();
        let at = |share: f64| regret[(share * (runs - 1.0)).round() as usize];
        Self {
            mean,
            standard_error: (squares / (runs * (runs - 1.0).max(1.0))).sqrt(),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

impl RegretCalibration {
    fn of(step: u64, looks: &[&Look]) -> Self {
        let mean = |of: &dyn Fn(&Look) -> f64| {
            looks.iter().map(|look| of(look)).sum::<f64>() / looks.len() as f64
        };
        let condorcet: Vec<_> = looks.iter().filter_map(|look| look.condorcet).collect();
        let of_those = |of: &dyn Fn(f64, Estimate) -> f64| {
            condorcet.iter().map(|&(truth, estimate)| of(truth, estimate)).sum::<f64>()
                / condorcet.len() as f64
        };
        Self {
            step,
            truth: mean(&|look| look.truth),
            plug_in: mean(&|look| look.plug_in),
            posterior: mean(&|look| look.estimate.mean),
            length: mean(&|look| look.estimate.high - look.estimate.low),
            coverage: mean(&|look| f64::from(holds(look.estimate, look.truth))),
            below: mean(&|look| f64::from(look.estimate.high + ROUNDING < look.truth)),
            condorcet: (!condorcet.is_empty()).then(|| {
                [
                    of_those(&|truth, _| truth),
                    of_those(&|_, estimate| estimate.mean),
                    of_those(&|truth, estimate| f64::from(holds(estimate, truth))),
                    condorcet.len() as f64 / looks.len() as f64,
                ]
            }),
        }
    }
}

/// Whether a verdict for `ranker` is wrong: some other ranker beats more rankers by more than the
/// margin than `ranker` can beat if all pairs within the margin go its way.
pub(super) fn is_wrong(matrix: &PreferenceMatrix, target: Target, ranker: usize) -> bool {
    let (rankers, margin) = (matrix.rankers(), target.margin);
    let p = |i: usize, j: usize| matrix.win_probability(i, j);
    let others = |i: usize| (0..rankers).filter(move |&j| j != i);
    let most = others(ranker).filter(|&j| p(ranker, j) > 0.5 - margin).count();
    let surely_beaten =
        |j: usize| others(j).filter(|&x| p(j, x) > 0.5 && p(j, x) >= 0.5 + margin).count();
    (0..rankers).any(|j| surely_beaten(j) > most)
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    let rounding = ROUNDING * (1.0 + truth);
    (estimate.low - rounding..=estimate.high + rounding).contains(&truth)
}

/// The true values that an experiment estimates.
struct Truth {
    copeland: Regret,
    condorcet: Option<Regret>,
}

impl Truth {
    fn new(matrix: &PreferenceMatrix) -> Self {
        Self { copeland: Regret::copeland(matrix), condorcet: Regret::condorcet(matrix).ok() }
    }

    /// The estimates and the truth. `name` maps a ranker to its index in the matrix.
    fn look(
        &self,
        tally: &Tally,
        shown: &[u64],
        name: impl Fn(usize) -> usize,
        rng: &mut PolicyRng,
    ) -> Look {
        let mut by_name = vec![0; shown.len()];
        shown.iter().enumerate().for_each(|(i, &count)| by_name[name(i)] = count);
        let drawn = Posterior::new(tally).regret(&[shown], Posterior::draws(tally.rankers()), rng);
        let scores: Vec<usize> = (0..tally.rankers()).map(|i| tally.copeland_score(i)).collect();
        Look {
            truth: self.copeland.of_appearances(&by_name),
            plug_in: Regret::from_copeland_scores(&scores).of_appearances(shown),
            estimate: drawn.copeland[0],
            condorcet: match (&self.condorcet, drawn.condorcet) {
                (Some(regret), Some((estimate, _))) => {
                    Some((regret.of_appearances(&by_name), estimate))
                }
                _ => None,
            },
            forecast: None,
        }
    }
}

/// Upper end of the exact two-sided 95 % interval of a share, for `hits` of `all`.
pub(super) fn share_at_most(hits: u64, all: u64) -> f64 {
    if hits >= all {
        return 1.0;
    }
    let (a, b) = (hits as f64 + 1.0, (all - hits) as f64);
    0.975_f64.inv_inc_beta(a, b, a.ln_beta(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dueling_bandits::PolicySpec;

    #[test]
    fn the_exact_upper_bound_is_the_published_one() {
        // No event in n: 1 - 0.025^(1/n).
        assert!((share_at_most(0, 100) - (1.0 - 0.025_f64.powf(0.01))).abs() < 1e-9);
        // Clopper and Pearson: 10 of 100.
        assert!((share_at_most(10, 100) - 0.1762).abs() < 1e-4);
        assert_eq!(share_at_most(7, 7), 1.0);
    }

    #[test]
    fn an_easy_matrix_gets_the_right_verdict_and_regret_estimates() {
        let matrix = PreferenceMatrix::from_pairs(3, |_, _| 0.9).unwrap();
        let trial = Trial {
            name: "easy".into(),
            matrix,
            drift: None,
            entrant: Entrant {
                text: "uniform".into(),
                spec: PolicySpec::from_text("uniform").unwrap(),
            },
            horizon: 600,
            looks: vec![100, 600],
            runs: 60,
            seed: 3,
            target: Target { confidence: 0.95, margin: 0.0 },
            forecast_steps: 100_000,
            feedback: Feedback::default(),
        };
        let progress = Progress::new();
        let found = trial.run(&progress).unwrap();
        assert_eq!(progress.steps(), trial.total_steps());
        assert_eq!((found.runs, found.verdict.decided, found.verdict.wrong), (60, 60, 0));
        // Scores 2, 1, 0 of 2: showing a ranker costs 0, 1/2, 1, so a uniform step costs 1/2.
        let end = &found.regret[1];
        assert!((end.truth - 300.0).abs() < 10.0, "{}", end.truth);
        assert!((end.plug_in - end.truth).abs() < 1e-6, "all pairs are ordered correctly by then");
        assert!(end.coverage > 0.9, "{}", end.coverage);
        assert!((end.condorcet.unwrap()[0] - 600.0 * 0.8 / 3.0).abs() < 10.0);
    }
}
