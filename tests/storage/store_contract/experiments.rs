//! Records of experiments: creating, changing and listing them.

use rankduel_store::events::*;
use rankduel_store::*;
use serde_json::json;

use super::fixtures::*;
use crate::support::{Kind, TestDatabase};

on_all_databases! {
    an_experiment_is_created_once_and_found_by_name
    a_change_needs_the_newest_version
    experiments_are_listed_by_the_bytes_of_their_names
    every_name_is_listed
    an_experiment_that_is_created_again_is_another_one
    an_answer_is_kept_beside_the_record
    a_list_has_groups_filters_and_sizes
    experiments_that_are_due_are_found
}

async fn an_experiment_is_created_once_and_found_by_name(database: TestDatabase) {
    let store = database.store().await;
    let new = NewExperiment {
        id: 7,
        name: "search".into(),
        spec: r#"{"policy":"uniform"}"#.into(),
        seed: u64::MAX,
        created_at: NOW,
        audit: None,
    };
    let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
        panic!("it is new")
    };
    assert_eq!(
        record,
        ExperimentRecord {
            id: 7,
            name: "search".into(),
            spec: new.spec.clone(),
            seed: u64::MAX,
            status: Status::Running,
            winner: None,
            version: 1,
            head: 1,
            created_at: NOW,
            updated_at: NOW,
            archived_at: None,
            pruned_to: 0,
            answer: None,
        }
    );
    let again = NewExperiment { id: 8, spec: "{}".into(), seed: 2, created_at: NOW + 1, ..new };
    assert_eq!(store.create_experiment(&again).await.unwrap(), Created::Taken(record.clone()));
    assert_eq!(store.experiment("search").await.unwrap(), Some(record.clone()));
    assert_eq!(
        store.experiment("Search").await.unwrap(),
        None,
        "names are compared by their bytes"
    );
    assert_ne!(create(&store, "other").await.id, record.id);
}

async fn a_change_needs_the_newest_version(database: TestDatabase) {
    let store = database.store().await;
    let before = create(&store, "one").await;
    store.append(&[(before.id, new_event(1, 1))], NOW).await.unwrap();
    let event = |nonce, status, winner| {
        NewEvent::new(nonce, changed(json!({"status": status, "winner": winner})))
    };

    let conclude = Change {
        status: Some(Status::Concluded),
        winner: Some(Some(u16::MAX)),
        ..Change::default()
    };
    let concluded = event(2, Status::Concluded, Some(u16::MAX));
    let after = ExperimentRecord {
        status: Status::Concluded,
        winner: Some(u16::MAX),
        version: 2,
        head: 3,
        updated_at: NOW + 5,
        ..before.clone()
    };
    let done =
        store.change_experiment(before.id, 1, &conclude, concluded.clone(), NOW + 5).await.unwrap();
    assert_eq!(done, Changed::Done(after.clone()));
    assert_eq!(store.experiment("one").await.unwrap(), Some(after.clone()));
    let log = whole_log(&store, before.id).await;
    assert_eq!((log[1].nonce, &log[1].event, log[1].recorded_at), (2, &concluded.event, NOW + 5));

    for version in [0, 1, 3, u64::MAX] {
        let pause = Change { status: Some(Status::Paused), ..Change::default() };
        let stale = store
            .change_experiment(before.id, version, &pause, event(3, Status::Paused, None), NOW + 6)
            .await
            .unwrap();
        assert_eq!(stale, Changed::Stale(after.clone()), "version {version}");
    }
    assert_eq!(whole_log(&store, before.id).await.len(), 2, "a stale change logs nothing");

    // Only the winner changes: it is removed.
    let reopen = Change { winner: Some(None), ..Change::default() };
    let done = store
        .change_experiment(before.id, 2, &reopen, event(3, Status::Concluded, None), NOW + 7)
        .await
        .unwrap();
    let after =
        ExperimentRecord { winner: None, version: 3, head: 4, updated_at: NOW + 7, ..after };
    assert_eq!(done, Changed::Done(after.clone()));
    assert_eq!(
        store.heads(&[before.id]).await.unwrap(),
        [Head { experiment: before.id, version: 3, head: 4, archived: false }]
    );

    // One of many concurrent changes succeeds.
    let tasks: Vec<_> = (0..8)
        .map(|number: u128| {
            let (store, id) = (store.clone(), before.id);
            let event = event(10 + number, Status::Running, None);
            tokio::spawn(async move {
                let change = Change { status: Some(Status::Running), ..Change::default() };
                store.change_experiment(id, 3, &change, event, NOW + 8).await.unwrap()
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        match task.await.unwrap() {
            Changed::Done(_) => done += 1,
            Changed::Stale(record) => assert_eq!(record.version, 4),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(done, 1);
    assert_eq!(whole_log(&store, before.id).await.len(), 4);
}

async fn an_answer_is_kept_beside_the_record(database: TestDatabase) {
    let store = database.store().await;
    let before = create(&store, "one").await;
    create(&store, "other").await;
    let id = before.id;
    let save = async |position, before, answer| {
        let answer = new_answer(answer, "result", 1, None);
        store.save_answer(id, position, before, &answer, None).await.unwrap()
    };
    assert!(save(4, None, "first").await);
    assert!(!save(5, None, "of one who has not seen the first").await);
    assert!(!save(5, Some("another"), "of one who has seen another").await);
    assert!(!save(3, Some("first"), "of an earlier position").await);
    let kept = ExperimentRecord { answer: Some("first".into()), ..before.clone() };
    assert_eq!(
        store.experiment("one").await.unwrap(),
        Some(kept),
        "neither version nor head moves"
    );
    assert!(save(4, Some("first"), "second").await, "another one of the same position");
    let listed = store.experiments(&ListFilter::default(), "", 9).await.unwrap();
    let answers: Vec<_> = listed.iter().map(|record| record.answer.as_deref()).collect();
    assert_eq!(answers, [Some("second"), None]);
    // a change of the record keeps it
    let pause = Change { status: Some(Status::Paused), ..Change::default() };
    let event = NewEvent::new(1, changed(json!({"status": "paused"})));
    let changed = store.change_experiment(before.id, 1, &pause, event, NOW).await.unwrap();
    let Changed::Done(after) = changed else { panic!("{changed:?}") };
    assert_eq!(after.answer.as_deref(), Some("second"));
    assert_eq!(store.experiment("one").await.unwrap(), Some(after));
}

async fn experiments_are_listed_by_the_bytes_of_their_names(database: TestDatabase) {
    let store = database.store().await;
    let whole = ListFilter::default();
    let list = |after: &str, limit| {
        let (store, whole, after) = (&store, &whole, after.to_owned());
        async move { store.experiments(whole, &after, limit).await }
    };
    let mut names =
        ["b", "a", "B", "ä", "a-1", "a_1", "aa", "Z", "10", "9", "\u{e9}", "e\u{301}", "中"];
    for name in names {
        create(&store, name).await;
    }
    names.sort_unstable(); // by bytes
    let all: Vec<_> = list("", 100).await.unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(all, names);

    let mut paged: Vec<String> = Vec::new();
    loop {
        let page = list(paged.last().map_or("", |name| name), 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        paged.extend(page.into_iter().map(|record| record.name));
    }
    assert_eq!(paged, names);
    let after: Vec<_> =
        list("a0", 2).await.unwrap().into_iter().map(|record| record.name).collect();
    assert_eq!(after, ["a_1", "aa"], "the cursor need not be an existing name");
    assert_eq!(list("", 0).await.unwrap(), []);
}

async fn a_list_has_groups_filters_and_sizes(database: TestDatabase) {
    let store = database.store().await;
    let owned = |owner: &str| json!({"owner": owner}).to_string();
    for (number, (name, owner, state, group)) in [
        ("late", "Search-Team", "leader", 2),
        ("a_b", "", "alarm", 0),
        ("axb", "100% of us", "harm", 0),
        ("old", "search-team", "result", 3),
        ("gone", "search-team", "alarm", 0),
        ("won", "\u{c4}rzte", "result", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let id = number as i64 + 1;
        let (name, spec) = (name.to_owned(), owned(owner));
        let new = NewExperiment { id, name, spec, seed: 0, created_at: NOW, audit: None };
        let Created::New(record) = store.create_experiment(&new).await.unwrap() else {
            panic!("it is new")
        };
        let answer = new_answer(&record.name, state, group, None);
        assert!(store.save_answer(id, 1, None, &answer, None).await.unwrap());
        if record.name == "gone" {
            archive(&store, &record).await;
        }
    }
    create(&store, "unseen").await;
    let names = async |filter: &ListFilter, after: Option<&ListPlace>, limit| {
        let rows = store.listed(filter, after, limit).await.unwrap();
        rows.into_iter().map(|row| (row.place.group, row.place.name)).collect::<Vec<_>>()
    };
    let all = ListFilter::default();
    let whole = [(0, "a_b"), (0, "axb"), (1, "won"), (2, "late"), (2, "unseen"), (3, "old")]
        .map(|(group, name)| (group, name.to_owned()));
    assert_eq!(names(&all, None, 9).await, whole);
    for (index, (group, name)) in whole.iter().enumerate() {
        let place = ListPlace { group: *group, name: name.clone() };
        assert_eq!(names(&all, Some(&place), 9).await, whole[index + 1..]);
        let size = store.list_size(&all, Some(&place)).await.unwrap();
        assert_eq!(size, ListSize { groups: [2, 1, 2, 1], before: index as u64 + 1 });
        let start = ListPlace { group: *group, name: String::new() };
        assert_eq!(names(&all, Some(&start), 1).await[0].0, *group, "the place need not exist");
    }
    assert_eq!(names(&all, None, 0).await, []);
    let row = store.listed(&all, None, 1).await.unwrap().remove(0);
    assert_eq!(row.answer.as_deref(), Some("a_b"));
    assert_eq!(
        (row.owner.as_deref(), row.status, row.updated_at),
        (Some(""), Status::Running, NOW)
    );

    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    let search = |text: &str| ListFilter { search: Some(text.into()), ..ListFilter::default() };
    let states = |states: &[&str]| ListFilter { states: texts(states), ..ListFilter::default() };
    let own = |names: &[&str]| ListFilter { names: texts(names), ..ListFilter::default() };
    for (filter, found) in [
        (search("SEARCH"), &["late", "old"][..]),
        (search("a_"), &["a_b"]),
        (search("%"), &["axb"]),
        (search("\u{c4}r"), &["won"]),
        (search("'"), &[]),
        (states(&["harm", "result"]), &["axb", "won", "old"]),
        (states(&["empty"]), &["unseen"]),
        (states(&["resul", "sult"]), &[]),
        (states(&[]), &[]),
        (own(&["a_b", "gone", "old"]), &["a_b", "old"]),
        (own(&["A_B", "ol"]), &[]),
        (own(&[]), &[]),
        (ListFilter { states: texts(&["alarm"]), ..own(&["a_b", "axb"]) }, &["a_b"]),
    ] {
        let listed: Vec<_> = names(&filter, None, 9).await.into_iter().map(|(_, it)| it).collect();
        assert_eq!(listed, found, "{filter:?}");
        let size = store.list_size(&filter, None).await.unwrap();
        assert_eq!((size.total(), size.before), (found.len() as u64, 0), "{filter:?}");
        let mut by_name: Vec<_> = found.to_vec();
        by_name.sort_unstable();
        let records = store.experiments(&filter, "", 9).await.unwrap();
        assert_eq!(records.iter().map(|it| &*it.name).collect::<Vec<_>>(), by_name, "{filter:?}");
    }

    // a change of the spec changes the owner
    let change = Change { spec: Some(owned("ops")), ..Change::default() };
    let event = NewEvent::new(1, changed(json!({"owner": "ops"})));
    store.change_experiment(4, 1, &change, event, NOW).await.unwrap();
    assert_eq!(names(&search("ops"), None, 9).await, [(3, "old".to_owned())]);
}

async fn experiments_that_are_due_are_found(database: TestDatabase) {
    let store = database.store().await;
    let due = async |now, limit| {
        let due = store.due(now, None, limit).await.unwrap();
        due.into_iter().map(|it| (it.name, it.due_at)).collect::<Vec<_>>()
    };
    let of = |name: &str, due_at| (name.to_owned(), due_at);
    let mut records = Vec::new();
    for name in ["a", "b", "c", "never", "gone"] {
        records.push(create(&store, name).await);
    }
    assert_eq!(due(NOW - 1, 9).await, []);
    assert_eq!(due(NOW, 9).await.len(), 5, "nobody has looked at them");
    let times = [Some(NOW + 30), Some(NOW + 10), Some(NOW + 30), None, Some(NOW + 10)];
    for (record, due_at) in records.iter().zip(times) {
        let answer = new_answer("{}", "leader", 2, due_at);
        assert!(store.save_answer(record.id, 1, None, &answer, None).await.unwrap());
    }
    archive(&store, &records[4]).await;
    assert_eq!(due(NOW + 9, 9).await, []);
    assert_eq!(due(NOW + 10, 9).await, [of("b", NOW + 10)]);
    let mut paged: Vec<DueExperiment> = Vec::new();
    while let Some(next) = store.due(NOW + 30, paged.last(), 1).await.unwrap().pop() {
        paged.push(next);
    }
    let mut names: Vec<_> = paged.iter().map(|due| &*due.name).collect();
    assert_eq!((names.remove(0), paged[1].due_at), ("b", NOW + 30));
    names.sort_unstable();
    assert_eq!(names, ["a", "c"]);
    // until the next answer, a change makes it due
    let pause = Change { status: Some(Status::Paused), ..Change::default() };
    let event = NewEvent::new(1, changed(json!({"status": "paused"})));
    store.change_experiment(records[3].id, 1, &pause, event, NOW + 5).await.unwrap();
    assert_eq!(due(NOW + 5, 9).await, [of("never", NOW + 5)]);
}

async fn every_name_is_listed(database: TestDatabase) {
    let store = database.store().await;
    for name in ["b", "a", "c"] {
        let record = create(&store, name).await;
        if name == "b" {
            archive(&store, &record).await;
        }
    }
    assert_eq!(store.names("", 2).await.unwrap(), ["a", "b"]);
    assert_eq!(store.names("b", 9).await.unwrap(), ["c"]);
}

/// The database loses an experiment, as a standby does that was behind. Its name is free again, and
/// nothing of the old experiment belongs to the new one.
async fn an_experiment_that_is_created_again_is_another_one(database: TestDatabase) {
    let store = database.store().await;
    let old = create(&store, "search").await;
    store.append(&[(old.id, new_event(1, 1))], NOW).await.unwrap();
    if database.kind == Kind::Sqlite {
        database.execute("delete from log").await;
    }
    database.execute("delete from experiment").await;
    assert_eq!(store.experiment("search").await.unwrap(), None);
    assert_eq!(store.heads(&[old.id]).await.unwrap(), []);
    let new = create(&store, "search").await;
    assert_ne!(new.id, old.id);
    let events = [(old.id, new_event(2, 2)), (new.id, new_event(1, 1))];
    let appended = store.append(&events, NOW).await.unwrap();
    assert_eq!(appended, [Appended::Missing, Appended::Recorded(2)]);
    assert_eq!(store.experiment("search").await.unwrap().map(|record| record.id), Some(new.id));
    assert_eq!(whole_log(&store, new.id).await.len(), 1);
}
