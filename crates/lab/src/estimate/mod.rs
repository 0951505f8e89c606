//! The preference matrix of single-feature rankers, estimated from a learning-to-rank data set, a
//! click model and an interleaving method: the procedure of Zoghi et al. ("Relative upper
//! confidence bound", ICML 2014; "MergeRUCB", WSDM 2015).
//!
//! - [`compare_all`]: simulated comparisons of all pairs.
//! - [`report`]: the matrix, and which of its entries are significant.

mod compare;
mod pages;
pub mod report;

pub use compare::{PairCount, compare_all};
pub use pages::Pages;
