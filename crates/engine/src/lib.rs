//! Experiments in memory: the fold of each log, the open duels, group commit, replication and
//! maintenance.
//!
//! [`Engine`] owns all of it. It uses the store and the tokens below it, and does not depend on the
//! use cases above it: those pass their periodic work as [`maintenance::PeriodicTasks`] and keep
//! their own values of an experiment in [`extensions::Extensions`].
//!
//! It may use `dueling-bandits`, `interleaving` and `rankduel-store`. In reading order:
//!
//! 1. [`experiment_spec`]: how an experiment is set up.
//! 2. [`fold`]: the state of an experiment as a function of its log.
//! 3. [`loaded`] and [`registry`]: experiments in memory, and how they get there.
//! 4. [`writer`]: group commit; [`replication`]: what other processes have appended;
//!    [`maintenance`]: self-duels, snapshots, settling, eviction.
//! 5. [`tokens`]: signed duel ids and their keys; [`access`]: API keys, scopes and actors.
//! 6. [`metrics`]; [`clock`], the only source of time, and [`database_clock`].

pub mod access;
mod answered_in_time;
mod background;
pub mod choose;
pub mod clock;
pub mod cohorts;
pub mod condition;
pub mod consistency;
mod core;
pub mod database_clock;
pub mod drafts;
pub mod error;
pub mod experiment_spec;
pub mod extensions;
pub mod fold;
pub mod lifecycle;
pub mod loaded;
pub mod log_regression;
pub mod maintenance;
pub mod metrics;
pub mod open_duels;
pub mod page_values;
mod process;
pub mod registry;
pub mod replication;
pub mod settings;
pub mod tokens;
pub mod traffic;
mod unlogged;
pub mod writer;

pub use core::Engine;
pub use experiment_spec::page_rules;
