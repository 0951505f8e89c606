//! rankduel: online ranker evaluation with dueling bandits, as an HTTP service.
//!
//! The modules, in reading order:
//!
//! 1. [`events`]: the events of a log, as plain data; [`audience`]: who sees a page.
//! 2. [`store`]: the append-only log and its two databases.
//! 3. [`tokens`]: signed duel ids and their keys.
//! 4. [`engine`]: experiments in memory: the fold of a log, group commit, replication,
//!    maintenance.
//! 5. [`service`]: the use cases of the API, and the reports.
//! 6. [`http`]: the API on top of the use cases, and [`dashboard`], the pages for people.
//! 7. [`telemetry`]: metrics, logs and traces.
//! 8. [`config`] and [`cli`]: settings and commands.
//!
//! Each of them uses only those before it. [`access`] decides who may call; [`clock`] and
//! [`entropy`] are the sources of time and randomness. The crates `dueling-bandits` and
//! `interleaving` have the policies and the interleaving methods.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod access;
pub mod audience;
pub mod cli;
pub mod clock;
pub mod config;
mod dashboard;
pub mod engine;
pub mod entropy;
pub mod events;
pub mod http;
mod schemas;
pub mod service;
pub mod store;
pub mod telemetry;
pub mod tokens;
