//! Units: the users, sessions or devices that answers come from.
//!
//! The caller's id of a unit is hashed as it arrives, with the experiment's seed and time of
//! creation as key, and is never stored or logged itself. Whoever can read the database can still
//! test guesses against the hashes: they are pseudonyms and not anonymous.

use sha2::{Digest, Sha256};

use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::ExperimentRecord;
use rankduel_store::audience::{Audience, Segment};

/// The viewer of a page, as the caller names it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedAudience<'a> {
    pub unit: Option<&'a str>,
    pub segment: Option<Segment>,
}

/// Longest id of a unit.
pub const MAX_UNIT_BYTES: usize = 256;

/// Hashes the units of one experiment. The same unit has different hashes in two experiments, also
/// if both were created with one seed: else the same units would see the same arms in both. An
/// imported experiment goes on with the hashes of its original.
#[derive(Debug, Clone, Copy)]
pub struct UnitHasher {
    seed: u64,
    created_at: i64,
}

impl UnitHasher {
    pub fn of(loaded: &LoadedExperiment) -> Self {
        loaded.with_record(|&ExperimentRecord { seed, created_at, .. }| Self { seed, created_at })
    }

    pub fn audience(self, NamedAudience { unit, segment }: NamedAudience<'_>) -> Audience {
        let unit = unit.filter(|unit| !unit.is_empty()).map(|unit| self.hash(unit));
        Audience { unit, segment }
    }

    pub fn hash(self, unit: &str) -> u64 {
        let mut hash = Sha256::new();
        hash.update(b"rankduel unit\0");
        hash.update(self.seed.to_be_bytes());
        hash.update(self.created_at.to_be_bytes());
        hash.update(unit.as_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        u64::from_be_bytes(std::array::from_fn(|index| hash[index]))
    }
}

/// Why a unit's id is not valid; `None` if it is. An empty id is valid where a unit may be left
/// out, and is as none.
pub fn unit_error(unit: &str) -> Option<String> {
    let bytes = unit.len();
    (bytes > MAX_UNIT_BYTES)
        .then(|| format!("a unit has at most {MAX_UNIT_BYTES} bytes; this one has {bytes}"))
}
