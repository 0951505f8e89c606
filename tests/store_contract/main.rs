//! The contract of a store, which both databases keep.
//!
//! Every test runs on both, on a fresh database each time.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod appends;
mod audit;
mod concurrency;
mod experiments;
mod faults;
mod fixtures;
mod keys;
mod logs;
mod schema;
mod snapshots;
mod urls;
