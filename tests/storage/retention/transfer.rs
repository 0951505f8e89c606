//! An experiment is exported from one database and imported unchanged into another.

use std::fs;

use dueling_bandits::Answer;
use rankduel_store::NewEvent;
use rankduel_store::events::{Event, OutcomeEvent};

use super::{filled, run, standings, succeed};
use crate::support::{Kind, TestDatabase, fresh_database, fresh_database_beside};

on_both_databases! {
    an_export_is_imported_unchanged
    an_export_carries_every_column_of_the_log
    a_damaged_file_imports_nothing
}

/// An empty database of the other kind.
async fn other_database(database: &TestDatabase) -> TestDatabase {
    let other = fresh_database_beside(database).await;
    succeed(&other, &["migrate"]);
    other
}

async fn an_export_is_imported_unchanged(database: TestDatabase) {
    let before = filled(&database).await;
    let other = other_database(&database).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("search.jsonl");
    let file = file.to_str().expect("a path");
    succeed(&database, &["export", "search", "--out", file]);
    let (code, _, error) = run(&database, &["export", "search", "--out", file]);
    assert_eq!(code, Some(1), "an existing file is not overwritten: {error}");
    let text = fs::read_to_string(file).expect("the file");
    assert_eq!(text.lines().count() as u64, before["position"].as_u64().expect("a position") + 2);
    assert_eq!(succeed(&database, &["export", "search"]), text);

    succeed(&other, &["import", file]);
    assert_eq!(standings(&other).await, before);
    assert_eq!(succeed(&other, &["export", "search"]), text, "the second export equals the first");
    succeed(&other, &["verify"]);

    // A second import changes nothing, also in the original database.
    for database in [&database, &other] {
        let (code, _, messages) = run(database, &["import", file]);
        assert_eq!(code, Some(0), "{messages}");
        assert!(messages.contains("nothing was changed"), "{messages}");
        assert_eq!(succeed(database, &["export", "search"]), text);
    }
    // Under another name, it is another experiment.
    succeed(&other, &["import", file, "--as", "search-2026"]);
    assert_eq!(other.count("select count(*) from experiment").await, 2);
    // An experiment with the same name and other contents is kept.
    for (statement, what) in [
        (
            "update log set answer = case answer when 0 then 1 else 0 end
             where position between 18 and 22 and kind = 0",
            "log entry",
        ),
        ("update experiment set head = 9 where name = 'search'", "9 of the"),
        ("update experiment set seed = 8 where name = 'search'", "a different seed"),
    ] {
        other.execute(statement).await;
        let (code, _, error) = run(&other, &["import", file]);
        assert_eq!(code, Some(1), "{statement}");
        assert!(
            error.contains("is a different one") && error.contains(what),
            "{statement}: {error}"
        );
    }
}

/// The columns are those of the database: a new one fails here until it is carried, and until an
/// event of this test fills it.
async fn an_export_carries_every_column_of_the_log(database: TestDatabase) {
    filled(&database).await;
    let store = database.connect().await;
    let record = store.experiment("search").await.unwrap().expect("an experiment");
    let outcome = OutcomeEvent {
        first: 0,
        second: 1,
        first_left: true,
        answer: Answer::First,
        batch: Some(1),
        ticket: u64::MAX,
        chosen_at: 7,
        issued_at: 8,
        unit: Some(u64::MAX),
        segment: Some("mobile".try_into().expect("a segment")),
    };
    let event = NewEvent::new(u128::MAX, Event::Outcome(outcome));
    store.append(&[(record.id, event)], 9).await.unwrap();
    store.close().await;

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("search.jsonl");
    let file = file.to_str().expect("a path");
    succeed(&database, &["export", "search", "--out", file]);
    let copy = fresh_database(database.kind).await;
    succeed(&copy, &["migrate"]);
    succeed(&copy, &["import", file]);
    let copied = copy.count("select id from experiment").await;
    let columns = match database.kind {
        Kind::Sqlite => "select name from pragma_table_info('log')",
        Kind::Postgres => {
            "select column_name::text from information_schema.columns where table_name = 'log'"
        }
    };
    for column in database.texts(columns.into()).await.into_iter().flatten() {
        let shown = match database.kind {
            Kind::Sqlite => format!("nullif(quote({column}), 'NULL')"),
            Kind::Postgres => format!("{column}::text"),
        };
        let values =
            |id| format!("select {shown} from log where experiment_id = {id} order by position");
        let before = database.texts(values(record.id)).await;
        assert!(
            before.iter().any(Option::is_some),
            "no entry of this test has the column {column}"
        );
        let after = copy.texts(values(copied)).await;
        match &*column {
            // an imported experiment is one of its own
            "experiment_id" => assert_eq!(after.len(), before.len()),
            _ => assert_eq!(after, before, "{column}"),
        }
    }
}

async fn a_damaged_file_imports_nothing(database: TestDatabase) {
    filled(&database).await;
    let other = other_database(&database).await;
    let text = succeed(&database, &["export", "search"]);
    let lines: Vec<&str> = text.lines().collect();
    let without = |number: usize| {
        let mut lines = lines.clone();
        lines.remove(number);
        lines.join("\n") + "\n"
    };
    let last = lines.len() - 1;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.jsonl");
    let file = path.to_str().expect("a path");
    for (what, damaged, word) in [
        ("nothing", String::new(), "empty"),
        ("no digest", without(last), "the digest"),
        ("a gap", without(7), "cannot follow"),
        ("no last entry", without(last - 1), "line"),
        ("half of it", text[..text.len() / 2].to_owned(), "line"),
        (
            "another answer",
            text.replacen("\"answer\":\"tie\"", "\"answer\":\"first\"", 1),
            "was changed",
        ),
        ("another seed", text.replacen("\"seed\":7", "\"seed\":8", 3), "was changed"),
        (
            "an unknown event",
            text.replacen("\"kind\":\"changed\"", "\"kind\":\"enlisted\"", 1),
            "enlisted",
        ),
        ("an unknown policy", text.replacen("pcomp", "pcomp-of-tomorrow", 1), "pcomp-of-tomorrow"),
        (
            "a newer format",
            text.replacen("\"rankduel_export\":1", "\"rankduel_export\":2", 1),
            "format 2",
        ),
        ("a ranker too many", text.replacen("\"first\":0", "\"first\":9", 1), "out of range"),
        ("more after the end", text.clone() + "{}\n", "after the digest"),
    ] {
        assert_ne!(damaged, text, "{what}: nothing was damaged");
        fs::write(&path, &damaged).expect("a file");
        let (code, _, error) = run(&other, &["import", file]);
        assert_eq!(code, Some(1), "{what}");
        assert!(error.contains(word), "{what}: {error}");
        assert_eq!(other.count("select count(*) from experiment").await, 0, "{what}");
        assert_eq!(other.count("select count(*) from log").await, 0, "{what}");
    }
    fs::write(&path, text).expect("a file");
    succeed(&other, &["import", file]);
}
