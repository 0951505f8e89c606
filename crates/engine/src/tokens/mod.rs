//! Duel ids: signed tokens that carry everything about a duel, and the keys that sign them.

pub mod duel_token;
pub mod key_set;
pub mod page_payload;
mod session;
pub mod signing;
