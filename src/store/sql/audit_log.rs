//! [`AuditLog`](crate::store::AuditLog), for both databases.

/// Implement `AuditLog` for a store, and define `add_notes` for its connections.
macro_rules! implement_audit_log {
    ($Store:ty, $Connection:ty) => {
        /// Add notes to the audit log, within the caller's transaction.
        async fn add_notes<'n>(
            connection: &mut $Connection,
            notes: impl IntoIterator<Item = &'n $crate::store::AuditNote>,
        ) -> Result<(), $crate::store::StoreError> {
            for note in notes {
                sqlx::query($crate::store::sql::statements::ADD_AUDIT)
                    .bind(note.at)
                    .bind(&note.by.who)
                    .bind(note.what)
                    .bind(&note.subject)
                    .bind(&note.experiment)
                    .bind(note.before.as_ref().map(ToString::to_string))
                    .bind(note.after.as_ref().map(ToString::to_string))
                    .bind(&note.by.request_id)
                    .bind(&note.once)
                    .execute(&mut *connection)
                    .await?;
            }
            Ok(())
        }

        const _: () = {
            use $crate::store::sql::rows::{AuditRow, records};
            use $crate::store::sql::statements;
            use $crate::store::{AuditLog, AuditNote, AuditRecord, StoreError};

            #[async_trait::async_trait]
            impl AuditLog for $Store {
                async fn add_audit(&self, notes: &[AuditNote]) -> Result<(), StoreError> {
                    self.attempt(move || async move {
                        let mut transaction = self.begin().await?;
                        add_notes(&mut transaction, notes).await?;
                        Ok(transaction.commit().await?)
                    })
                    .await
                }

                async fn audit(
                    &self,
                    experiment: Option<&str>,
                    before: i64,
                    limit: u32,
                ) -> Result<Vec<AuditRecord>, StoreError> {
                    self.attempt(move || async move {
                        let query = match experiment {
                            None => sqlx::query_as(statements::AUDIT)
                                .bind(before)
                                .bind(i64::from(limit)),
                            Some(name) => sqlx::query_as(statements::AUDIT_OF_EXPERIMENT)
                                .bind(before)
                                .bind(i64::from(limit))
                                .bind(name),
                        };
                        let rows: Vec<AuditRow> = query.fetch_all(self.readers()).await?;
                        records(rows)
                    })
                    .await
                }
            }
        };
    };
}
pub(in crate::store) use implement_audit_log;
