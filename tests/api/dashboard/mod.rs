//! The dashboard, as people see it: in a browser, and over HTTP where the browser would hide what
//! matters.

mod browser;
mod login;
mod reference;
mod scene;
mod screenshots;
