//! The dashboard: `/` and `/experiments/{name}`, for people, and the pages that change something.
//!
//! The server renders the pages. A small script only updates them. They load nothing from another
//! host, and the content security policy enforces that.

mod answer;
mod basis;
mod chart;
mod dots;
mod evidence;
mod figures;
mod forecast;
mod layout;
mod list;
mod login;
mod manage;
mod orders;
mod page;
mod pages;
mod race;
mod result;
mod safe;
mod still;
mod traffic;
mod view;
mod whom;

pub(crate) use manage::MANAGING_PAGES;
pub(crate) use page::page_of;
pub(crate) use pages::{FILES, OPEN_PAGES, PAGES, routes};
