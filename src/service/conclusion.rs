//! Concluding an experiment automatically: as soon as it has a verdict, or at a limit of its spec.
//!
//! Every process checks, in every maintenance round and as soon as its fold has a verdict or
//! reaches the limit of duels, and the store lets one of them conclude. The verdict is part of the
//! folded state, so every process finds the same one at the same log position.

use std::sync::Arc;

use crate::service::Service;
use crate::service::change::change_automatically;
use crate::service::error::ServiceError;
use crate::service::reports::fold_copy::FoldCopy;
use crate::service::reports::verdict_basis::doubt;
use crate::service::threads::blocking;
use rankduel_engine::clock::days_since;
use rankduel_engine::experiment_spec::{ConcludeAt, Patch};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::Nonce;
use rankduel_store::events::Status;

/// Nonce of the one automatic conclusion of an experiment. No process has it.
const CONCLUSION: Nonce = (u64::MAX as Nonce - 1) << 64;

/// Conclude an experiment if its spec asks for that now.
pub(super) async fn conclude_if_due(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    if loaded.spec.conclude_at.is_none() || loaded.is_broken() {
        return Ok(());
    }
    let Some((winner, reason)) = due(loaded, service.now_ms()).await? else { return Ok(()) };
    let conclusion = Patch {
        status: Some(Status::Concluded),
        winner: Some(loaded.spec.rankers[winner].id.clone()),
        reason: Some(reason),
        ..Patch::default()
    };
    change_automatically(service, loaded, CONCLUSION, &conclusion).await?;
    Ok(())
}

/// The winner to conclude on, and why; `None` while it is not time to conclude.
async fn due(
    loaded: &Arc<LoadedExperiment>,
    now: i64,
) -> Result<Option<(usize, String)>, ServiceError> {
    let Some(at) = loaded.spec.conclude_at else { return Ok(None) };
    let Some(Reached { winner, reason }) = reached(loaded, at, now)? else { return Ok(None) };
    let of = Arc::clone(loaded);
    // the doubt and the leader take long with many rankers
    let doubt = blocking(move || doubt(&of)).await??;
    loaded.set_doubted(doubt.and_then(|doubt| doubt.duel));
    if doubt.is_some() {
        return Ok(None);
    }
    let winner = match winner {
        Some(winner) => winner,
        None => {
            let (copy, seed) = (FoldCopy::of(&*loaded.fold()?), loaded.with_record(|it| it.seed));
            blocking(move || copy.leader(seed)).await?
        }
    };
    Ok(Some((winner, reason)))
}

/// A reason to conclude.
struct Reached {
    /// The certified winner; `None` at a limit without one.
    winner: Option<usize>,
    reason: String,
}

/// The reason to conclude now, unless the verdict is in doubt; `None` if there is none.
fn reached(
    loaded: &LoadedExperiment,
    at: ConcludeAt,
    now: i64,
) -> Result<Option<Reached>, ServiceError> {
    let (runs, created_at) = loaded.with_record(|record| {
        (record.status == Status::Running && record.archived_at.is_none(), record.created_at)
    });
    if !runs {
        return Ok(None);
    }
    let days = days_since(created_at, now);
    if at.min_days.is_some_and(|least| days < least) {
        return Ok(None);
    }
    let fold = loaded.fold()?;
    if fold.state().concluded_by_itself.is_some() {
        return Ok(None);
    }
    let duels = fold.state().counts.answered_duels();
    let limit = reached_limit(at, duels, days);
    // at a limit, the claims about the control and the segments are not awaited
    let waits = limit.is_none();
    let awaited = ConcludeAt { control: at.control && waits, segments: at.segments && waits, ..at };
    if let Some(verdict) = fold.settled_verdict(&awaited) {
        let reason = format!(
            "certain at confidence {} with margin {}, after {} duels; log position {}",
            fold.run().verdict().target().confidence,
            at.margin,
            verdict.comparisons,
            fold.state().position
        );
        return Ok(Some(Reached { winner: Some(verdict.winner()), reason }));
    }
    let confidence = loaded.spec.verdict_target().confidence;
    Ok(limit.map(|limit| {
        let reason = format!(
            "no ranker was certain at confidence {confidence} when {limit}: concluded on the leader"
        );
        Reached { winner: None, reason }
    }))
}

/// The limit that an experiment with so many answered duels has reached after so many days, in
/// words.
fn reached_limit(at: ConcludeAt, duels: u64, days: f64) -> Option<String> {
    if at.max_duels.is_some_and(|most| duels >= most) {
        return Some(format!("`max_duels` was reached ({duels} duels)"));
    }
    let most = at.max_days.filter(|&most| days >= most)?;
    Some(format!("`max_days` was reached ({most} days)"))
}
