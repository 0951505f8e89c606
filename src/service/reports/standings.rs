//! Standings: counts, scores and leaders.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::fold_copy::FoldCopy;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use dueling_bandits::pairs::pairs_by_strips;
use dueling_bandits::{Roster, Tally};
use rankduel_engine::fold::counts::PairTotals;
use rankduel_engine::loaded::LoadedExperiment;

/// Counts and scores of an experiment at a log position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Standings {
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// The log position of the counts, which grows with each piece of feedback.
    pub position: u64,
    /// Answered duels, without self-duels.
    pub duels: u64,
    /// Issued pages that show one ranker alone.
    pub self_duels: u64,
    pub outcomes: OutcomeCounts,
    /// The rankers with the largest Copeland score; several if they are tied.
    pub leaders: Vec<String>,
    /// The ranker that the policy would recommend now.
    pub champion: String,
    /// In the order of the experiment.
    pub rankers: Vec<RankerStanding>,
    /// `wins[i][j]`: duels that ranker `i` won against ranker `j`, in the order of `rankers`,
    /// without ties.
    pub wins: Vec<Vec<u64>>,
    /// `ties[i][j]`: duels of `i` and `j` without a winner.
    pub ties: Vec<Vec<u64>>,
}

/// Answers by side of the page, without batch results that were posted as counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct OutcomeCounts {
    pub left: u64,
    pub right: u64,
    pub tie: u64,
    /// No click.
    pub none: u64,
}

/// Counts and scores of one ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RankerStanding {
    pub id: String,
    /// Whether the ranker is retired or the second id of a canary: it cannot lead, and counts in no
    /// score of others.
    pub retired: bool,
    /// Share of the other active rankers that the ranker beats in the current counts.
    pub copeland_score: f64,
    /// Mean of the win rates against each other active ranker. A pair without comparisons counts as
    /// 1/2.
    pub borda_score: f64,
    pub wins: u64,
    pub losses: u64,
    pub ties: u64,
    /// Duels whose page got no click.
    pub no_signal: u64,
    /// Number of appearances on pages: one for a duel, two for a self-duel.
    pub appearances: u64,
    pub leader: bool,
}

/// How many of the active rankers each ranker beats, under the tie rule of the experiment.
pub(crate) fn copeland_scores(tally: &Tally, roster: &Roster) -> Vec<usize> {
    let mut scores = vec![0; tally.rankers()];
    pairs_by_strips(tally.rankers()).for_each(|(i, j)| {
        scores[i] += usize::from(roster.is_active(j) && tally.leads(i, j));
        scores[j] += usize::from(roster.is_active(i) && tally.leads(j, i));
    });
    scores
}

/// Number of active rankers other than `i`.
fn others(roster: &Roster, i: usize) -> usize {
    roster.active().len() - usize::from(roster.is_active(i))
}

/// The mean win rate of each ranker against the active ones.
fn borda_scores(tally: &Tally, roster: &Roster) -> Vec<f64> {
    let mut rates = vec![0.0; tally.rankers()];
    // the others of each ranker come in ascending order
    pairs_by_strips(tally.rankers()).for_each(|(i, j)| {
        for (i, j) in [(i, j), (j, i)] {
            if roster.is_active(j) {
                rates[i] += tally.mean(i, j).unwrap_or(0.5);
            }
        }
    });
    rates.iter().enumerate().map(|(i, rates)| rates / others(roster, i) as f64).collect()
}

/// Counts and scores at the current log position or later.
pub async fn standings(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Standings>>, ServiceError> {
    let compute = |loaded: &LoadedExperiment, copy| standings_of(loaded, &copy);
    newest(reports, loaded, (), FoldCopy::of, compute).await
}

/// Counts and scores of this fold.
pub fn standings_of(loaded: &LoadedExperiment, copy: &FoldCopy) -> Standings {
    let FoldCopy { counts, tally, roster, .. } = copy;
    let scores = copeland_scores(tally, roster);
    let best = roster.active().iter().map(|&i| scores[i]).max().unwrap_or(0);
    let (borda, totals) = (borda_scores(tally, roster), counts.by_ranker());
    let rankers: Vec<_> = loaded
        .spec
        .rankers
        .iter()
        .enumerate()
        .map(|(i, ranker)| {
            let totals = totals[i];
            RankerStanding {
                id: ranker.id.clone(),
                retired: !roster.is_active(i),
                copeland_score: scores[i] as f64 / others(roster, i) as f64,
                borda_score: borda[i],
                wins: totals.wins,
                losses: totals.losses,
                ties: totals.ties,
                no_signal: totals.no_signal,
                appearances: counts.appearances()[i],
                leader: roster.is_active(i) && scores[i] == best,
            }
        })
        .collect();
    let matrix = |cell: fn(PairTotals) -> u64| -> Vec<Vec<u64>> {
        let k = scores.len();
        let row =
            |i: usize| (0..k).map(|j| if i == j { 0 } else { cell(counts.pair(i, j)) }).collect();
        (0..k).map(row).collect()
    };
    let [left, right, tie, none] = counts.shown;
    Standings {
        experiment: loaded.name.clone(),
        position: copy.position,
        duels: counts.answered_duels(),
        self_duels: counts.self_duels,
        outcomes: OutcomeCounts { left, right, tie, none },
        leaders: rankers.iter().filter(|row| row.leader).map(|row| row.id.clone()).collect(),
        champion: loaded.spec.rankers[copy.champion].id.clone(),
        wins: matrix(|pair| pair.wins),
        ties: matrix(|pair| pair.ties),
        rankers,
    }
}
