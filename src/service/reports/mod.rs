//! Reports on an experiment.
//!
//! A report first copies what it needs of the fold, then computes on a thread of [`pool`]. The
//! newest one of each kind is kept, for all who ask at the same log position ([`single_flight`]).

pub mod alarms;
mod conclusion;
mod duels_to_go;
mod even_answers;
pub mod overview;
mod pair_tests;
pub(crate) mod pool;
pub mod regret;
pub mod replay;
pub(crate) mod single_flight;
pub mod standings;
pub mod statistics;
pub mod traffic;
mod traffic_summary;
pub mod verdict;
mod verdict_sentence;
pub mod winners;

use std::sync::Arc;
use std::time::Duration;

use overview::Overview;
use regret::RegretReport;
use single_flight::{Computed, SingleFlight};
use standings::{Rows, Standings};
use statistics::{Statistics, StatisticsKey};
use verdict::{Verdict, VerdictKey};
use winners::Winners;

/// The newest reports on an experiment in memory, by log position.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    overview: SingleFlight<u64, Overview>,
    standings: SingleFlight<(u64, Rows), Standings>,
    statistics: SingleFlight<StatisticsKey, Statistics>,
    regret: SingleFlight<u64, RegretReport>,
    verdict: SingleFlight<VerdictKey, Verdict>,
    winners: SingleFlight<u64, Winners>,
}

impl Reports {
    /// The newest overview, if there is one.
    pub fn newest_overview(&self) -> Option<Arc<Computed<Overview>>> {
        self.overview.newest()
    }

    /// Forget the reports that nobody has asked for for this long. An overview is small, and the
    /// metrics ask for it at long intervals.
    pub fn forget_unused(&self, within: Duration) {
        self.standings.forget_unused(within);
        self.statistics.forget_unused(within);
        self.regret.forget_unused(within);
        self.verdict.forget_unused(within);
        self.winners.forget_unused(within);
    }
}
