//! The dashboard, in a browser, and over HTTP for details that a browser hides.

mod browser;
mod login;
mod reference;
mod scene;
mod screenshots;
