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
    /// Appends wait until the mode changes. Everything else works.
    AppendsWait,
}

/// The delay of [`Mode::Late`].
pub const LATE: Duration = Duration::from_millis(400);

const MODES: [Mode; 9] = [
    Mode::Fine,
    Mode::FailsBefore,
    Mode::FailsAfter,
    Mode::Hangs,
    Mode::FindingHangs,
    Mode::Late,
    Mode::AnswersTooSoon,
    Mode::TakesRepeatsForNew,
    Mode::AppendsWait,
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
            Mode::Fine
            | Mode::FindingHangs
            | Mode::AnswersTooSoon
            | Mode::TakesRepeatsForNew
            | Mode::AppendsWait => call.await,
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

/// Implement a trait of the store: each call `looks` into the database or `writes` to it, and what
/// is in braces at the end stands as it is.
macro_rules! passed_on {
    ($trait:ident {
        $($how:ident $method:ident($($name:ident: $type:ty),*) -> $result:ty;)*
        { $($own:tt)* }
    }) => {
        #[async_trait]
        impl $trait for FailingStore {
            $(
                async fn $method(&self, $($name: $type),*) -> Result<$result, StoreError> {
                    self.$how(self.inner.$method($($name),*)).await
                }
            )*

            $($own)*
        }
    };
}

passed_on! { ExperimentLog {
    write create_experiment(new: &NewExperiment) -> Created;
    look experiment(name: &str) -> Option<ExperimentRecord>;
    look experiments(filter: &ListFilter, after: &str, limit: u32) -> Vec<ExperimentRecord>;
    look listed(
        filter: &ListFilter, after: Option<&ListPlace>, limit: u32
    ) -> Vec<ListedExperiment>;
    look list_size(filter: &ListFilter, until: Option<&ListPlace>) -> ListSize;
    look due(now: i64, after: Option<&DueExperiment>, limit: u32) -> Vec<DueExperiment>;
    look names(after: &str, limit: u32) -> Vec<String>;
    look heads(experiments: &[ExperimentId]) -> Vec<Head>;
    write change_experiment(
        id: ExperimentId, version: u64, change: &Change, event: NewEvent, recorded_at: i64
    ) -> Changed;
    write save_answer(
        id: ExperimentId, position: u64, before: Option<&str>, answer: &NewAnswer,
        notice: Option<&WebhookNotice>
    ) -> bool;
    look read(id: ExperimentId, after: u64, limit: u32) -> Vec<LogEntry>;
    write save_snapshot(snapshot: &Snapshot) -> ();
    look newest_snapshot(id: ExperimentId, format: u32) -> Option<Snapshot>;
    look snapshots(id: ExperimentId) -> Vec<Snapshot>;
    look listen() -> Option<Box<dyn Notices>>;
    write prune(id: ExperimentId, to: u64, format: u32, audit: &AuditNote) -> bool;
    write import(
        record: &ExperimentRecord, base: Option<&Snapshot>, chunks: EntryChunks<'_>,
        audit: Option<&AuditNote>
    ) -> Created;
{
    async fn append(
        &self,
        events: &[(ExperimentId, NewEvent)],
        recorded_at: i64,
    ) -> Result<Vec<Appended>, StoreError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        while self.mode.load(Ordering::SeqCst) == Mode::AppendsWait as u8 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
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
} } }

passed_on! { KeyStore {
    look signing_keys() -> Vec<SigningKey>;
    write ensure_signing_key(key: &SigningKey) -> Vec<SigningKey>;
    write add_signing_key(key: &SigningKey, audit: &AuditNote) -> ();
    write remove_signing_key(id: u32, audit: &AuditNote) -> bool;
    look api_keys() -> Vec<ApiKeyRecord>;
    write add_api_key(
        key: &ApiKeyRecord, ends: Option<(&str, i64)>, audit: &AuditNote
    ) -> ();
    write revoke_api_key(id: &str, at: i64, audit: &AuditNote) -> bool;
    write note_key_uses(uses: &[(String, i64)]) -> ();
    look ended_sessions() -> Vec<SessionId>;
    write end_session(session: &SessionId, expires_at: i64, forget_before: i64) -> ();
{} } }

passed_on! { AuditLog {
    look audit(experiment: Option<&str>, before: i64, limit: u32) -> Vec<AuditRecord>;
{} } }

passed_on! { WebhookQueue {
    write take_notice(is_retry: bool, now: i64, until: i64) -> Option<WebhookNotice>;
    write postpone_notice(id: &str, until: i64) -> ();
    write remove_notice(id: &str) -> ();
    look waiting_notices() -> u64;
{} } }

passed_on! { Database {
    write migrate() -> ();
    look check() -> ();
    look integrity() -> Vec<String>;
{
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn serves_one_process(&self) -> bool {
        self.inner.serves_one_process()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
} } }
