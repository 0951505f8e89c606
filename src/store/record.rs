//! The plain records that go into and come out of a store.

use serde::{Deserialize, Serialize};

use sqlx::types::Uuid;

use super::AuditNote;
use dueling_bandits::{Answer, PolicySpec};
use interleaving;

/// An experiment's number in its database.
pub type ExperimentId = i64;

/// Names an event once and for all: a repeat carries the same nonce. 128 bits.
pub type Nonce = u128;

/// Whether an experiment hands out duels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Duels are handed out and feedback counts.
    Running,
    /// No duels; feedback of duels that are out still counts.
    Paused,
    /// Decided: the winner is shown, alone.
    Concluded,
}

/// An experiment as the database has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRecord {
    /// Its number.
    pub id: ExperimentId,
    /// Its name, unique for ever.
    pub name: String,
    /// What it is, as canonical JSON: what it was created with, but for its policy and its rankers,
    /// which can be changed. The store does not look inside.
    pub spec: String,
    /// Seed of everything that is drawn while folding.
    pub seed: u64,
    /// Running, paused or concluded.
    pub status: Status,
    /// Index of the winner that was concluded on.
    pub winner: Option<u16>,
    /// Counts the changes of this record, from 1.
    pub version: u64,
    /// Position of the newest log entry; 0 before the first.
    pub head: u64,
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds of the newest change of this record (not of its log).
    pub updated_at: i64,
    /// Unix milliseconds; archived experiments are not listed, and their log is kept.
    pub archived_at: Option<i64>,
    /// Log entries up to this position were pruned; 0 while the log is whole.
    pub pruned_to: u64,
    /// How rankings are interleaved, as JSON, where that was changed since it was created; the
    /// store does not look inside.
    pub interleaving: Option<String>,
}

/// What an experiment is created from.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExperiment {
    /// Its name.
    pub name: String,
    /// Canonical JSON.
    pub spec: String,
    /// Seed of everything that is drawn while folding.
    pub seed: u64,
    /// Unix milliseconds.
    pub created_at: i64,
    /// For the audit log, if it is new.
    pub audit: Option<AuditNote>,
}

/// A change of an experiment's record; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// New status.
    pub status: Option<Status>,
    /// New winner: `Some(None)` takes it away.
    pub winner: Option<Option<u16>>,
    /// Archive at this time, unix milliseconds.
    pub archived_at: Option<i64>,
    /// For the audit log.
    pub audit: Option<AuditNote>,
    /// How rankings are interleaved from here on, as JSON.
    pub interleaving: Option<String>,
    /// What the experiment is from here on, as canonical JSON.
    pub spec: Option<String>,
}

impl Change {
    /// The record after this change, which is logged as its next entry.
    pub fn applied_to(&self, before: &ExperimentRecord, now: i64) -> ExperimentRecord {
        ExperimentRecord {
            status: self.status.unwrap_or(before.status),
            winner: self.winner.unwrap_or(before.winner),
            archived_at: self.archived_at.or(before.archived_at),
            interleaving: self.interleaving.clone().or_else(|| before.interleaving.clone()),
            spec: self.spec.clone().unwrap_or_else(|| before.spec.clone()),
            version: before.version + 1,
            head: before.head + 1,
            updated_at: now,
            ..before.clone()
        }
    }
}

/// How far an experiment is, for those who follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Which experiment.
    pub experiment: ExperimentId,
    /// Its record's version.
    pub version: u64,
    /// Position of its newest log entry.
    pub head: u64,
    /// Whether it is archived: its log takes nothing any more.
    pub archived: bool,
}

/// A log has grown: told by the database, and perhaps lost on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// Which experiment's.
    pub experiment: ExperimentId,
    /// Position of its newest entry then.
    pub head: u64,
}

/// An event on its way into the log.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Names it once and for all.
    pub nonce: Nonce,
    /// What happened.
    pub event: Event,
}

impl NewEvent {
    /// The nonce after which this event is too late: that of the duel, for clicks that do not
    /// settle it.
    pub fn superseded_by(&self) -> Option<Nonce> {
        match &self.event {
            Event::Control(ControlEvent::Clicks(clicks)) => {
                Some(clicks.duel.as_u128()).filter(|duel| *duel != self.nonce)
            }
            Event::Outcome(_) | Event::Control(_) => None,
        }
    }
}

/// An event in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogEntry {
    /// 1, 2, 3, … without a gap.
    pub position: u64,
    /// Names it once and for all.
    pub nonce: Nonce,
    /// Unix milliseconds at which it was appended.
    pub recorded_at: i64,
    /// What happened.
    pub event: Event,
}

/// What can happen to an experiment. Two events with one nonce are the same when they are equal.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A duel was answered.
    Outcome(OutcomeEvent),
    /// Something rarer; kept as JSON.
    Control(ControlEvent),
}

/// A duel and its answer. All but the answer comes from the duel's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeEvent {
    /// First ranker of the ordered pair that the policy chose.
    pub first: u16,
    /// Second ranker; equal to `first` for a self-duel, which teaches nothing.
    pub second: u16,
    /// Whether the first was shown left.
    pub first_left: bool,
    /// What the searcher said.
    pub answer: Answer,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// What the policy wanted to remember of its selection.
    pub ticket: u64,
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was handed out.
    pub issued_at: i64,
}

/// The rarer events. New kinds and new optional fields may be added; a program refuses a log with a
/// kind it does not know rather than fold it wrongly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlEvent {
    /// Self-duels that were handed out since the last such event: pairs of ranker and count.
    SelfDuels {
        /// `[ranker, count]`, each ranker once, in ascending order.
        counts: Vec<(u16, u64)>,
    },
    /// A whole batch that was run elsewhere.
    BatchResults {
        /// Its number.
        batch: u32,
        /// One row a pair of the batch.
        results: Vec<PairResult>,
    },
    /// The experiment's record changed.
    Status {
        /// Status from here on.
        status: Status,
        /// Winner, when concluded.
        winner: Option<u16>,
        /// Whether it was archived with this change.
        archived: bool,
        /// Why the service did it by itself; `None` for what somebody asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Another policy chooses from here on, and has folded the log from its beginning.
    Policy {
        /// The policy.
        policy: PolicySpec,
    },
    /// One more ranker takes part from here on.
    RankerEnlisted {
        /// Its index, the next one.
        ranker: u16,
        /// Its id.
        id: String,
    },
    /// A ranker takes part no more: no duel that is chosen from here on shows it.
    RankerRetired {
        /// Its index, which stays its own.
        ranker: u16,
    },
    /// Rankings are interleaved in another way from here on.
    Interleaving {
        /// Its number; what the experiment was created with is 1.
        version: u32,
        /// The method.
        method: interleaving::Spec,
    },
    /// Clicks on an interleaved page. Under the duel's nonce they settle it, with those that came
    /// before; under another nonce they wait for what does.
    Clicks(Box<ClicksEvent>),
    /// Under a duel's nonce: the clicks that came before are its answer.
    Settled {},
}

/// Clicks on the page of a duel. All but the clicks comes from its token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClicksEvent {
    /// The duel's nonce.
    pub duel: Uuid,
    /// First ranker of the ordered pair that the policy chose.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Whether the first was shown left.
    pub first_left: bool,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// What the policy wanted to remember of its selection.
    pub ticket: u64,
    /// Log position that it was selected at.
    pub chosen_at: u64,
    /// Unix milliseconds at which it was handed out.
    pub issued_at: i64,
    /// Version of the method that it was interleaved with.
    pub method: u32,
    /// What credit needs to know of what was shown, as text; the store does not look inside.
    pub sheet: String,
    /// Positions and weights, each position once, in ascending order.
    pub clicks: Vec<(u16, u8)>,
}

/// Counts of one pair of a batch that was run elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairResult {
    /// First ranker of the batch's ordered pair.
    pub first: u16,
    /// Second ranker.
    pub second: u16,
    /// Comparisons that the first won.
    pub first_wins: u32,
    /// Comparisons that the second won.
    pub second_wins: u32,
    /// Comparisons without a winner.
    pub ties: u32,
}

/// A fold's state at a log position. A cache: losing one costs a start time, never an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Which experiment.
    pub experiment: ExperimentId,
    /// Log position that it holds.
    pub position: u64,
    /// Layout of the bytes; a snapshot of another layout is not read.
    pub format: u32,
    /// The state.
    pub state: Vec<u8>,
    /// Unix milliseconds.
    pub created_at: i64,
}

/// A key that duels are signed with. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// Its number, carried by each token.
    pub id: u32,
    /// 32 random bytes.
    pub secret: [u8; 32],
    /// Unix milliseconds.
    pub created_at: i64,
    /// Unix milliseconds from which on it signs. Every process must know it by then.
    pub active_from: i64,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}
