//! Whether a database has the migrations of this program.
//!
//! During an upgrade a newer program has brought the schema forward while older ones still serve.
//! They go on if every migration that they do not know only expands the schema, which is what a
//! name such as `0007_expand_…` promises: new columns have defaults, and nothing that was there
//! goes or changes its meaning.

use std::collections::HashMap;

use sqlx::migrate::Migrator;

use super::StoreError;
use super::error::{RUN_MIGRATE, altered, newer};

/// How the description of a migration starts that older programs can live with. (The file
/// `0007_expand_x.sql` has the description `expand x`.)
const EXPAND: &str = "expand ";

/// Compare what was applied (`None`: the database was never migrated) with what the program has.
pub(super) fn compare(
    program: &Migrator,
    applied: Option<Vec<(i64, Vec<u8>, String)>>,
) -> Result<(), StoreError> {
    let Some(applied) = applied else {
        return Err(StoreError::Schema(format!("there is none yet: {RUN_MIGRATE}")));
    };
    let mut ours: HashMap<i64, &[u8]> =
        program.iter().map(|migration| (migration.version, &*migration.checksum)).collect();
    for (version, checksum, description) in &applied {
        match ours.remove(version) {
            None if description.starts_with(EXPAND) => {}
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
