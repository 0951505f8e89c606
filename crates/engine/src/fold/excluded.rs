//! The units whose answers do not count.
//!
//! They are known before the first entry is folded, so the state is the same as if they had never
//! answered. The entries of the log that exclude them only say from where on the policy selects
//! without them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::experiment_spec::ExperimentSpec;
use rankduel_store::events::UnitHash;

/// The excluded units of an experiment, and their answers so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExcludedUnits {
    units: BTreeSet<u64>,
    /// Entries of the whole log that exclude units.
    entries: usize,
    /// How many of them were folded.
    seen: usize,
    /// Position of the newest folded one; 0 before the first.
    since: u64,
    /// Answers of the units that were folded.
    answers: u64,
}

impl ExcludedUnits {
    /// The units that the whole log of an experiment excludes, before its first entry.
    pub fn of(spec: &ExperimentSpec) -> Self {
        let units = spec.excluded_units().map(|UnitHash(unit)| unit).collect();
        Self { units, entries: spec.exclusions.len(), ..Self::default() }
    }

    /// Whether decoded units are those of the experiment at the end of its log.
    pub fn are_of(&self, spec: &ExperimentSpec) -> bool {
        let Self { units, entries, .. } = Self::of(spec);
        self.units == units && self.entries == entries && self.seen == entries
    }

    /// Whether a page of this unit does not count.
    pub fn has(&self, unit: Option<u64>) -> bool {
        unit.is_some_and(|unit| self.units.contains(&unit))
    }

    /// Number of units.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Number of their answers in the log.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        32 * self.units.len()
    }

    pub(super) fn answered(&mut self) {
        self.answers += 1;
    }

    /// The entry at this position excludes units.
    pub(super) fn exclude_from(&mut self, position: u64) {
        self.seen += 1;
        self.since = position;
    }

    /// Whether the duels of this position were selected while some of these units still counted,
    /// so by another state. Their tickets and batch numbers are then ignored: each comparison goes
    /// to the open batch if that batch needs it.
    pub(super) fn counted_at(&self, chosen_at: u64) -> bool {
        self.seen < self.entries || chosen_at < self.since
    }
}
