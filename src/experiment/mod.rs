//! Experiments as they live in a server: the fold of the log, the duels that are out, and the use cases of the API.
//!
//! The only place where policy, store and clock meet. It knows nothing of HTTP.

pub mod service;

pub use service::{Service, ServiceSettings};
