//! An experiment in a line: for the list of experiments, and for the metrics.

use std::sync::Arc;

use crate::service::error::ServiceError;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, SingleFlight, newest};
use crate::service::reports::standings::{
    RegretEstimate, RegretInput, copeland_scores, plug_in_regret,
};
use dueling_bandits::Tally;
use dueling_bandits::evidence::VerdictTracker;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// An experiment in a line.
#[derive(Debug)]
pub struct Overview {
    /// The estimated cost of exploration.
    pub regret: RegretEstimate,
    /// Number of answered duels, without self-duels.
    pub duels: u64,
    /// Indices of the rankers with the largest Copeland score.
    pub leaders: Vec<usize>,
    /// How far the verdict is.
    pub progress: Progress,
}

/// How far a verdict is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// There is none yet. The share of the logarithm of the needed evidence that the leader has
    /// against its strongest rival; `None` before the first comparison that counts.
    Open(Option<f64>),
    /// There is a verdict.
    Decided,
}

impl Progress {
    fn of(tracker: &VerdictTracker, tally: &Tally, active: &[usize]) -> Self {
        if tracker.verdict().is_some() {
            return Self::Decided;
        }
        if tracker.comparisons() == 0 {
            return Self::Open(None);
        }
        let standing = tracker.leader(tally, active);
        let least = standing.rivals.iter().map(|&(_, ln)| ln).fold(f64::INFINITY, f64::min);
        // Evidence that is enough for a moment between two checks is no verdict yet.
        Self::Open(Some((least / standing.threshold).clamp(0.0, 0.99)))
    }
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
    let copy =
        |fold: &Fold| (RegretInput::of(fold), fold.counts().self_duels, fold.verdict().clone());
    let compute = |loaded: &LoadedExperiment, (input, self_duels, tracker): (_, u64, _)| {
        let RegretInput { tally, roster, .. } = &input;
        let active = roster.active();
        let scores = copeland_scores(tally, roster);
        let best = active.iter().map(|&i| scores[i]).max().unwrap_or(0);
        let leaders = active.iter().copied().filter(|&i| scores[i] == best).collect();
        let regret = plug_in_regret(loaded, &input);
        let duels = regret.steps - self_duels;
        Overview { duels, leaders, progress: Progress::of(&tracker, tally, active), regret }
    };
    newest(reports, loaded, (), copy, compute).await
}
