//! `/v1/experiments`: create, list, read, change and archive experiments.

mod archive;
pub(crate) mod change;
pub(crate) mod create;
mod if_match;
mod list;
mod read;
mod representation;
mod routes;

pub(crate) use routes::routes;
