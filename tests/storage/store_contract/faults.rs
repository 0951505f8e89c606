//! Each database when it is damaged, locked, read-only or gone; and the durability of its commits.

use rankduel_store::*;

use super::fixtures::*;
use crate::support::{Kind, TestDatabase, fresh_database};

fn assert_unavailable<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Unavailable(_))), "{result:?}");
}

/// A store on a URL other than the test database's.
async fn connect_to(url: &str) -> SharedStore {
    connect(url).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Record, with each log entry, a setting of the session that writes it.
async fn spy(database: &TestDatabase) {
    database
        .execute(match database.kind {
            Kind::Sqlite => {
                "create table spied (value);
                 create trigger spy after insert on log begin
                     insert into spied select synchronous from pragma_synchronous;
                 end"
            }
            Kind::Postgres => {
                "create table spied (value bigint);
                 create function spy() returns trigger language plpgsql as $$ begin
                     insert into spied values (case current_setting('synchronous_commit')
                         when 'on' then 1 when 'remote_apply' then 2 else 0 end);
                     return null;
                 end $$;
                 create trigger spy after insert on log for each row execute function spy()"
            }
        })
        .await;
}

#[tokio::test]
async fn sqlite_commits_are_synced() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    spy(&database).await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    const FULL: i64 = 2;
    assert_eq!(database.count("select value from spied").await, FULL);
    assert_eq!(database.count("select journal_mode = 'wal' from pragma_journal_mode").await, 1);
}

#[tokio::test]
async fn postgres_commits_are_synced_whatever_the_default() {
    let database = fresh_database(Kind::Postgres).await;
    let mut nonce = 0;
    for (default, kept) in [("off", 1), ("local", 1), ("on", 1), ("remote_apply", 2)] {
        let statement = format!(
            "do $$ begin
                 execute format(
                     'alter database %I set synchronous_commit = {default}', current_database()
                 );
             end $$"
        );
        database.execute_text(statement).await;
        let store = database.store().await;
        if nonce == 0 {
            spy(&database).await;
            create(&store, "one").await;
        }
        let id = store.experiment("one").await.unwrap().unwrap().id;
        nonce += 1;
        store.append(&[(id, new_event(nonce, 1))], NOW).await.unwrap();
        assert_eq!(database.count("select value from spied").await, kept, "default {default}");
        database.execute("delete from spied").await;
    }
}

/// A distributed PostgreSQL reports a repeat under the code of an internal error. A trigger does
/// the same here.
#[tokio::test]
async fn postgres_repeats_are_recognized_whatever_their_code() {
    let database = fresh_database(Kind::Postgres).await;
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    database
        .execute(
            "create function shard() returns trigger language plpgsql as $$ begin
                 if exists (select 1 from log where nonce = new.nonce) then
                     raise exception using errcode = 'XX000', message =
                         'duplicate key value violates unique constraint \"log_nonce_102008\"';
                 end if;
                 return new;
             end $$;
             create trigger shard before insert on log for each row execute function shard()",
        )
        .await;
    // One statement, and a copy.
    for (first, last) in [(1, 2), (2, 1002)] {
        let store = database.connect().await;
        let events: Vec<_> =
            (first..=last).map(|nonce| (id, new_event(nonce.into(), nonce))).collect();
        let expected: Vec<_> = (first..=last)
            .map(|position| match position == first {
                true => Appended::Duplicate(position + 1),
                false => Appended::Recorded(position + 1),
            })
            .collect();
        assert_eq!(store.append(&events, NOW).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn postgres_reads_a_young_log_in_bounded_chunks() {
    let database = fresh_database(Kind::Postgres).await;
    let store = database.store().await;
    // The planner has no statistics for a log that has just grown.
    database.execute("alter table log set (autovacuum_enabled = off)").await;
    let id = create(&store, "one").await.id;
    let ids = [id, create(&store, "two").await.id, create(&store, "three").await.id];
    let events: Vec<_> = (0..30_000)
        .map(|number| (ids[number as usize % 3], new_event(number.into(), number)))
        .collect();
    store.append(&events, NOW).await.unwrap();

    let reader = database.connect().await;
    const READ: &str = "select coalesce(sum(idx_tup_read), 0)::bigint from pg_stat_user_indexes
         where indexrelname = 'log_pkey'";
    for after in (0..10_000).step_by(500) {
        assert_eq!(reader.read(id, after, 500).await.unwrap().len(), 500);
    }
    reader.close().await; // makes the server publish the session's statistics
    let mut read = 0;
    while read < 10_000 {
        read = database.count(READ).await;
    }
    assert!(read < 20_000, "{read} index entries were read for 10000 rows");
}

#[tokio::test]
async fn a_read_only_postgres_is_unavailable_for_writes() {
    let database = fresh_database(Kind::Postgres).await;
    let id = create(&database.store().await, "one").await.id;
    database
        .execute(
            "do $$ begin
                 execute format(
                     'alter database %I set default_transaction_read_only = on', current_database()
                 );
             end $$",
        )
        .await;
    let store = database.connect().await;
    assert_unavailable(store.append(&[(id, new_event(1, 1))], NOW).await);
    store.check().await.unwrap();
    assert_eq!(store.read(id, 1, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_missing_postgres_is_unavailable() {
    let nowhere = tempfile::tempdir().unwrap();
    let url = format!("postgres://somebody@localhost/db?host={}", nowhere.path().display());
    let store = connect_to(&url).await;
    assert_unavailable(store.check().await);
    assert_unavailable(store.migrate().await);
    assert_unavailable(store.append(&[(1, new_event(1, 1))], NOW).await);

    // A server without the database.
    let url = {
        let dropped = fresh_database(Kind::Postgres).await;
        dropped.url.clone()
    };
    assert_unavailable(connect_to(&url).await.check().await);
}

#[tokio::test]
async fn sqlite_opened_read_only_serves_reads_and_refuses_writes() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();

    let reader = connect_to(&format!("{}?mode=ro", database.url)).await;
    reader.check().await.unwrap();
    assert_eq!(reader.read(id, 1, 10).await.unwrap().len(), 1);
    assert_unavailable(reader.append(&[(id, new_event(2, 2))], NOW).await);
    assert_eq!(whole_log(&store, id).await.len(), 1);
}

#[tokio::test]
async fn sqlite_waits_for_another_writer() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let held = database.hold("begin immediate; update experiment set spec = '{}'").await;
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { store.append(&[(id, new_event(1, 1))], NOW).await })
    };
    assert_eq!(store.read(id, 1, 10).await.unwrap(), [], "reads do not wait");
    assert!(!waiting.is_finished());
    drop(held);
    assert_eq!(waiting.await.unwrap().unwrap(), [Appended::Recorded(2)]);
}

#[tokio::test]
async fn sqlite_reports_a_file_that_is_not_a_database() {
    let database = fresh_database(Kind::Sqlite).await;
    std::fs::write(database.path(), "not a database, but long enough to be looked at ".repeat(200))
        .unwrap();
    match connect(&database.url).await {
        Err(ConnectError::File { path, error }) => {
            assert_eq!(path, database.path());
            assert_corrupt(Err::<(), _>(error), "not a database");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the file was opened"),
    }
}

#[tokio::test]
async fn sqlite_reports_a_damaged_database() {
    let database = fresh_database(Kind::Sqlite).await;
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    let events: Vec<_> = (0..5000).map(|number| (id, new_event(number.into(), number))).collect();
    store.append(&events, NOW).await.unwrap();
    store.close().await; // also moves the write-ahead log into the file

    let mut bytes = std::fs::read(database.path()).unwrap();
    let schema = 20 * 4096; // the first pages hold the schema and the small tables
    assert!(bytes.len() > 2 * schema);
    bytes[schema..].fill(0xa5);
    std::fs::write(database.path(), bytes).unwrap();
    let store = database.connect().await;
    assert_corrupt(store.read(id, 0, 5000).await, "malformed");
}

#[tokio::test]
async fn sqlite_is_unavailable_where_it_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    for url in [
        format!("sqlite://{}", folder.path().display()), // a folder, not a file
        format!("sqlite://{}/none.db?mode=rw", folder.path().display()),
    ] {
        match connect(&url).await {
            Err(ConnectError::File { error, .. }) => assert_unavailable(Err::<(), _>(error)),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("{url} was opened"),
        }
    }
    let none = connect_to(&format!("sqlite://{}/none.db?mode=ro", folder.path().display())).await;
    assert_unavailable(none.check().await);
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "a file was created");
}
