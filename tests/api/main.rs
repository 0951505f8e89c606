//! The server over real sockets.

mod docs;
mod extract;
mod keys;
mod process;
mod shell;
#[path = "../support/mod.rs"]
mod support;
