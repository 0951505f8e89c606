//! [`KeyStore`], for both databases.

use async_trait::async_trait;

use super::audit_log::add_notes;
use super::backend::{Backend, Transaction};
use super::statement::Statement;
use super::statements;
use super::value::{Value, values};
use crate::{ApiKeyRecord, AuditNote, KeyStore, SessionId, SigningKey, StoreError};

#[async_trait]
impl<B: Backend> KeyStore for B {
    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        self.fetch(&statements::SIGNING_KEYS, &[]).await
    }

    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError> {
        let keys = self.signing_keys().await?;
        if !keys.is_empty() {
            return Ok(keys);
        }
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            transaction.lock_signing_keys().await?;
            transaction.run(&statements::ENSURE_SIGNING_KEY, &signing_key(key)).await?;
            transaction.commit().await
        })
        .await?;
        self.signing_keys().await
    }

    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError> {
        change_noted(self, &statements::ADD_SIGNING_KEY, &signing_key(key), audit).await.map(drop)
    }

    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError> {
        change_noted(self, &statements::REMOVE_SIGNING_KEY, values![id], audit).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        self.fetch(&statements::API_KEYS, &[]).await
    }

    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError> {
        let experiments =
            &key.experiments.as_ref().map(|names| serde_json::json!(names).to_string());
        let values = values![
            &key.id,
            key.digest.as_slice(),
            &key.name,
            &key.scopes,
            experiments,
            &key.replaces,
            key.created_at,
            key.expires_at,
        ];
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            transaction.run(&statements::ADD_API_KEY, values).await?;
            if let Some((id, at)) = ends {
                transaction.run(&statements::END_API_KEY, values![id, at]).await?;
            }
            add_notes(&mut transaction, [audit]).await?;
            transaction.commit().await
        })
        .await
    }

    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        change_noted(self, &statements::REVOKE_API_KEY, values![id, at], audit).await
    }

    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            for (id, at) in uses {
                transaction.run(&statements::NOTE_KEY_USE, values![id, at]).await?;
            }
            transaction.commit().await
        })
        .await
    }

    async fn ended_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let rows: Vec<(Vec<u8>,)> = self.fetch(&statements::ENDED_SESSIONS, &[]).await?;
        let session = |(id,): (Vec<u8>,)| {
            id.try_into().map_err(|id: Vec<u8>| {
                StoreError::Corrupt(format!("an ended session has {} bytes", id.len()))
            })
        };
        rows.into_iter().map(session).collect()
    }

    async fn end_session(
        &self,
        session: &SessionId,
        expires_at: i64,
        forget_before: i64,
    ) -> Result<(), StoreError> {
        let ended = values![session.as_slice(), expires_at];
        self.attempt(|| async {
            let mut transaction = self.begin().await?;
            transaction.run(&statements::FORGET_ENDED_SESSIONS, values![forget_before]).await?;
            transaction.run(&statements::END_SESSION, ended).await?;
            transaction.commit().await
        })
        .await
    }
}

fn signing_key(key: &SigningKey) -> [Value<'_>; 4] {
    [key.id.into(), key.secret.as_slice().into(), key.created_at.into(), key.active_from.into()]
}

/// Run a statement and write the note, unless the statement changes nothing. Returns whether it
/// changed something.
pub(super) async fn change_noted(
    backend: &impl Backend,
    statement: &'static Statement,
    values: &[Value<'_>],
    audit: &AuditNote,
) -> Result<bool, StoreError> {
    backend
        .attempt(|| async {
            let mut transaction = backend.begin().await?;
            if transaction.run(statement, values).await? == 0 {
                return Ok(false);
            }
            add_notes(&mut transaction, [audit]).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
}
