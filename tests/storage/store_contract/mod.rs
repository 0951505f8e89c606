//! The contract of a store, tested on both databases.
//!
//! Every test runs twice, each time on a new database.

mod appends;
mod audit;
mod concurrency;
mod dropped;
mod experiments;
mod faults;
pub mod fixtures;
mod keys;
mod logs;
mod notices;
mod schema;
mod snapshots;
mod turns;
mod urls;
