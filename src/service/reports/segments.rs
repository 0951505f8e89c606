//! The results of one ranker in each declared segment, from the counts of the fold.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::leader::lead;
use super::pool::ReportPool;
use super::single_flight::{Computed, newest};
use crate::service::error::ServiceError;
use dueling_bandits::Roster;
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::evidence::Sequences;
use rankduel_engine::experiment_spec::OTHER;
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// Probability that any of the intervals ever fails.
const ERROR: f64 = 0.05;

/// The results of one ranker in each declared segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SegmentsReport {
    pub experiment: String,
    pub position: u64,
    pub ranker: String,
    /// The declared segments in their order, then `other`, which has the rest of the pages. Empty
    /// if none was declared.
    pub segments: Vec<SegmentRow>,
}

/// The results of the ranker in one segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SegmentRow {
    #[schema(example = "mobile")]
    pub segment: String,
    /// The other active rankers that the ranker has met in the segment, in the order of the
    /// experiment.
    pub opponents: Vec<OpponentRow>,
}

/// The duels of the ranker with one opponent in one segment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OpponentRow {
    pub opponent: String,
    /// Number of duels that the ranker won and that count, with ties by the tie rule.
    pub wins: f64,
    pub losses: f64,
    /// Share of the wins among wins and losses.
    pub win_rate: f64,
    /// Lower end of the interval for the probability that the ranker wins a duel. The intervals of
    /// all segments and pairs hold together with a probability of 95 %, however often you look.
    pub low: f64,
    pub high: f64,
}

/// The results by segment of the ranker with this index, or else of the winner of a concluded
/// experiment, or else of the leader, at the current log position or later.
pub async fn segments(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
    ranker: Option<usize>,
) -> Result<Arc<Computed<SegmentsReport>>, ServiceError> {
    let winner = loaded.with_record(|record| record.winner);
    let ranker = match ranker.or(winner.map(usize::from)) {
        Some(ranker) => ranker,
        None => lead(reports, loaded).await?.leader,
    };
    let copy = |fold: &Fold| {
        (fold.state().position, fold.run().segments().cloned(), fold.run().roster().clone())
    };
    let compute = move |loaded: &LoadedExperiment, (position, held, roster): (_, Option<_>, _)| {
        SegmentsReport {
            experiment: loaded.name.clone(),
            position,
            ranker: loaded.spec.rankers[ranker].id.clone(),
            segments: held.map_or_else(Vec::new, |held| rows(loaded, &held, &roster, ranker)),
        }
    };
    newest(reports, loaded, ranker, copy, compute).await
}

fn rows(
    loaded: &LoadedExperiment,
    held: &SegmentClaims,
    roster: &Roster,
    ranker: usize,
) -> Vec<SegmentRow> {
    // The segments share the error equally, and the intervals of `Sequences` use up twice theirs.
    let share = ERROR / 2.0 / (held.segments() + 1) as f64;
    let spec = &loaded.spec;
    let intervals = Sequences::new(loaded.initial_rankers, spec.rankers.len(), 1.0 - share);
    let row = |place: usize, opponent: usize| {
        let [wins, losses] = held.wins_between(place, ranker, opponent);
        let (low, high) = intervals.of(ranker, opponent).interval(wins, losses);
        OpponentRow {
            opponent: spec.rankers[opponent].id.clone(),
            wins,
            losses,
            win_rate: (1e4 * wins / (wins + losses)).round() / 1e4,
            low: (1e4 * low).floor() / 1e4,
            high: (1e4 * high).ceil() / 1e4,
        }
    };
    let named = spec.segments.iter().map(ToString::to_string).zip(1..);
    let of = |(segment, place): (String, usize)| SegmentRow {
        segment,
        opponents: roster
            .active()
            .iter()
            .filter(|&&other| other != ranker)
            .map(|&other| row(place, other))
            .filter(|row| row.wins + row.losses > 0.0)
            .collect(),
    };
    named.chain([(OTHER.to_owned(), 0)]).map(of).collect()
}
