//! What the test binaries share: a fresh database for each test, servers, and a client.
//!
//! Each binary uses a part of this, so what one leaves unused is no warning.
#![allow(dead_code)]

pub mod client;
pub mod failing_store;
pub mod server;
pub mod service;
pub mod webdriver;

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use rankduel::store::{SharedStore, connect};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// The environment variable that names the server on which tests make their databases.
pub const POSTGRES_URL: &str = "RANKDUEL_TEST_POSTGRES_URL";

/// The databases that rankduel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
}

/// Both, for a loop.
pub const KINDS: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

/// A database of one test, gone when this is dropped.
pub struct TestDatabase {
    /// Which it is.
    pub kind: Kind,
    /// For [`connect`] and the command line.
    pub url: String,
    remains: Remains,
}

/// A connection that a test holds.
pub enum Held {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

/// What there is to clear away.
enum Remains {
    Folder(TempDir),
    Database { server: Box<PgConnectOptions>, name: String },
}

/// A new and empty database; nothing is migrated.
pub async fn fresh_database(kind: Kind) -> TestDatabase {
    match kind {
        Kind::Sqlite => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let url = format!("sqlite://{}/rankduel.db", folder.path().display());
            TestDatabase { kind, url, remains: Remains::Folder(folder) }
        }
        Kind::Postgres => {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let server = postgres_server();
            let name =
                format!("test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            // a process that died may have had this number and left its database
            run(&server, &format!("drop database if exists {name} with (force)")).await;
            run(&server, &format!("create database {name}")).await;
            let url = server.clone().database(&name).to_url_lossy().to_string();
            TestDatabase {
                kind,
                url,
                remains: Remains::Database { server: Box::new(server), name },
            }
        }
    }
}

impl TestDatabase {
    /// A store on this database, its schema as it is.
    pub async fn connect(&self) -> SharedStore {
        connect(&self.url).await.unwrap_or_else(|error| panic!("{:?}: {error}", self.kind))
    }

    /// A store on this database with the program's schema.
    pub async fn store(&self) -> SharedStore {
        let store = self.connect().await;
        store.migrate().await.unwrap_or_else(|error| panic!("{:?}: {error}", self.kind));
        store
    }

    /// Run statements behind the store's back.
    pub async fn execute(&self, statements: &'static str) {
        self.execute_text(statements.into()).await;
    }

    /// The same with a text made on the spot.
    pub async fn execute_text(&self, statements: String) {
        match self.hold_text(statements).await {
            Held::Sqlite(connection) => connection.close().await.unwrap(),
            Held::Postgres(connection) => connection.close().await.unwrap(),
        }
    }

    /// Run statements behind the store's back, and keep what they hold (locks, a transaction) until
    /// the answer is dropped.
    pub async fn hold(&self, statements: &'static str) -> Held {
        self.hold_text(statements.into()).await
    }

    async fn hold_text(&self, statements: String) -> Held {
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

    /// The one number that a statement gives, behind the store's back.
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

    /// The file, where there is one.
    pub fn path(&self) -> &std::path::Path {
        std::path::Path::new(self.url.strip_prefix("sqlite://").expect("an SQLite database"))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Remains::Database { server, name } = &self.remains else { return };
        let (server, statement) =
            (server.clone(), format!("drop database if exists {name} with (force)"));
        // on a runtime of its own, for a test that fails is on its way out of its own
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

/// The server, or a failed test that says how to get one.
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

/// Each named test, a function of its database, on each database.
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
