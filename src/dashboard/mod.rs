//! The dashboard: `/` and `/experiments/{name}`, for people, and the pages that change something.
//!
//! The server renders the pages. A small script only updates them. They load nothing from another
//! host, and the content security policy enforces that.

mod basis;
mod experiment;
mod heat;
mod history;
mod interleaved;
mod layout;
mod list;
mod manage;
mod pages;
mod plot;
mod race;
mod response;
mod scale;
mod segments;
mod session;
mod verdict;
mod view;

pub(crate) use manage::MANAGING_PAGES;
pub(crate) use pages::{OPEN, PAGES, routes};
pub(crate) use session::Sessions;
