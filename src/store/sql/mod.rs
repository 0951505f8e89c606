//! The SQL that both databases share: statements, rows, and the traits of a store.
//!
//! The traits are implemented by macros, once for both databases. Generic code would need a bound
//! for each type that a statement binds or a row holds, and the affected rows of a statement have
//! no trait in sqlx.
//!
//! A database invokes the macros in one module (`sqlite/traits.rs`, `postgres/traits.rs`) and
//! provides what differs. Methods of its store:
//!
//! | method | does |
//! | --- | --- |
//! | `attempt` | runs a unit of work, and repeats it if the database aborted it |
//! | `begin` | begins a transaction that writes |
//! | `readers`, `writers` | the pools for single statements |
//! | `read_heads`, `read_bulk`, `find_entries`, `append_events` | access to the log, in SQL of its own |
//! | `unit_of` | the unit of an experiment |
//! | `open_listener`, `announce` | receive and send notices |
//! | `compare_schema` | compares the schema of the database with the program's |
//!
//! Names in that module:
//!
//! | name | is |
//! | --- | --- |
//! | `LOCK_EXPERIMENT` | the statement that reads and locks the row of an experiment |
//! | `LOCK_EPOCH` | the statement that reads and locks the epoch of the set |
//! | `insert_entries` | writes new log entries, within a transaction |
//! | `insert_copied` | writes log entries of another database, within a transaction |
//! | `lock_signing_keys` | makes other writers of signing keys wait, within a transaction |

mod audit_log;
pub(super) mod experiment_log;
mod key_store;
pub(super) mod log_row;
pub(super) mod member;
pub(super) mod numbers;
pub(super) mod reach;
pub(super) mod rows;
pub(super) mod statements;
pub(super) mod table_row;

pub(super) use audit_log::implement_audit_log;
pub(super) use experiment_log::implement_experiment_log;
pub(super) use key_store::implement_key_store;
pub(super) use member::implement_member;
