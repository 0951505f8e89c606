//! Whether a database has exactly the migrations of this program.

use std::collections::HashMap;

use sqlx::migrate::Migrator;

use super::StoreError;
use super::error::{RUN_MIGRATE, altered, newer};

/// Compare what was applied (`None`: the database was never migrated) with what the program has.
pub(super) fn compare(program: &Migrator, applied: Option<Vec<(i64, Vec<u8>)>>) -> Result<(), StoreError> {
    let Some(applied) = applied else {
        return Err(StoreError::Schema(format!("there is none yet: {RUN_MIGRATE}")));
    };
    let mut ours: HashMap<i64, &[u8]> =
        program.iter().map(|migration| (migration.version, &*migration.checksum)).collect();
    for (version, checksum) in &applied {
        match ours.remove(version) {
            None => return Err(newer(*version)),
            Some(known) if known != checksum => return Err(altered(*version)),
            Some(_) => {}
        }
    }
    match ours.into_keys().min() {
        None => Ok(()),
        Some(version) => Err(StoreError::Schema(format!(
            "it is older than this program and lacks migration {version}: {RUN_MIGRATE}"
        ))),
    }
}
