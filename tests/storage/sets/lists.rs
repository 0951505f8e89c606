//! Lists of several databases, and what one of them that is down means for the others.

use std::collections::BTreeSet;

use rankduel::store::*;

use super::{bring_back, open, take_down, with_second};
use crate::store_contract::fixtures::*;
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    experiments_are_shared_by_the_databases_and_listed_as_one
    one_append_has_events_of_every_database
    pages_of_the_audit_log_are_stable
    damage_in_any_database_is_found
}

/// Create experiments, until each database has `each` of them. Returns those of each.
async fn spread(
    set: &DatabaseSet,
    databases: &[&TestDatabase],
    each: usize,
) -> Vec<Vec<ExperimentRecord>> {
    let mut found = vec![Vec::new(); databases.len()];
    for number in 0.. {
        let new = new_experiment(&format!("spread-{number:03}"));
        let Created::New(record) = set.create_experiment(&new).await.unwrap() else {
            panic!("it is new")
        };
        for (index, database) in databases.iter().enumerate() {
            if database.connect().await.experiment(&record.name).await.unwrap().is_some() {
                found[index].push(record.clone());
            }
        }
        assert!(number < 200, "an experiment is never in one of the databases");
        if found.iter().all(|records| records.len() >= each) {
            break;
        }
    }
    found
}

async fn experiments_are_shared_by_the_databases_and_listed_as_one(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let of_each = spread(&set, &[&first, &second], 5).await;
    let names: BTreeSet<_> = of_each.concat().into_iter().map(|record| record.name).collect();
    assert_eq!(names.len(), of_each[0].len() + of_each[1].len(), "each is in one database");

    // Another process, with the URLs in another order.
    let other = open(&[&second, &first]).await;
    let (mut listed, mut paged) = (Vec::new(), Vec::new());
    loop {
        let page = other.names(listed.last().map_or("", String::as_str), 3).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 3);
        listed.extend(page);
    }
    loop {
        let page = other.experiments(paged.last().map(String::as_str), 4).await.unwrap();
        if page.is_empty() {
            break;
        }
        assert!(page.len() <= 4);
        paged.extend(page.into_iter().map(|record| record.name));
    }
    let wanted: Vec<_> = names.iter().cloned().collect();
    assert_eq!((&listed, &paged), (&wanted, &wanted));
    for record in of_each.concat() {
        assert_eq!(other.experiment(&record.name).await.unwrap().as_ref(), Some(&record));
        let again = other.create_experiment(&new_experiment(&record.name)).await.unwrap();
        assert_eq!(again, Created::Taken(record.clone()));
        let mut no_entries = std::iter::empty();
        let again = other.import(&record, None, &mut no_entries, None).await.unwrap();
        assert_eq!(again, Imported::Taken(record));
    }
    assert_eq!(other.experiment("nobody").await.unwrap(), None);
}

async fn one_append_has_events_of_every_database(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let of_each = spread(&set, &[&first, &second], 2).await;
    let ids: Vec<_> = of_each.iter().flat_map(|records| [records[0].id, records[1].id]).collect();
    // the nonces are those of another experiment each
    let events: Vec<_> = (0..40).map(|at| (ids[at % 4], new_event(at as u128 / 4, 1))).collect();
    // a process that does not know yet where they are
    let other = open(&[&second, &first]).await;
    let results = other.append(&events, NOW).await.unwrap();
    let wanted: Vec<_> = (0..40).map(|at| Appended::Recorded(at / 4 + 1)).collect();
    assert_eq!(results, wanted);
    let again: Vec<_> = (0..40).map(|at| Appended::Duplicate(at / 4 + 1)).collect();
    assert_eq!(set.append(&events, NOW).await.unwrap(), again);
    let mut heads = set.heads(&ids).await.unwrap();
    heads.retain(|head| head.head == 10 && !head.archived && !head.frozen);
    assert_eq!(heads.len(), 4);
    let nobody = [(1, new_event(1, 1))];
    assert_eq!(set.append(&nobody, NOW).await.unwrap(), [Appended::Missing]);
    assert_eq!(set.heads(&[1]).await.unwrap(), []);
}

async fn pages_of_the_audit_log_are_stable(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let (one, other) = (first.connect().await, second.connect().await);
    let note = |at: i64| AuditNote { at: NOW + at, ..note("batch-closed") };
    for at in 0..10 {
        let store = if at % 3 == 0 { &other } else { &one };
        store.add_audit(&[note(at)]).await.unwrap();
    }
    let (mut times, mut after) = (Vec::new(), None);
    loop {
        let page = set.audit_page(None, after.as_ref(), 3).await.unwrap();
        assert!(page.records.len() <= 3);
        times.extend(page.records.iter().map(|record| record.at - NOW));
        // entries that are added meanwhile belong before the first page
        for store in [&one, &other] {
            store.add_audit(&[note(100)]).await.unwrap();
        }
        let Some(next) = page.next else { break };
        let bytes = next.as_bytes().to_vec();
        assert_eq!(AuditCursor::from_bytes(bytes).as_ref(), Some(&next));
        after = Some(next);
    }
    assert_eq!(times, (0..10).rev().collect::<Vec<_>>());
    let newest = set.audit(None, i64::MAX, 3).await.unwrap();
    assert_eq!(newest.iter().map(|record| record.at - NOW).collect::<Vec<_>>(), [100; 3]);
    let all = set.audit_page(None, None, 100).await.unwrap();
    assert_eq!((all.records.len(), all.next), (18, None));
}

async fn damage_in_any_database_is_found(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let of_each = spread(&set, &[&first, &second], 1).await;
    assert_eq!(set.integrity().await.unwrap(), Vec::<String>::new());
    // a copy of an experiment that accepts events, too
    let record = &of_each[1][0];
    first.execute("update database_set set epoch = 0").await;
    create(&first.connect().await, &record.name).await;
    let found = set.integrity().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    for part in [&*record.name, "database 1", "database 2"] {
        assert!(found[0].contains(part), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_down_does_not_stop_the_others() {
    let first = fresh_database(Kind::Postgres).await;
    let (second, set) = with_second(&first).await;
    let of_each = spread(&set, &[&first, &second], 2).await;
    let down = take_down(&first, &second).await;
    let (here, there) = (&of_each[0][0], &of_each[1][0]);
    assert_eq!(set.database_of(here.id), 0);
    assert_eq!(set.database_of(there.id), 1);
    assert_eq!(set.databases(), 2);
    let appended = set.append(&[(here.id, new_event(1, 1))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Recorded(1)]);
    assert_eq!(set.read(here.id, 0, 9).await.unwrap().len(), 1);
    assert_eq!(set.experiment(&here.name).await.unwrap().unwrap().head, 1);
    assert_eq!(set.heads(&[here.id]).await.unwrap().len(), 1);

    let named = |error: StoreError| {
        assert!(error.to_string().contains("database 2 ("), "{error}");
        assert!(error.to_string().contains(&down), "{error}");
        assert!(matches!(error.kind(), StoreError::Unavailable(_)), "{error:?}");
    };
    named(set.append(&[(there.id, new_event(1, 1))], NOW).await.unwrap_err());
    named(set.heads(&[here.id, there.id]).await.unwrap_err());
    named(set.experiment(&there.name).await.unwrap_err());
    named(set.experiment("it-could-be-there").await.unwrap_err());
    named(set.create_experiment(&new_experiment("it-could-be-there")).await.unwrap_err());
    named(set.names("", 9).await.unwrap_err());
    named(set.check().await.unwrap_err());
    let checks: Vec<_> = set.check_each().await.into_iter().map(|(_, it)| it.is_ok()).collect();
    assert_eq!(checks, [true, false]);

    bring_back(&first, &down).await;
    let appended = set.append(&[(there.id, new_event(1, 1))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Recorded(1)]);
    set.check().await.unwrap();
}
