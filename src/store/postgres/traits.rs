//! The traits of a store, from the SQL that both databases share.

use super::entries::{insert_copied, insert_entries};
use super::pool_mode::PgTransaction;
use super::store::PostgresStore;
use crate::store::StoreError;
use crate::store::sql::statements::{experiment_columns, is_present};
use crate::store::sql::{
    implement_audit_log, implement_experiment_log, implement_key_store, implement_member,
};

implement_audit_log!(PostgresStore, PgTransaction<'_>);
implement_key_store!(PostgresStore);
implement_member!(PostgresStore, PgTransaction<'_>);
implement_experiment_log!(PostgresStore, PgTransaction<'_>);

const LOCK_EXPERIMENT: &str = concat!(
    "select ",
    experiment_columns!(),
    " from experiment where id = $1 and ",
    is_present!(),
    " for no key update"
);

const LOCK_EPOCH: &str = "select epoch from database_set where one = 1 for share";

/// "If there is no key yet" cannot be a constraint, so only one process at a time may check and
/// add.
async fn lock_signing_keys(connection: &mut PgTransaction<'_>) -> Result<(), StoreError> {
    sqlx::query("lock table signing_key in share row exclusive mode").execute(connection).await?;
    Ok(())
}
