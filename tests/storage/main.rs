//! The log, and everything that is computed from it: stores, folds, several servers on one
//! database, restarts, retention.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod distributed;
mod events;
mod exclusions;
mod files;
mod fold;
mod memory;
mod orders;
mod orders_load;
mod pins;
mod poolers;
mod replicas;
mod restart;
mod retention;
mod segments;
mod simulation;
mod store_contract;
mod upgrade;
mod values;
