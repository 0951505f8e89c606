//! Replaying a log under another policy: its state, the duels it would select next, and the regret
//! it would have had.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::fold_log::{Folding, REQUEST_COMPARISONS_MAX, REQUEST_ENTRIES_MAX};
use crate::service::reports::pool::ReportPool;
use crate::service::reports::replay_regret::{OtherRegret, RUNS, replayed_regret};
use crate::service::reports::standings::copeland_scores;
use crate::service::threads::IsAwaited;
use dueling_bandits::{InFlight, PolicySpec, step_rng};
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::{ExperimentLog, ExperimentRecord};

/// Most operations of a request, for all runs together. A step is estimated to take K² + 400
/// operations with K rankers.
const REQUEST_OPERATIONS: u64 = 200_000_000;
/// Selections from which the shares of the next duels are estimated.
const SELECTIONS: u32 = 200;
/// Most next duels in a report.
const NEXT_MAX: usize = 10;
/// Separates these random draws from other uses of the seed of an experiment.
const REPLAY_STREAM: u64 = 0x7265_706c_6179;

/// The log of an experiment under a policy.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Replay {
    pub experiment: String,
    /// Up to which the log was folded.
    pub position: u64,
    /// With all parameters.
    #[schema(value_type = crate::schemas::PolicySchema)]
    pub policy: PolicySpec,
    /// Whether it is the current policy of the experiment, with the same parameters. Then batches
    /// and tickets of selections are taken from the log.
    pub own_policy: bool,
    /// Digest of the state of the policy: equal states have equal digests.
    #[schema(example = "9f86d081884c7d65")]
    pub state: String,
    pub steps: u64,
    /// The rankers with the largest Copeland score in the folded counts.
    pub leaders: Vec<String>,
    /// The ranker that the policy would recommend now.
    pub champion: String,
    /// Number of the batch that would be open; `null` outside batches.
    pub batch: Option<u32>,
    /// The most frequent of 200 selections first; at most 10.
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
    pub first: String,
    /// The same for a self-duel.
    pub second: String,
    /// Share of the selections.
    pub share: f64,
}

/// Replay the log of an experiment under `policy`, which must be valid for its rankers.
pub async fn replay(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    policy: PolicySpec,
) -> Result<Replay, ServiceError> {
    let record = loaded.record();
    let head = loaded.fold()?.position();
    if head > REQUEST_ENTRIES_MAX {
        return Err(ServiceError::CannotReplay(format!(
            "the log of experiment `{}` has {head} entries, and a request replays at most {REQUEST_ENTRIES_MAX}; \
             `rankduel replay {}` has no limit",
            loaded.name, loaded.name
        )));
    }
    let comparisons = loaded.fold()?.counts().answered_duels();
    if comparisons > REQUEST_COMPARISONS_MAX {
        return Err(ServiceError::CannotReplay(format!(
            "experiment `{}` has {comparisons} comparisons, and a request replays at most {REQUEST_COMPARISONS_MAX}; \
             `rankduel replay {}` has no limit",
            loaded.name, loaded.name
        )));
    }
    // The semaphore is never closed.
    let _turn = service.replays.acquire().await;
    let rankers = loaded.spec.rankers.len() as u64;
    // each run is made twice
    let steps = REQUEST_OPERATIONS / (rankers * rankers + 400) / RUNS / 2;
    let log = ReplayedLog { record: &record, spec: &loaded.spec, head };
    replay_log(&*service.engine.store, log, policy, Some(steps), Some(&service.reports)).await
}

/// The log to replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayedLog<'a> {
    pub record: &'a ExperimentRecord,
    pub spec: &'a ExperimentSpec,
    /// Log position up to which to replay.
    pub head: u64,
}

/// Fold a log under `policy`, and estimate the regret of the policy by running it on the answers of
/// the log for the same number of steps, but at most `steps_max`. The work runs on the threads of
/// `pool`; without one, on a thread for blocking work.
pub async fn replay_log(
    store: &dyn ExperimentLog,
    ReplayedLog { record, spec, head }: ReplayedLog<'_>,
    policy: PolicySpec,
    steps_max: Option<u64>,
    pool: Option<&ReportPool>,
) -> Result<Replay, ServiceError> {
    refuse_replay(record, spec, &policy)?;
    let own_policy = spec.policy == policy;
    let replayed = ExperimentSpec { policy, ..spec.clone() };
    let (started, seed, created_at) = (replayed.clone(), record.seed, record.created_at);
    let start = move |_: IsAwaited<'_>| match own_policy {
        true => Fold::start(&started, seed, created_at),
        false => Fold::start_with_foreign_log(&started, seed, created_at),
    };
    let folding = Folding { store, pool };
    let fold = folding.in_background(start).await?;
    let (fold, ()) = folding.run(record, head, (fold, ()), |(), _, _| {}).await?;
    let name = record.name.clone();
    let report = move |is_awaited: IsAwaited<'_>| {
        let regret = replayed_regret(&replayed, seed, &fold, steps_max, is_awaited);
        report(&name, seed, &replayed, own_policy, &fold, regret)
    };
    folding.in_background(report).await
}

/// Refuse a log whose beginning is gone, or that `policy` cannot fold.
fn refuse_replay(
    record: &ExperimentRecord,
    spec: &ExperimentSpec,
    policy: &PolicySpec,
) -> Result<(), ServiceError> {
    let (name, kind) = (&record.name, policy.kind());
    if record.pruned_to > 0 {
        return Err(ServiceError::CannotReplay(format!(
            "the log of experiment `{name}` was pruned up to position {}: its beginning no longer exists",
            record.pruned_to
        )));
    }
    let Some(why) = policy.description().fixed_rankers else { return Ok(()) };
    if !spec.roster_changes.is_none() {
        return Err(ServiceError::CannotReplay(format!(
            "experiment `{name}` has roster changes, and policy `{kind}` cannot fold a log with them: {why}"
        )));
    }
    if spec.held_out().is_some() {
        return Err(ServiceError::CannotReplay(format!(
            "experiment `{name}` holds the second id of its canary out of the tournament, and policy `{kind}` cannot: {why}"
        )));
    }
    Ok(())
}

fn report(
    name: &str,
    seed: u64,
    spec: &ExperimentSpec,
    own_policy: bool,
    fold: &Fold,
    regret: Result<OtherRegret, String>,
) -> Replay {
    let policy = fold.policy();
    let id = |ranker: usize| spec.rankers[ranker].id.clone();
    let scores = copeland_scores(policy.tally(), fold.roster());
    let active = fold.roster().active();
    let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
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
