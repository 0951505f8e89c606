//! A pooler between the program and PostgreSQL. `store_contract` runs behind one, too.

use rankduel_store::{StoreError, connect};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _, Row as _};

use crate::replicas::replication::each_follows;
use crate::support::pooler::Pooler;
use crate::support::server::{FREE_PORT, Process, outcome, rankduel_on};
use crate::support::{Kind, fresh_database, fresh_pooled_database};

const ADVISORY_LOCKS: &str = "select count(*) from pg_locks where locktype = 'advisory'
     and database = (select oid from pg_database where datname = current_database())";

/// Without the parameter, statements would fail later, one by one.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_shares_sessions_is_found_at_the_start() {
    let database = fresh_pooled_database().await;
    let url = database.pooler.as_ref().expect("a pooler").url();
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate"]] {
        let (code, _, error) = outcome(rankduel_on(&url, command));
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("add pool_mode=transaction to the URL"), "{error}");
    }
    assert_eq!(database.count(ADVISORY_LOCKS).await, 0, "a session of the pooler keeps a lock");
    database.store().await;
    let store = connect(&url).await.unwrap();
    let checked = store.check().await;
    assert!(matches!(checked, Err(StoreError::Pooled(_))), "{checked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_keeps_sessions_needs_no_parameter() {
    let database = fresh_database(Kind::Postgres).await;
    let pooler = Pooler::start(&database.url, "session").await;
    let store = connect(&pooler.url()).await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
}

/// The lock of migrations belongs to a session.
#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_not_migrated_through_a_shared_pooler() {
    let database = fresh_pooled_database().await;
    let url = database.pooler.as_ref().expect("a pooler").declared_url();
    let migrate = |url: &str| outcome(rankduel_on(url, &["migrate"]));
    let (code, _, error) = migrate(&url);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("the URL of the database itself"), "{error}");
    assert_eq!(migrate(&database.url).0, Some(0));
    let (code, said, error) = migrate(&url);
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("already"), "{said}");
}

/// Neither an empty database nor one that serves others.
#[tokio::test(flavor = "multi_thread")]
async fn a_url_for_listening_that_leads_elsewhere_is_refused() {
    let pooled = fresh_pooled_database().await;
    let alone = fresh_database(Kind::Postgres).await;
    let elsewhere = fresh_database(Kind::Postgres).await;
    const TABLES: &str = "select count(*) from pg_tables where schemaname = 'public'";
    let urls = [pooled.pooler.as_ref().expect("a pooler").declared_url(), alone.url.clone()];
    for is_empty in [true, false] {
        if !is_empty {
            elsewhere.store().await;
        }
        for url in &urls {
            let serve = ["serve", FREE_PORT, "--listen-database-url", &elsewhere.url];
            let (code, _, error) = outcome(rankduel_on(url, &serve));
            assert_eq!(code, Some(1), "{error}");
            assert!(error.contains("leads to another database"), "{error}");
            assert_eq!(elsewhere.count(TABLES).await == 0, is_empty);
        }
    }
    assert_eq!(pooled.count(TABLES).await, 0);
    alone.store().await;
}

/// Settings reach every transaction and no other client of the pooler.
#[tokio::test(flavor = "multi_thread")]
async fn settings_hold_in_each_transaction_and_do_not_leak() {
    let database = fresh_pooled_database().await;
    database
        .execute(
            "do $$ begin
                 execute format(
                     'alter database %I set synchronous_commit = off', current_database()
                 );
             end $$",
        )
        .await;
    let store = database.store().await;
    database
        .execute(
            "create table spied (setting text);
             create function spy() returns trigger language plpgsql as $$ begin
                 insert into spied select current_setting(name) from unnest(
                     array['synchronous_commit', 'lock_timeout', 'enable_sort']) as name;
                 return null;
             end $$;
             create trigger spy after insert on experiment execute function spy()",
        )
        .await;
    super::store_contract::fixtures::create(&store, "one").await;
    const SPIED: &str = "select count(*) from spied where setting in ('on', '5s', 'off')";
    assert_eq!(database.count(SPIED).await, 3);

    let pooler = database.pooler.as_ref().expect("a pooler");
    let other: PgConnectOptions = pooler.url().parse().unwrap();
    let mut other = other.extra_float_digits(None).connect().await.unwrap();
    const SETTINGS: &str = "select current_setting('synchronous_commit')
         || current_setting('lock_timeout') || current_setting('enable_sort')";
    let row = other.fetch_one(SETTINGS).await.unwrap();
    assert_eq!(row.get::<String, _>(0), "off0on");
}

/// One server listens to the database itself, and the other polls. The first migrates.
#[tokio::test(flavor = "multi_thread")]
async fn servers_behind_a_pooler_follow_each_other() {
    let database = fresh_pooled_database().await;
    let pooler = database.pooler.as_ref().expect("a pooler");
    let serve = |flags: &[&str]| Process::serving(&pooler.declared_url(), flags);
    let never_polls =
        ["--listen-database-url", database.url.as_str(), "--poll-milliseconds", "3600000"];
    let (first, listening) = serve(&never_polls);
    let (second, polling) = serve(&["--poll-milliseconds", "20"]);
    each_follows(&listening, &polling).await;
    for process in [first, second] {
        process.stop();
    }
}
