//! Shared by the test binaries: a new database for each test, servers, and a client.
//!
//! Each binary uses only a part of this module, hence `allow(dead_code)`.
#![allow(dead_code)]

pub mod client;
pub mod failing_store;
pub mod haproxy;
pub mod pooler;
pub mod server;
pub mod service;
pub mod webdriver;

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use rankduel_store::{SharedStore, connect_with};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// The environment variable with the URL of the server on which tests create their databases.
pub const POSTGRES_URL: &str = "RANKDUEL_TEST_POSTGRES_URL";

/// The supported databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Both kinds, for loops.
pub const KINDS: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

/// The database of one test, removed when this is dropped.
pub struct TestDatabase {
    /// Its kind.
    pub kind: Kind,
    /// Its URL, for [`connect_with`] and the command line.
    pub url: String,
    /// The pooler in front of it, which its stores use.
    pub pooler: Option<pooler::Pooler>,
    /// Whether it stands in for a distributed database.
    distributed: bool,
    remains: Remains,
}

/// A connection that a test holds.
pub enum Held {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// The resources to remove.
enum Remains {
    Folder(TempDir),
    Database { server: Box<PgConnectOptions>, name: String },
}

/// A new, empty database without a schema.
pub async fn fresh_database(kind: Kind) -> TestDatabase {
    match kind {
        Kind::Sqlite => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let url = format!("sqlite://{}/rankduel.db", folder.path().display());
            TestDatabase {
                kind,
                url,
                pooler: None,
                distributed: false,
                remains: Remains::Folder(folder),
            }
        }
        Kind::Postgres => {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let server = postgres_server();
            let name =
                format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            // A process that died may have had the same id and left its database behind.
            run(&server, &format!("drop database if exists {name} with (force)")).await;
            run(&server, &format!("create database {name}")).await;
            let url = server.clone().database(&name).to_url_lossy().to_string();
            TestDatabase {
                kind,
                url,
                pooler: None,
                distributed: false,
                remains: Remains::Database { server: Box::new(server), name },
            }
        }
    }
}

/// A new, empty database of the other kind, for copies.
pub async fn fresh_database_beside(database: &TestDatabase) -> TestDatabase {
    fresh_database(match database.kind {
        Kind::Sqlite => Kind::Postgres,
        Kind::Postgres => Kind::Sqlite,
    })
    .await
}

/// A new, empty PostgreSQL database behind a pooler in transaction mode.
pub async fn fresh_pooled_database() -> TestDatabase {
    let mut database = fresh_database(Kind::Postgres).await;
    database.pooler = Some(pooler::Pooler::start(&database.url, "transaction").await);
    database
}

/// A new, empty PostgreSQL database that looks distributed to the program, and refuses what the
/// extension would refuse.
pub async fn fresh_distributed_database() -> TestDatabase {
    let mut database = fresh_database(Kind::Postgres).await;
    database.distributed = true;
    database
}

/// A database with the extension's list of tables looks distributed. A transaction that
/// writes rows of two experiments fails.
const DISTRIBUTED: &str = "
    create table if not exists pg_dist_partition (
        logicalrelid regclass primary key, partmethod \"char\"
    );
    insert into pg_dist_partition values ('log', 'h') on conflict do nothing;
    create table if not exists reached (transaction bigint, experiment bigint);
    create index if not exists reached_by_transaction on reached (transaction);
    create or replace function reach() returns trigger language plpgsql as $$
    begin
        if tg_table_name = 'log' then
            insert into reached
            select txid_current(), experiment_id from written group by experiment_id;
        else
            insert into reached select txid_current(), id from written group by id;
        end if;
        if (select count(distinct experiment) from reached
            where transaction = txid_current()) > 1
        then
            raise exception using errcode = '0A000',
                message = 'could not run distributed query with FOR UPDATE/SHARE commands';
        end if;
        return null;
    end $$;
    create or replace trigger reach after insert on log
        referencing new table as written for each statement execute function reach();
    create or replace trigger reach after update on experiment
        referencing new table as written for each statement execute function reach();
    create or replace trigger reach_new after insert on experiment
        referencing new table as written for each statement execute function reach();
";

impl TestDatabase {
    /// A store on this database; no migrations are run.
    pub async fn connect(&self) -> SharedStore {
        let connected = match &self.pooler {
            None => connect_with(&self.url, None).await,
            Some(pooler) => connect_with(&pooler.declared_url(), Some(&self.url)).await,
        };
        connected.unwrap_or_else(|error| panic!("{:?}: {error}", self.kind))
    }

    /// A store on this database, migrated to the current schema.
    pub async fn store(&self) -> SharedStore {
        let store = self.connect().await;
        store.migrate().await.unwrap_or_else(|error| panic!("{:?}: {error}", self.kind));
        if self.distributed {
            self.execute(DISTRIBUTED).await;
            store.check().await.unwrap_or_else(|error| panic!("{error}"));
        }
        store
    }

    /// Run SQL statements directly, without the store.
    pub async fn execute(&self, statements: &'static str) {
        self.execute_text(statements.into()).await;
    }

    /// Run SQL statements that are built at run time.
    pub async fn execute_text(&self, statements: String) {
        match self.hold_text(statements).await {
            Held::Sqlite(connection) => connection.close().await.unwrap(),
            Held::Postgres(connection) => connection.close().await.unwrap(),
        }
    }

    /// Run SQL statements directly, and keep their locks and transaction until the returned
    /// connection is dropped.
    pub async fn hold(&self, statements: &'static str) -> Held {
        self.hold_text(statements.into()).await
    }

    /// [`TestDatabase::hold`] for SQL statements that are built at run time.
    pub async fn hold_text(&self, statements: String) -> Held {
        match self.kind {
            Kind::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                connection.execute(AssertSqlSafe(statements)).await.unwrap();
                Held::Sqlite(connection)
            }
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                connection.execute(AssertSqlSafe(statements)).await.unwrap();
                Held::Postgres(connection)
            }
        }
    }

    /// The single number that an SQL query returns, read directly.
    pub async fn count(&self, statement: &'static str) -> i64 {
        match self.kind {
            Kind::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
            }
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap()
            }
        }
    }

    /// The texts that an SQL query returns, read directly.
    pub async fn texts(&self, statement: String) -> Vec<Option<String>> {
        let statement = AssertSqlSafe(statement);
        match self.kind {
            Kind::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(statement).fetch_all(&mut connection).await.unwrap()
            }
            Kind::Postgres => {
                let mut connection = PgConnection::connect(&self.url).await.unwrap();
                sqlx::query_scalar(statement).fetch_all(&mut connection).await.unwrap()
            }
        }
    }

    /// The path of the SQLite file.
    pub fn path(&self) -> &std::path::Path {
        std::path::Path::new(self.url.strip_prefix("sqlite://").expect("an SQLite database"))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Remains::Database { server, name } = &self.remains else { return };
        let (server, statement) =
            (server.clone(), format!("drop database if exists {name} with (force)"));
        // A failing test may be shutting down its own runtime, so use a separate one.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(run(&server, &statement));
        });
        if dropping.join().is_err() && !std::thread::panicking() {
            panic!("the test's database could not be dropped");
        }
    }
}

/// The test server; without one, the test fails with a message that says how to start it.
fn postgres_server() -> PgConnectOptions {
    let url = std::env::var(POSTGRES_URL).unwrap_or_else(|_| {
        panic!(
            "{POSTGRES_URL} is not set: run ./scripts/test, which starts a PostgreSQL server for the tests"
        )
    });
    PgConnectOptions::from_str(&url).unwrap_or_else(|error| panic!("{POSTGRES_URL}: {error}"))
}

async fn run(server: &PgConnectOptions, statement: &str) {
    let mut connection = server.connect().await.expect("a connection to the test server");
    connection
        .execute(AssertSqlSafe(statement))
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
    connection.close().await.expect("closing the connection to the test server");
}

/// Runs each named test on both databases, and on PostgreSQL behind a pooler.
#[allow(unused_macros)]
macro_rules! on_all_databases {
    ($($test:ident)*) => {
        on_both_databases! { $($test)* }
        mod pooled {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(crate::support::fresh_pooled_database().await).await;
                }
            )*
        }
    };
}

/// Runs each named test, a function that takes a database, on both databases.
#[allow(unused_macros)]
macro_rules! on_both_databases {
    ($($test:ident)*) => {
        mod sqlite {
            use crate::support::{Kind, fresh_database};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(fresh_database(Kind::Sqlite).await).await;
                }
            )*
        }
        mod postgres {
            use crate::support::{Kind, fresh_database};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(fresh_database(Kind::Postgres).await).await;
                }
            )*
        }
    };
}

/// Runs each named test on PostgreSQL alone: for several servers, which an SQLite file refuses.
#[allow(unused_macros)]
macro_rules! on_postgres {
    ($($test:ident)*) => {
        mod postgres {
            use crate::support::{Kind, fresh_database};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(fresh_database(Kind::Postgres).await).await;
                }
            )*
        }
    };
}

/// Runs each named test on SQLite alone: for what is the same on every database.
#[allow(unused_macros)]
macro_rules! on_sqlite {
    ($($test:ident)*) => {
        mod sqlite_only {
            use crate::support::{Kind, fresh_database};
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(fresh_database(Kind::Sqlite).await).await;
                }
            )*
        }
    };
}
