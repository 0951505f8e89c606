//! Notices for a webhook: the answer of an experiment has changed.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::service::Service;
use crate::service::answer::Answer;
use crate::service::answers::stored;
use crate::service::error::ServiceError;
use crate::service::webhook::{Pending, Webhook};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::{ExperimentRecord, Nonce};

/// High half of the nonces of log entries which say that a notice was sent. No process has it.
const NOTICES: Nonce = (u64::MAX as Nonce - 3) << 64;

/// The kind of every notice.
const EVENT: &str = "answer";

/// The notices of an experiment that need not be queued: those that this process has queued, or
/// found in the log.
#[derive(Default)]
struct SharedSent(Mutex<HashSet<Nonce>>);

/// Queue the notice of the stored answer, unless it was sent before.
pub(super) async fn queue_notices(
    service: &Service,
    webhook: &Webhook,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    let record = loaded.record();
    let Some(answer) = stored(&record).filter(Answer::is_news) else { return Ok(()) };
    if loaded.is_broken() || record.archived_at.is_some() {
        return Ok(());
    }
    // the same at every replica, because the stored answer says since when
    let (Answer { state, about, since, .. }, status) = (&answer, record.status);
    let key = format!("{} {about:?} {since} {status:?}", state.name());
    let nonce = NOTICES | Nonce::from(u64::from_be_bytes(first_bytes(&key)));
    let sent = loaded.extensions().get::<SharedSent>();
    let mut sent = sent.0.lock().await;
    if sent.contains(&nonce) {
        return Ok(());
    }
    let found = service.engine.store.find(loaded.id, &[nonce]).await?;
    let is_sent = found.iter().any(Option::is_some);
    let pending = || pending(loaded, &record, (nonce, &key), &answer, service.now_ms());
    if is_sent || webhook.push(pending()) {
        sent.insert(nonce);
    }
    Ok(())
}

fn pending(
    loaded: &LoadedExperiment,
    record: &ExperimentRecord,
    (nonce, key): (Nonce, &str),
    answer: &Answer,
    now_ms: i64,
) -> Pending {
    let ExperimentRecord { name, seed, created_at, status, .. } = record;
    let id = first_bytes::<16>(&format!("{name} {seed} {created_at} {key}"));
    let body = json!({
        "id": format!("{:032x}", u128::from_be_bytes(id)),
        "event": EVENT,
        "experiment": name,
        "description": loaded.spec.description,
        "owner": loaded.spec.owner,
        "status": status,
        "noticed_at": rfc3339(now_ms),
        "answer": answer,
    });
    Pending { experiment: name.clone(), nonce, event: EVENT, body: body.to_string() }
}

/// The first bytes of the SHA-256 digest of a text.
fn first_bytes<const N: usize>(text: &str) -> [u8; N] {
    let digest = Sha256::digest(text);
    std::array::from_fn(|byte| digest[byte])
}
