//! The lines of an exported experiment. `docs/operations.md` describes every field.

use serde::{Deserialize, Serialize};

use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_store::events::{ControlEvent, Event, OutcomeEvent, Status};
use rankduel_store::{ExperimentRecord, LogEntry};

/// Version of the format. A reader refuses other versions.
pub(super) const FORMAT: u32 = 1;
/// Entries that are read from the store or written to it at once.
pub(crate) const CHUNK: u32 = 10_000;

/// The first line: the experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub rankduel_export: u32,
    pub name: String,
    pub spec: ExperimentSpec,
    pub seed: u64,
    pub status: Status,
    pub winner: Option<u16>,
    pub version: u64,
    pub head: u64,
    pub created_at: i64,
    pub updated_at: i64,
    pub archived_at: Option<i64>,
    pub pruned_to: u64,
}

impl Head {
    pub fn of(record: &ExperimentRecord, spec: &ExperimentSpec) -> Self {
        Self {
            rankduel_export: FORMAT,
            name: record.name.clone(),
            spec: spec.clone(),
            seed: record.seed,
            status: record.status,
            winner: record.winner,
            version: record.version,
            head: record.head,
            created_at: record.created_at,
            updated_at: record.updated_at,
            archived_at: record.archived_at,
            pruned_to: record.pruned_to,
        }
    }

    /// The record of the experiment under this name, without an id.
    pub fn into_record(self, name: String) -> ExperimentRecord {
        ExperimentRecord {
            id: 0,
            name,
            spec: self.spec.to_text(),
            seed: self.seed,
            status: self.status,
            winner: self.winner,
            version: self.version,
            head: self.head,
            created_at: self.created_at,
            updated_at: self.updated_at,
            archived_at: self.archived_at,
            pruned_to: self.pruned_to,
            // none that can be read: what the log holds is no news
            answer: Some("{}".into()),
        }
    }
}

/// After the first line of a pruned log: the snapshot that replaces the pruned entries.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotLine {
    pub snapshot: SnapshotFields,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotFields {
    pub position: u64,
    pub format: u32,
    pub state: String,
    pub created_at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EntryLine {
    pub position: u64,
    pub nonce: String,
    pub recorded_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<ControlEvent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    pub entries: u64,
    pub sha256: String,
}

impl EntryLine {
    pub fn of(entry: &LogEntry) -> Self {
        let (outcome, event) = match &entry.event {
            Event::Outcome(outcome) => (Some(*outcome), None),
            Event::Control(event) => (None, Some(event.clone())),
        };
        let nonce = format!("{:032x}", entry.nonce);
        Self { position: entry.position, nonce, recorded_at: entry.recorded_at, outcome, event }
    }

    pub fn entry(self) -> Result<LogEntry, String> {
        let nonce = u128::from_str_radix(&self.nonce, 16)
            .ok()
            .filter(|_| self.nonce.len() == 32)
            .ok_or_else(|| {
            format!("`nonce` is {:?}; it must be 32 hexadecimal digits", self.nonce)
        })?;
        let event = match (self.outcome, self.event) {
            (Some(outcome), None) => Event::Outcome(outcome),
            (None, Some(event)) => Event::Control(event),
            _ => return Err("an entry has either `outcome` or `event`".into()),
        };
        Ok(LogEntry { position: self.position, nonce, recorded_at: self.recorded_at, event })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
