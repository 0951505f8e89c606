//! Replaying a log under another policy: its state, the duels it would select next, and the regret
//! it would have had.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::engine::experiment_spec::ExperimentSpec;
use crate::engine::fold::Fold;
use crate::engine::loaded::LoadedExperiment;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::regret::Band;
use crate::service::reports::standings::copeland_scores;
use crate::store::{ExperimentLog, ExperimentRecord, LogEntry};
use dueling_bandits::evidence::off_policy::{self, Answers, OffPolicyRun};
use dueling_bandits::evidence::{Estimate, Posterior};
use dueling_bandits::parameters::Setup;
use dueling_bandits::{InFlight, PolicySpec, step_rng};

/// Entries of one chunk.
const CHUNK: u32 = 20_000;
/// Longest log that a request can replay.
const ENTRIES_MAX: u64 = 200_000;
/// Limit of the work of a request: steps of all runs together, for a policy whose step takes at
/// most K² operations.
const REQUEST_WORK: u64 = 200_000_000;
/// Selections from which the shares of the next duels are estimated.
const SELECTIONS: u32 = 200;
/// Most next duels in a report.
const NEXT_MAX: usize = 10;
/// Runs of the policy.
const RUNS: u64 = 20;
/// Fewest steps from which regret is estimated, in total and for each ranker.
const STEPS_MIN: u64 = 100;
const STEPS_MIN_PER_RANKER: u64 = 10;
/// Separates these random draws from other uses of the seed of an experiment.
const REPLAY_STREAM: u64 = 0x7265_706c_6179;

/// The log of an experiment under a policy.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Replay {
    /// The experiment's name.
    pub experiment: String,
    /// Log position up to which the log was folded.
    pub position: u64,
    /// The policy, with all parameters.
    #[schema(value_type = crate::schemas::PolicySchema)]
    pub policy: PolicySpec,
    /// Whether it is the current policy of the experiment, with the same parameters. Then batches
    /// and tickets of selections are taken from the log. Otherwise each comparison is one that the
    /// policy did not request.
    pub own_policy: bool,
    /// Digest of the state of the policy: equal states have equal digests.
    #[schema(example = "9f86d081884c7d65")]
    pub state: String,
    /// Number of folded time-steps.
    pub steps: u64,
    /// Ids of the rankers with the largest Copeland score in the folded counts.
    pub leaders: Vec<String>,
    /// Id of the ranker that the policy would recommend now.
    pub champion: String,
    /// Number of the batch that would be open; `null` outside batches.
    pub batch: Option<u32>,
    /// The pairs that the policy would select next, the most frequent of 200 selections first; at
    /// most 10.
    pub next: Vec<NextDuel>,
    /// Regret that the policy would have had from the beginning; `null` if the log is not enough to
    /// estimate it.
    pub regret: Option<OtherRegret>,
    /// Why `regret` is `null`.
    pub regret_reason: Option<String>,
}

/// A pair that a policy would select next.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct NextDuel {
    /// Id of the first ranker of the ordered pair.
    pub first: String,
    /// Id of the second ranker; the same for a self-duel.
    pub second: String,
    /// Share of the selections.
    pub share: f64,
}

/// Cumulative Copeland regret over the first `steps` steps: of the replayed policy and of the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct OtherRegret {
    /// Method of the estimate. `queue-based`: runs of the policy get their answers from the log,
    /// each answer once. All runs have the same number of steps: those that every run can make
    /// before it has used up the answers of a pair.
    #[schema(example = "queue-based")]
    pub method: &'static str,
    /// Number of steps that the estimate is based on.
    pub steps: u64,
    /// Number of runs.
    pub runs: u64,
    /// Regret of the replayed policy: mean and 95 % interval over its runs and over the posterior
    /// of the preferences.
    pub replayed: Band,
    /// Standard deviation between the runs.
    pub deviation: f64,
    /// Regret of the experiment itself over its first `steps` steps, estimated in the same way.
    /// Between two recorded points it is interpolated.
    pub logged: Band,
    /// Regret of uniform pairs over `steps` steps: posterior mean.
    pub uniform: f64,
}

impl Service {
    /// Replay the log of an experiment under `policy`, which must be valid for its rankers.
    pub async fn replay(
        &self,
        loaded: &Arc<LoadedExperiment>,
        policy: PolicySpec,
    ) -> Result<Replay, ServiceError> {
        let record = loaded.record();
        let head = loaded.fold()?.position();
        if head > ENTRIES_MAX {
            return Err(ServiceError::CannotReplay(format!(
                "the log of experiment `{}` has {head} entries, and a request replays at most {ENTRIES_MAX}; \
                 `rankduel replay {}` has no limit",
                loaded.name, loaded.name
            )));
        }
        // The semaphore is never closed.
        let _turn = self.replays.acquire().await;
        let rankers = loaded.spec.rankers.len() as u64;
        let steps = REQUEST_WORK / (rankers * rankers + 400) / RUNS / 2;
        let of = Replayed { record: &record, spec: &loaded.spec, head };
        replay(&*self.engine.store, of, policy, Some(steps), Some(&self.reports)).await
    }
}

/// What is replayed.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<'a> {
    /// The experiment.
    pub record: &'a ExperimentRecord,
    /// Its spec.
    pub spec: &'a ExperimentSpec,
    /// Log position up to which to replay.
    pub head: u64,
}

/// Fold a log under `policy`, and run the policy on its answers for the same number of steps, but
/// at most `steps_max`. The work runs on the threads of `pool`, or on one for blocking work.
pub async fn replay(
    store: &dyn ExperimentLog,
    Replayed { record, spec, head }: Replayed<'_>,
    policy: PolicySpec,
    steps_max: Option<u64>,
    pool: Option<&ReportPool>,
) -> Result<Replay, ServiceError> {
    if record.pruned_to > 0 {
        return Err(ServiceError::CannotReplay(format!(
            "the log of experiment `{}` was pruned up to position {}: its beginning no longer exists",
            record.name, record.pruned_to
        )));
    }
    if !spec.roster_changes.is_none()
        && let Some(why) = policy.description().fixed_rankers
    {
        return Err(ServiceError::CannotReplay(format!(
            "experiment `{}` has roster changes, and policy `{}` cannot fold a log with them: {why}",
            record.name,
            policy.kind()
        )));
    }
    let own_policy = spec.policy == policy;
    let under = ExperimentSpec { policy, ..spec.clone() };
    let mut fold = match own_policy {
        true => Fold::start(&under, record.seed, record.created_at),
        false => Fold::start_with_foreign_log(&under, record.seed, record.created_at),
    };
    while fold.position() < head {
        let chunk = store.read(record.id, fold.position(), CHUNK).await?;
        if chunk.is_empty() {
            return Err(ServiceError::internal(format!(
                "the log of experiment `{}` ends at position {} instead of {head}",
                record.name,
                fold.position()
            )));
        }
        fold = in_background(pool, move || fold_chunk(fold, &chunk, head)).await??;
    }
    let (name, seed) = (record.name.clone(), record.seed);
    in_background(pool, move || report(&name, seed, &under, own_policy, &fold, steps_max)).await
}

async fn in_background<T: Send + 'static>(
    pool: Option<&ReportPool>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    if let Some(pool) = pool {
        return pool.run(work).await;
    }
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ServiceError::internal(format!("a replay failed: {error}")))
}

fn fold_chunk(mut fold: Fold, chunk: &[LogEntry], head: u64) -> Result<Fold, ServiceError> {
    fold.apply_chunk(|folding| {
        chunk
            .iter()
            .take_while(|entry| entry.position <= head)
            .try_for_each(|entry| folding.apply(entry))
    })
    .map_err(|error| ServiceError::CannotReplay(format!("the log cannot be folded: {error}")))?;
    Ok(fold)
}

fn report(
    name: &str,
    seed: u64,
    spec: &ExperimentSpec,
    own_policy: bool,
    fold: &Fold,
    steps_max: Option<u64>,
) -> Replay {
    let policy = fold.policy();
    let id = |ranker: usize| spec.rankers[ranker].id.clone();
    let scores = copeland_scores(policy.tally(), fold.roster());
    let active = fold.roster().active();
    let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
    let regret = other_regret(spec, seed, fold, steps_max);
    Replay {
        experiment: name.into(),
        position: fold.position(),
        own_policy,
        state: Sha256::digest(policy.save())[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        steps: policy.tally().steps(),
        leaders: active.iter().copied().filter(|&i| scores[i] == best).map(id).collect(),
        champion: id(policy.champion()),
        batch: policy.batch(),
        next: next_duels(spec, seed, fold),
        regret_reason: regret.as_ref().err().cloned(),
        regret: regret.ok(),
        policy: spec.policy.clone(),
    }
}

fn next_duels(spec: &ExperimentSpec, seed: u64, fold: &Fold) -> Vec<NextDuel> {
    let rng = &mut step_rng(seed ^ REPLAY_STREAM, fold.position());
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..SELECTIONS {
        let duel = fold.policy().select(&InFlight::new(), rng).duel;
        *counts.entry((duel.first, duel.second)).or_insert(0_u32) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // the most frequent first; ties in the order of the rankers
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts
        .into_iter()
        .take(NEXT_MAX)
        .map(|((first, second), count)| NextDuel {
            first: spec.rankers[first].id.clone(),
            second: spec.rankers[second].id.clone(),
            share: f64::from(count) / f64::from(SELECTIONS),
        })
        .collect()
}

/// The regret that the policy of `spec` would have had, or why it cannot be estimated.
fn other_regret(
    spec: &ExperimentSpec,
    seed: u64,
    fold: &Fold,
    steps_max: Option<u64>,
) -> Result<OtherRegret, String> {
    let rankers = spec.rankers.len();
    if !spec.roster_changes.is_none() {
        return Err(
            "the experiment has roster changes, and the counted answers do not say which rankers were active"
                .into(),
        );
    }
    let answers = Answers::new(rankers, |low, high| {
        let pair = fold.counts().pair(low, high);
        [pair.wins, pair.losses, pair.ties, pair.no_signal]
    });
    let asked = fold.history().steps().min(steps_max.unwrap_or(u64::MAX));
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
    let start = |steps: u64, run: u64| -> OffPolicyRun {
        let seed = seed ^ REPLAY_STREAM ^ (run + 1);
        let mut policy = spec.policy.start(Setup { rankers, seed });
        off_policy::run(
            &mut *policy,
            answers.clone(),
            spec.ties,
            seed,
            steps,
            &mut step_rng(seed, 0),
        )
    };
    // first find the number of steps that every run can make; then repeat all runs with it, so that
    // longer runs do not weigh more
    let mut shortest = asked;
    let mut used_up = None;
    for run in 0..RUNS {
        let course = start(shortest, run);
        if course.steps < shortest {
            (shortest, used_up) = (course.steps, course.used_up);
        }
        if shortest < enough {
            let pair = used_up.map_or(String::new(), |duel| {
                format!(" `{}` and `{}`", spec.rankers[duel.first].id, spec.rankers[duel.second].id)
            });
            return Err(format!(
                "after {shortest} steps the policy requests a pair{pair} whose answers in the log are used up, and fewer than \
                 {enough} steps are not enough: the log was made by a policy that requested other pairs"
            ));
        }
    }
    let courses: Vec<OffPolicyRun> = (0..RUNS).map(|run| start(shortest, run)).collect();
    let logged = shown_until(fold, shortest);
    let priced: Vec<&[u64]> =
        courses.iter().map(|course| &*course.shown).chain([&*logged]).collect();
    let rng = &mut step_rng(seed ^ REPLAY_STREAM, fold.position());
    let drawn =
        Posterior::new(fold.policy().tally()).regret_draws(&priced, Posterior::draws(rankers), rng);
    let means: Vec<f64> = drawn[..courses.len()]
        .iter()
        .map(|draws| draws.iter().sum::<f64>() / draws.len() as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let variance =
        means.iter().map(|run| (run - mean) * (run - mean)).sum::<f64>() / (means.len() - 1) as f64;
    let uniform = Posterior::new(fold.policy().tally()).regret(&[], Posterior::draws(rankers), rng);
    Ok(OtherRegret {
        method: "queue-based",
        steps: shortest,
        runs: RUNS,
        replayed: Band::of(Estimate::of(drawn[..courses.len()].concat()), 1.0),
        deviation: variance.sqrt(),
        logged: Band::of(Estimate::of(drawn[courses.len()].clone()), 1.0),
        uniform: uniform.uniform_step.mean * shortest as f64,
    })
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
