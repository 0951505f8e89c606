//! API keys and the audit log: records, rows and statements, which read alike in both databases.

use serde_json::Value;
use sqlx::FromRow;

use super::StoreError;
use crate::access::{Actor, Scopes};

/// An API key as the database has it; never its text.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeyRecord {
    /// The first 32 bits of the digest, in hexadecimal.
    pub id: String,
    /// SHA-256 of the key's text.
    pub digest: [u8; 32],
    /// What people call it.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Names of the experiments that it is for; `None`: all.
    pub experiments: Option<Vec<String>>,
    /// Id of the key that it was made to take the place of.
    pub replaces: Option<String>,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds from which on it is refused.
    pub expires_at: Option<i64>,
    /// Unix milliseconds from which on it is refused.
    pub revoked_at: Option<i64>,
    /// Unix milliseconds, to the minute.
    pub last_used_at: Option<i64>,
}

/// Something for the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditNote {
    /// Unix milliseconds.
    pub at: i64,
    /// Who did it.
    pub by: Actor,
    /// What was done, such as `experiment-created`.
    pub what: &'static str,
    /// Name of an experiment, or id of a key.
    pub subject: String,
    /// Name of the experiment, where there is one.
    pub experiment: Option<String>,
    /// What was before.
    pub before: Option<Value>,
    /// What is since.
    pub after: Option<Value>,
    /// Names what several processes notice; written once.
    pub once: Option<String>,
}

impl AuditNote {
    /// `by` did `what` to an experiment.
    pub fn of_experiment(by: &Actor, what: &'static str, experiment: &str, at: i64) -> Self {
        Self { experiment: Some(experiment.into()), ..Self::new(by, what, experiment, at) }
    }

    /// `by` did `what` to something else.
    pub fn new(by: &Actor, what: &'static str, subject: &str, at: i64) -> Self {
        Self {
            at,
            by: by.clone(),
            what,
            subject: subject.into(),
            experiment: None,
            before: None,
            after: None,
            once: None,
        }
    }

    /// From what to what.
    pub fn changed(self, before: Option<Value>, after: Option<Value>) -> Self {
        Self { before, after, ..self }
    }
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// Its number; a later entry has a larger one.
    pub id: i64,
    /// Unix milliseconds.
    pub at: i64,
    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub who: String,
    /// What was done.
    pub what: String,
    /// Name of an experiment, or id of a key.
    pub subject: String,
    /// Name of the experiment, where there is one.
    pub experiment: Option<String>,
    /// What was before.
    pub before: Option<Value>,
    /// What is since.
    pub after: Option<Value>,
    /// The request, where there was one.
    pub request_id: Option<String>,
}

#[derive(FromRow)]
pub(super) struct ApiKeyRow {
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
            scopes: Scopes::from_names(&row.scopes),
            replaces: row.replaces,
            created_at: row.created_at_ms,
            expires_at: row.expires_at_ms,
            revoked_at: row.revoked_at_ms,
            last_used_at: row.last_used_at_ms,
        })
    }
}

#[derive(FromRow)]
pub(super) struct AuditRow {
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

pub(super) mod sql {
    pub const API_KEYS: &str =
        "select id, digest, name, scopes, experiments, replaces, created_at_ms, expires_at_ms,
         revoked_at_ms, last_used_at_ms from api_key order by id";
    pub const ADD_API_KEY: &str =
        "insert into api_key (id, digest, name, scopes, experiments, replaces, created_at_ms,
         expires_at_ms) values ($1, $2, $3, $4, $5, $6, $7, $8)";
    pub const END_API_KEY: &str = "update api_key set expires_at_ms = $2
         where id = $1 and revoked_at_ms is null and (expires_at_ms is null or expires_at_ms > $2)";
    pub const REVOKE_API_KEY: &str =
        "update api_key set revoked_at_ms = $2 where id = $1 and revoked_at_ms is null";
    pub const NOTE_KEY_USE: &str = "update api_key set last_used_at_ms = $2
         where id = $1 and (last_used_at_ms is null or last_used_at_ms < $2)";
    pub const ADD_AUDIT: &str =
        "insert into audit (at_ms, who, what, subject, experiment, before, after, request_id, once)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (once) do nothing";
    pub const AUDIT: &str =
        "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 order by id desc limit $2";
    pub const AUDIT_OF_EXPERIMENT: &str =
        "select id, at_ms, who, what, subject, experiment, before, after, request_id from audit
         where id < $1 and experiment = $3 order by id desc limit $2";
}

/// What is done inside a transaction, for one kind of connection.
macro_rules! on_connection {
    ($name:ident, $Connection:ty) => {
        pub(super) mod $name {
            use super::super::StoreError;
            use super::{ApiKeyRecord, AuditNote, sql};

            pub async fn add_notes<'n>(
                connection: &mut $Connection,
                notes: impl IntoIterator<Item = &'n AuditNote>,
            ) -> Result<(), StoreError> {
                for note in notes {
                    sqlx::query(sql::ADD_AUDIT)
                        .bind(note.at)
                        .bind(note.by.who())
                        .bind(note.what)
                        .bind(&note.subject)
                        .bind(&note.experiment)
                        .bind(note.before.as_ref().map(ToString::to_string))
                        .bind(note.after.as_ref().map(ToString::to_string))
                        .bind(note.by.request_id())
                        .bind(&note.once)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            }

            pub async fn add_key(
                connection: &mut $Connection,
                key: &ApiKeyRecord,
                ends: Option<(&str, i64)>,
            ) -> Result<(), StoreError> {
                sqlx::query(sql::ADD_API_KEY)
                    .bind(&key.id)
                    .bind(key.digest.as_slice())
                    .bind(&key.name)
                    .bind(key.scopes.to_string())
                    .bind(
                        key.experiments.as_ref().map(|names| serde_json::json!(names).to_string()),
                    )
                    .bind(&key.replaces)
                    .bind(key.created_at)
                    .bind(key.expires_at)
                    .execute(&mut *connection)
                    .await?;
                if let Some((id, at)) = ends {
                    sqlx::query(sql::END_API_KEY).bind(id).bind(at).execute(connection).await?;
                }
                Ok(())
            }

            pub async fn note_uses(
                connection: &mut $Connection,
                uses: &[(String, i64)],
            ) -> Result<(), StoreError> {
                for (id, at) in uses {
                    sqlx::query(sql::NOTE_KEY_USE)
                        .bind(id)
                        .bind(at)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            }
        }
    };
}

on_connection!(sqlite, sqlx::SqliteConnection);
on_connection!(postgres, sqlx::PgConnection);
