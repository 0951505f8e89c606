//! [`KeyStore`] of several databases: all keys are in one of them.

use async_trait::async_trait;

use super::set::DatabaseSet;
use crate::store::{ApiKeyRecord, AuditNote, KeyStore, SessionId, SigningKey, StoreError};

#[async_trait]
impl KeyStore for DatabaseSet {
    async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.signing_keys().await)
    }

    async fn ensure_signing_key(&self, key: &SigningKey) -> Result<Vec<SigningKey>, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.ensure_signing_key(key).await)
    }

    async fn add_signing_key(&self, key: &SigningKey, audit: &AuditNote) -> Result<(), StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.add_signing_key(key, audit).await)
    }

    async fn remove_signing_key(&self, id: u32, audit: &AuditNote) -> Result<bool, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.remove_signing_key(id, audit).await)
    }

    async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.api_keys().await)
    }

    async fn add_api_key(
        &self,
        key: &ApiKeyRecord,
        ends: Option<(&str, i64)>,
        audit: &AuditNote,
    ) -> Result<(), StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.add_api_key(key, ends, audit).await)
    }

    async fn revoke_api_key(
        &self,
        id: &str,
        at: i64,
        audit: &AuditNote,
    ) -> Result<bool, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.revoke_api_key(id, at, audit).await)
    }

    async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.note_key_uses(uses).await)
    }

    async fn ended_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.ended_sessions().await)
    }

    async fn end_session(
        &self,
        session: &SessionId,
        expires_at: i64,
        forget_before: i64,
    ) -> Result<(), StoreError> {
        let keys = self.keys().await?;
        keys.of(keys.store.end_session(session, expires_at, forget_before).await)
    }
}
