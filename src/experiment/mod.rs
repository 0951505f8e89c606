//! Experiments as they live in a server: the fold of the log, the duels that are out, and the use cases of the API.
//!
//! The only place where policy, store and clock meet. It knows nothing of HTTP. In reading order: [`spec`] (what an
//! experiment is), [`token`] (a duel's signed name) and [`signing`] (its keys), [`fold`] (from log to state), [`live`]
//! (one experiment in memory) and [`registry`] (all of them), [`writer`] (group commit), [`service`] (what a process does;
//! duels), [`pages`] (interleaved, what [`shown`] says of them, [`page_rules`]), [`receive`] (feedback; [`open_pages`]
//! while it comes in pieces, [`page_counts`] what came of it), [`lifecycle`] (from created to archived; `change`: how; `comings`: rankers that come and go), [`standings`], [`statistics`],
//! [`regret`], [`verdict`], [`winners`] and [`batches`] (what came of it), `conclusion` (experiments that conclude by
//! themselves), [`traffic`] and [`alarms`] (whether anything is wrong); in the background, `following` (what other processes append) and `upkeep`;
//! `loss` (a database that has gone back);
//! for whoever keeps it running, [`transfer`] (export and import), [`retention`] (pruning) and [`audit`].

pub mod alarms;
pub mod audit;
pub mod batches;
mod change;
mod comings;
mod conclusion;
pub mod counts;
pub mod error;
mod estimates;
pub mod fold;
mod following;
mod latest;
pub mod lifecycle;
pub mod live;
mod loss;
pub mod open_pages;
pub mod outstanding;
pub mod page_counts;
pub mod page_rules;
pub mod pages;
pub mod receive;
pub mod registry;
pub mod regret;
pub mod replay;
pub mod retention;
pub mod service;
pub mod shown;
pub mod signing;
pub mod spec;
pub mod standings;
pub mod statistics;
pub mod token;
pub mod traffic;
pub mod transfer;
mod upkeep;
pub mod verdict;
pub mod winners;
pub mod writer;

pub use error::ServiceError;
pub use live::Live;
pub use pages::{IssuedPage, PageRequest};
pub use receive::{Clicked, Feedback, PageEvent, Received, Said, ShownOutcome};
pub use service::{IssuedDuel, Service, ServiceSettings};
pub use spec::{ExperimentSpec, Ranker};
