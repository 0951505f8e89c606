//! Several databases as one store. Each experiment is in one of them, as a whole.
//!
//! - A new experiment goes to its home, a function of its name and of the identities of the
//!   databases ([`home`]). An existing one is where it is found: at home, or where it was moved to.
//!   The place is remembered, and looked up again once the database there does not have it any
//!   more ([`places`]).
//! - Keys and ended sessions are in one database, the first of the list when the set was made. It
//!   lists the databases of the set; each of them names it ([`membership`]).
//! - A move copies an experiment while it is served. Only its last step stops it for a moment
//!   ([`moving`]).
//!
//! Nothing is atomic between databases. An experiment is whole in one of them, so its promises
//! (dense, ordered, each nonce once) are those of one database.

mod audit;
mod databases;
mod experiment_log;
mod home;
mod key_store;
mod membership;
mod merging;
mod moving;
mod notices;
mod places;
mod set;

pub use moving::{MoveError, Moved};
pub use set::DatabaseSet;
