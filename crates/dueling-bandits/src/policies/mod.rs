//! The policies, one file per paper, and the code that several of them share.

mod alpha;
pub mod batch;
pub mod bounds;
pub mod ccb;
pub mod choose;
pub mod comp;
pub mod double_thompson;
pub mod explore;
pub mod scb;
pub mod uniform;
pub mod verdict;
