//! The settings of an experiment that can be changed while it runs, and change no result that is
//! known.

use serde::{Deserialize, Serialize};

use super::conclude_at::ConcludeAt;
use super::enrolment::whole_coverage;
use super::field_error::FieldError;
use super::spec::ExperimentSpec;

/// Most characters of a description.
pub const MAX_DESCRIPTION_CHARS: usize = 1000;
/// Most characters of an owner.
pub const MAX_OWNER_CHARS: usize = 200;

/// Settings that can be changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Time within which the answers come that the verdict counts: it counts a duel once this time
    /// has passed since its issue. 0: it counts every answer as it arrives.
    pub answer_window_seconds: u32,
    /// When the service concludes the experiment by itself; without it, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude_at: Option<ConcludeAt>,
    /// Share of units that take part.
    #[serde(default = "whole_coverage")]
    pub coverage: f64,
    /// Its purpose; empty if nobody has said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whom to ask about it; empty if nobody has said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
}

/// Errors of the texts of a spec.
pub(super) fn text_errors(spec: &ExperimentSpec) -> impl Iterator<Item = FieldError> + '_ {
    let texts = [
        ("description", &spec.description, MAX_DESCRIPTION_CHARS),
        ("owner", &spec.owner, MAX_OWNER_CHARS),
    ];
    texts.into_iter().filter_map(|(name, text, most)| {
        let is_right = text.chars().count() <= most && !text.chars().any(char::is_control);
        let detail =
            format!("`{name}` has at most {most} characters, none of them a control character");
        (!is_right).then(|| FieldError::new(format!("/{name}"), detail))
    })
}
