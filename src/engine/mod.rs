//! Experiments in memory: the fold of each log, the open duels, group commit, replication and
//! maintenance.
//!
//! [`Engine`] owns all of it. It uses the store and the tokens below it, and does not depend on the
//! use cases above it: those pass their periodic work as [`maintenance::PeriodicTasks`] and keep
//! their own values of an experiment in [`extensions::Extensions`].

mod background;
mod cohorts;
pub mod condition;
pub mod consistency;
mod core;
pub mod drafts;
pub mod due;
pub mod error;
pub mod experiment_spec;
pub mod extensions;
pub mod fold;
pub mod issue_cohorts;
pub mod loaded;
pub mod log_regression;
pub mod maintenance;
pub mod outstanding;
pub mod registry;
pub mod replication;
mod self_duels;
pub mod settings;
mod status;
pub mod traffic;
pub mod writer;

pub use core::Engine;
pub use experiment_spec::page_rules;
