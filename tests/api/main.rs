//! The service through its public face: real requests over a socket, on both databases.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod audit;
mod bad_input;
mod batches;
mod both_paths;
mod concurrency;
mod demo;
mod docs;
mod duels;
mod examples;
mod experiments;
mod extract;
mod feedback;
mod hostile;
mod keys;
mod metrics;
mod pages;
mod policies;
mod policy_change;
mod process;
mod rankers;
mod scopes;
mod shell;
mod standings;
mod storage_failure;
mod tracing;
mod verdict;
mod whatif;
