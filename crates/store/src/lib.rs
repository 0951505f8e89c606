//! The append-only log and the databases that hold it.
//!
//! The store knows bytes, positions and nonces. Specifications, policies, clicks and scopes are
//! opaque to it: an event is plain data of [`crate::events`], and its caller decides what
//! supersedes it.
//!
//! It may use `dueling-bandits` and `interleaving` for the plain types in an event, and nothing of
//! the engine or the service. Read [`ExperimentLog`] first, then `record.rs`, then one
//! database from its `mod.rs`.
//!
//! # How to use it
//!
//! [`connect`] opens the store of a URL, as a [`SharedStore`]. A caller takes the narrowest trait
//! that it needs:
//!
//! | trait | has |
//! | --- | --- |
//! | [`ExperimentLog`] | experiments, their logs and snapshots, notices, pruning and import |
//! | [`KeyStore`] | signing keys and API keys |
//! | [`AuditLog`] | the audit log |
//! | [`WebhookQueue`] | notices that wait for a webhook |
//! | [`Database`] | schema, health, shutdown |
//! | [`Store`] | all of them |
//!
//! ```no_run
//! # use rankduel_store::{ExperimentLog, StoreError, connect};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = connect("sqlite://rankduel.db").await?;
//! store.migrate().await?;
//! print_names(&*store).await?;
//! # Ok(())
//! # }
//! async fn print_names(log: &dyn ExperimentLog) -> Result<(), StoreError> {
//!     for name in log.names("", 100).await? {
//!         println!("{name}");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [`events`] has the events of a log as plain data, [`audience`] says who sees a page, and
//! [`entropy`] is the only source of randomness.
//!
//! # How to add an operation
//!
//! 1. Declare it in its trait (`traits.rs`); its records are in `record.rs`, `keys.rs` or
//!    `audit.rs`.
//! 2. Add its statement to `sql/statements.rs` and implement it with its trait
//!    (`sql/experiment_log.rs`, `sql/key_store.rs`, `sql/audit_log.rs`). Only statements that need
//!    a database's own SQL belong in `sqlite/` and `postgres/`.
//! 3. Add it to the contract suite `tests/storage/store_contract`, which runs on both databases.
//!
//! A statement of PostgreSQL also says what it reaches in a distributed database; a test holds it
//! to that.
//!
//! # How to add a column
//!
//! Add one migration to each of `migrations/sqlite` and `migrations/postgres`, named
//! `NNNN_expand_…` if older programs can live with it, list both in `schema.rs`, and extend what is
//! read from its row in `sql/rows.rs`.
//! For PostgreSQL, a migration has one command and names its constraints: a distributed one refuses
//! others. A column of `log` is defined once, in `sql/log_row.rs`, and also belongs in the function
//! `append_entries`; a new table belongs in the lists of `postgres/distribute.rs`.

mod append_plan;
pub mod audience;
mod audit;
mod connect;
pub mod entropy;
mod error;
pub mod events;
pub mod hashes;
mod keys;
pub mod label;
pub mod order_events;
mod postgres;
mod record;
mod schema;
mod sql;
mod sqlite;
mod traits;

pub use audit::{Actor, AuditNote, AuditPage, AuditRecord};
pub use connect::{ConnectError, Place, connect, connect_with};
pub use error::{StoreError, in_time, within};
pub use keys::{ApiKeyRecord, SessionId, SigningKey};
pub use record::{
    AppendUnit, Appended, CREATION, Change, Changed, Created, Distributed, DueExperiment,
    ExperimentId, ExperimentRecord, Head, LIST_GROUPS, ListFilter, ListPlace, ListSize,
    ListedExperiment, LogEntry, NewAnswer, NewEvent, NewExperiment, Nonce, Notice, Snapshot,
    WebhookNotice,
};
pub use traits::{
    AuditLog, Database, EntryChunks, ExperimentLog, KeyStore, Notices, SharedStore, Store,
    WebhookQueue,
};
