//! `state = fold(observe, initial(spec, seed), log)`: the only way from the log of an experiment to
//! its state.
//!
//! Pure: the same log gives the same state on every replica and after every crash.

mod alone;
mod apply;
mod change;
pub mod counts;
pub mod excluded;
pub mod methods;
pub mod open_pages;
mod orders;
pub mod page_counts;
mod saved;
mod state;
mod values;

pub use apply::{COIN_TIES_MAX, Chunk, FoldError, ties_of};
pub use methods::MethodVersion;
pub use state::{DecidedClaim, Fold, MAX_POSITION, State};
