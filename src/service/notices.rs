//! Notices for a webhook: an experiment has a verdict, it was concluded, a ranker does harm, or an
//! alarm is on.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::guardrails::harms;
use crate::service::reports::traffic::traffic_now;
use crate::service::webhook::{Pending, Webhook};
use rankduel_engine::clock::rfc3339;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::Nonce;
use rankduel_store::events::Status;

/// High half of the nonces of log entries which say that a notice was sent. No process has it.
const NOTICES: Nonce = (u64::MAX as Nonce - 3) << 64;
/// Time between two checks of the alarms of an experiment.
const ALARMS_EVERY_MS: i64 = 15_000;
const DAY_MS: i64 = 86_400_000;

#[derive(Default)]
struct SharedSent(Mutex<Sent>);

/// The notices of an experiment that need not be queued.
#[derive(Default)]
struct Sent {
    /// Those that this process has queued, or found in the log.
    notices: HashSet<Nonce>,
    /// Unix milliseconds at which the alarms are checked next.
    alarms_at: i64,
}

/// A notice to queue, unless it was sent before.
struct Notice {
    /// Identifies the notice within the experiment. The same at every replica.
    key: String,
    event: &'static str,
    data: Value,
}

/// Queue the notices of an experiment that were not sent yet.
pub(super) async fn queue_notices(
    service: &Service,
    webhook: &Webhook,
    loaded: &Arc<LoadedExperiment>,
) -> Result<(), ServiceError> {
    if loaded.is_broken() || loaded.with_record(|record| record.archived_at.is_some()) {
        return Ok(());
    }
    let sent = loaded.extensions().get::<SharedSent>();
    let mut sent = sent.0.lock().await;
    let mut notices = state_notices(loaded)?;
    let now_ms = service.now_ms();
    if now_ms >= sent.alarms_at {
        sent.alarms_at = now_ms + ALARMS_EVERY_MS;
        notices.extend(alarm_notices(service, loaded, now_ms)?);
    }
    for notice in notices {
        let nonce = NOTICES | Nonce::from(u64::from_be_bytes(first_bytes(&notice.key)));
        if sent.notices.contains(&nonce) {
            continue;
        }
        let found = service.engine.store.find(loaded.id, &[nonce]).await?;
        let is_sent = found.iter().any(Option::is_some);
        if is_sent || webhook.push(pending(loaded, nonce, notice, now_ms)) {
            sent.notices.insert(nonce);
        }
    }
    Ok(())
}

/// A verdict, rankers that do harm, and a conclusion.
fn state_notices(loaded: &LoadedExperiment) -> Result<Vec<Notice>, ServiceError> {
    let id = |ranker: u16| loaded.spec.rankers.get(usize::from(ranker)).map(|it| it.id.clone());
    let (status, winner) = loaded.with_record(|record| (record.status, record.winner));
    let fold = loaded.fold()?;
    let mut notices = Vec::new();
    if let Some(verdict) = fold.verdict().verdict() {
        let (changes, answers) = (fold.roster_changes().changes(), verdict.comparisons);
        let target = fold.verdict().target();
        notices.push(Notice {
            key: format!("verdict:{changes}:{answers}"),
            event: "verdict",
            data: json!({
                "winners": verdict.winners.iter().filter_map(|&winner| id(winner)).collect::<Vec<_>>(),
                "answers": answers, "confidence": target.confidence, "margin": target.margin,
            }),
        });
    }
    for harm in harms(loaded, &fold) {
        notices.push(Notice {
            key: harm.key(),
            event: "harm",
            data: json!({
                "ranker": id(harm.ranker as u16), "metric": harm.metric.0,
                "on_harm": harm.on_harm, "detail": harm.sentence,
            }),
        });
    }
    if status == Status::Concluded {
        let reason = fold.concluded_by_itself().filter(|reason| !reason.is_empty());
        notices.push(Notice {
            key: format!("conclusion:{}", fold.status_since()),
            event: "conclusion",
            data: json!({
                "winner": winner.and_then(id), "automatic": reason.is_some(), "reason": reason,
            }),
        });
    }
    Ok(notices)
}

/// The alarms that are on: each once a day.
fn alarm_notices(
    service: &Service,
    loaded: &LoadedExperiment,
    now_ms: i64,
) -> Result<Vec<Notice>, ServiceError> {
    let (_, alarms) = traffic_now(service, loaded)?;
    let notice = |alarm: crate::service::reports::alarms::Alarm| Notice {
        key: format!("alarm:{}:{}", alarm.kind, now_ms / DAY_MS),
        event: "alarm",
        data: json!(alarm),
    };
    Ok(alarms.into_iter().map(notice).collect())
}

fn pending(loaded: &LoadedExperiment, nonce: Nonce, notice: Notice, now_ms: i64) -> Pending {
    let Notice { key, event, data } = notice;
    let (seed, created_at) = loaded.with_record(|record| (record.seed, record.created_at));
    let id = first_bytes::<16>(&format!("{} {seed} {created_at} {key}", loaded.name));
    let body = json!({
        "id": format!("{:032x}", u128::from_be_bytes(id)),
        "event": event,
        "experiment": loaded.name,
        "description": loaded.spec.description,
        "owner": loaded.spec.owner,
        "noticed_at": rfc3339(now_ms),
        "data": data,
    });
    Pending { experiment: loaded.name.clone(), nonce, event, body: body.to_string() }
}

/// The first bytes of the SHA-256 digest of a text.
fn first_bytes<const N: usize>(text: &str) -> [u8; N] {
    let digest = Sha256::digest(text);
    std::array::from_fn(|byte| digest[byte])
}
