//! What can happen, as text and by chance.

use proptest::prelude::*;
use rankduel::service::feedback::ShownOutcome;
use serde::{Deserialize, Serialize};

/// The processes. They share a database and nothing else.
pub const REPLICAS: usize = 2;

/// One thing that happens. Duels are named by the order in which they were issued; a number
/// beyond them counts from the first again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A process issues a duel of an experiment.
    Duel { replica: usize, experiment: usize },
    /// Duels are answered, in one request; again or otherwise, if they were answered before.
    Answer { replica: usize, answers: Vec<(usize, Outcome)> },
    /// The same, while the database does something else than it should.
    Fail { replica: usize, answers: Vec<(usize, Outcome)>, commit: Commit },
    /// The same, and then the process is gone, and another takes its place.
    Crash { replica: usize, answers: Vec<(usize, Outcome)>, commit: Commit },
    /// One duel is answered at all processes at once.
    Race { duel: usize, outcomes: [Outcome; REPLICAS] },
    /// A process's clock moves.
    Clock { replica: usize, milliseconds: i64 },
    /// A process reads what the others have appended; it lags until then.
    Follow { replica: usize },
    /// A process keeps snapshots.
    Snapshot { replica: usize },
    /// Snapshots are damaged.
    Poison,
    /// A process is stopped in good order, and another takes its place.
    Reload { replica: usize },
    /// A ranker is enlisted at a process, in the experiment whose policy takes it.
    Enlist { replica: usize },
    /// A ranker is retired at a process, in the same experiment; perhaps one that was before, or
    /// that has to stay.
    Retire { replica: usize, ranker: usize },
}

/// What became of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It was not committed.
    Before,
    /// It was committed, and nobody heard of it.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Left,
    Right,
    Tie,
    None,
}

impl From<Outcome> for ShownOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Left => Self::Left,
            Outcome::Right => Self::Right,
            Outcome::Tie => Self::Tie,
            Outcome::None => Self::None,
        }
    }
}

/// One operation a line.
pub fn write(ops: &[Op]) -> String {
    ops.iter().map(|op| serde_json::to_string(op).expect("JSON") + "\n").collect()
}

/// The way back of [`write`]; lines that begin with `#` are for people.
pub fn read(text: &str) -> Vec<Op> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Left), Just(Outcome::Right), Just(Outcome::Tie), Just(Outcome::None)]
}

/// Mostly the newest duels; the same ones often enough.
fn answers() -> impl Strategy<Value = Vec<(usize, Outcome)>> {
    prop::collection::vec((0usize..12, outcome()), 1..4)
}

fn commit() -> impl Strategy<Value = Commit> {
    prop_oneof![Just(Commit::Before), Just(Commit::After)]
}

/// Lists of operations. Which kinds are common and which never happen is drawn for each list anew:
/// equal shares would seldom do much of one thing.
pub fn lists() -> impl Strategy<Value = Vec<Op>> {
    let weight = || prop_oneof![Just(0u32), Just(1), Just(8)];
    let weights = (prop::array::uniform8(weight()), 4u32..20);
    weights.prop_flat_map(|([fail, crash, race, clock, follow, snapshot, reload, roster], answer)| {
        let replica = || 0..REPLICAS;
        let jump = prop_oneof![1i64..1000, Just(61_000), Just(-61_000), Just(10_000_000_000)];
        let op = prop_oneof![
            10 => (replica(), 0usize..3).prop_map(|(replica, experiment)| Op::Duel { replica, experiment }),
            answer => (replica(), answers()).prop_map(|(replica, answers)| Op::Answer { replica, answers }),
            fail => (replica(), answers(), commit())
                .prop_map(|(replica, answers, commit)| Op::Fail { replica, answers, commit }),
            crash => (replica(), answers(), commit())
                .prop_map(|(replica, answers, commit)| Op::Crash { replica, answers, commit }),
            race => (0usize..12, [outcome(), outcome()]).prop_map(|(duel, outcomes)| Op::Race { duel, outcomes }),
            clock => (replica(), jump).prop_map(|(replica, milliseconds)| Op::Clock { replica, milliseconds }),
            follow => replica().prop_map(|replica| Op::Follow { replica }),
            snapshot => prop_oneof![
                6 => replica().prop_map(|replica| Op::Snapshot { replica }),
                1 => Just(Op::Poison),
            ],
            reload => replica().prop_map(|replica| Op::Reload { replica }),
            roster => prop_oneof![
                replica().prop_map(|replica| Op::Enlist { replica }),
                (replica(), 0usize..12).prop_map(|(replica, ranker)| Op::Retire { replica, ranker }),
            ],
        ];
        prop::collection::vec(op, 1..50)
    })
}
