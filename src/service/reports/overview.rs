//! The cost of an experiment so far, for the list of experiments and for the metrics.

use std::sync::Arc;

use crate::service::error::ServiceError;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, SingleFlight, newest};
use crate::service::reports::standings::{RegretEstimate, RegretInput, plug_in_regret};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// An experiment in a line.
#[derive(Debug)]
pub struct Overview {
    /// The estimated cost of exploration.
    pub regret: RegretEstimate,
    /// Number of answered duels, without self-duels.
    pub duels: u64,
}

/// The newest overview of an experiment, if somebody has asked for it lately.
pub(crate) fn newest_overview(loaded: &LoadedExperiment) -> Option<Arc<Computed<Overview>>> {
    loaded.extensions().get::<SingleFlight<(), Overview>>().newest()
}

/// The experiment in a line, at the current log position or later.
pub async fn overview(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Overview>>, ServiceError> {
    let copy = |fold: &Fold| (RegretInput::of(fold), fold.counts().answered_duels());
    let compute = |loaded: &LoadedExperiment, (input, duels): (RegretInput, u64)| Overview {
        duels,
        regret: plug_in_regret(loaded, &input),
    };
    newest(reports, loaded, (), copy, compute).await
}
