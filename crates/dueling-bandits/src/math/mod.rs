//! Functions of win counts that policies and [`evidence`](crate::evidence) share.

pub mod cholesky;
pub mod divergence;
pub mod mixture;
