//! The SQL that both databases share: statements, rows, and the traits of a store.
//!
//! A database provides a [`Backend`](backend::Backend): transactions, single statements, and access
//! to the log in SQL of its own. The traits of a store are implemented for each backend.

mod audit_log;
pub(super) mod backend;
mod experiment_log;
mod key_store;
pub(super) mod log_row;
pub(super) mod numbers;
pub(super) mod rows;
pub(super) mod statement;
pub(super) mod statements;
pub(super) mod table_row;
pub(super) mod value;
mod webhook_queue;
