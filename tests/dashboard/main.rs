//! The dashboard, as people see it: in a browser, and over HTTP where the browser would hide what
//! matters.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod browser;
mod login;
mod reference;
mod scene;
mod screenshots;
