//! [`KeyStore`](crate::store::KeyStore), for both databases.

/// Implement `KeyStore` for a store. Needs [`implement_audit_log`](super::implement_audit_log) in
/// the same module.
macro_rules! implement_key_store {
    ($Store:ty) => {
        const _: () = {
            use $crate::store::sql::rows::{ApiKeyRow, SigningKeyRow, records};
            use $crate::store::sql::statements;
            use $crate::store::{
                ApiKeyRecord, AuditNote, KeyStore, SessionId, SigningKey, StoreError,
            };

            #[async_trait::async_trait]
            impl KeyStore for $Store {
                async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
                    self.attempt(move || async move {
                        let rows: Vec<SigningKeyRow> = sqlx::query_as(statements::SIGNING_KEYS)
                            .fetch_all(self.readers())
                            .await?;
                        records(rows)
                    })
                    .await
                }

                async fn ensure_signing_key(
                    &self,
                    key: &SigningKey,
                ) -> Result<Vec<SigningKey>, StoreError> {
                    let keys = self.signing_keys().await?;
                    if !keys.is_empty() {
                        return Ok(keys);
                    }
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        lock_signing_keys(&mut transaction).await?;
                        sqlx::query(statements::ENSURE_SIGNING_KEY)
                            .bind(i64::from(key.id))
                            .bind(key.secret.as_slice())
                            .bind(key.created_at)
                            .bind(key.active_from)
                            .execute(&mut *transaction)
                            .await?;
                        Ok(transaction.commit().await?)
                    })
                    .await?;
                    self.signing_keys().await
                }

                async fn add_signing_key(
                    &self,
                    key: &SigningKey,
                    audit: &AuditNote,
                ) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        sqlx::query(statements::ADD_SIGNING_KEY)
                            .bind(i64::from(key.id))
                            .bind(key.secret.as_slice())
                            .bind(key.created_at)
                            .bind(key.active_from)
                            .execute(&mut *transaction)
                            .await?;
                        add_notes(&mut transaction, [audit]).await?;
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn remove_signing_key(
                    &self,
                    id: u32,
                    audit: &AuditNote,
                ) -> Result<bool, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let removed = sqlx::query(statements::REMOVE_SIGNING_KEY)
                            .bind(i64::from(id))
                            .execute(&mut *transaction)
                            .await?;
                        if removed.rows_affected() == 0 {
                            return Ok(false);
                        }
                        add_notes(&mut transaction, [audit]).await?;
                        transaction.commit().await?;
                        Ok(true)
                    })
                    .await
                }

                async fn api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
                    self.attempt(move || async move {
                        let rows: Vec<ApiKeyRow> =
                            sqlx::query_as(statements::API_KEYS).fetch_all(self.readers()).await?;
                        records(rows)
                    })
                    .await
                }

                async fn add_api_key(
                    &self,
                    key: &ApiKeyRecord,
                    ends: Option<(&str, i64)>,
                    audit: &AuditNote,
                ) -> Result<(), StoreError> {
                    let experiments =
                        &key.experiments.as_ref().map(|names| serde_json::json!(names).to_string());
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        sqlx::query(statements::ADD_API_KEY)
                            .bind(&key.id)
                            .bind(key.digest.as_slice())
                            .bind(&key.name)
                            .bind(&key.scopes)
                            .bind(experiments)
                            .bind(&key.replaces)
                            .bind(key.created_at)
                            .bind(key.expires_at)
                            .execute(&mut *transaction)
                            .await?;
                        if let Some((id, at)) = ends {
                            sqlx::query(statements::END_API_KEY)
                                .bind(id)
                                .bind(at)
                                .execute(&mut *transaction)
                                .await?;
                        }
                        add_notes(&mut transaction, [audit]).await?;
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn revoke_api_key(
                    &self,
                    id: &str,
                    at: i64,
                    audit: &AuditNote,
                ) -> Result<bool, StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        let revoked = sqlx::query(statements::REVOKE_API_KEY)
                            .bind(id)
                            .bind(at)
                            .execute(&mut *transaction)
                            .await?;
                        if revoked.rows_affected() == 0 {
                            return Ok(false);
                        }
                        add_notes(&mut transaction, [audit]).await?;
                        transaction.commit().await?;
                        Ok(true)
                    })
                    .await
                }

                async fn note_key_uses(&self, uses: &[(String, i64)]) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        for (id, at) in uses {
                            sqlx::query(statements::NOTE_KEY_USE)
                                .bind(id)
                                .bind(at)
                                .execute(&mut *transaction)
                                .await?;
                        }
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn ended_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
                    let read = self.attempt(move || async move {
                        let ids: Vec<Vec<u8>> = sqlx::query_scalar(statements::ENDED_SESSIONS)
                            .fetch_all(self.readers())
                            .await?;
                        Ok(ids)
                    });
                    let session = |id: Vec<u8>| {
                        id.try_into().map_err(|id: Vec<u8>| {
                            StoreError::Corrupt(format!("an ended session has {} bytes", id.len()))
                        })
                    };
                    read.await?.into_iter().map(session).collect()
                }

                async fn end_session(
                    &self,
                    session: &SessionId,
                    expires_at: i64,
                    forget_before: i64,
                ) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        sqlx::query(statements::FORGET_ENDED_SESSIONS)
                            .bind(forget_before)
                            .execute(&mut *transaction)
                            .await?;
                        sqlx::query(statements::END_SESSION)
                            .bind(session.as_slice())
                            .bind(expires_at)
                            .execute(&mut *transaction)
                            .await?;
                        Ok(transaction.commit().await?)
                    })
                    .await
                }
            }
        };
    };
}
pub(in crate::store) use implement_key_store;
