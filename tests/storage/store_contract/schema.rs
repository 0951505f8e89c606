//! Migrations, the check of the schema, and closing.

use rankduel_store::*;

use super::fixtures::*;
use crate::support::TestDatabase;

on_both_databases! {
    repeated_and_concurrent_migrations_change_nothing
    a_missing_schema_is_reported
    a_newer_migration_that_only_expands_is_accepted
    a_changed_migration_is_reported
    a_closed_store_is_unavailable
}

fn assert_schema_error<T: std::fmt::Debug>(result: Result<T, StoreError>, advice: &str) {
    match result {
        Err(StoreError::Schema(message)) => assert!(message.contains(advice), "{message}"),
        other => panic!("{other:?}"),
    }
}

async fn repeated_and_concurrent_migrations_change_nothing(database: TestDatabase) {
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let url = database.url.clone();
            tokio::spawn(async move {
                let store = connect(&url).await.unwrap();
                store.migrate().await.unwrap();
                store.check().await.unwrap();
                store.close().await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.append(&[(id, new_event(1, 1))], NOW).await.unwrap();
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    assert_eq!(whole_log(&store, id).await.len(), 1);
}

async fn a_missing_schema_is_reported(database: TestDatabase) {
    let store = database.connect().await;
    assert_schema_error(store.check().await, "run `rankduel migrate`");
    assert_schema_error(store.append(&[(1, new_event(1, 1))], NOW).await, "run `rankduel migrate`");
    let listed = store.listed(&ListFilter::default(), None, 1).await;
    assert_schema_error(listed, "run `rankduel migrate`");
    store.migrate().await.unwrap();
    store.check().await.unwrap();
    database.execute("delete from _sqlx_migrations").await;
    assert_schema_error(store.check().await, "run `rankduel migrate`");
}

async fn a_newer_migration_that_only_expands_is_accepted(database: TestDatabase) {
    let store = database.store().await;
    database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             select 999999, 'expand the future', success, checksum, 1
             from _sqlx_migrations where version = 1",
        )
        .await;
    store.check().await.unwrap();
    store.migrate().await.unwrap();
}

async fn a_changed_migration_is_reported(database: TestDatabase) {
    let store = database.store().await;
    database
        .execute(
            "update _sqlx_migrations set description = 'x', checksum = substr(checksum, 2)
             where version = 1",
        )
        .await;
    assert_schema_error(store.check().await, "migration 1");
    assert_schema_error(store.migrate().await, "migration 1");
}

async fn a_closed_store_is_unavailable(database: TestDatabase) {
    let store = database.store().await;
    let id = create(&store, "one").await.id;
    store.close().await;
    let answer = store.append(&[(id, new_event(1, 1))], NOW).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    let again = database.connect().await;
    assert_eq!(again.append(&[(id, new_event(1, 1))], NOW).await.unwrap(), [Appended::Recorded(2)]);
}
