//! `rankduel demo`: the whole service with simulated users, in one command.
//!
//! The demo starts a server on a fresh store and creates an experiment with the six arXiv rankers,
//! or with the features of a learning-to-rank file. Simulated users then search over HTTP. At the
//! end, the demo computes the regret of every shown page with the true preferences.

mod command;
mod drive;
mod report;
mod searches;
mod server;

pub(super) use command::{DemoArgs, run};
