//! An experiment in a line: for the list of experiments, and for the metrics.

use std::sync::Arc;

use crate::engine::loaded::LoadedExperiment;
use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::reports::single_flight::{Computed, SingleFlight};
use crate::service::reports::standings::{RegretEstimate, RegretInput, copeland_scores};

/// An experiment in a line.
#[derive(Debug)]
pub struct Overview {
    /// The estimated cost of exploration.
    pub regret: RegretEstimate,
    /// Number of answered duels, without self-duels.
    pub duels: u64,
    /// Indices of the rankers with the largest Copeland score.
    pub leaders: Vec<usize>,
}

/// The newest overview of an experiment, if somebody has asked for it lately.
pub(crate) fn newest_overview(loaded: &LoadedExperiment) -> Option<Arc<Computed<Overview>>> {
    loaded.extensions().get::<SingleFlight<u64, Overview>>().newest()
}

impl Service {
    /// The experiment in a line, at the current log position or later. Computed once for each
    /// position.
    pub async fn overview(
        &self,
        loaded: &Arc<LoadedExperiment>,
    ) -> Result<Arc<Computed<Overview>>, ServiceError> {
        let asked_at = loaded.fold()?.position();
        let (read, experiment) = (Arc::clone(loaded), Arc::clone(loaded));
        let copy = move || {
            let fold = read.fold()?;
            Ok((RegretInput::of(&fold), fold.counts().self_duels))
        };
        let compute = move |(input, self_duels): (RegretInput, u64)| {
            let active = input.roster.active();
            let scores = copeland_scores(&input.tally, &input.roster);
            let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
            let leaders = active.iter().copied().filter(|&i| scores[i] == best).collect();
            let regret = experiment.plug_in_regret(&input);
            Ok((input.position, Overview { duels: regret.steps - self_duels, regret, leaders }))
        };
        let reports = loaded.extensions().get::<SingleFlight<u64, Overview>>();
        let good_enough = |position: &u64| *position >= asked_at;
        reports.get(&self.reports, good_enough, copy, compute).await
    }
}
