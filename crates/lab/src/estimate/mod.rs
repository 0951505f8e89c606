//! The preference matrix of single-feature rankers, estimated from a learning-to-rank data set, a
//! click model and an interleaving method: the procedure of Zoghi et al. ("Relative upper
//! confidence bound", ICML 2014; "MergeRUCB", WSDM 2015).
//!
//! - [`compare_all`]: simulated comparisons of all pairs.
//! - [`learn`]: weights of clicks that make verdicts faster.
//! - [`sensitivity`]: pages to a verdict, and false verdicts, of interleaving methods.
//! - [`report`]: the matrix, and which of its entries are significant.

mod compare;
pub mod learn;
mod pages;
pub mod report;
pub mod sensitivity;

pub use compare::{PairCount, compare_all, pairs};
pub use pages::Pages;
