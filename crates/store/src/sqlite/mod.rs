//! The store in an SQLite file.
//!
//! The file is in write-ahead-log mode and every commit is synced (`synchronous=FULL`). Writes go
//! through one connection, one transaction at a time. Reads have connections of their own and never
//! wait. Every transaction that writes begins with `begin immediate`: a transaction that reads
//! first and then writes fails at once if another process wrote in between, and the busy timeout
//! does not help.
//!
//! A server claims the file ([`claim`]); commands may use it at the same time. SQLite lets one
//! process write at a time and the others wait, so positions stay dense and a nonce still counts
//! once. The file must be on a local disk, not on a network file system.
//!
//! Each connection runs on a thread of its own, and each statement is a round trip to it. Appends
//! therefore use statements over many rows, in a few sizes, so that each is prepared once.

mod backend;
mod claim;
mod contents;
mod database;
mod store;

pub(super) use claim::{evidence_of_loss, evidence_of_other_names};
pub(super) use store::SqliteStore;
