//! [`AuditLog`], for both databases.

use async_trait::async_trait;

use super::backend::{Backend, Transaction};
use super::statements;
use super::value::values;
use crate::{AuditLog, AuditNote, AuditRecord, StoreError};

/// Add notes to the audit log, within the caller's transaction.
pub(super) async fn add_notes<'n>(
    transaction: &mut impl Transaction,
    notes: impl IntoIterator<Item = &'n AuditNote, IntoIter: Send> + Send,
) -> Result<(), StoreError> {
    for note in notes {
        let before = note.before.as_ref().map(ToString::to_string);
        let after = note.after.as_ref().map(ToString::to_string);
        let values = values![
            note.at,
            &note.by.who,
            note.what,
            &note.subject,
            &note.experiment,
            &before,
            &after,
            &note.by.request_id,
        ];
        transaction.run(&statements::ADD_AUDIT, values).await?;
    }
    Ok(())
}

#[async_trait]
impl<B: Backend> AuditLog for B {
    async fn audit(
        &self,
        experiment: Option<&str>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        match experiment {
            None => self.fetch(&statements::AUDIT, values![before, limit]).await,
            Some(name) => {
                self.fetch(&statements::AUDIT_OF_EXPERIMENT, values![before, limit, name]).await
            }
        }
    }
}
