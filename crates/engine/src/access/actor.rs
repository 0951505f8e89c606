//! Authors of actions.

use super::key::KeyId;
use rankduel_store::AuditAuthor;

/// The author of a change, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor(AuditAuthor);

impl Actor {
    fn new(who: impl Into<String>) -> Self {
        Self(AuditAuthor { who: who.into(), request_id: None })
    }

    /// The caller with this key.
    pub fn key(id: &KeyId) -> Self {
        Self::new(format!("key:{}", id.as_str()))
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
        Self(AuditAuthor { request_id: Some(request_id.into()), ..self.0 })
    }
}

impl From<&Actor> for AuditAuthor {
    fn from(actor: &Actor) -> Self {
        actor.0.clone()
    }
}
