//! Reports: what is known about an experiment, computed from its fold.

pub mod alarms;
pub mod estimates;
pub mod regret;
pub mod replay;
pub mod standings;
pub mod statistics;
pub mod verdict;
pub mod winners;
