//! Compares the migrations of a database with those of this program.
//!
//! During an upgrade a newer program migrates the schema while older ones still serve. An older
//! program keeps running if every migration that it does not know only expands the schema, which a
//! name such as `0007_expand_…` promises: new columns have defaults, and nothing that existed is
//! removed or changes its meaning.

use std::collections::HashMap;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

use super::error::{RUN_MIGRATE, StoreError, altered, newer};

/// Prefix of the description of a migration that older programs can live with. (The file
/// `0007_expand_x.sql` has the description `expand x`.)
const EXPAND: &str = "expand ";

/// A migration: version, description and SQL.
pub(crate) type File = (i64, &'static str, &'static str);

/// The migrations of SQLite, in order.
pub(crate) const SQLITE: &[File] =
    &[(1, "first", include_str!("../../../migrations/sqlite/0001_first.sql"))];

/// The migrations of PostgreSQL, in order.
pub(crate) const POSTGRES: &[File] =
    &[(1, "first", include_str!("../../../migrations/postgres/0001_first.sql"))];

/// A migration that is applied and not in the list is passed over, since [`compare`] decides on it.
pub(super) fn migrator(migrations: &[File]) -> Migrator {
    let migration = |&(version, description, sql): &File| {
        let sql = sql.into_sql_str();
        Migration::new(version, description.into(), MigrationType::Simple, sql, false)
    };
    let migrations: Vec<_> = migrations.iter().map(migration).collect();
    Migrator { migrations: migrations.into(), ignore_missing: true, ..Migrator::DEFAULT }
}

/// Compare the `applied` migrations (`None`: the database was never migrated) with the program's.
pub(super) fn compare(
    program: &Migrator,
    applied: Option<Vec<(i64, Vec<u8>, String)>>,
) -> Result<(), StoreError> {
    let Some(applied) = applied else {
        return Err(StoreError::Schema(format!("the database has no schema yet: {RUN_MIGRATE}")));
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
