//! Reports on an experiment.
//!
//! A report first copies what it needs of the fold, then computes on a thread of [`pool`]. The
//! newest one of each kind is kept, for all who ask at the same log position ([`single_flight`]).
//!
//! The comment of a field is its description in `openapi.yaml`. A field whose name says all has
//! none.

pub mod alarms;
pub mod claim;
pub mod claims;
pub mod drift;
pub mod duels_to_go;
pub(crate) mod findings;
pub mod fold_copy;
pub mod guardrails;
pub mod leader;
pub mod orders;
pub mod plan;
mod plan_orders;
pub(crate) mod pool;
pub mod regret;
pub mod segment_claims;
pub mod segments;
pub(crate) mod single_flight;
pub mod standings;
pub mod statistics;
pub mod traffic;
pub mod verdict;
pub mod verdict_basis;
pub mod verdict_pairs;
pub mod verdict_report;
mod verdict_sentence;
pub mod winners;
pub(crate) mod words;
