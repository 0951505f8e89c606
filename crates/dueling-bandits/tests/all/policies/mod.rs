//! The policies through their public API, one module per topic.

mod arena;
mod batch;
mod bounds;
mod btm;
mod ccb;
mod contract;
mod cw_rmed;
mod double_thompson;
mod doubler;
mod explore;
mod growth;
mod in_flight;
mod interleaved_filter;
mod merge;
mod multi_sbm;
mod pairwise_sampling;
mod resume;
mod rmed;
mod rosters;
mod rucb;
mod scb;
mod self_sparring;
mod sparring;
mod support;
mod vdb;
mod winner_stays;
