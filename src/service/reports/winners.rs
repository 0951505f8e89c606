//! The winners under several notions of the best ranker, from the estimated preferences.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::error::ServiceError;
use crate::service::reports::pool::ReportPool;
use crate::service::reports::single_flight::{Computed, newest};
use dueling_bandits::preference::PreferenceMatrix;
use dueling_bandits::{Roster, Tally};
use rankduel_engine::fold::Fold;
use rankduel_engine::loaded::LoadedExperiment;

/// Most rankers in the linear program of the von Neumann winner on a request. The program has the
/// rankers of the Smith set: each beats every ranker outside.
const PROGRAM_RANKERS_MAX: usize = 60;

/// The winners under five notions, from the current win rates. A pair without comparisons counts as
/// even.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Winners {
    pub experiment: String,
    pub position: u64,
    pub pairs_compared: usize,
    /// Number of pairs of active rankers.
    pub pairs: usize,
    pub notions: Vec<Notion>,
    /// Whether all notions that have a winner have the same one.
    pub agree: bool,
    /// The meaning of their agreement or disagreement.
    pub note: String,
}

/// The winners under one notion.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Notion {
    /// `copeland`, `condorcet`, `borda`, `random-walk` or `von-neumann`.
    #[schema(example = "copeland")]
    pub notion: &'static str,
    #[schema(example = "beats the most others")]
    pub meaning: &'static str,
    /// The winners: several if they are tied or the winner is a mixture; empty if there is none.
    pub winners: Vec<String>,
    /// The scores of the rankers, in the order of the experiment: the share of the others that a
    /// ranker beats, its mean win rate, its share of the time of the walk, or its weight in the
    /// mixture. `null` for retired rankers, and if the notion has no scores.
    pub scores: Option<Vec<Option<f64>>>,
    /// Why there is no winner.
    pub reason: Option<String>,
}

/// The winners under each notion, at the current log position or later.
pub async fn winners(
    reports: &Arc<ReportPool>,
    loaded: &Arc<LoadedExperiment>,
) -> Result<Arc<Computed<Winners>>, ServiceError> {
    let copy = |fold: &Fold| {
        (fold.state().position, fold.run().policy().tally().clone(), fold.run().roster().clone())
    };
    let compute = |loaded: &LoadedExperiment, (position, tally, roster): (_, Tally, Roster)| {
        winners_of(loaded, position, &tally, &roster)
    };
    newest(reports, loaded, (), copy, compute).await
}

fn winners_of(loaded: &LoadedExperiment, position: u64, tally: &Tally, roster: &Roster) -> Winners {
    let active = roster.active();
    let rankers = active.len();
    let compared =
        |i: usize| active.iter().filter(|&&j| j < i && tally.half_plays(i, j) > 0).count();
    let notions = notions(loaded, &estimated_matrix(tally, active), active);
    let pairs_compared = active.iter().map(|&i| compared(i)).sum();
    let (agree, note) = agreement(&notions, rankers * (rankers - 1) / 2, pairs_compared);
    Winners {
        experiment: loaded.name.clone(),
        position,
        pairs_compared,
        pairs: rankers * (rankers - 1) / 2,
        notions,
        agree,
        note,
    }
}

/// The winners among the `active` rankers, whose preferences are in `matrix`.
fn notions(loaded: &LoadedExperiment, matrix: &PreferenceMatrix, active: &[usize]) -> Vec<Notion> {
    let ids = |winners: Vec<usize>| {
        winners.into_iter().map(|i| loaded.spec.rankers[active[i]].id.clone()).collect()
    };
    let of_all = |scores: Vec<f64>| {
        let mut all = vec![None; loaded.spec.rankers.len()];
        active.iter().zip(scores).for_each(|(&i, score)| all[i] = Some(score));
        all
    };
    let notion = |notion, meaning, winners: Vec<usize>, scores: Option<Vec<f64>>| Notion {
        notion,
        meaning,
        winners: ids(winners),
        scores: scores.map(of_all),
        reason: None,
    };
    let without_winner = |name, meaning, why| Notion {
        reason: Some(why),
        ..notion(name, meaning, Vec::new(), None)
    };

    let share = |score: &usize| *score as f64 / (matrix.rankers() - 1) as f64;
    let copeland = matrix.copeland_scores().iter().map(share).collect();
    let beats_all = "beats every other";
    let mixture = "as a mixture with these weights, is beaten by no ranker on average";
    vec![
        notion("copeland", "beats the most others", matrix.copeland_winners(), Some(copeland)),
        match matrix.condorcet_winner() {
            Some(winner) => notion("condorcet", beats_all, vec![winner], None),
            None => {
                let why = "no ranker beats every other in the current counts".into();
                without_winner("condorcet", beats_all, why)
            }
        },
        notion(
            "borda",
            "wins most often on average",
            matrix.borda_winners(),
            Some(matrix.borda_scores()),
        ),
        notion(
            "random-walk",
            "is where a random walk to better rankers spends most time",
            matrix.random_walk_winners(),
            Some(matrix.random_walk_distribution()),
        ),
        match mixture_weights(matrix) {
            Ok(weights) => {
                // smaller weights are rounding errors
                let part_of = (0..weights.len()).filter(|&i| weights[i] > 1e-9).collect();
                notion("von-neumann", mixture, part_of, Some(weights))
            }
            Err(why) => without_winner("von-neumann", mixture, why),
        },
    ]
}

/// The weight of each ranker in the von Neumann winner, or why it is not computed.
fn mixture_weights(matrix: &PreferenceMatrix) -> Result<Vec<f64>, String> {
    let smith_set_size = matrix.smith_set().len();
    if smith_set_size > PROGRAM_RANKERS_MAX {
        return Err(format!(
            "not computed while more than {PROGRAM_RANKERS_MAX} rankers can be part of the mixture; {smith_set_size} can"
        ));
    }
    matrix.von_neumann_strategy().map_err(|error| error.to_string())
}

/// Whether all notions that have winners have the same ones, and what that means.
fn agreement(notions: &[Notion], pairs: usize, pairs_compared: usize) -> (bool, String) {
    let named: Vec<&Notion> = notions.iter().filter(|notion| !notion.winners.is_empty()).collect();
    let first = &named[0].winners;
    let agree = named.iter().all(|notion| notion.winners == *first);
    if pairs_compared == 0 {
        return (
            agree,
            "No pair has been compared yet, so all rankers are tied under every notion.".into(),
        );
    }
    let quoted = |ids: &[String]| match ids.len() {
        0..=3 => ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", "),
        many => format!("{many} rankers"),
    };
    let uncompared = match pairs - pairs_compared {
        0 => String::new(),
        uncompared => format!(
            " {uncompared} of {pairs} pairs were never compared and count as even, which affects Borda and the random walk \
             most."
        ),
    };
    if agree {
        return (
            true,
            format!("Every notion that has a winner names {}.{uncompared}", quoted(first)),
        );
    }
    let says: Vec<String> = named
        .iter()
        .map(|notion| format!("{} {}", notion.notion, quoted(&notion.winners)))
        .collect();
    (
        false,
        format!(
            "The notions disagree: {}. The verdict, the regret and most policies use Copeland: how many others a ranker \
             beats, not by how much. Borda favours rankers that win clearly against weak ones.{uncompared}",
            says.join("; ")
        ),
    )
}

/// The estimated preferences among `rankers`, with 1/2 for pairs without comparisons.
fn estimated_matrix(tally: &Tally, rankers: &[usize]) -> PreferenceMatrix {
    let mean = |i: usize, j: usize| tally.mean(rankers[i], rankers[j]).unwrap_or(0.5);
    PreferenceMatrix::from_pairs(rankers.len(), mean)
        .expect("shares of wins are probabilities, and the limits of rankers are those of matrices")
}
