//! The units that an experiment excludes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::field_error::FieldError;
use rankduel_store::events::UnitHash;

/// Most exclusions of one experiment: each folds the whole log once more.
pub const MAX_EXCLUSIONS: usize = 100;
/// Most units that one experiment excludes. They are part of its record.
pub const MAX_EXCLUDED_UNITS: usize = 4096;
const MAX_REASON_CHARS: usize = 500;

/// Units to exclude: at least one, as `units`, as `hashes` or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExcludeBody)]
#[serde(deny_unknown_fields)]
pub struct Exclusion {
    /// Units as they were sent with duels or feedback. Only their hashes are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!(["u-81f3"]))]
    pub units: Vec<String>,
    /// Hashes of units, as `heaviest_units` of `/verdict` and exports have them.
    #[serde(default)]
    #[schema(value_type = Vec<String>, example = json!(["7f3a09c1d2e4b586"]))]
    pub hashes: Vec<UnitHash>,
    /// Why the units are excluded, for people. The reason must not depend on who won their duels.
    #[schema(example = "clicks on the first result of every page")]
    pub reason: String,
}

/// All errors of the exclusions of an experiment. They stand at `pointer` in a request.
pub(super) fn errors(exclusions: &[Exclusion], pointer: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if exclusions.len() > MAX_EXCLUSIONS {
        let detail = format!(
            "units were excluded {MAX_EXCLUSIONS} times, which is the limit; create a new experiment"
        );
        errors.push(FieldError::new(pointer, detail));
    }
    let all: Vec<UnitHash> = units(exclusions).collect();
    if all.len() > MAX_EXCLUDED_UNITS {
        let detail = format!(
            "{} units would be excluded; an experiment excludes at most {MAX_EXCLUDED_UNITS}",
            all.len()
        );
        errors.push(FieldError::new(pointer, detail));
    }
    if all.iter().collect::<BTreeSet<_>>().len() < all.len() {
        errors.push(FieldError::new(pointer, "a unit is excluded twice"));
    }
    for Exclusion { hashes, reason, .. } in exclusions {
        if hashes.is_empty() {
            errors.push(FieldError::new(pointer, "an exclusion names at least one unit"));
        }
        let chars = reason.chars().count();
        if !(1..=MAX_REASON_CHARS).contains(&chars) {
            let detail =
                format!("a reason has 1 to {MAX_REASON_CHARS} characters; this one has {chars}");
            errors.push(FieldError::new(format!("{pointer}/reason"), detail));
        }
    }
    errors
}

/// The units of all exclusions.
pub(super) fn units(exclusions: &[Exclusion]) -> impl Iterator<Item = UnitHash> + '_ {
    exclusions.iter().flat_map(|exclusion| exclusion.hashes.iter().copied())
}
