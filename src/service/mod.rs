//! The use cases of the API, without HTTP: one file each: functions of [`Service`].
#![expect(missing_docs, reason = "some names say all")]

pub mod answer;
mod answer_order;
pub(crate) mod answers;
pub mod batches;
pub mod change;
pub(crate) mod conclusion;
mod core;
mod duel_id;
pub mod duels;
pub mod error;
pub mod feedback;
mod harm;
pub(crate) mod kept;
pub mod keys;
pub mod lifecycle;
pub(crate) mod listing;
mod notices;
pub mod orders;
pub mod outgoing;
pub mod pages;
pub mod reports;
pub mod retention;
pub(crate) mod threads;
pub mod transfer;
pub mod units;
pub mod verify;
mod webhook;

pub use core::Service;
pub use duels::IssuedDuel;
pub use notices::WebhookFormat;
pub use rankduel_engine::settings::EngineSettings as ServiceSettings;
pub use webhook::WebhookSettings;
