//! A loaded experiment: the fold of its log, its open duels, group commit, replication and
//! maintenance.

pub mod error;
pub mod experiment_spec;
pub mod fold;
pub mod loaded;
pub mod log_regression;
pub mod maintenance;
pub mod outstanding;
pub mod page_rules;
pub mod registry;
pub mod replication;
pub mod single_flight;
pub mod traffic;
pub mod writer;
