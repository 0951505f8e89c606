//! What ops can see of a running server: metrics and logs.

pub mod logging;
pub mod metrics;
