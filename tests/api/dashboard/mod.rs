//! The dashboard, in a browser, and over HTTP for details that a browser hides.

mod accessibility;
mod browser;
mod forms;
mod login;
mod manage;
mod manage_keys;
mod orders;
mod path_prefix;
mod reference;
mod scene;
mod screenshots;
mod signature;
mod states;
mod visit;
mod walk;
mod walk_claims;
