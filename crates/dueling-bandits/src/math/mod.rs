//! Functions of win counts that several policies and the evidence share.

pub mod divergence;
pub mod mixture;
