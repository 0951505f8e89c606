//! The HTTP API over the use cases of [`crate::service`].
//!
//! A resource is a file, or a folder with a file for each operation. It has the routes, the bodies
//! and their descriptions. [`app`](app()) puts the resources together, with the shell that all
//! requests pass through ([`server`]): authorization, limits, log line and metrics. [`problem`] has
//! the error responses.

mod app;
mod audit;
mod batch;
mod caller;
mod click;
pub(crate) mod conditional;
mod direct;
mod docs;
mod duels;
mod experiment_metrics;
pub(crate) mod experiments;
pub mod extract;
mod feedback;
mod health;
mod json_response;
mod openapi;
mod operations;
pub(crate) mod orders;
mod pages;
pub(crate) mod parameters;
mod plan;
pub mod problem;
mod reports;
pub mod server;
mod spec_bodies;
mod state;
mod traffic;
mod ubi;
mod yaml_text;

pub use app::{App, ResponseFuture, app, app_with, description, operations};
pub use caller::Caller;
pub use extract::{JsonBody, PathName, QueryOf};
pub use openapi::yaml;
pub use operations::Operation;
pub use problem::{ApiResult, Problem, ProblemKind};
pub use server::hosts::Hosts;
pub use server::path_prefix::PathPrefix;
pub use server::running_request::REQUEST_ID;
pub use server::shell::ShellSettings;
pub use state::{AppState, Readiness};
