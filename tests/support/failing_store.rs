//! A store whose database fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rankduel_store::*;

/// How the database behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// It works.
    Fine,
    /// It fails before it changes anything.
    FailsBefore,
    /// It writes, and the response is lost. Reads succeed.
    FailsAfter,
    /// It hangs: it does nothing and never responds.
    Hangs,
    /// Looking for log entries by their nonces hangs. Everything else works.
    FindingHangs,
    /// Each response takes [`LATE`] longer.
    Late,
    /// A defect: it acknowledges events before it writes them; the next append writes them.
    AnswersTooSoon,
    /// A defect: it records a repeat as a new event.
    TakesRepeatsForNew,
}

/// The delay of [`Mode::Late`].
pub const LATE: Duration = Duration::from_millis(400);

const MODES: [Mode; 8] = [
    Mode::Fine,
    Mode::FailsBefore,
    Mode::FailsAfter,
    Mode::Hangs,
    Mode::FindingHangs,
    Mode::Late,
    Mode::AnswersTooSoon,
    Mode::TakesRepeatsForNew,
];

/// A store that passes calls to its inner store, or fails.
pub struct FailingStore {
    inner: SharedStore,
    mode: AtomicU8,
    appends: AtomicU64,
    /// Events that [`Mode::AnswersTooSoon`] has acknowledged and not written.
    owed: tokio::sync::Mutex<Vec<(ExperimentId, NewEvent)>>,
}

impl FailingStore {
    /// A store that works until [`Self::set`] changes its mode.
    pub fn new(inner: SharedStore) -> Arc<Self> {
        Arc::new(Self {
            inner,
            mode: AtomicU8::new(Mode::Fine as u8),
            appends: AtomicU64::new(0),
            owed: tokio::sync::Mutex::default(),
        })
    }

    /// Set the behaviour of the database from now on.
    pub fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Number of calls to append, whatever their result.
    pub fn appends(&self) -> u64 {
        self.appends.load(Ordering::SeqCst)
    }

    async fn append_too_late(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        let mut owed = self.owed.lock().await;
        self.inner.append(&std::mem::take(&mut *owed), recorded_at).await?;
        let mut answers = Vec::new();
        for (id, new) in events {
            let found = self.inner.find(*id, &[new.nonce]).await?.remove(0);
            answers.push(match found {
                Some(entry) if entry.event == new.event => Appended::Duplicate(entry.position),
                Some(entry) => Appended::Conflict(entry.position),
                None => {
                    let head = self.inner.heads(&[*id]).await?.first().map_or(0, |head| head.head);
                    owed.push((*id, new.clone()));
                    Appended::Recorded(
                        head + owed.iter().filter(|(other, _)| other == id).count() as u64,
                    )
                }
            });
        }
        Ok(answers)
    }

    async fn look<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.mode.load(Ordering::SeqCst) {
            mode if mode == Mode::FailsAfter as u8 => call.await,
            _ => self.write(call).await,
        }
    }

    async fn write<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let lost = || Err(StoreError::Unavailable(sqlx::Error::PoolTimedOut));
        match MODES[usize::from(self.mode.load(Ordering::SeqCst))] {
            Mode::Fine | Mode::FindingHangs | Mode::AnswersTooSoon | Mode::TakesRepeatsForNew => {
                call.await
            }
            Mode::FailsBefore => lost(),
            Mode::FailsAfter => {
                call.await?;
                lost()
            }
            Mode::Hangs => std::future::pending().await,
            Mode::Late => {
                tokio::time::sleep(LATE).await;
                call.await
            }
        }
    }
}

#[async_trait]
impl ExperimentLog for FailingStore {
    async fn create_experiment(&self, new: &NewExperiment) -> Result<Created, StoreError> {
        self.write(self.inner.create_experiment(new)).await
    }

    async fn experiment(&self, name: &str) -> Result<Option<ExperimentRecord>, StoreError> {
        self.look(self.inner.experiment(name)).await
    }

    async fn experiments(
        &self,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ExperimentRecord>, StoreError> {
        self.look(self.inner.experiments(after, limit)).await
    }

    async fn names(&self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        self.look(self.inner.names(after, limit)).await
    }

    async fn heads(&self, experiments: &[ExperimentId]) -> Result<Vec<Head>, StoreError> {
        self.look(self.inner.heads(experiments)).await
    }

    async fn change_experiment(
        &self,
        experiment: ExperimentId,
        expected_version: u64,
        change: &Change,
        event: NewEvent,
        recorded_at: i64,
    ) -> Result<Changed, StoreError> {
        let call =
            self.inner.change_experiment(experiment, expected_version, change, event, recorded_at);
        self.write(call).await
    }

    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        match MODES[usize::from(self.mode.load(Ordering::SeqCst))] {
            Mode::AnswersTooSoon => self.append_too_late(events, recorded_at).await,
            Mode::TakesRepeatsForNew => {
                let fresh = |(id, new): &(ExperimentId, NewEvent)| {
                    let nonce = rankduel_store::entropy::number().expect("randomness").into();
                    (*id, NewEvent { nonce, ..new.clone() })
                };
                self.inner.append(&events.iter().map(fresh).collect::<Vec<_>>(), recorded_at).await
            }
            _ => self.write(self.inner.append(events, recorded_at)).await,
        }
    }

    async fn read(
        &self,
        experiment: ExperimentId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<LogEntry>, StoreError> {
        self.look(self.inner.read(experiment, after, limit)).await
    }

    async fn find(
        &self,
        experiment: ExperimentId,
        nonces: &[Nonce],
    ) -> Result<Vec<Option<LogEntry>>, StoreError> {
        if self.mode.load(Ordering::SeqCst) == Mode::FindingHangs as u8 {
            std::future::pending::<()>().await;
        }
        self.look(self.inner.find(experiment, nonces)).await
    }

    async fn save_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.write(self.inner.save_snapshot(snapshot)).await
    }

    async fn newest_snapshot(
        &self,
        experiment: ExperimentId,
        format: u32,
    ) -> Result<Option<Snapshot>, StoreError> {
        self.look(self.inner.newest_snapshot(experiment, format)).await
    }

    async fn snapshots(&self, experiment: ExperimentId) -> Result<Vec<Snapshot>, StoreError> {
        self.look(self.inner.snapshots(experiment)).await
    }

    async fn listen(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        self.look(self.inner.listen()).await
    }

    async fn prune(
        &self,
        experiment: ExperimentId,
        to: u64,
        format: u32,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        self.write(self.inner.prune(experiment, to, format, audit)).await
    }

    async fn import(
        &self,
        record: &ExperimentRecord,
        base: Option<&Snapshot>,
        chunks: EntryChunks<'_>,
        audit: Option<&AuditNote>,
    ) -> Result<Created, StoreError> {
        self.write(self.inner.import(record, base, chunks, audit)).await
    }
}

#[async_trait]
impl KeyStore for FailingStore {
    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        self.look(self.inner.signing_keys()).await
    }

    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError> {
        self.write(self.inner.ensure_signing_key(key)).await
    }

    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError> {
        self.write(self.inner.add_signing_key(key, audit)).await
    }

    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError> {
        self.write(self.inner.remove_signing_key(id, audit)).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.look(self.inner.api_keys()).await
    }

    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError> {
        self.write(self.inner.add_api_key(key, ends, audit)).await
    }

    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        self.write(self.inner.revoke_api_key(id, at, audit)).await
    }

    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
        self.write(self.inner.note_key_uses(uses)).await
    }

    async fn ended_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.look(self.inner.ended_sessions()).await
    }

    async fn end_session(
        &self,
        session: &SessionId,
        expires_at: i64,
        forget_before: i64,
    ) -> Result<(), StoreError> {
        self.write(self.inner.end_session(session, expires_at, forget_before)).await
    }
}

#[async_trait]
impl AuditLog for FailingStore {
    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        self.look(self.inner.audit(experiment, before, limit)).await
    }
}

#[async_trait]
impl Database for FailingStore {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn serves_one_process(&self) -> bool {
        self.inner.serves_one_process()
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.write(self.inner.migrate()).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.look(self.inner.check()).await
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        self.look(self.inner.integrity()).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
