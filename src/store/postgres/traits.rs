//! The traits of a store, from the SQL that both databases share.

use super::entries::{insert_copied, insert_entries};
use super::pool_mode::PgTransaction;
use super::statements::{LOCK_EPOCH, LOCK_EXPERIMENT, LOCK_SIGNING_KEYS};
use super::store::PostgresStore;
use crate::store::StoreError;
use crate::store::sql::{
    implement_audit_log, implement_experiment_log, implement_key_store, implement_member,
};

implement_audit_log!(PostgresStore, PgTransaction<'_>);
implement_key_store!(PostgresStore);
implement_member!(PostgresStore, PgTransaction<'_>);
implement_experiment_log!(PostgresStore, PgTransaction<'_>);

async fn lock_signing_keys(connection: &mut PgTransaction<'_>) -> Result<(), StoreError> {
    sqlx::query(LOCK_SIGNING_KEYS).execute(connection).await?;
    Ok(())
}
