//! Which databases make a set, and which lists are refused.

use rankduel::store::*;

use super::{open, with_second};
use crate::store_contract::fixtures::*;
use crate::support::{TestDatabase, fresh_database};

on_both_databases! {
    a_database_that_served_alone_becomes_the_first_of_a_set
    a_list_that_lacks_a_database_is_refused
    a_database_with_content_of_its_own_cannot_join
    a_process_that_does_not_know_all_databases_creates_nothing
    keys_and_sessions_are_in_one_database
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, StoreError>, advice: &[&str]) {
    let error = result.expect_err("it is refused");
    assert!(matches!(error.kind(), StoreError::Set(_)), "{error:?}");
    let message = error.to_string();
    assert!(advice.iter().all(|part| message.contains(part)), "{message}: {advice:?}");
    assert!(!message.contains('\n'), "{message}");
}

/// Host and database, or path, as messages have it.
fn place(database: &TestDatabase) -> String {
    let url = database.url.split('?').next().expect("a URL");
    url.rsplit('/').next().expect("a name").to_owned()
}

async fn a_database_that_served_alone_becomes_the_first_of_a_set(first: TestDatabase) {
    let alone = first.store().await;
    let old = create(&alone, "old").await;
    alone.append(&[(old.id, new_event(1, 1))], NOW).await.unwrap();
    alone.check().await.unwrap();

    let second = fresh_database(first.kind).await;
    let set = open(&[&first, &second]).await;
    set.migrate().await.unwrap();
    set.check().await.unwrap();
    assert_eq!(set.experiment("old").await.unwrap().map(|it| it.id), Some(old.id));
    let appended = set.append(&[(old.id, new_event(2, 2))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Recorded(2)]);

    let reversed = open(&[&second, &first]).await;
    reversed.check().await.unwrap();
    reversed.migrate().await.unwrap();
    assert_eq!(reversed.read(old.id, 0, 9).await.unwrap().len(), 2);
}

async fn a_list_that_lacks_a_database_is_refused(first: TestDatabase) {
    let second = fresh_database(first.kind).await;
    let (one, other) = (first.store().await, second.store().await);
    let set = open(&[&first, &second]).await;
    assert_refused(set.check().await, &["rankduel migrate"]);
    one.check().await.unwrap();
    set.migrate().await.unwrap();
    let (in_first, in_second) = (place(&first), place(&second));
    assert_refused(one.check().await, &["--database-url", &in_second]);
    assert_refused(other.check().await, &["--database-url", &in_first]);

    let third = fresh_database(first.kind).await;
    assert_refused(open(&[&first, &third]).await.migrate().await, &[&in_second, "add it"]);
    assert_refused(open(&[&third, &second]).await.migrate().await, &[&in_first, "add it"]);
    set.check().await.unwrap();
    third.store().await.check().await.unwrap();

    let three = open(&[&third, &first, &second]).await;
    three.migrate().await.unwrap();
    three.check().await.unwrap();
    assert_refused(set.check().await, &[&place(&third), "add it"]);
}

async fn a_database_with_content_of_its_own_cannot_join(first: TestDatabase) {
    let second = fresh_database(first.kind).await;
    let (one, other) = (first.store().await, second.store().await);
    create(&other, "other").await;
    let joined = open(&[&first, &second]).await.migrate().await;
    assert_refused(joined, &["database 2", &place(&second), "first"]);
    create(&one, "one").await;
    let joined = open(&[&second, &first]).await.migrate().await;
    assert_refused(joined, &["database 2", &place(&first), "empty"]);
    let twice = open(&[&first, &first]).await.migrate().await;
    assert_refused(twice, &["database 1", "database 2", "the same database"]);
    one.check().await.unwrap();
    other.check().await.unwrap();

    let third = fresh_database(first.kind).await;
    open(&[&first, &third]).await.migrate().await.unwrap();
    let joined = open(&[&second, &third]).await.migrate().await;
    assert_refused(joined, &["the keys of database 2", &place(&first)]);
    let fourth = fresh_database(first.kind).await;
    open(&[&second, &fourth]).await.migrate().await.unwrap();
    let joined = open(&[&first, &third, &second, &fourth]).await.migrate().await;
    assert_refused(joined, &["database 1", "database 3", "different sets"]);
}

/// Otherwise it could create an experiment that another process has created in a database that this
/// one does not know.
async fn a_process_that_does_not_know_all_databases_creates_nothing(first: TestDatabase) {
    let alone = first.store().await;
    let old = create(&alone, "old").await;
    let (second, two) = with_second(&first).await;
    assert_refused(alone.create_experiment(&new_experiment("new")).await, &["restart"]);
    let appended = alone.append(&[(old.id, new_event(1, 1))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Recorded(1)], "what it knows is served");

    let third = fresh_database(first.kind).await;
    let three = open(&[&first, &second, &third]).await;
    three.migrate().await.unwrap();
    let names: Vec<_> = (0..12).map(|number| format!("new-{number}")).collect();
    for name in &names {
        assert_refused(two.create_experiment(&new_experiment(name)).await, &[&place(&third)]);
        let mut no_entries = std::iter::empty();
        let record = ExperimentRecord { name: name.clone(), ..old.clone() };
        assert_refused(two.import(&record, None, &mut no_entries, None).await, &[&place(&third)]);
    }
    for name in &names {
        let created = three.create_experiment(&new_experiment(name)).await.unwrap();
        assert!(matches!(created, Created::New(_)), "{created:?}");
    }

    // Another process recorded the same list again.
    let again = open(&[&third, &second, &first]).await;
    again.check().await.unwrap();
    for database in [&first, &second, &third] {
        database.execute("update database_set set epoch = epoch + 5").await;
    }
    let created = again.create_experiment(&new_experiment("after")).await.unwrap();
    assert!(matches!(created, Created::New(_)), "{created:?}");
}

async fn keys_and_sessions_are_in_one_database(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let key = api_key("one");
    set.add_api_key(&key, None, &note_of("key-created", &key.id)).await.unwrap();
    let signing = SigningKey { id: 1, secret: [7; 32], created_at: NOW, active_from: NOW };
    set.ensure_signing_key(&signing).await.unwrap();
    set.end_session(&[3; 16], NOW + 1, NOW).await.unwrap();
    let reversed = open(&[&second, &first]).await;
    assert_eq!(reversed.api_keys().await.unwrap(), [key]);
    assert_eq!(reversed.signing_keys().await.unwrap(), [signing]);
    assert_eq!(reversed.ended_sessions().await.unwrap(), [[3; 16]]);
    let count = "select (select count(*) from api_key) + (select count(*) from signing_key)
        + (select count(*) from ended_session) + (select count(*) from audit)";
    assert_eq!((first.count(count).await, second.count(count).await), (4, 0));
}
