//! To whom an act is put down.

use super::key::KeyId;

/// Who did something, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    who: String,
    request_id: Option<String>,
}

impl Actor {
    /// Whoever called with this key.
    pub fn key(id: &KeyId) -> Self {
        Self { who: format!("key:{}", id.as_str()), request_id: None }
    }

    /// A caller of a server that has no keys.
    pub fn anyone() -> Self {
        Self { who: "anyone".into(), request_id: None }
    }

    /// The service itself.
    pub fn service() -> Self {
        Self { who: "service".into(), request_id: None }
    }

    /// Whoever ran a command with access to the database.
    pub fn command_line() -> Self {
        Self { who: "command-line".into(), request_id: None }
    }

    /// In this request.
    pub fn in_request(self, request_id: &str) -> Self {
        Self { request_id: Some(request_id.into()), ..self }
    }

    /// `key:ID`, `anyone`, `service` or `command-line`.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// The request, where there was one.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }
}
