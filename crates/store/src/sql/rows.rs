//! The records of the tables `experiment`, `snapshot`, `signing_key`, `api_key` and `audit`, as they
//! are read from rows.

use super::numbers::from_column;
use super::table_row::{Record, TableRow};
use crate::events::Status;
use crate::{
    ApiKeyRecord, AuditRecord, DueExperiment, ExperimentId, ExperimentRecord, Head, ListFilter,
    ListPlace, ListedExperiment, SigningKey, Snapshot, StoreError, WebhookNotice,
};

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

/// The columns of `experiment`.
pub(crate) const EXPERIMENT_COLUMNS: &str = "id, name, spec, seed, status, winner, version, head, \
     created_at_ms, updated_at_ms, archived_at_ms, pruned_to, answer";

/// That an experiment is of a list: `$1` is a part of its name or of its owner in lower case, `$2`
/// has states or statuses and `$3` names, each between commas, and `$4` is a part of its spec; all
/// are empty without a filter. A text contains another one if it changes when that is replaced,
/// which both databases do alike. Archived experiments are of a list that asks for them.
pub(crate) const LISTED: &str = "($1 = '' or replace(lower(name), $1, '') <> lower(name)
         or replace(lower(owner), $1, '') <> lower(owner))
     and case
         when archived_at_ms is not null then replace($2, ',archived,', '') <> $2
         else $2 = '' or replace($2, ',' || state || ',', '') <> $2
             or replace($2, ',' || status || ',', '') <> $2
     end
     and ($3 = '' or replace($3, ',' || name || ',', '') <> $3)
     and ($4 = '' or replace(spec, $4, '') <> spec)";

/// The values of [`LISTED`].
pub(crate) fn filter_values(filter: &ListFilter) -> [String; 4] {
    let among = |texts: &Option<Vec<String>>| {
        texts.as_ref().map_or_else(String::new, |texts| format!(",{},", texts.join(",,")))
    };
    let search = filter.search.as_deref().unwrap_or_default().to_ascii_lowercase();
    [search, among(&filter.states), among(&filter.names), filter.spec_with.to_owned()]
}

/// The status in a column of this experiment.
fn status_of(row: &impl TableRow, id: ExperimentId) -> Result<Status, StoreError> {
    let status: String = row.get("status")?;
    Ok(match status.as_str() {
        "running" => Status::Running,
        "paused" => Status::Paused,
        "concluded" => Status::Concluded,
        other => {
            return Err(StoreError::Corrupt(format!("status of experiment {id} is {other:?}")));
        }
    })
}

/// State and group of an experiment whose answer is not known.
pub(crate) fn unknown_place(status: Status) -> (&'static str, i64) {
    match status {
        Status::Running => ("empty", 2),
        Status::Paused => ("paused", 2),
        Status::Concluded => ("stopped", 3),
    }
}

impl Record for ListedExperiment {
    fn experiment(&self) -> Option<ExperimentId> {
        Some(self.id)
    }

    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        let id = row.get("id")?;
        let group: i32 = row.get("list_group")?;
        let group = from_column(&format!("list_group of experiment {id}"), group.into())?;
        Ok(Self {
            id,
            place: ListPlace { group, name: row.get("name")? },
            owner: row.get("owner")?,
            status: status_of(row, id)?,
            updated_at: row.get("updated_at_ms")?,
            answer: row.get("answer")?,
        })
    }
}

impl Record for DueExperiment {
    fn experiment(&self) -> Option<ExperimentId> {
        Some(self.id)
    }

    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok(Self { id: row.get("id")?, name: row.get("name")?, due_at: row.get("due_at_ms")? })
    }
}

impl Record for ExperimentRecord {
    fn experiment(&self) -> Option<ExperimentId> {
        Some(self.id)
    }

    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        let id = row.get("id")?;
        let of = |what: &str| format!("{what} of experiment {id}");
        let winner: Option<i32> = row.get("winner")?;
        Ok(Self {
            id,
            name: row.get("name")?,
            spec: row.get("spec")?,
            seed: row.get::<i64>("seed")?.cast_unsigned(),
            status: status_of(row, id)?,
            winner: winner.map(|it| from_column(&of("winner"), it.into())).transpose()?,
            version: from_column(&of("version"), row.get("version")?)?,
            head: from_column(&of("head"), row.get("head")?)?,
            created_at: row.get("created_at_ms")?,
            updated_at: row.get("updated_at_ms")?,
            archived_at: row.get("archived_at_ms")?,
            pruned_to: from_column(&of("pruned_to"), row.get("pruned_to")?)?,
            answer: row.get("answer")?,
        })
    }
}

impl Record for Head {
    fn experiment(&self) -> Option<ExperimentId> {
        Some(self.experiment)
    }

    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.get("id")?,
            version: from_column("version of an experiment", row.get("version")?)?,
            head: from_column("head of an experiment", row.get("head")?)?,
            archived: row.get("archived")?,
        })
    }
}

impl Record for Snapshot {
    fn experiment(&self) -> Option<ExperimentId> {
        Some(self.experiment)
    }

    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok(Self {
            experiment: row.get("experiment_id")?,
            position: from_column("position of a snapshot", row.get("position")?)?,
            format: from_column("format of a snapshot", row.get("format")?)?,
            state: row.get("state")?,
            created_at: row.get("created_at_ms")?,
        })
    }
}

impl Record for SigningKey {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        let (id, secret): (i64, Vec<u8>) = (row.get("id")?, row.get("secret")?);
        Ok(Self {
            id: from_column("id of a signing key", id)?,
            secret: secret.try_into().map_err(|secret: Vec<u8>| {
                StoreError::Corrupt(format!("signing key {id} has {} bytes, not 32", secret.len()))
            })?,
            created_at: row.get("created_at_ms")?,
            active_from: row.get("active_from_ms")?,
        })
    }
}

impl Record for ApiKeyRecord {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        let (id, digest): (String, Vec<u8>) = (row.get("id")?, row.get("digest")?);
        let experiments: Option<String> = row.get("experiments")?;
        let experiments = experiments.as_deref().map(serde_json::from_str).transpose();
        let corrupt = |what: String| StoreError::Corrupt(format!("API key {id}: {what}"));
        Ok(Self {
            digest: digest.try_into().map_err(|digest: Vec<u8>| {
                corrupt(format!("its digest has {} bytes", digest.len()))
            })?,
            experiments: experiments
                .map_err(|error| corrupt(format!("its experiments: {error}")))?,
            id,
            name: row.get("name")?,
            scopes: row.get("scopes")?,
            replaces: row.get("replaces")?,
            created_at: row.get("created_at_ms")?,
            expires_at: row.get("expires_at_ms")?,
            revoked_at: row.get("revoked_at_ms")?,
            last_used_at: row.get("last_used_at_ms")?,
        })
    }
}

impl Record for WebhookNotice {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.get("id")?,
            experiment: row.get("experiment")?,
            body: row.get("body")?,
            queued_at: row.get("queued_at_ms")?,
            attempts: from_column("attempts of a notice", row.get("attempts")?)?,
        })
    }
}

impl Record for AuditRecord {
    fn read(row: &impl TableRow) -> Result<Self, StoreError> {
        let id = row.get("id")?;
        let json = |text: Option<String>| {
            text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| {
                StoreError::Corrupt(format!("entry {id} of the audit log: {error}"))
            })
        };
        Ok(Self {
            id,
            at: row.get("at_ms")?,
            who: row.get("who")?,
            what: row.get("what")?,
            subject: row.get("subject")?,
            experiment: row.get("experiment")?,
            before: json(row.get("before")?)?,
            after: json(row.get("after")?)?,
            request_id: row.get("request_id")?,
        })
    }
}
