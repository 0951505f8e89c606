//! `verify` finds each kind of damage and reports where it is.

use std::fs::OpenOptions;

use super::{filled, keep, restore, run, succeed};
use crate::support::{Kind, TestDatabase, fresh_database};

on_both_databases! {
    an_intact_database_verifies
    each_damage_is_reported
    a_duplicate_nonce_is_reported
}

async fn an_intact_database_verifies(database: TestDatabase) {
    let before = filled(&database).await;
    let printed = succeed(&database, &["verify"]);
    let search = format!("search: {} log entries, 1 snapshot(s), all well", before["position"]);
    assert!(printed.contains(&search) && printed.contains("young: 2 log entries"), "{printed}");
    let printed = succeed(&database, &["verify", "young"]);
    assert!(!printed.contains("search"), "{printed}");
    let (code, printed, _) = run(&database, &["verify", "nobody"]);
    assert_eq!(
        (code, printed.contains("WRONG  nobody: there is no such experiment")),
        (Some(1), true),
        "{printed}"
    );
}

async fn each_damage_is_reported(database: TestDatabase) {
    filled(&database).await;
    // The damaging statement and the expected report.
    let damages = [
        ("update experiment set head = head + 1 where name = 'search'", "its head is"),
        ("update experiment set head = head - 1 where name = 'search'", "is beyond the head"),
        ("update log set answer = 9 where position = 4", "its answer is 9"),
        ("update log set first_ranker = 77 where position = 4", "ranker 77 is out of range"),
        ("update log set kind = 1 where position = 5", "log entry 5 of experiment"),
        ("update log set position = 5000 where position = 6", "log entry 6 is missing"),
        ("update experiment set version = 70 where name = 'search'", "its version is 70"),
        ("update experiment set status = 'paused' where name = 'search'", "its log says Lifecycle"),
        (
            "update experiment set spec = replace(spec, 'pcomp', 'x') where name = 'search'",
            "cannot read its spec",
        ),
        ("update snapshot set state = (select secret from signing_key)", "position 30 is damaged"),
        ("update snapshot set position = 29", "position 29 is not what the log folds to"),
        ("update snapshot set position = 5000", "snapshot at position 5000, beyond the head"),
        ("update experiment set pruned_to = 30 where name = 'search'", "pruning was interrupted"),
    ];
    for (damage, word) in damages {
        keep(&database).await;
        database.execute(damage).await;
        let (code, printed, error) = run(&database, &["verify"]);
        assert!(printed.contains(word), "{damage}: {printed}{error}");
        assert!(
            printed.contains("young: 2 log entries, 0 snapshot(s), all well")
                || damage.contains("update log")
        );
        if word == "pruning was interrupted" {
            assert_eq!(code, Some(0), "a warning is not a failure: {printed}");
        } else {
            assert_eq!(code, Some(1), "{damage}: {printed}");
            assert!(printed.contains("WRONG  ") && error.contains("wrong"), "{printed}{error}");
        }
        restore(&database).await;
        succeed(&database, &["verify"]);
    }
}

async fn a_duplicate_nonce_is_reported(database: TestDatabase) {
    filled(&database).await;
    database
        .execute(
            "create table kept as select * from log; drop table log; alter table kept rename to log;
             update log set nonce = (select nonce from log as other where other.position = 2
                 and other.experiment_id = log.experiment_id)
             where position = 9;",
        )
        .await;
    let (code, printed, _) = run(&database, &["verify"]);
    assert_eq!(code, Some(1));
    assert!(printed.contains("log entries 2 and 9 have the same nonce"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_reported() {
    let database = fresh_database(Kind::Sqlite).await;
    filled(&database).await;
    let file = OpenOptions::new().write(true).open(database.path()).expect("the file");
    let length = file.metadata().expect("its length").len();
    // Remove the last pages.
    file.set_len(length / 4096 / 2 * 4096).expect("to cut it");
    drop(file);
    let (code, printed, error) = run(&database, &["verify"]);
    assert_eq!(code, Some(1), "{printed}{error}");
    assert!(
        (printed.clone() + &error).contains("malformed") || printed.contains("WRONG  database"),
        "{printed}{error}"
    );
}
