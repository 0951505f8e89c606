//! Entries of the audit log, as callers of a store see them.

use serde_json::Value;

/// The author of a change, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub(crate) who: String,
    /// The request, if there was one.
    pub(crate) request_id: Option<String>,
}

impl Actor {
    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub fn who(&self) -> &str {
        &self.who
    }

    fn new(who: impl Into<String>) -> Self {
        Self { who: who.into(), request_id: None }
    }

    /// The caller with this key.
    pub fn key(id: &str) -> Self {
        Self::new(format!("key:{id}"))
    }

    /// A caller of a server that has no keys.
    pub fn anyone() -> Self {
        Self::new("anyone")
    }

    /// The service itself.
    pub fn service() -> Self {
        Self::new("service")
    }

    /// Someone who ran a command with access to the database.
    pub fn command_line() -> Self {
        Self::new("command-line")
    }

    /// The same actor, in this request.
    pub fn in_request(self, request_id: &str) -> Self {
        Self { request_id: Some(request_id.into()), ..self }
    }
}

/// A new entry for the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditNote {
    /// Unix milliseconds.
    pub at: i64,
    /// The author.
    pub by: Actor,
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
    pub fn of_experiment(by: &Actor, what: &'static str, experiment: &str, at: i64) -> Self {
        Self { experiment: Some(experiment.into()), ..Self::new(by, what, experiment, at) }
    }

    /// `by` did `what` to `subject`, which is not an experiment.
    pub fn new(by: &Actor, what: &'static str, subject: &str, at: i64) -> Self {
        Self {
            at,
            by: by.clone(),
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

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    /// Newest first.
    pub records: Vec<AuditRecord>,
    /// The number of the last entry; `None` on the last page.
    pub next: Option<i64>,
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
