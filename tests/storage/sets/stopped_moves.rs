//! Moves that stop at each of their steps. At every moment at most one database accepts events;
//! each move can be run again, or undone until it has arrived.

use rankduel::store::*;

use super::moves::{in_first, move_to};
use super::{allow, open, refuse, with_second};
use crate::store_contract::fixtures::*;
use crate::support::TestDatabase;

on_both_databases! {
    a_move_that_stopped_at_any_step_goes_on
    a_move_that_stopped_before_it_arrived_is_undone
    a_move_that_was_undone_never_arrives
    a_stopped_move_is_reported
    a_frozen_experiment_accepts_nothing_and_says_so
    a_move_to_another_database_waits_for_the_first
}

/// The database that stops a step: the old one or the new one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Old,
    New,
}

/// A step: the database and the table in which it makes a row that meets the condition.
struct Step {
    name: &'static str,
    at: At,
    table: &'static str,
    event: &'static str,
    condition: &'static str,
    /// Whether an experiment that was stopped before this step accepts events.
    accepts: bool,
    /// Whether the move can still be undone before this step.
    can_be_undone: bool,
}

const STEPS: [Step; 7] = [
    Step {
        name: "begin",
        at: At::Old,
        table: "experiment",
        event: "update",
        condition: "new.move_id is not null",
        accepts: true,
        can_be_undone: false, // it has not begun
    },
    Step {
        name: "expect",
        at: At::New,
        table: "experiment",
        event: "insert",
        condition: "new.presence = 'arriving'",
        accepts: true,
        can_be_undone: true,
    },
    Step {
        name: "copy",
        at: At::New,
        table: "experiment",
        event: "update",
        condition: "new.presence = 'arriving' and new.head > 10000",
        accepts: true,
        can_be_undone: true,
    },
    Step {
        name: "freeze",
        at: At::Old,
        table: "experiment",
        event: "update",
        condition: "new.presence = 'frozen'",
        accepts: true,
        can_be_undone: true,
    },
    Step {
        name: "arrive",
        at: At::New,
        table: "experiment",
        event: "update",
        condition: "old.presence = 'arriving' and new.presence = 'here'",
        accepts: false,
        can_be_undone: true,
    },
    Step {
        name: "leave",
        at: At::Old,
        table: "experiment",
        event: "update",
        condition: "new.presence = 'gone'",
        accepts: true,
        can_be_undone: false,
    },
    Step {
        name: "clear",
        at: At::Old,
        table: "log",
        event: "delete",
        condition: "1 = 1",
        accepts: true,
        can_be_undone: false,
    },
];

/// A set with an experiment whose move to the second database was stopped at a step.
struct Stopped {
    databases: [TestDatabase; 2],
    set: DatabaseSet,
    record: ExperimentRecord,
}

impl Stopped {
    async fn at(first: TestDatabase, step: &Step) -> Self {
        let (second, set) = with_second(&first).await;
        let record = in_first(&set, &first, 12_000).await;
        let stopped = Self { databases: [first, second], set, record };
        let at = &stopped.databases[(step.at == At::New) as usize];
        refuse(at, step.table, step.event, step.condition).await;
        let error = move_to(&stopped.set, &stopped.record.name, 1).await.unwrap_err();
        assert!(error.to_string().contains("refused by the test"), "{}: {error}", step.name);
        allow(at, step.table).await;
        stopped
    }

    /// A process that has just started.
    async fn process(&self) -> DatabaseSet {
        open(&[&self.databases[0], &self.databases[1]]).await
    }

    /// The databases that accept events of the experiment; each is asked directly.
    async fn accepting(&self) -> Vec<usize> {
        let mut accepting = Vec::new();
        for (index, database) in self.databases.iter().enumerate() {
            let heads = database.connect().await.heads(&[self.record.id]).await.unwrap();
            if heads.iter().any(|head| !head.frozen) {
                accepting.push(index);
            }
        }
        accepting
    }

    async fn append(&self, nonce: u128) -> Appended {
        let events = [(self.record.id, new_event(nonce, nonce as u64))];
        self.process().await.append(&events, NOW).await.unwrap()[0]
    }

    /// The log is whole, in one database, and no other has rows of it.
    async fn is_whole(&self, entries: u64, at: usize) {
        let id = self.record.id;
        let log = self.process().await.read(id, 0, u32::MAX).await.unwrap();
        let positions: Vec<_> = log.iter().map(|entry| entry.position).collect();
        assert_eq!(positions, (1..=entries).collect::<Vec<_>>());
        assert_eq!(self.accepting().await, [at]);
        let rows = self.databases[1 - at].count("select count(*) from log").await;
        assert_eq!(rows, 0, "what was copied is removed");
        assert_eq!(self.set.integrity().await.unwrap(), Vec::<String>::new());
    }
}

async fn a_move_that_stopped_at_any_step_goes_on(first: TestDatabase) {
    for step in &STEPS {
        let stopped = Stopped::at(crate::support::fresh_database(first.kind).await, step).await;
        let name = &stopped.record.name;
        let accepting = stopped.accepting().await;
        assert_eq!(accepting.len(), usize::from(step.accepts), "{}: {accepting:?}", step.name);
        let appended = stopped.append(20_000).await;
        let listed = stopped.set.names("", 100).await.unwrap();
        assert_eq!(listed.iter().filter(|it| *it == name).count(), 1, "{}", step.name);
        let mut entries = 12_000;
        match step.accepts {
            true => {
                assert_eq!(appended, Appended::Recorded(12_001), "{}", step.name);
                entries += 1;
            }
            false => assert_eq!(appended, Appended::Frozen, "{}", step.name),
        }
        move_to(&stopped.process().await, name, 1).await.unwrap();
        assert_eq!(stopped.append(20_001).await, Appended::Recorded(entries + 1), "{}", step.name);
        stopped.is_whole(entries + 1, 1).await;
    }
}

async fn a_move_that_stopped_before_it_arrived_is_undone(first: TestDatabase) {
    for step in &STEPS {
        let stopped = Stopped::at(crate::support::fresh_database(first.kind).await, step).await;
        let name = &stopped.record.name;
        let undone = stopped.process().await.abort_move(name).await;
        if step.can_be_undone {
            assert!(undone.unwrap(), "{}", step.name);
            assert!(!stopped.process().await.abort_move(name).await.unwrap());
            assert_eq!(stopped.append(20_000).await, Appended::Recorded(12_001), "{}", step.name);
            stopped.is_whole(12_001, 0).await;
            // and it can begin again
            let moved = move_to(&stopped.process().await, name, 1).await.unwrap();
            assert_eq!(moved.entries, 12_001);
            stopped.is_whole(12_001, 1).await;
        } else if step.name == "leave" {
            let refused = undone.unwrap_err().to_string();
            assert!(refused.contains("has arrived in database 2"), "{refused}");
            assert_eq!(stopped.accepting().await, [1]);
        } else {
            assert!(!undone.unwrap(), "{}: it does not move", step.name);
        }
    }
}

/// A mover that was thought dead goes on after the move was undone.
async fn a_move_that_was_undone_never_arrives(first: TestDatabase) {
    let step = STEPS.iter().find(|step| step.name == "arrive").unwrap();
    let stopped = Stopped::at(first, step).await;
    let [old, new] = &stopped.databases;
    old.execute("create table kept as select * from experiment").await;
    assert!(stopped.set.abort_move(&stopped.record.name).await.unwrap());
    // as that mover has read it
    old.execute(
        "update experiment set presence = 'frozen',
             move_id = (select move_id from kept where kept.id = experiment.id),
             moving_to = (select moving_to from kept where kept.id = experiment.id)
         where id in (select id from kept where move_id is not null)",
    )
    .await;
    let error = move_to(&stopped.set, &stopped.record.name, 1).await.unwrap_err();
    assert!(error.to_string().contains("being undone"), "{error}");
    assert_eq!(new.count("select count(*) from experiment where presence = 'here'").await, {
        let names = new.connect().await.names("", 100).await.unwrap();
        names.len() as i64
    });
    assert_eq!(new.connect().await.heads(&[stopped.record.id]).await.unwrap(), []);
    assert!(stopped.set.abort_move(&stopped.record.name).await.unwrap());
    stopped.is_whole(12_000, 0).await;
}

async fn a_stopped_move_is_reported(first: TestDatabase) {
    for (step, says) in [
        ("copy", "to database 2 "),
        ("arrive", "has stopped, and it accepts no feedback: run it again, or undo it"),
        ("leave", "has stopped: run it again"),
    ] {
        let step = STEPS.iter().find(|known| known.name == step).unwrap();
        let stopped = Stopped::at(crate::support::fresh_database(first.kind).await, step).await;
        let found = stopped.set.integrity().await.unwrap();
        let name = &stopped.record.name;
        assert_eq!(found.len(), 1, "{}: {found:?}", step.name);
        let about = format!("the move of experiment `{name}` to database 2 ");
        assert!(found[0].starts_with(&about) && found[0].contains(says), "{found:?}");
        assert!(found[0].contains(&format!("`rankduel move {name} --abort`")), "{found:?}");
        move_to(&stopped.set, name, 1).await.unwrap();
        stopped.is_whole(12_000, 1).await;
    }
}

async fn a_frozen_experiment_accepts_nothing_and_says_so(first: TestDatabase) {
    let step = STEPS.iter().find(|step| step.name == "arrive").unwrap();
    let stopped = Stopped::at(first, step).await;
    let (id, set) = (stopped.record.id, stopped.process().await);
    let calm = create_elsewhere(&set, &stopped.databases[0]).await;
    let events = [(id, new_event(7, 7)), (calm, new_event(1, 1)), (id, new_event(30_000, 1))];
    let appended = set.append(&events, NOW).await.unwrap();
    assert_eq!(appended, [Appended::Duplicate(7), Appended::Recorded(1), Appended::Frozen]);
    let change = Change { interleaving: Some("{}".into()), ..Change::default() };
    let changed = set.change_experiment(id, 1, &change, new_event(40_000, 1), NOW).await.unwrap();
    assert_eq!(changed, Changed::Frozen);
    assert_eq!(set.read(id, 11_990, 99).await.unwrap().len(), 10, "it can be read");
    let heads = set.heads(&[id]).await.unwrap();
    assert_eq!(
        heads,
        [Head { experiment: id, version: 1, head: 12_000, archived: false, frozen: true }]
    );
    assert_eq!(set.experiment(&stopped.record.name).await.unwrap(), Some(stopped.record.clone()));
}

/// Another experiment in this database.
async fn create_elsewhere(set: &DatabaseSet, database: &TestDatabase) -> ExperimentId {
    for number in 0.. {
        let name = format!("calm-{number}");
        let created = set.create_experiment(&new_experiment(&name)).await.unwrap();
        let Created::New(record) = created else { panic!("it is new") };
        if database.connect().await.experiment(&name).await.unwrap().is_some() {
            return record.id;
        }
    }
    unreachable!("names have any hash")
}

async fn a_move_to_another_database_waits_for_the_first(first: TestDatabase) {
    let step = STEPS.iter().find(|step| step.name == "freeze").unwrap();
    let stopped = Stopped::at(first, step).await;
    let [first, second] = &stopped.databases;
    let third = crate::support::fresh_database(first.kind).await;
    let three = open(&[first, second, &third]).await;
    three.migrate().await.unwrap();
    let error = move_to(&three, &stopped.record.name, 2).await.unwrap_err().to_string();
    assert!(error.contains("already moves to database 2") && error.contains("--abort"), "{error}");
    move_to(&three, &stopped.record.name, 1).await.unwrap();
    move_to(&three, &stopped.record.name, 2).await.unwrap();
    assert_eq!(third.count("select count(*) from log").await, 12_000);
}
