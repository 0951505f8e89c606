//! Cost of exploration: regret so far and over time, each with its range.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::fold_copy::FoldCopy;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use crate::service::reports::standings::copeland_scores;
use dueling_bandits::evidence::history::Checkpoint;
use dueling_bandits::evidence::posterior::{RegretDraws, window};
use dueling_bandits::evidence::regret_bounds::{RegretBounds, regret_bounds};
use dueling_bandits::evidence::{Counted, Estimate, History, Posterior, Sequences};
use dueling_bandits::preference::Regret;
use dueling_bandits::step_rng;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// Least number of newest steps that recent regret is estimated from, if there are that many.
const RECENT_STEPS: u64 = 1000;
/// Separates these random draws from other uses of the seed of an experiment.
const REGRET_STREAM: u64 = 0x7265_6772_6574;

/// Cost of exploration. All numbers are estimates: the true preferences of a live experiment are
/// unknown.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretReport {
    #[serde(flatten)]
    pub now: RegretEstimate,
    pub plug_in: PlugInRegret,
    pub condorcet: CondorcetRegret,
    /// Computed with the current estimates. At most 129 points; the last one is now.
    pub series: Vec<RegretPoint>,
}

/// Copeland regret so far: the sum over all steps of the best score minus the mean score of the two
/// rankers shown. A step costs between 0 (both are best rankers) and 1. The API, the pages and the
/// metrics have these numbers.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretEstimate {
    pub experiment: String,
    pub position: u64,
    /// Answered duels, and pages that the policy or the end of the experiment gave to one ranker.
    pub steps: u64,
    /// Number of draws from the posterior of `docs/regret.md`.
    pub draws: usize,
    /// Share of the draws in the ranges.
    #[schema(example = 0.95)]
    pub level: f64,
    pub copeland_regret: Band,
    /// Of uniform pairs over the same number of steps.
    pub uniform_copeland_regret: Band,
    /// Share of the regret of uniform pairs that the experiment has saved; negative if it had more.
    /// `null` if uniform pairs have no regret.
    pub saved_share: Option<Band>,
    /// Without a model of the preferences; `null` once a ranker was retired.
    pub bounds: Option<BoundsReport>,
    /// `null` before the first step.
    pub recent: Option<RecentRegret>,
}

/// Copeland regret at the win rates of the counts. It needs no model, and is too low early on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct PlugInRegret {
    pub copeland_regret: f64,
    pub uniform_copeland_regret: f64,
}

/// Least and largest Copeland regret over all ways in which the pairs that are not settled can turn
/// out, from the answers that count for the verdict. Assumes only that the preferences stay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct BoundsReport {
    /// Probability with which they hold, at all times at once. With added rankers, and pairs that
    /// are exactly even, the error is up to twice as large.
    #[schema(example = 0.95)]
    pub confidence: f64,
    pub low: f64,
    pub high: f64,
    /// Pairs whose interval still contains 1/2.
    pub unsettled_pairs: usize,
}

/// A posterior mean with the range of 95 % of the draws. The range also holds the draws in which
/// pairs that may be exactly even count for neither ranker. Where many pairs are nearly even, the
/// truth is outside in more than 5 % of experiments: docs/regret.md has what was measured, and
/// `bounds` assume less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct Band {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Band {
    pub(crate) fn of(estimate: Estimate, factor: f64) -> Self {
        Self {
            mean: estimate.mean * factor,
            low: estimate.low * factor,
            high: estimate.high * factor,
        }
    }
}

/// Cumulative Condorcet regret: the sum over all steps of the mean, over both rankers shown, of the
/// probability above 1/2 with which the Condorcet winner beats them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CondorcetRegret {
    /// The ranker that beats all others in the current counts; `null` if none does.
    pub winner: Option<String>,
    /// Plug-in estimate; `null` without a winner.
    pub regret: Option<f64>,
    /// The same of uniform pairs over the same number of steps.
    pub uniform_regret: Option<f64>,
    /// Posterior probability that there is a Condorcet winner.
    pub probability: f64,
    /// `null` if a winner is too improbable for an estimate.
    pub posterior: Option<CondorcetPosterior>,
    /// Why a value is `null`.
    pub reason: Option<String>,
}

/// Condorcet regret under the posterior, given that there is a Condorcet winner.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct CondorcetPosterior {
    pub regret: Band,
    /// Regret of uniform pairs over the same number of steps.
    pub uniform_regret: Band,
}

/// Copeland regret of the newest steps, per 1000 steps.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RecentRegret {
    /// Number of newest steps that it was estimated from.
    pub steps: u64,
    #[serde(flatten)]
    pub copeland_regret: Band,
    /// Posterior mean of the regret of uniform pairs.
    pub uniform: f64,
}

/// Cumulative Copeland regret up to one point in time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretPoint {
    pub position: u64,
    pub steps: u64,
    #[schema(format = DateTime)]
    pub at: String,
    /// Posterior mean.
    pub mean: f64,
    /// Of the range of 95 % of the draws.
    pub low: f64,
    pub high: f64,
    /// Posterior mean of the regret of uniform pairs.
    pub uniform_mean: f64,
}

/// The newest estimate of an experiment, for the metrics. It stays as long as the experiment is in
/// memory.
#[derive(Default)]
struct Kept(Mutex<Option<(Instant, Arc<RegretEstimate>)>>);

/// Estimate the regret at the current log position, and keep it for [`known_estimate`].
pub(crate) async fn keep_estimate(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    let compute = |loaded: &LoadedExperiment, read: Read| {
        let (estimate, _) = estimate(loaded, &read, &read.moments(), 0);
        let kept = loaded.extensions().get::<Kept>();
        let now = (Instant::now(), Arc::new(estimate));
        *kept.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    };
    newest(reports, loaded, (), Read::of, compute).await.map(drop)
}

/// The newest estimate that was kept, and when it was computed.
pub(crate) fn known_estimate(loaded: &LoadedExperiment) -> Option<(Instant, Arc<RegretEstimate>)> {
    let kept = loaded.extensions().get::<Kept>();
    kept.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The cost of exploration at the current log position or later.
pub async fn regret(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<RegretReport>>, ServiceError> {
    let compute = |loaded: &LoadedExperiment, read: Read| report(loaded, &read);
    newest(reports, loaded, (), Read::of, compute).await
}

/// The part of a fold that regret is computed from.
struct Read {
    copy: FoldCopy,
    /// The answers that count for the verdict, if these are not all.
    counted: Option<Counted>,
    history: History,
    /// Unix milliseconds of the last log entry.
    last_at: i64,
}

impl Read {
    fn of(fold: &Fold) -> Self {
        Self {
            copy: FoldCopy::of(fold),
            counted: Some(fold.run().verdict().counted().clone()).filter(Counted::leaves_out),
            history: fold.state().history.clone(),
            last_at: fold.state().recorded_at,
        }
    }

    /// The checkpoints of the history, and now as the last one.
    fn moments(&self) -> Vec<Checkpoint> {
        let mut moments = self.history.checkpoints();
        if self.history.steps() > moments.last().map_or(0, |newest| newest.steps) {
            moments.push(Checkpoint {
                position: self.copy.position,
                steps: self.history.steps(),
                recorded_at: self.last_at,
                shown: self.copy.counts.appearances().to_vec(),
            });
        }
        moments
    }
}

/// The regret until now, and the draws, which have that of the first `priced` moments, too. The
/// draws do not depend on `priced`.
fn estimate(
    loaded: &LoadedExperiment,
    read: &Read,
    moments: &[Checkpoint],
    priced: usize,
) -> (RegretEstimate, RegretDraws) {
    let FoldCopy { tally, roster, counts, .. } = &read.copy;
    let (seed, shown) = (loaded.with_record(|record| record.seed), counts.appearances());
    let steps = read.history.steps();
    let recent = Recent::of(moments, steps, shown);
    // the last one is all steps until now, for which savings and Condorcet regret are computed
    let series = moments[..priced].iter().map(|moment| &*moment.shown);
    let series: Vec<&[u64]> = series.chain([&*recent.shown, shown]).collect();
    let draws = Posterior::draws(tally.rankers());
    // the same stream at every position: otherwise the estimate would change without new answers
    let rng = &mut step_rng(seed ^ REGRET_STREAM, 0);
    let drawn = Posterior::among(tally, roster).regret(&series, draws, rng);
    let now = RegretEstimate {
        experiment: loaded.name.clone(),
        position: read.copy.position,
        steps,
        draws,
        level: 0.95,
        copeland_regret: Band::of(drawn.copeland[priced + 1], 1.0),
        uniform_copeland_regret: Band::of(drawn.uniform_step, steps as f64),
        saved_share: drawn.saved.map(|saved| Band::of(saved, 1.0)),
        bounds: bounds_report(loaded, read),
        recent: (steps > 0).then(|| recent.report(drawn.copeland[priced], drawn.uniform_step.mean)),
    };
    (now, drawn)
}

fn report(loaded: &LoadedExperiment, read: &Read) -> RegretReport {
    let moments = read.moments();
    let (now, drawn) = estimate(loaded, read, &moments, moments.len());
    let steps = now.steps;
    let FoldCopy { tally, roster, counts, .. } = &read.copy;
    let scores =
        Regret::from_copeland_scores_among(&copeland_scores(tally, roster), roster.active());
    let point = |(moment, estimate): (&Checkpoint, &Estimate)| RegretPoint {
        position: moment.position,
        steps: moment.steps,
        at: rfc3339(moment.recorded_at),
        mean: estimate.mean,
        low: estimate.low,
        high: estimate.high,
        uniform_mean: drawn.uniform_step.mean * moment.steps as f64,
    };
    let posterior = drawn.condorcet.map(|(regret, uniform)| CondorcetPosterior {
        regret: Band::of(regret, 1.0),
        uniform_regret: Band::of(uniform, steps as f64),
    });
    let id = |ranker: usize| loaded.spec.rankers[ranker].id.clone();
    RegretReport {
        now,
        plug_in: PlugInRegret {
            copeland_regret: scores.of_appearances(counts.appearances()),
            uniform_copeland_regret: scores.of_uniform_pairs(steps),
        },
        condorcet: condorcet(&read.copy, steps, drawn.condorcet_probability, posterior, id),
        series: moments.iter().zip(&drawn.copeland).map(point).collect(),
    }
}

/// The newest steps.
struct Recent {
    steps: u64,
    /// Appearances of each ranker in them.
    shown: Vec<u64>,
}

impl Recent {
    /// `shown` are the appearances in all steps.
    fn of(moments: &[Checkpoint], steps: u64, shown: &[u64]) -> Self {
        let Some(before) = window(moments, steps, RECENT_STEPS) else {
            return Self { steps, shown: shown.to_vec() };
        };
        let appearances = shown.iter().zip(&before.shown).map(|(all, before)| all - before);
        Self { steps: steps - before.steps, shown: appearances.collect() }
    }

    /// `drawn` is the posterior regret of these steps, `uniform` that of one step of uniform pairs.
    fn report(&self, drawn: Estimate, uniform: f64) -> RecentRegret {
        let thousand = 1000.0 / self.steps as f64;
        RecentRegret {
            steps: self.steps,
            copeland_regret: Band::of(drawn, thousand),
            uniform: uniform * 1000.0,
        }
    }
}

fn bounds_report(loaded: &LoadedExperiment, read: &Read) -> Option<BoundsReport> {
    let copy = &read.copy;
    // repeated answers of one unit are no evidence
    let counted = read.counted.as_ref().map(|counted| counted.of(&copy.tally));
    let (tally, rankers) = (counted.as_ref().unwrap_or(&copy.tally), copy.tally.rankers());
    if copy.roster.active().len() < rankers {
        return None;
    }
    let confidence = loaded.spec.verdict_target().confidence;
    let sequences = Sequences::new(loaded.initial_rankers, rankers, confidence);
    let RegretBounds { low, high, unsettled } =
        regret_bounds(tally, &sequences, copy.counts.appearances());
    Some(BoundsReport { confidence, low, high, unsettled_pairs: unsettled })
}

/// `probability` is that of a Condorcet winner.
fn condorcet(
    copy: &FoldCopy,
    steps: u64,
    probability: f64,
    posterior: Option<CondorcetPosterior>,
    id: impl Fn(usize) -> String,
) -> CondorcetRegret {
    let (tally, active) = (&copy.tally, copy.roster.active());
    let winner =
        active.iter().copied().find(|&i| active.iter().all(|&j| j == i || tally.leads(i, j)));
    let priced = winner.map(|winner| {
        // a retired ranker that the winner does not beat has no regret
        let loss = |i| {
            if i == winner { 0.0 } else { (tally.mean(winner, i).unwrap_or(0.5) - 0.5).max(0.0) }
        };
        Regret::from_losses((0..tally.rankers()).map(loss).collect()).with_uniform_pairs_of(active)
    });
    let reason = match (winner, &posterior) {
        (None, Some(_)) => Some("no ranker beats all others in the current counts".into()),
        (_, None) => Some(format!(
            "the probability that a ranker beats all others is {probability:.3}: too small to estimate its regret"
        )),
        _ => None,
    };
    CondorcetRegret {
        winner: winner.map(id),
        regret: priced.as_ref().map(|priced| priced.of_appearances(copy.counts.appearances())),
        uniform_regret: priced.as_ref().map(|priced| priced.of_uniform_pairs(steps)),
        probability,
        posterior,
        reason,
    }
}
