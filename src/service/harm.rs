//! The reaction to a ranker that does harm: it is retired, or the experiment is paused.
//!
//! Every process checks in every maintenance round, on claims that are part of the folded state. A
//! ranker is retired once, because that changes the record. An experiment is paused once for the
//! same claims, because the nonce of the pause is made of them: a person who then sets it running
//! again knows them.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::service::Service;
use crate::service::change::{change, change_automatically};
use crate::service::error::ServiceError;
use crate::service::reports::guardrails::{Harm, harms};
use rankduel_engine::access::Actor;
use rankduel_engine::experiment_spec::{OnHarm, Patch};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::events::Status;
use rankduel_store::{ExperimentRecord, Nonce};

/// High half of the nonces of automatic pauses. No process has it.
const PAUSES: Nonce = (u64::MAX as Nonce - 5) << 64;

/// Retire the rankers that do harm, or pause the experiment, as its metrics say.
pub(super) async fn act_on_harm(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    let runs = |record: &ExperimentRecord| {
        record.status == Status::Running && record.archived_at.is_none()
    };
    if loaded.spec.metrics.is_empty() || loaded.is_broken() || !loaded.with_record(runs) {
        return Ok(());
    }
    let found = harms(loaded, &*loaded.fold()?);
    let mut pausing = Vec::new();
    for harm in &found {
        let id = &loaded.spec.rankers[harm.ranker].id;
        let is_control = loaded.spec.control.as_ref() == Some(id);
        match harm.on_harm {
            OnHarm::Tell => {}
            OnHarm::Retire if harm.is_active && !is_control => {
                let reason = Some(harm.sentence.clone());
                let retire = Patch { retire: Some(id.clone()), reason, ..Patch::default() };
                match change(service, &loaded.name, None, &retire, &Actor::service()).await {
                    // the experiment is loaded again with its other rankers
                    Ok(_) => return Ok(()),
                    Err(ServiceError::FixedRankers(_)) => pausing.push(harm),
                    Err(error) => return Err(error),
                }
            }
            OnHarm::Retire if !harm.is_active => {}
            OnHarm::Retire | OnHarm::Pause => pausing.push(harm),
        }
    }
    if pausing.iter().any(|harm| harm.is_active) {
        pause(service, loaded, &pausing).await?;
    }
    Ok(())
}

/// Pause a running experiment, unless the same harms have paused it before.
async fn pause(
    service: &Service,
    loaded: &Arc<LoadedExperiment>,
    harms: &[&Harm],
) -> Result<(), ServiceError> {
    let keys: Vec<_> = harms.iter().map(|harm| harm.key()).collect();
    let digest: [u8; 32] = Sha256::digest(keys.join("\n")).into();
    let low = u64::from_be_bytes(std::array::from_fn(|byte| digest[byte]));
    let nonce = PAUSES | Nonce::from(low);
    let reason = harms.iter().map(|harm| &*harm.sentence).collect::<Vec<_>>().join(" ");
    let pause = Patch { status: Some(Status::Paused), reason: Some(reason), ..Patch::default() };
    change_automatically(service, loaded, nonce, &pause).await?;
    Ok(())
}
