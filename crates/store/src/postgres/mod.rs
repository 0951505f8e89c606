//! The store in PostgreSQL, 14 or later. Any number of processes share one database.
//!
//! Appending locks the rows of its experiments, in ascending order so that two appends cannot
//! deadlock. Positions are taken under these locks, so each log is dense and totally ordered
//! whichever process appends. After a commit, listeners are notified of the logs that have grown
//! ([`notifier`]). A notification can be lost, so a replica must also poll
//! ([`ExperimentLog::heads`](super::ExperimentLog::heads)).
//!
//! A database can be distributed by experiment over several nodes ([`distribute`]). Each statement
//! says in its list what it reaches there ([`statements`]).
//!
//! Sessions are set up so that a commit is durable whatever the server's default, and so that every
//! wait ends: for a lock, for a statement, and for a server that no longer responds. Behind a
//! pooler that does not keep sessions, each transaction is set up so ([`sessions`]).

mod append;
mod backend;
pub(super) mod copy;
mod database;
mod distribute;
mod lease;
mod notifier;
mod sessions;
mod statements;
mod store;
mod transaction;

pub(super) use sessions::PoolMode;
pub(super) use store::PostgresStore;
