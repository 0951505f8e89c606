//! The operations: as text, and drawn at random.

use proptest::prelude::*;
use rankduel::service::feedback::ShownOutcome;
use serde::{Deserialize, Serialize};

/// Number of processes, which share only a database.
pub const REPLICAS: usize = 2;

/// One operation. Duels are numbered in the order in which they were issued; a larger number
/// wraps around.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A process issues a duel of an experiment.
    Duel { replica: usize, experiment: usize },
    /// Duels are answered in one request, perhaps for a second time.
    Answer { replica: usize, answers: Vec<(usize, Outcome)> },
    /// Duels are answered while the database fails in the way of `commit`.
    Fail { replica: usize, answers: Vec<(usize, Outcome)>, commit: Commit },
    /// Duels are answered while the database fails; then the process crashes and a new one replaces
    /// it.
    Crash { replica: usize, answers: Vec<(usize, Outcome)>, commit: Commit },
    /// One duel is answered at all processes concurrently.
    Race { duel: usize, outcomes: [Outcome; REPLICAS] },
    /// A process's clock moves.
    Clock { replica: usize, milliseconds: i64 },
    /// A process reads the entries of the others; it lags until then.
    Follow { replica: usize },
    /// A process saves snapshots.
    Snapshot { replica: usize },
    /// Snapshots are damaged.
    Poison,
    /// A process is stopped cleanly, and a new one replaces it.
    Reload { replica: usize },
    /// A ranker is added at a process, in the experiment whose policy supports it.
    Enlist { replica: usize },
    /// A ranker is retired at a process, in the same experiment; perhaps one that is already
    /// retired or that must stay.
    Retire { replica: usize, ranker: usize },
}

/// The fate of the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// It was not committed.
    Before,
    /// It was committed, and the response was lost.
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

/// The operations as text, one per line.
pub fn write(ops: &[Op]) -> String {
    ops.iter().map(|op| serde_json::to_string(op).expect("JSON") + "\n").collect()
}

/// The inverse of [`write`]; lines that begin with `#` are comments.
pub fn read(text: &str) -> Vec<Op> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Left), Just(Outcome::Right), Just(Outcome::Tie), Just(Outcome::None)]
}

/// Mostly the newest duels, and often the same ones.
fn answers() -> impl Strategy<Value = Vec<(usize, Outcome)>> {
    prop::collection::vec((0usize..12, outcome()), 1..4)
}

fn commit() -> impl Strategy<Value = Commit> {
    prop_oneof![Just(Commit::Before), Just(Commit::After)]
}

/// Lists of operations. Each list draws which kinds are common and which never happen; with equal
/// shares, few lists would contain much of one kind.
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
