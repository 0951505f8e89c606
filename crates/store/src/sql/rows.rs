//! Rows of the tables `experiment`, `snapshot`, `signing_key`, `api_key` and `audit`, and their
//! conversion to records.

use super::numbers::from_column;
use super::table_row::table_row;
use crate::events::Status;
use crate::{
    ApiKeyRecord, AuditRecord, ExperimentId, ExperimentRecord, Head, SigningKey, Snapshot,
    StoreError,
};

/// Converts rows to records.
pub(crate) fn records<Row, Record>(rows: Vec<Row>) -> Result<Vec<Record>, StoreError>
where
    Record: TryFrom<Row, Error = StoreError>,
{
    rows.into_iter().map(Record::try_from).collect()
}

/// Decode many rows on a thread for blocking work: this takes milliseconds, which the threads that
/// serve requests do not have.
pub(crate) async fn decoded<T: Send + 'static>(
    decode: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(decode).await.unwrap_or_else(|error| {
        Err(match error.is_panic() {
            true => StoreError::Corrupt(format!("a page of the log: {error}")),
            // the program ends
            false => StoreError::Unavailable(sqlx::Error::WorkerCrashed),
        })
    })
}

/// The numbers of experiments, each once, ascending: the order in which their rows are locked.
pub(crate) fn ascending(experiments: impl Iterator<Item = ExperimentId>) -> Vec<ExperimentId> {
    let mut ids: Vec<_> = experiments.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The name of a status in its column.
pub(crate) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Concluded => "concluded",
    }
}

table_row! {
    /// A row of `experiment`.
    #[derive(Debug)]
    pub(crate) struct ExperimentRow {
        id: i64,
        name: String,
        spec: String,
        seed: i64,
        status: String,
        winner: Option<i32>,
        version: i64,
        head: i64,
        created_at_ms: i64,
        updated_at_ms: i64,
        archived_at_ms: Option<i64>,
        pruned_to: i64,
        interleaving: Option<String>,
    }
}

impl TryFrom<ExperimentRow> for ExperimentRecord {
    type Error = StoreError;

    fn try_from(row: ExperimentRow) -> Result<Self, StoreError> {
        let of = |what: &str| format!("{what} of experiment {}", row.id);
        let status = match row.status.as_str() {
            "running" => Status::Running,
            "paused" => Status::Paused,
            "concluded" => Status::Concluded,
            other => return Err(StoreError::Corrupt(format!("{} is {other:?}", of("status")))),
        };
        Ok(Self {
            status,
            winner: row
                .winner
                .map(|winner| from_column(&of("winner"), winner.into()))
                .transpose()?,
            version: from_column(&of("version"), row.version)?,
            head: from_column(&of("head"), row.head)?,
            pruned_to: from_column(&of("pruned_to"), row.pruned_to)?,
            id: row.id,
            name: row.name,
            spec: row.spec,
            seed: row.seed.cast_unsigned(),
            created_at: row.created_at_ms,
            updated_at: row.updated_at_ms,
            archived_at: row.archived_at_ms,
            interleaving: row.interleaving,
        })
    }
}

table_row! {
    /// Version and head of an experiment.
    #[derive(Debug)]
    pub(crate) struct HeadRow {
        id: i64,
        version: i64,
        head: i64,
        archived: bool,
    }
}

impl TryFrom<HeadRow> for Head {
    type Error = StoreError;

    fn try_from(row: HeadRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.id,
            version: from_column("version of an experiment", row.version)?,
            head: from_column("head of an experiment", row.head)?,
            archived: row.archived,
        })
    }
}

table_row! {
    /// A row of `snapshot`.
    #[derive(Debug)]
    pub(crate) struct SnapshotRow {
        experiment_id: i64,
        format: i64,
        position: i64,
        state: Vec<u8>,
        created_at_ms: i64,
    }
}

impl TryFrom<SnapshotRow> for Snapshot {
    type Error = StoreError;

    fn try_from(row: SnapshotRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.experiment_id,
            position: from_column("position of a snapshot", row.position)?,
            format: from_column("format of a snapshot", row.format)?,
            state: row.state,
            created_at: row.created_at_ms,
        })
    }
}

table_row! {
    /// A row of `signing_key`.
    pub(crate) struct SigningKeyRow {
        id: i64,
        secret: Vec<u8>,
        created_at_ms: i64,
        active_from_ms: i64,
    }
}

impl TryFrom<SigningKeyRow> for SigningKey {
    type Error = StoreError;

    fn try_from(row: SigningKeyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: from_column("id of a signing key", row.id)?,
            secret: row.secret.try_into().map_err(|secret: Vec<u8>| {
                StoreError::Corrupt(format!(
                    "signing key {} has {} bytes, not 32",
                    row.id,
                    secret.len()
                ))
            })?,
            created_at: row.created_at_ms,
            active_from: row.active_from_ms,
        })
    }
}

table_row! {
    /// A row of `api_key`.
    pub(crate) struct ApiKeyRow {
        id: String,
        digest: Vec<u8>,
        name: String,
        scopes: String,
        experiments: Option<String>,
        replaces: Option<String>,
        created_at_ms: i64,
        expires_at_ms: Option<i64>,
        revoked_at_ms: Option<i64>,
        last_used_at_ms: Option<i64>,
    }
}

impl TryFrom<ApiKeyRow> for ApiKeyRecord {
    type Error = StoreError;

    fn try_from(row: ApiKeyRow) -> Result<Self, StoreError> {
        let corrupt = |what: String| StoreError::Corrupt(format!("API key {}: {what}", row.id));
        let experiments = row.experiments.as_deref().map(serde_json::from_str).transpose();
        Ok(Self {
            experiments: experiments
                .map_err(|error| corrupt(format!("its experiments: {error}")))?,
            digest: row.digest.try_into().map_err(|digest: Vec<u8>| {
                corrupt(format!("its digest has {} bytes", digest.len()))
            })?,
            id: row.id,
            name: row.name,
            scopes: row.scopes,
            replaces: row.replaces,
            created_at: row.created_at_ms,
            expires_at: row.expires_at_ms,
            revoked_at: row.revoked_at_ms,
            last_used_at: row.last_used_at_ms,
        })
    }
}

table_row! {
    /// A row of `audit`.
    pub(crate) struct AuditRow {
        id: i64,
        at_ms: i64,
        who: String,
        what: String,
        subject: String,
        experiment: Option<String>,
        before: Option<String>,
        after: Option<String>,
        request_id: Option<String>,
    }
}

impl TryFrom<AuditRow> for AuditRecord {
    type Error = StoreError;

    fn try_from(row: AuditRow) -> Result<Self, StoreError> {
        let json = |text: Option<String>| {
            text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| {
                StoreError::Corrupt(format!("entry {} of the audit log: {error}", row.id))
            })
        };
        Ok(Self {
            before: json(row.before)?,
            after: json(row.after)?,
            id: row.id,
            at: row.at_ms,
            who: row.who,
            what: row.what,
            subject: row.subject,
            experiment: row.experiment,
            request_id: row.request_id,
        })
    }
}
