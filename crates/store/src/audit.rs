//! Entries of the audit log, as callers of a store see them.

use serde_json::Value;

/// The author of a note, in the columns of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditAuthor {
    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub who: String,
    /// The request, if there was one.
    pub request_id: Option<String>,
}

/// A new entry for the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditNote {
    /// Unix milliseconds.
    pub at: i64,
    /// The author.
    pub by: AuditAuthor,
    /// The action, such as `experiment-created`.
    pub what: &'static str,
    /// Name of an experiment, or id of a key.
    pub subject: String,
    /// Name of the experiment, if it is about one.
    pub experiment: Option<String>,
    /// Value before the action.
    pub before: Option<Value>,
    /// Value after the action.
    pub after: Option<Value>,
}

impl AuditNote {
    /// `by` did `what` to an experiment.
    pub fn of_experiment(
        by: impl Into<AuditAuthor>,
        what: &'static str,
        experiment: &str,
        at: i64,
    ) -> Self {
        Self { experiment: Some(experiment.into()), ..Self::new(by, what, experiment, at) }
    }

    /// `by` did `what` to `subject`, which is not an experiment.
    pub fn new(by: impl Into<AuditAuthor>, what: &'static str, subject: &str, at: i64) -> Self {
        Self {
            at,
            by: by.into(),
            what,
            subject: subject.into(),
            experiment: None,
            before: None,
            after: None,
        }
    }

    /// With the values before and after.
    pub fn changed(self, before: Option<Value>, after: Option<Value>) -> Self {
        Self { before, after, ..self }
    }
}

/// Where a page of the audit log ended: the number of its last entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditCursor(pub(super) i64);

impl AuditCursor {
    /// The cursor with these bytes; `None` if they are not one.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(i64::from_be_bytes(bytes)))
    }

    /// Its bytes, for a link.
    pub fn to_bytes(&self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// Newest first.
    pub records: Vec<AuditRecord>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<AuditCursor>,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditRecord {
    /// Its number; a later entry has a larger one.
    pub id: i64,
    /// Unix milliseconds.
    pub at: i64,
    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub who: String,
    /// The action.
    pub what: String,
    /// Name of an experiment, or id of a key.
    pub subject: String,
    /// Name of the experiment, if it is about one.
    pub experiment: Option<String>,
    /// Value before the action.
    pub before: Option<Value>,
    /// Value after the action.
    pub after: Option<Value>,
    /// The request, if there was one.
    pub request_id: Option<String>,
}
