//! Reports on an experiment.

pub mod alarms;
mod conclusion;
mod duels_to_go;
mod even_answers;
mod pair_tests;
pub mod regret;
pub mod replay;
mod single_flight;
pub mod standings;
pub mod statistics;
pub mod traffic;
mod traffic_summary;
pub mod verdict;
mod verdict_sentence;
pub mod winners;
