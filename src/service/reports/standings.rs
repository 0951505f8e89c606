//! What came of an experiment so far: counts, scores, leaders, and what exploring has cost.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::fold::Fold;
use crate::engine::fold::counts::PairTotals;
use crate::engine::loaded::LoadedExperiment;
use crate::service::error::ServiceError;
use dueling_bandits::preference::Regret;
use dueling_bandits::{Roster, Tally};

/// An experiment's counts and scores at a log position.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Standings {
    /// The experiment's name.
    #[schema(example = "search-ranking")]
    pub experiment: String,
    /// Log position that everything here is at; the next feedback makes it larger.
    pub position: u64,
    /// Duels that were answered, self-duels apart.
    pub duels: u64,
    /// Self-duels that were handed out: pages that show one ranker alone.
    pub self_duels: u64,
    /// Answers by what was shown.
    pub outcomes: OutcomeCounts,
    /// Ids of the rankers that lead: the largest Copeland score; more than one when they are level.
    pub leaders: Vec<String>,
    /// Id of the ranker that the policy would recommend if it had to end now.
    pub champion: String,
    /// One row a ranker, in the experiment's order.
    pub rankers: Vec<RankerStanding>,
    /// `wins[i][j]`: duels that ranker `i` won against ranker `j`, in the order of `rankers`. Ties
    /// are not in it.
    pub wins: Vec<Vec<u64>>,
    /// `ties[i][j]`: duels of `i` and `j` without a winner; symmetric.
    pub ties: Vec<Vec<u64>>,
}

/// Answers by what was shown left and right. Batch results that were posted as counts have no sides
/// and are not in it.
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

/// One ranker's counts and scores.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RankerStanding {
    /// The ranker's id.
    pub id: String,
    /// Whether it was retired: it is never shown again, and neither leads nor counts in anybody's
    /// score.
    pub retired: bool,
    /// Share of the other rankers that take part that it has beaten more often than not, 0 to 1.
    pub copeland_score: f64,
    /// Mean of its win rates against each of the others that take part, 0 to 1; a pair that was
    /// never compared counts 1/2.
    pub borda_score: f64,
    /// Duels that it won.
    pub wins: u64,
    /// Duels that it lost.
    pub losses: u64,
    /// Duels without a winner.
    pub ties: u64,
    /// Duels whose page got no click.
    pub no_signal: u64,
    /// Places on pages: one for a duel, two for a self-duel.
    pub appearances: u64,
    /// Whether it leads.
    pub leader: bool,
}

/// What exploring has cost, estimated. Nobody knows the true preferences of a live experiment: this
/// prices its duels with the scores of today's counts, and early in an experiment it is rough.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RegretEstimate {
    /// The experiment's name.
    pub experiment: String,
    /// Log position that it is at.
    pub position: u64,
    /// How it was estimated: `plug-in`, the logged duels priced with the Copeland scores of today's
    /// win rates.
    #[schema(example = "plug-in")]
    pub method: &'static str,
    /// Time-steps that were priced: answered duels and self-duels.
    pub steps: u64,
    /// Cumulative Copeland regret: over all steps, the best score less the mean score of the two
    /// rankers shown; 0 is a step that showed the best ranker twice, 1 the most that a step can
    /// cost.
    pub copeland_regret: f64,
    /// What uniform pairs would have cost over as many steps.
    pub uniform_copeland_regret: f64,
    /// `1 - copeland_regret / uniform_copeland_regret`: the part of that cost which the policy has
    /// saved; `null` while uniform pairs would have cost nothing.
    pub saved: Option<f64>,
}

/// How many of the rankers that take part each ranker has beaten, under the experiment's tie rule.
pub(crate) fn copeland_scores(tally: &Tally, roster: &Roster) -> Vec<usize> {
    let beaten =
        |i: usize| roster.active().iter().filter(|&&j| j != i && tally.leads(i, j)).count();
    (0..tally.rankers()).map(beaten).collect()
}

/// How many others take part, seen from `i`.
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
            duels: answered_duels(&fold),
            self_duels: counts.self_duels,
            outcomes: OutcomeCounts { left, right, tie, none },
            leaders: rankers.iter().filter(|row| row.leader).map(|row| row.id.clone()).collect(),
            champion: self.spec.rankers[fold.policy().champion()].id.clone(),
            wins: matrix(|pair| pair.wins),
            ties: matrix(|pair| pair.ties),
            rankers,
        })
    }

    /// What exploring has cost, as the plug-in estimate.
    pub fn regret(&self) -> Result<RegretEstimate, ServiceError> {
        Ok(self.plug_in_regret(&*self.fold()?))
    }

    pub(crate) fn plug_in_regret(&self, fold: &Fold) -> RegretEstimate {
        let counts = fold.counts();
        let steps = answered_duels(fold) + counts.self_duels;
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

pub(crate) fn answered_duels(fold: &Fold) -> u64 {
    let counts = fold.counts();
    counts.appearances().iter().sum::<u64>() / 2 - counts.self_duels
}
