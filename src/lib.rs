//! rankduel: online ranker evaluation with dueling bandits, as an HTTP service.
//!
//! The crates, from the bottom to the top; each uses only those above it in this list:
//!
//! 1. `dueling-bandits` and `interleaving`: policies, verdict, methods of interleaving; pure.
//! 2. `rankduel-store`: the append-only log and its two databases.
//! 3. `rankduel-engine`: experiments in memory: fold, group commit, replication, tokens, access.
//! 4. this crate, the service and its command line.
//!
//! Its modules, in reading order:
//!
//! 1. [`service`]: the use cases of the API, and the reports.
//! 2. [`http`]: the API on top of the use cases, and [`dashboard`], the pages for people.
//! 3. [`telemetry`]: logs and traces.
//! 4. [`config`] and [`cli`]: settings and commands.
#![warn(missing_docs)]

pub mod cli;
pub mod config;
mod dashboard;
pub mod http;
mod schemas;
pub mod service;
pub mod telemetry;
