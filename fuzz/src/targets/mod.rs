//! The fuzz targets. Each target takes arbitrary bytes and panics if a property does not hold.
//!
//! `scripts/fuzz` runs the targets for minutes, guided by coverage. `tests/api/readers.rs` replays
//! the kept inputs in the tests.

pub mod api;
pub mod bytes;
pub mod csv;
pub mod import;
pub mod interleave;
pub mod policy;
pub mod scene;
pub mod snapshot;
pub mod token;

/// A target: panics on a finding.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of the folder of its kept inputs.
pub const TARGETS: [(&str, Target); 7] = [
    ("api", api::run),
    ("csv", csv::run),
    ("import", import::run),
    ("interleave", interleave::run),
    ("policy", policy::run),
    ("snapshot", snapshot::run),
    ("token", token::run),
];
