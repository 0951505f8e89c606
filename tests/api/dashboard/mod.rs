//! The dashboard in a browser, and over HTTP for what a browser would hide.

mod browser;
mod login;
mod reference;
mod scene;
mod screenshots;
