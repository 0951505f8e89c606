//! rankduel: online ranker evaluation with dueling bandits, as an HTTP service.
//!
//! The modules, in reading order:
//!
//! 1. [`store`]: the append-only log and its two databases.
//! 2. [`tokens`]: signed duel ids and their keys.
//! 3. [`engine`]: experiments in memory: the fold of a log, group commit, replication,
//!    maintenance.
//! 4. [`service`]: the use cases of the API, and the reports.
//! 5. [`http`]: the API on top of the use cases, and [`dashboard`], the pages for people.
//! 6. [`telemetry`]: metrics, logs and traces.
//! 7. [`config`] and [`cli`]: settings and commands.
//!
//! Each of them uses only those before it. [`access`] decides who may call; [`clock`] and
//! [`entropy`] are the sources of time and randomness. The crates `dueling-bandits`, `interleaving`
//! and `lab` have the policies, interleaving and simulations.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod cli;
pub mod clock;
pub mod config;
mod dashboard;
pub mod engine;
pub mod entropy;
pub mod http;
mod schemas;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod tokens;
