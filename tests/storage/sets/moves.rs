//! Moving an experiment to another database.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rankduel::access::Actor;
use rankduel::store::*;

use super::{open, with_second};
use crate::store_contract::fixtures::*;
use crate::support::client::eventually;
use crate::support::{TestDatabase, fresh_database};

on_both_databases! {
    a_move_takes_the_whole_experiment
    a_process_that_remembers_the_old_place_follows
    a_process_that_does_not_know_the_new_database_loses_nothing
    a_numbered_pruned_or_archived_experiment_moves_too
    a_wrong_move_is_refused_and_changes_nothing
    nothing_is_lost_while_an_experiment_moves_back_and_forth
}

/// The command's author of a move.
pub fn author() -> AuditAuthor {
    (&Actor::command_line()).into()
}

pub async fn move_to(set: &DatabaseSet, name: &str, to: usize) -> Result<Moved, MoveError> {
    set.move_experiment(name, to, &author(), || NOW).await
}

/// An experiment in the database at index 0, with `entries` in its log.
pub async fn in_first(set: &DatabaseSet, first: &TestDatabase, entries: u64) -> ExperimentRecord {
    for number in 0.. {
        let name = format!("moving-{number}");
        let created = set.create_experiment(&new_experiment(&name)).await.unwrap();
        let Created::New(record) = created else { panic!("it is new") };
        if first.connect().await.experiment(&name).await.unwrap().is_some() {
            for part in (1..=entries).collect::<Vec<_>>().chunks(5000) {
                let events: Vec<_> =
                    part.iter().map(|at| (record.id, new_event(u128::from(*at), *at))).collect();
                set.append(&events, NOW + part[0] as i64).await.unwrap();
            }
            return ExperimentRecord { head: entries, ..record };
        }
    }
    unreachable!("names have any hash")
}

fn snapshot(experiment: ExperimentId, position: u64, format: u32) -> Snapshot {
    Snapshot { experiment, position, format, state: vec![7; 3], created_at: NOW }
}

async fn a_move_takes_the_whole_experiment(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let before = in_first(&set, &first, 12_000).await;
    let (id, name) = (before.id, before.name.clone());
    for snapshot in [snapshot(id, 5000, 1), snapshot(id, 9000, 2), snapshot(id, 12_000, 1)] {
        set.save_snapshot(&snapshot).await.unwrap();
    }
    let log = set.read(id, 0, u32::MAX).await.unwrap();
    let snapshots = set.snapshots(id).await.unwrap();

    let moved = move_to(&set, &name, 1).await.unwrap();
    assert_eq!(moved.entries, 12_000);
    assert!(moved.from.is_some_and(|from| from.starts_with("1 (")));
    assert!(moved.to.starts_with("2 ("));
    assert!(moved.pause.is_some());

    let (old, new) = (first.connect().await, second.connect().await);
    assert_eq!(new.experiment(&name).await.unwrap().as_ref(), Some(&before));
    assert_eq!(new.read(id, 0, u32::MAX).await.unwrap(), log);
    assert_eq!(new.snapshots(id).await.unwrap(), snapshots);
    assert_eq!(old.experiment(&name).await.unwrap(), None);
    assert!(!old.names("", 100).await.unwrap().contains(&name));
    assert_eq!(old.heads(&[id]).await.unwrap(), []);
    assert_eq!(old.append(&[(id, new_event(0, 0))], NOW).await.unwrap(), [Appended::Missing]);
    for rows in ["select count(*) from log", "select count(*) from snapshot"] {
        assert_eq!(first.count(rows).await, 0, "{rows}");
    }

    // It goes on, and what was recorded is known.
    let events = [(id, new_event(12_001, 1)), (id, new_event(77, 77)), (id, new_event(78, 1))];
    assert_eq!(
        set.append(&events, NOW).await.unwrap(),
        [Appended::Recorded(12_001), Appended::Duplicate(77), Appended::Conflict(78)]
    );
    let created = set.create_experiment(&new_experiment(&name)).await.unwrap();
    assert!(matches!(created, Created::Taken(record) if record.id == id));
    assert_eq!(set.names("", 100).await.unwrap().iter().filter(|it| **it == name).count(), 1);
    let noted = set.audit(Some(&name), i64::MAX, 9).await.unwrap();
    let [noted] = &noted[..] else { panic!("{noted:?}") };
    assert_eq!((&*noted.what, &*noted.who), ("experiment-moved", "command-line"));
    assert_eq!(noted.after.as_ref().map(|after| after["log_entries"].clone()), Some(12_000.into()));

    // Again: nothing. Back: it starts over.
    let again = move_to(&set, &name, 1).await.unwrap();
    assert_eq!((again.from, again.entries, again.pause), (None, 0, None));
    let back = move_to(&set, &name, 0).await.unwrap();
    assert_eq!(back.entries, 12_001);
    assert_eq!(old.read(id, 0, u32::MAX).await.unwrap()[..12_000], log);
    assert_eq!(set.append(&events[1..2], NOW).await.unwrap(), [Appended::Duplicate(77)]);
    assert_eq!(new.heads(&[id]).await.unwrap(), []);
    assert_eq!(second.count("select count(*) from log").await, 0);
    assert_eq!(set.integrity().await.unwrap(), Vec::<String>::new());
}

async fn a_process_that_remembers_the_old_place_follows(first: TestDatabase) {
    let (second, mover) = with_second(&first).await;
    let record = in_first(&mover, &first, 10).await;
    let (id, name) = (record.id, &record.name);
    let knows = async || {
        let server = open(&[&first, &second]).await;
        assert_eq!(server.experiment(name).await.unwrap().map(|it| it.id), Some(id));
        assert_eq!(server.database_of(id), 0);
        server
    };
    let servers = [knows().await, knows().await, knows().await, knows().await, knows().await];
    mover.save_snapshot(&snapshot(id, 10, 1)).await.unwrap();
    move_to(&mover, name, 1).await.unwrap();
    let [appends, reads, finds, changes, heads] = &servers;
    let events = [(id, new_event(3, 3)), (id, new_event(11, 11))];
    let appended = appends.append(&events, NOW).await.unwrap();
    assert_eq!(appended, [Appended::Duplicate(3), Appended::Recorded(11)]);
    assert_eq!(reads.read(id, 4, 100).await.unwrap().len(), 7);
    assert_eq!(finds.find(id, &[1, 999]).await.unwrap()[0].as_ref().map(|it| it.position), Some(1));
    let change = Change { interleaving: Some("{}".into()), ..Change::default() };
    let changed = changes.change_experiment(id, 1, &change, new_event(12, 12), NOW).await.unwrap();
    assert!(matches!(changed, Changed::Done(after) if after.version == 2 && after.head == 12));
    assert_eq!(heads.heads(&[id]).await.unwrap()[0].head, 12);
    for server in &servers {
        assert_eq!(server.database_of(id), 1);
        assert_eq!(server.newest_snapshot(id, 1).await.unwrap().map(|it| it.position), Some(10));
    }
}

/// It must not say that the experiment does not exist, nor that its log is lost.
async fn a_process_that_does_not_know_the_new_database_loses_nothing(first: TestDatabase) {
    let (second, two) = with_second(&first).await;
    let record = in_first(&two, &first, 3).await;
    let third = fresh_database(first.kind).await;
    let three = open(&[&first, &second, &third]).await;
    three.migrate().await.unwrap();
    move_to(&three, &record.name, 2).await.unwrap();
    let appended = two.append(&[(record.id, new_event(4, 4))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Frozen], "it can be sent again");
    for error in [
        two.heads(&[record.id]).await.unwrap_err(),
        two.experiment(&record.name).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Set(_)), "{error:?}");
        assert!(error.to_string().contains("restart"), "{error}");
    }
    let appended = three.append(&[(record.id, new_event(4, 4))], NOW).await.unwrap();
    assert_eq!(appended, [Appended::Recorded(4)]);
}

async fn a_numbered_pruned_or_archived_experiment_moves_too(first: TestDatabase) {
    let alone = first.store().await;
    let record = create(&alone, "old").await;
    first.execute("update experiment set id = 7").await;
    let record = ExperimentRecord { id: 7, ..record };
    let events: Vec<_> = (1..=20).map(|at| (7, new_event(at.into(), at))).collect();
    alone.append(&events, NOW).await.unwrap();
    alone.save_snapshot(&snapshot(7, 15, 1)).await.unwrap();
    archive(&alone, &record).await;
    assert!(alone.prune(7, 12, 1, &note("log-pruned")).await.unwrap());

    let (second, set) = with_second(&first).await;
    let before = set.experiment("old").await.unwrap().unwrap();
    assert_eq!(move_to(&set, "old", 1).await.unwrap().entries, 10);
    let new = second.connect().await;
    assert_eq!(new.experiment("old").await.unwrap(), Some(before));
    assert_eq!(new.read(7, 0, 99).await.unwrap().len(), 10);
    assert_eq!(new.newest_snapshot(7, 1).await.unwrap().map(|it| it.position), Some(15));
    let late = set.append(&[(7, new_event(99, 99))], NOW).await.unwrap();
    assert_eq!(late, [Appended::Archived]);
    let other = open(&[&second, &first]).await;
    assert_eq!(other.experiment("old").await.unwrap().map(|it| it.id), Some(7));
    let created = other.create_experiment(&new_experiment("old")).await.unwrap();
    assert!(matches!(created, Created::Taken(record) if record.id == 7));
}

async fn a_wrong_move_is_refused_and_changes_nothing(first: TestDatabase) {
    let (second, set) = with_second(&first).await;
    let record = in_first(&set, &first, 5).await;
    let refused = async |moved: Result<Moved, MoveError>, why: &str| match moved {
        Err(MoveError::Refused(message)) => assert!(message.contains(why), "{message}"),
        other => panic!("{other:?}"),
    };
    refused(move_to(&set, "nobody", 1).await, "no experiment `nobody`").await;
    let here = move_to(&set, &record.name, 0).await.unwrap();
    assert_eq!((here.from, here.entries), (None, 0));
    assert!(!set.abort_move(&record.name).await.unwrap(), "it does not move");
    assert_eq!(second.count("select count(*) from log").await, 0);
    assert_eq!(set.experiment(&record.name).await.unwrap(), Some(record));
}

/// The result of a call that is repeated while the database is unavailable, as every caller of it
/// does, and the number of repeats. SQLite refuses a writer that others have kept waiting too long.
async fn repeated<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>>(
    call: impl Fn() -> F,
    is_unavailable: impl Fn(&E) -> bool,
) -> (T, u32) {
    let mut repeats = 0;
    loop {
        match call().await {
            Ok(done) => return (done, repeats),
            Err(error) if is_unavailable(&error) && repeats < 20 => repeats += 1,
            Err(error) => panic!("after {repeats} repeats: {error:?}"),
        }
    }
}

fn is_unavailable(error: &StoreError) -> bool {
    matches!(error.kind(), StoreError::Unavailable(_))
}

fn is_store_unavailable(error: &MoveError) -> bool {
    matches!(error, MoveError::Store(error) if is_unavailable(error))
}

async fn nothing_is_lost_while_an_experiment_moves_back_and_forth(first: TestDatabase) {
    let (second, mover) = with_second(&first).await;
    let record = in_first(&mover, &first, 0).await;
    let (id, done) = (record.id, Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for writer in 0..3_u128 {
        let (set, done) = (open(&[&first, &second]).await, Arc::clone(&done));
        writers.push(tokio::spawn(async move {
            let (mut acknowledged, mut frozen) = (HashSet::new(), 0_u64);
            let mut number = 0;
            while !done.load(Ordering::SeqCst) {
                let nonces: Vec<u128> = (0..5).map(|at| writer << 64 | (number + at)).collect();
                let events: Vec<_> =
                    nonces.iter().map(|nonce| (id, new_event(*nonce, *nonce as u64))).collect();
                let append = || set.append(&events, NOW);
                let (results, _) = repeated(append, is_unavailable).await;
                for (nonce, result) in nonces.iter().zip(results) {
                    match result {
                        Appended::Recorded(_) | Appended::Duplicate(_) => {
                            acknowledged.insert(*nonce);
                        }
                        Appended::Frozen => frozen += 1,
                        other => panic!("{other:?}"),
                    }
                }
                // the next call has some that were acknowledged
                if acknowledged.contains(&nonces[4]) {
                    number += 3;
                }
            }
            (acknowledged, frozen)
        }));
    }
    let (set, looking) = (open(&[&first, &second]).await, Arc::clone(&done));
    let name = record.name.clone();
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    let looker = tokio::spawn(async move {
        while !looking.load(Ordering::SeqCst) {
            let found = set.experiment(&name).await.unwrap();
            assert_eq!(found.map(|it| it.id), Some(id), "it is never nowhere");
            let new = new_experiment(&name);
            let create = || set.create_experiment(&new);
            let (created, _) = repeated(create, is_unavailable).await;
            assert!(matches!(created, Created::Taken(_)), "{created:?}");
            assert_eq!(set.heads(&[id]).await.unwrap().len(), 1);
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut seen = 0;
    for round in 0..6 {
        seen = eventually("the log has grown", async || {
            let heads = mover.heads(&[id]).await.unwrap();
            heads.first().map(|head| head.head).filter(|head| *head > seen + 20)
        })
        .await;
        eventually("the looker has looked again", async || {
            (looks.load(Ordering::SeqCst) > 2 * round as u64).then_some(())
        })
        .await;
        let shift = || move_to(&mover, &record.name, (round + 1) % 2);
        let (moved, repeats) = repeated(shift, is_store_unavailable).await;
        // a move that was repeated may have been done already
        assert!(repeats > 0 || moved.entries > 0 && moved.pause.is_some());
    }
    done.store(true, Ordering::SeqCst);
    let mut acknowledged = HashSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap().0);
    }
    looker.await.unwrap();
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    let log = mover.read(id, 0, u32::MAX).await.unwrap();
    let positions: Vec<_> = log.iter().map(|entry| entry.position).collect();
    assert_eq!(positions, (1..=log.len() as u64).collect::<Vec<_>>());
    let nonces: HashSet<_> = log.iter().map(|entry| entry.nonce).collect();
    assert_eq!(nonces.len(), log.len(), "a nonce counts once");
    assert_eq!(acknowledged.difference(&nonces).count(), 0, "what was acknowledged is in the log");
}
