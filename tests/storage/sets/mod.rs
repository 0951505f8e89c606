//! Several databases as one store.

mod commands;
mod lists;
mod membership;
mod moves;
mod stopped_moves;

use rankduel::store::{Database as _, DatabaseSet};

use crate::support::{Kind, TestDatabase, fresh_database};

/// A set of these databases, as one process has it. Not checked and not joined.
async fn open(databases: &[&TestDatabase]) -> DatabaseSet {
    let urls: Vec<_> = databases.iter().map(|database| database.url.clone()).collect();
    DatabaseSet::open(&urls, &[]).await.expect("valid URLs")
}

/// A second database and the set of both.
async fn with_second(first: &TestDatabase) -> (TestDatabase, DatabaseSet) {
    let second = fresh_database(first.kind).await;
    let set = open(&[first, &second]).await;
    set.migrate().await.expect("two empty databases");
    set.check().await.expect("a set");
    (second, set)
}

/// Make the database refuse a step: rows of `table` that `event` (such as `update`) makes, if they
/// meet `condition`.
async fn refuse(database: &TestDatabase, table: &str, event: &str, condition: &str) {
    let statements = match database.kind {
        Kind::Sqlite => format!(
            "create trigger refused before {event} on {table} when {condition}
             begin select raise(abort, 'refused by the test'); end"
        ),
        Kind::Postgres => format!(
            "create function refuse() returns trigger language plpgsql
             as $$ begin raise exception 'refused by the test'; end $$;
             create trigger refused before {event} on {table} for each row when ({condition})
             execute function refuse()"
        ),
    };
    database.execute_text(statements).await;
}

/// Undo [`refuse`].
async fn allow(database: &TestDatabase, table: &str) {
    database
        .execute_text(match database.kind {
            Kind::Sqlite => "drop trigger refused".to_owned(),
            Kind::Postgres => {
                format!("drop trigger refused on {table}; drop function refuse()")
            }
        })
        .await;
}

/// Make a PostgreSQL database unreachable, by the connection of another. Returns its name.
async fn take_down(by: &TestDatabase, database: &TestDatabase) -> String {
    let url = database.url.split('?').next().expect("a URL");
    let name = url.rsplit('/').next().expect("a name").to_owned();
    by.execute_text(format!(
        "alter database {name} allow_connections false;
         select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '{name}'"
    ))
    .await;
    name
}

/// Undo [`take_down`].
async fn bring_back(by: &TestDatabase, name: &str) {
    by.execute_text(format!("alter database {name} allow_connections true")).await;
}
