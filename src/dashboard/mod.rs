//! The dashboard: `/` and `/experiments/{name}`, for people.
//!
//! The server renders the pages. A small script only updates them. They load nothing from another
//! host, and the content security policy enforces that.

mod experiment;
mod heat;
mod history;
mod interleaved;
mod layout;
mod list;
mod pages;
mod pairs;
mod parts;
mod plot;
mod race;
mod response;
mod session;
mod verdict;
mod view;

pub(crate) use pages::{OPEN, PAGES, routes};
pub(crate) use session::Sessions;
