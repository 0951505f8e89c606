//! Orders: what units bought, for experiments that orders decide.

mod content;
mod events;
mod receive;

pub use content::{LineBody, Order, OrderBody, OrderReceipt};
pub(crate) use receive::{counting, counting_one, receive};
