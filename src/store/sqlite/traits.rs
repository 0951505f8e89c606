//! The traits of a store, from the SQL that both databases share.

use sqlx::SqliteConnection;

use super::log::{LOCK_EXPERIMENT, insert_copied, insert_entries};
use super::store::SqliteStore;
use crate::store::StoreError;
use crate::store::sql::{
    implement_audit_log, implement_experiment_log, implement_key_store, implement_member,
};

implement_audit_log!(SqliteStore, SqliteConnection);
implement_key_store!(SqliteStore);
implement_member!(SqliteStore, SqliteConnection);
implement_experiment_log!(SqliteStore, SqliteConnection);

/// Needs no lock: only one transaction writes at a time.
const LOCK_EPOCH: &str = "select epoch from database_set where one = 1";

/// Does nothing: only one transaction writes at a time.
async fn lock_signing_keys(_connection: &mut SqliteConnection) -> Result<(), StoreError> {
    Ok(())
}
