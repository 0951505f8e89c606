//! The HTTP API over the use cases of [`crate::service`].
//!
//! A resource is a file, or a folder with a file for each operation. It has the routes, the bodies
//! and their descriptions. [`app`](app()) puts the resources together, with the shell that all
//! requests pass through: `guard` (authorization), `shell` (limits), `running_request` (log line,
//! metrics) and [`problem`] (error responses). [`server`] accepts the connections.

mod app;
mod audit;
mod batch;
mod caller;
mod click;
mod connections;
mod cursor;
pub(crate) mod deliver;
mod docs;
mod duels;
mod etag;
mod experiment_metrics;
pub(crate) mod experiments;
pub mod extract;
mod fast_path;
mod feedback;
pub(crate) mod guard;
mod health;
mod hosts;
pub(crate) mod open_room;
mod openapi;
mod operation;
mod pages;
mod peer;
pub mod problem;
mod proxies;
mod queried_ranker;
mod rates;
mod read_pace;
mod readiness;
mod request_body;
mod request_id;
mod routes;
mod running_request;
pub(crate) mod schemas;
mod segments;
pub mod server;
mod shell;
mod spec_bodies;
mod standings;
mod state;
mod statistics;
mod trace;
mod traffic;
mod ubi;
mod unit;
mod verdict;
mod whatif;
mod write_progress;

pub use app::{App, ResponseFuture, app, app_for, app_with, description, operations};
pub use caller::Caller;
pub use extract::{JsonBody, PathOf, QueryOf};
pub use hosts::Hosts;
pub use open_room::OpenSettings;
pub use operation::{Access, Operation};
pub use problem::{ApiResult, Problem, ProblemKind};
pub use proxies::{AddressRange, TrustedProxies};
pub use readiness::Readiness;
pub use request_id::{NoRandomness, REQUEST_ID};
pub use shell::ShellSettings;
pub use state::AppState;
