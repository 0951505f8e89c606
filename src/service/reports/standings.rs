//! Standings: counts, scores, leaders, and the plug-in estimate of regret.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::fold::Fold;
use crate::engine::fold::counts::PairTotals;
use crate::engine::loaded::LoadedExperiment;
use crate::service::error::ServiceError;
use dueling_bandits::preference::Regret;
use dueling_bandits::{Roster, Tally};

/// Counts and scores of an experiment at a log position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Standings {
    /// The experiment's name.
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// Log position of these standings. It grows with each piece of feedback.
    pub position: u64,
    /// Number of answered duels, without self-duels.
    pub duels: u64,
    /// Number of issued self-duels: pages that show one ranker alone.
    pub self_duels: u64,
    /// Answers by side of the page.
    pub outcomes: OutcomeCounts,
    /// Ids of the rankers with the largest Copeland score; several if they are tied.
    pub leaders: Vec<String>,
    /// Id of the ranker that the policy would recommend now.
    pub champion: String,
    /// One row for each ranker, in the order of the experiment.
    pub rankers: Vec<RankerStanding>,
    /// `wins[i][j]`: duels that ranker `i` won against ranker `j`, in the order of `rankers`. Ties
    /// are not included.
    pub wins: Vec<Vec<u64>>,
    /// `ties[i][j]`: duels of `i` and `j` without a winner; symmetric.
    pub ties: Vec<Vec<u64>>,
}

/// Answers by side of the page. Batch results that were posted as counts have no sides and are not
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct OutcomeCounts {
    /// The left ranker won.
    pub left: u64,
    /// The right ranker won.
    pub right: u64,
    /// Equal credit.
    pub tie: u64,
    /// No click.
    pub none: u64,
}

/// Counts and scores of one ranker.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RankerStanding {
    /// The ranker's id.
    pub id: String,
    /// Whether it is retired: it is never shown again, cannot lead, and does not count in the
    /// scores of other rankers.
    pub retired: bool,
    /// Share of the other active rankers that it beats in the current counts, 0 to 1.
    pub copeland_score: f64,
    /// Mean of its win rates against each other active ranker, 0 to 1. A pair without comparisons
    /// counts as 1/2.
    pub borda_score: f64,
    /// Duels that it won.
    pub wins: u64,
    /// Duels that it lost.
    pub losses: u64,
    /// Duels without a winner.
    pub ties: u64,
    /// Duels whose page got no click.
    pub no_signal: u64,
    /// Appearances on pages: one for a duel, two for a self-duel.
    pub appearances: u64,
    /// Whether it is one of the `leaders`.
    pub leader: bool,
}

/// Estimated cost of exploration. The true preferences of a live experiment are unknown, so the
/// estimate uses the scores of the current counts. It is rough early in an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretEstimate {
    /// The experiment's name.
    pub experiment: String,
    /// Log position of the estimate.
    pub position: u64,
    /// Method of the estimate. `plug-in`: the regret of the logged duels, computed with the
    /// Copeland scores of the current win rates.
    #[schema(example = "plug-in")]
    pub method: &'static str,
    /// Number of time-steps: answered duels and self-duels.
    pub steps: u64,
    /// Cumulative Copeland regret: the sum over all steps of the best score minus the mean score of
    /// the two rankers shown. A step costs between 0 (both are best rankers) and 1.
    pub copeland_regret: f64,
    /// Regret of uniform pairs over the same number of steps.
    pub uniform_copeland_regret: f64,
    /// `1 - copeland_regret / uniform_copeland_regret`: the share of that regret that the policy
    /// has saved. `null` while the regret of uniform pairs is 0.
    pub saved: Option<f64>,
}

/// How many of the active rankers each ranker beats, under the tie rule of the experiment.
pub(crate) fn copeland_scores(tally: &Tally, roster: &Roster) -> Vec<usize> {
    let beaten =
        |i: usize| roster.active().iter().filter(|&&j| j != i && tally.leads(i, j)).count();
    (0..tally.rankers()).map(beaten).collect()
}

/// Number of active rankers other than `i`.
fn others(roster: &Roster, i: usize) -> usize {
    roster.active().len() - usize::from(roster.is_active(i))
}

fn borda_score(tally: &Tally, roster: &Roster, i: usize) -> f64 {
    let met = roster.active().iter().filter(|&&j| j != i);
    let rates: f64 = met.map(|&j| tally.mean(i, j).unwrap_or(0.5)).sum();
    rates / others(roster, i) as f64
}

impl LoadedExperiment {
    /// Counts and scores at the current log position.
    pub fn standings(&self) -> Result<Standings, ServiceError> {
        let fold = self.fold()?;
        let (counts, tally, roster) = (fold.counts(), fold.policy().tally(), fold.roster());
        let scores = copeland_scores(tally, roster);
        let best = roster.active().iter().map(|&i| scores[i]).max().unwrap_or(0);
        let rankers: Vec<_> = self
            .spec
            .rankers
            .iter()
            .enumerate()
            .map(|(i, ranker)| {
                let totals = counts.ranker(i);
                RankerStanding {
                    id: ranker.id.clone(),
                    retired: !roster.is_active(i),
                    copeland_score: scores[i] as f64 / others(roster, i) as f64,
                    borda_score: borda_score(tally, roster, i),
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
            (0..k)
                .map(|i| (0..k).map(|j| if i == j { 0 } else { cell(counts.pair(i, j)) }).collect())
                .collect()
        };
        let [left, right, tie, none] = counts.shown;
        Ok(Standings {
            experiment: self.name.clone(),
            position: fold.position(),
            duels: counts.answered_duels(),
            self_duels: counts.self_duels,
            outcomes: OutcomeCounts { left, right, tie, none },
            leaders: rankers.iter().filter(|row| row.leader).map(|row| row.id.clone()).collect(),
            champion: self.spec.rankers[fold.policy().champion()].id.clone(),
            wins: matrix(|pair| pair.wins),
            ties: matrix(|pair| pair.ties),
            rankers,
        })
    }

    /// The cost of exploration, as the plug-in estimate.
    pub fn regret(&self) -> Result<RegretEstimate, ServiceError> {
        Ok(self.plug_in_regret(&*self.fold()?))
    }

    pub(crate) fn plug_in_regret(&self, fold: &Fold) -> RegretEstimate {
        let counts = fold.counts();
        let steps = counts.answered_duels() + counts.self_duels;
        let scores = copeland_scores(fold.policy().tally(), fold.roster());
        let priced = Regret::from_copeland_scores_among(&scores, fold.roster().active());
        let cost = priced.of_appearances(counts.appearances());
        let uniform = priced.of_uniform_pairs(steps);
        RegretEstimate {
            experiment: self.name.clone(),
            position: fold.position(),
            method: "plug-in",
            steps,
            copeland_regret: cost,
            uniform_copeland_regret: uniform,
            saved: (uniform > 0.0).then(|| 1.0 - cost / uniform),
        }
    }
}
