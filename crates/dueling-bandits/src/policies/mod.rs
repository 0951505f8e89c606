//! The policies, one file per paper, and the code that several of them share.

mod alpha;
pub mod batch;
pub mod bounds;
pub mod btm;
pub mod ccb;
pub mod choose;
mod coin;
pub mod comp;
pub mod cw_rmed;
pub mod double_thompson;
pub mod doubler;
pub mod explore;
pub mod interleaved_filter;
pub mod merge;
pub mod multi_sbm;
pub mod rcs;
pub mod rmed;
pub mod rucb;
pub mod scb;
pub mod self_sparring;
pub mod sparring;
mod ucb;
pub mod uniform;
pub mod vdb;
pub mod verdict;
pub mod winner_stays;
